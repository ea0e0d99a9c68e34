"""A x + b: at once on arrays, and through a graph.

python examples/tensor_math.py
"""

import numpy as np

from magmadnn_py import Variable, ops
from magmadnn_py.graph import evaluate, text

a = Variable([[1, 2, 3], [4, 5, 6]], dtype="float32", name="A")
x = Variable([[1], [0], [-1]], dtype="float32", name="x")
b = Variable([[10], [20]], dtype="float32", name="b")

print("at once:", (a @ x + b).tolist())

y = a.leaf @ x + b
print(text(y), "=", evaluate(y).tolist())

print("on NumPy arrays:", ops.add(np.float32(1), ops.matmul(np.eye(2), np.ones((2, 1)))).tolist())
