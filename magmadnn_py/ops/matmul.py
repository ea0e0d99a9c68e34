"""Matrix multiplication, with a bias and an activation where the fuse pass puts them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..graph.node import AxisSplit, Cost, Op, total_bytes
from ..graph.types import TensorType, broadcast_shapes, is_floating
from .elementwise import unbroadcast
from .function import convert_all, function

__all__ = ["EPILOGUE_ACTIVATIONS", "MatMul", "dot", "matmul"]

#: Activations that a matmul or convolution kernel can apply as it writes its result.
EPILOGUE_ACTIVATIONS = ("linear", "relu")


@dataclass(frozen=True)
class MatMul(Op):
    """a[..., M, K] times b[..., K, N]; each may be stored transposed. Leading axes broadcast.

    With `bias`, a third input of shape [N] is added; `activation` is applied last.
    """

    transpose_a: bool = False
    transpose_b: bool = False
    bias: bool = False
    activation: str = "linear"

    name = "matmul"

    def infer(self, a, b, *bias):
        if a.rank < 2 or b.rank < 2:
            self.fail("inputs", f"shapes {a.shape} and {b.shape}", "matrices (rank 2 or more)")
        if a.dtype != b.dtype:
            self.fail("inputs", f"{a.dtype} and {b.dtype}", "one element type")
        m, k = a.shape[-2:][:: -1 if self.transpose_a else 1]
        kb, n = b.shape[-2:][:: -1 if self.transpose_b else 1]
        if k != kb:
            self.fail("inputs", f"shapes {a.shape} and {b.shape}", f"equal inner extents, not {k} and {kb}")
        if self.bias and bias[0].shape != (n,):
            self.fail("bias", f"shape {bias[0].shape}", f"({n},)")
        try:
            lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            self.fail("inputs", f"shapes {a.shape} and {b.shape}", "leading axes that broadcast")
        return (TensorType((*lead, m, n), a.dtype),)

    def gradient(self, node, gradients):
        if self.bias or self.activation != "linear":
            raise NotImplementedError("gradient of a fused matmul: differentiate before fusing")
        (g,), (a, b) = gradients, node.inputs
        ta, tb = self.transpose_a, self.transpose_b
        da = MatMul(tb, True)(b, g) if ta else MatMul(False, not tb)(g, b)
        db = MatMul(True, ta)(g, a) if tb else MatMul(not ta, False)(a, g)
        return unbroadcast(da, a.shape), unbroadcast(db, b.shape)

    def cost(self, inputs, outputs):
        k = inputs[0].shape[-2 if self.transpose_a else -1]
        return Cost(2 * k * outputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        a, b = inputs[:2]
        bias = len(inputs) - 2
        rank = outputs[0].rank
        row, inner_a = (a.rank - 1, a.rank - 2) if self.transpose_a else (a.rank - 2, a.rank - 1)
        inner_b, column = (b.rank - 1, b.rank - 2) if self.transpose_b else (b.rank - 2, b.rank - 1)
        splits = [
            AxisSplit(f"batch{axis}", (*self._batch_axes(inputs, outputs, axis), *(None,) * bias), (axis,))
            for axis in range(rank - 2)
        ]
        splits.append(AxisSplit("rows", (row, None) + (None,) * bias, (rank - 2,)))
        splits.append(AxisSplit("columns", (None, column) + (0,) * bias, (rank - 1,)))
        if not bias and self.activation == "linear":  # a bias must be added, an activation applied, to the sum
            splits.append(AxisSplit("inner", (inner_a, inner_b), (None,), needs="reduction"))
        return tuple(splits)

    def _batch_axes(self, inputs, outputs, axis: int):
        """For a and b the axis that is output axis `axis`; None where it is broadcast."""
        for t in inputs[:2]:
            own = axis - (outputs[0].rank - t.rank)
            yield own if own >= 0 and t.shape[own] == outputs[0].shape[axis] else None

    def reference(self, xp, a, b, *bias):
        a = xp.swapaxes(a, -1, -2) if self.transpose_a else a
        b = xp.swapaxes(b, -1, -2) if self.transpose_b else b
        y = xp.matmul(a, b)
        y = y + bias[0] if self.bias else y
        return xp.maximum(y, 0) if self.activation == "relu" else y


@function
def matmul(x1, x2):
    """Matrix product with NumPy's rules: vectors are rows on the left, columns on the right.

    Integers multiply as integers. Shapes [..., M, K] x [..., K, N] -> [..., M, N].
    """
    from .movement import reshape

    a, b = convert_all(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: inputs: got shapes {a.shape} and {b.shape}, wanted rank 1 or more")
    vector_a, vector_b = a.ndim == 1, b.ndim == 1
    a = reshape(a, (1, *a.shape)) if vector_a else a
    b = reshape(b, (*b.shape, 1)) if vector_b else b
    if a.ndim > 2 and b.ndim == 2 and is_floating(a.dtype):
        # One tall matrix instead of many small ones.
        y = MatMul()(reshape(a, (math.prod(a.shape[:-1]), a.shape[-1])), b)
        y = reshape(y, (*a.shape[:-1], b.shape[-1]))
    else:
        y = MatMul()(a, b)
    if vector_a:
        y = reshape(y, y.shape[:-2] + y.shape[-1:])
    if vector_b:
        y = reshape(y, y.shape[:-1])
    return y


@function
def dot(x1, x2):
    """NumPy's dot for vectors and matrices; a rank-0 operand multiplies."""
    a, b = convert_all(x1, x2)
    return a * b if a.ndim == 0 or b.ndim == 0 else matmul(a, b)
