"""What this machine reaches at the most, measured once: the yardstick of `model.explain()`."""

from __future__ import annotations

from ..graph.node import Input, Node
from ..graph.types import TensorType
from ..ops.matmul import MatMul
from ..ops.movement import Copy
from .tuner import cost_of, default_tuner, tuning

_MATRIX = 1024
#: Much more than the caches hold, as the STREAM benchmark wants it.
_COPIED_BYTES = 1 << 26


def peak_flops(dtype: str, threads: int) -> float:
    """Operations a second of the library's own product of two large matrices of `dtype` (float32 or float64)."""
    matrix = Input(TensorType((_MATRIX, _MATRIX), dtype))()
    node = Node(MatMul(), (matrix, matrix))
    return cost_of(node).flops / _seconds(node, threads)


def peak_bandwidth(threads: int) -> float:
    """Bytes a second, read and written, of copying a large block of memory."""
    node = Node(Copy(), (Input(TensorType((_COPIED_BYTES // 4,), "float32"))(),))
    return cost_of(node).bytes / _seconds(node, threads)


def _seconds(node: Node, threads: int) -> float:
    with tuning("full"):
        return default_tuner().seconds([node], threads)[0]
