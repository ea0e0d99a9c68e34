"""A factor per channel behind a convolution or matrix product becomes part of its weights.

That is what batch normalisation is once its statistics are given: x * factor + shift. The few weights are then scaled
instead of the large result, and the shift is a bias, which the fuse pass makes part of the product.
"""

from __future__ import annotations

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.conv import Convolution
from ..ops.elementwise import add, multiply
from ..ops.matmul import MatMul
from ..ops.movement import reshape
from .epilogues import is_function, use_counts


def fold(graph: Graph) -> Graph:
    uses = use_counts(graph)
    read: dict[Value, int] = {}

    def alone(value: Value) -> bool:
        return read.get(value, 1) == 1  # what folding made is read once

    def rule(node: Node, inputs: tuple[Value, ...]):
        read.update((new, uses[old]) for old, new in zip(node.inputs, inputs, strict=True))
        fold_one = _scaled if is_function(node, "multiply") else _shifted if is_function(node, "add") else None
        for position in (0, 1) if fold_one else ():
            value, vector = inputs[position], inputs[1 - position]
            if alone(value) and _is_per_channel(vector, value):
                folded = fold_one(value, reshape(vector, (-1,)), alone)
                if folded is not None:
                    return (folded,)
        return None

    return rewrite(graph, rule)[0]


def _is_per_channel(vector: Value, value: Value) -> bool:
    return value.shape[-1:] == vector.shape[-1:] == (vector.type.size,) and vector.dtype == value.dtype


def _scaled(value: Value, factor: Value, alone) -> Value | None:
    """value * factor, where value is a product, or the sum of one and a vector."""
    if _has_few_weights(value):
        first, weights = value.node.inputs
        return Node(value.node.op, (first, multiply(weights, factor)), value.node.scope).outputs[0]
    if (terms := _sum_with_vector(value)) and alone(terms[0]) and _has_few_weights(terms[0]):
        return add(_scaled(terms[0], factor, alone), multiply(terms[1], factor))
    return None


def _shifted(value: Value, shift: Value, alone) -> Value | None:
    """value + shift, where value is the sum of a product and a vector."""
    if (terms := _sum_with_vector(value)) and isinstance(terms[0].node.op, Convolution | MatMul):
        return add(terms[0], add(terms[1], shift))
    return None


def _has_few_weights(value: Value) -> bool:
    """Whether value is a product without epilogue, with weights that have its channels last and are the smaller."""
    op = value.node.op
    if not isinstance(op, Convolution | MatMul) or len(value.node.inputs) != 2 or op.activation != "linear":
        return False
    weights = value.node.inputs[1]
    return not getattr(op, "transpose_b", False) and weights.type.size <= value.type.size


def _sum_with_vector(value: Value) -> tuple[Value, Value] | None:
    if is_function(value.node, "add"):
        for position in (0, 1):
            term, vector = value.node.inputs[position], value.node.inputs[1 - position]
            if _is_per_channel(vector, term) and term.type == value.type:
                return term, reshape(vector, (-1,))
    return None
