"""Tensors: make them in each kind of memory with each filler, read and set elements, copy, reshape.

python examples/tensors.py
"""

import numpy as np

from magmadnn_py import Tensor
from magmadnn_py.runtime.tensor import constant, diagonal, glorot, identity, mask, normal, one, uniform, zero

for memory in ("host", "pinned", "device", "managed"):
    try:
        print(f"{memory:8}", Tensor((2, 3), "float32", fill=one, memory=memory).tolist())
    except RuntimeError as error:  # this build has no such memory
        print(f"{memory:8}", error)

fillers = {
    "zero": zero,
    "one": one,
    "constant": constant(2.5),
    "a number": 7,
    "uniform": uniform(-1, 1, seed=0),
    "normal": normal(0, 0.1, seed=0),
    "glorot": glorot(seed=0),
    "mask": mask(0.5, seed=0),
    "identity": identity,
    "diagonal": diagonal([1, 2]),
}
for name, filler in fillers.items():
    print(f"{name:8}", " ".join(f"{value:5.2f}" for value in Tensor((2, 3), "float32", fill=filler).numpy().flat))

x = Tensor((2, 3), "float32", fill=zero)
x[0, 1] = 5
x[1] = [1, 2, 3]
print("element:", x[0, 1].item(), "row:", x[1].tolist(), "column:", x[:, 2].tolist())
print("shape:", x.shape, "strides:", x.strides, "size:", x.size, "bytes:", x.nbytes, "memory:", x.memory)

view, copy = x.reshape((3, 2)), x.copy()  # a view shares the memory, a copy does not
x.fill(9)
print("view:", view.tolist(), "copy:", copy.tolist())
x.copy_from(np.arange(6).reshape(2, 3))
print("from an array:", x.tolist(), "as integers:", x.astype("int32").tolist())
