"""Which nodes need no kernel because their output is part of their input's memory."""

from __future__ import annotations

from ..graph.node import Node, Value
from ..graph.types import ITEMSIZE, TensorType
from ..ops.movement import Slice, Transpose


def view_offset(node: Node) -> int | None:
    """Byte offset of the output inside the input's memory, or None where the node has to compute."""
    op = node.op
    if op.is_view:
        return 0
    if isinstance(op, Slice):
        return _slice_offset(op, node.inputs[0].type)
    if isinstance(op, Transpose):
        shape = node.inputs[0].shape
        moved = [axis for axis in op.permutation if shape[axis] != 1]
        return 0 if moved == sorted(moved) else None
    return None


def _slice_offset(op: Slice, source: TensorType) -> int | None:
    """A slice is a view if only its outermost extent larger than one is cut, with step 1."""
    offset, stride = 0, source.size
    cut = False
    for start, stop, step, extent in zip(op.starts, op.stops, op.steps, source.shape, strict=True):
        if cut and (start, stop) != (0, extent):
            return None
        if step != 1:
            return None
        stride //= max(extent, 1)
        offset += start * stride
        cut = cut or stop - start > 1
    return offset * ITEMSIZE[source.dtype]


def source_of(value: Value) -> tuple[Value, int]:
    """The value whose memory this one is a view of (itself if none), and the byte offset in it."""
    offset = 0
    while value.node.inputs:
        step = view_offset(value.node)
        if step is None:
            break
        offset += step
        value = value.node.inputs[0]
    return value, offset


def storage_readers(value: Value, consumers: dict[Value, list[Node]]) -> set[Node]:
    """The nodes that read the memory of `value`, through views of it as well."""
    found: set[Node] = set()
    stack = [value]
    while stack:
        for node in consumers.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                if view_offset(node) is not None:
                    stack.extend(node.outputs)
    return found
