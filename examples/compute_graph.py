"""The graph by hand: variables, an expression, its text, its value, its gradient.

python examples/compute_graph.py
"""

from magmadnn_py import Variable, ops
from magmadnn_py.graph import evaluate, gradients, show, text

x = Variable([1.0, 2.0, 3.0], name="x")
c = Variable(0.5, name="c")

y = ops.sum(x.leaf**2 + c)
print("y =", text(y))
print("y is", evaluate(y).item())

x.assign([2.0, 2.0, 2.0])
print("y with another x is", evaluate(y).item())

slope, step = gradients(y, [x.leaf, c.leaf])
print("dy/dx is", evaluate(slope).tolist(), "and dy/dc is", evaluate(step).item())

print("all of it:")
print(show([y, slope, step]))
