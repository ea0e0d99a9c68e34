"""Max-pooling before ReLU and bias: max(relu(x + b)) = relu(max(x) + b), on a quarter of the elements for 2x2 windows.

Runs on the forward graph, before it is differentiated, so that the backward pass is the smaller one too.
"""

from __future__ import annotations

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.elementwise import Elementwise
from ..ops.pool import MaxPool
from .epilogues import use_counts


def pool_first(graph: Graph) -> Graph:
    uses = use_counts(graph)

    def rule(node: Node, inputs: tuple[Value, ...]):
        if not isinstance(node.op, MaxPool):
            return None
        old, new = node.inputs[0], inputs[0]
        passed: list[Node] = []  # the nodes that the pooling moves in front of, the last one first
        while uses[old] == 1 and (position := _commuting_input(new)) is not None:
            passed.append(new.node)
            old, new = old.node.inputs[position], new.node.inputs[position]
        if not passed:
            return None
        result, positions = Node(node.op, (new,), node.scope).outputs
        for moved in reversed(passed):
            kept = _commuting_input(moved.outputs[0])
            operands = [result if i == kept else value for i, value in enumerate(moved.inputs)]
            result = Node(moved.op, operands, moved.scope).outputs[0]
        return result, positions

    return rewrite(graph, rule)[0]


def _commuting_input(value: Value) -> int | None:
    """The input of a ReLU, or of the addition of one number per channel, that pooling may come before."""
    op, inputs = value.node.op, value.node.inputs
    if not isinstance(op, Elementwise) or op.functions not in (("relu",), ("add",)):
        return None
    if op.functions == ("relu",):
        return 0
    for position in (0, 1):
        other = inputs[1 - position]
        per_channel = other.type.size == (other.shape[-1] if other.shape else 1)
        if inputs[position].type == value.type and per_channel and other.dtype == value.dtype:
            return position
    return None
