"""Removes work that changes nothing: equal nodes are merged, constants folded, no-ops dropped."""

from __future__ import annotations

import numpy as np

from ..graph.graph import Graph, rewrite
from ..graph.node import Constant, Node, Op, ReadVariable, Value
from ..ops.elementwise import Elementwise
from ..ops.movement import BroadcastTo, Cast, Reshape, StopGradient, Transpose
from ..ops.reduce import Reduce

#: Constants of at most this many elements are folded and compared by content.
_SMALL = 1024

#: x op c is x: (function, position of the constant, its value).
_NEUTRAL = {("add", 0, 0), ("add", 1, 0), ("subtract", 1, 0), ("multiply", 0, 1), ("multiply", 1, 1), ("divide", 1, 1)}


def simplify(graph: Graph) -> Graph:
    known: dict[tuple, tuple[Value, ...]] = {}

    def rule(node: Node, inputs: tuple[Value, ...]):
        op, inputs = _canonical(node.op, inputs)
        same = _no_op(op, inputs, node.outputs)
        if same is not None:
            return (same,)
        folded = _folded(op, inputs)
        if folded is not None:
            op, inputs = folded.node.op, ()
        key = _key(op, inputs)
        if key is None:
            return None
        if key not in known:
            unchanged = op is node.op and inputs == node.inputs
            made = folded.node if folded is not None else node if unchanged else Node(op, inputs, node.scope)
            known[key] = made.outputs
        return known[key]

    return rewrite(graph, rule)[0]


def _key(op: Op, inputs: tuple[Value, ...]):
    if isinstance(op, Constant):
        array = op.array
        return ("constant", array.dtype.str, array.shape, array.tobytes()) if array.size <= _SMALL else None
    if op.is_leaf and not isinstance(op, ReadVariable):
        return None
    return (op, inputs)


def _canonical(op: Op, inputs: tuple[Value, ...]) -> tuple[Op, tuple[Value, ...]]:
    """The same computation on simpler inputs."""
    if isinstance(op, Reshape) and isinstance(inputs[0].node.op, Reshape):
        return op, inputs[0].node.inputs
    if isinstance(op, Transpose) and isinstance(inputs[0].node.op, Transpose):
        inner = inputs[0].node
        return Transpose(tuple(inner.op.permutation[axis] for axis in op.permutation)), inner.inputs
    if isinstance(op, Reduce) and op.function not in ("any", "all") and _reduces_single_elements(op, inputs[0]):
        return Reshape(op.infer(inputs[0].type)[0].shape), inputs
    if isinstance(op, Elementwise):
        return op, _without_broadcasts(op, inputs)
    return op, inputs


def _reduces_single_elements(op: Reduce, value: Value) -> bool:
    return all(value.shape[axis] == 1 for axis in op.axes)


def _without_broadcasts(op: Elementwise, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
    """Reads the source of an explicit broadcast, where the other inputs still give the result its shape."""
    shape = op.infer(*(value.type for value in inputs))[0].shape
    result = list(inputs)
    for position, value in enumerate(inputs):
        if isinstance(value.node.op, BroadcastTo):
            shorter = [*result[:position], value.node.inputs[0], *result[position + 1 :]]
            if op.infer(*(v.type for v in shorter))[0].shape == shape:
                result = shorter
    return tuple(result)


def _no_op(op: Op, inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Value | None:
    """The input that the op hands on unchanged, if that is all it does."""
    if len(outputs) != 1 or not inputs:
        return None
    (output,) = outputs
    if isinstance(op, StopGradient):  # differentiation is done
        return inputs[0]
    if isinstance(op, Reshape | Cast | BroadcastTo) and inputs[0].type == output.type:
        return inputs[0]
    if isinstance(op, Transpose) and op.permutation == tuple(range(len(op.permutation))):
        return inputs[0]
    if isinstance(op, Elementwise) and len(op.functions) == 1 and len(inputs) == 2:
        for position, other in enumerate(reversed(inputs)):
            if other.type == output.type and (op.functions[0], position, _scalar(inputs[position])) in _NEUTRAL:
                return other
    return None


def _scalar(value: Value):
    op = value.node.op
    return op.array.item() if isinstance(op, Constant) and op.array.size == 1 else None


def _folded(op: Op, inputs: tuple[Value, ...]) -> Value | None:
    """The result as a constant where every input is one and the result is small."""
    if not inputs or not all(isinstance(value.node.op, Constant) for value in inputs):
        return None
    types = op.infer(*(value.type for value in inputs))
    if len(types) != 1 or types[0].size > _SMALL:
        return None
    result = op.reference(np, *(value.node.op.array for value in inputs))
    result = result[0] if isinstance(result, tuple) else result
    return Constant(np.array(result, types[0].dtype, order="C").reshape(types[0].shape))()
