"""Bias, residual and activation as part of the node whose result they are applied to.

Matrix products and convolutions take bias, residual and ReLU; normalisations take residual and ReLU, and their
gradients the zeros of the ReLU's gradient. Each such node then writes its result once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush

from ..graph.graph import Graph, rewrite
from ..graph.node import Constant, Node, Value
from ..ops.conv import Convolution
from ..ops.elementwise import Elementwise
from ..ops.matmul import MatMul
from ..ops.movement import Reshape
from ..ops.norm import Normalize, NormalizeGradient


def fuse_epilogues(graph: Graph) -> Graph:
    return _fuse_gradients(_fuse_normalizations(_fuse_products(graph)))


def use_counts(graph: Graph) -> dict[Value, int]:
    """How often each value is read, by nodes and as a result of the graph."""
    counts = {value: len(nodes) for value, nodes in graph.consumers().items()}
    for value in graph.results:
        counts[value] = counts.get(value, 0) + 1
    return counts


def is_function(node: Node, name: str) -> bool:
    return isinstance(node.op, Elementwise) and node.op.functions == (name,)


# Products


def _fuse_products(graph: Graph) -> Graph:
    uses = use_counts(graph)

    def rule(node: Node, inputs: tuple[Value, ...]):
        if is_function(node, "add"):
            for extend in (_with_bias, _with_residual):
                for position in (0, 1):
                    product, other = inputs[position], inputs[1 - position]
                    op = product.node.op
                    if not isinstance(op, MatMul | Convolution) or op.activation != "linear":
                        continue
                    fused = extend(product, other) if uses[node.inputs[position]] == 1 else None
                    if fused is not None and fused.type == node.outputs[0].type:
                        return (fused,)
        if is_function(node, "relu") and uses[node.inputs[0]] == 1:
            op = inputs[0].node.op
            if isinstance(op, MatMul | Convolution) and op.activation == "linear":
                return Node(replace(op, activation="relu"), inputs[0].node.inputs, node.scope).outputs
        return None

    return rewrite(graph, rule)[0]


def _with_bias(product: Value, bias: Value) -> Value | None:
    """product + bias as one node, if it has no bias yet and this can be one."""
    op, channels = product.node.op, product.shape[-1]
    if op.bias or bias.type.size != channels or not bias.shape or bias.shape[-1] != channels:
        return None
    if bias.dtype != product.dtype:
        return None
    if bias.ndim > 1:
        bias = Reshape((channels,))(bias)
    first, second, *residual = product.node.inputs
    return Node(replace(op, bias=True), (first, second, bias, *residual), product.node.scope).outputs[0]


def _with_residual(product: Value, residual: Value) -> Value | None:
    """product + residual as one node, if it is a convolution that has no residual yet."""
    op = product.node.op
    if not isinstance(op, Convolution) or op.residual or residual.type != product.type:
        return None
    return Node(replace(op, residual=True), (*product.node.inputs, residual), product.node.scope).outputs[0]


# Normalisations and their gradients


def _fuse_normalizations(graph: Graph) -> Graph:
    graph = _reordered(graph, late=_reads_statistics)
    readers = _Readers(graph)
    now: dict[Value, Value] = {}  # what is read, and what it has become
    moved: dict[Value, Value] = {}  # statistics of fused nodes, for those who read them later

    def rule(node: Node, inputs: tuple[Value, ...]):
        inputs = tuple(moved.get(old, new) for old, new in zip(node.inputs, inputs, strict=True))
        now.update(zip(node.inputs, inputs, strict=True))
        if (found := _normalization_before(node, readers)) is not None:
            normalize, op, added = found
            fused = Node(op, [now[value] for value in (*normalize.inputs, *added)], normalize.scope)
            moved.update(zip(normalize.outputs[1:], fused.outputs[1:], strict=True))
            return fused.outputs[:1]
        return None if inputs == node.inputs else Node(node.op, inputs, node.scope).outputs

    return rewrite(graph, rule)[0]


def _fuse_gradients(graph: Graph) -> Graph:
    """The zeros of a ReLU's gradient become part of the gradient of the normalisation that ends with the ReLU."""
    graph = _reordered(graph, late=lambda node: _mask_before(node) is None)
    readers = _Readers(graph)
    now: dict[Value, Value] = {}
    moved: dict[Value, Value] = {}  # gradients with those zeros: the residual's, from now on

    def rule(node: Node, inputs: tuple[Value, ...]):
        inputs = tuple(moved.get(old, new) for old, new in zip(node.inputs, inputs, strict=True))
        now.update(zip(node.inputs, inputs, strict=True))
        found = _mask_before(node)
        if found is not None and readers.others_come_later(node.inputs[0], node):
            g, y = found
            normalize = y.node
            residual = normalize.op.residual
            if residual or readers.uses[node.inputs[0]] == 1:
                op = replace(node.op, residual=residual, activation="relu")
                fused = Node(op, (now[g], *inputs[1:], now[y if residual else normalize.inputs[2]]), node.scope)
                moved.update(zip(node.inputs[:residual], fused.outputs[3:], strict=True))
                return fused.outputs[:3]
        return None if inputs == node.inputs else Node(node.op, inputs, node.scope).outputs

    return rewrite(graph, rule)[0]


def _reordered(graph: Graph, late: Callable[[Node], bool]) -> Graph:
    """The graph with some nodes as late as they can be. What a fused node gives beside its first result can replace
    what others read only if they come after it."""
    consumers = graph.consumers()
    place = {node: (late(node), i) for i, node in enumerate(graph.order)}
    waiting = {node: len(node.inputs) for node in graph.order}
    ready = [place[node] for node in graph.order if not node.inputs]
    heapify(ready)
    order: list[Node] = []
    while ready:
        order.append(graph.order[heappop(ready)[1]])
        for reader in (reader for value in order[-1].outputs for reader in consumers.get(value, ())):
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, place[reader])
    return replace(graph, order=tuple(order))


class _Readers:
    """Who reads the values of a graph, and when."""

    def __init__(self, graph: Graph):
        self.uses = use_counts(graph)
        self.results = set(graph.results)
        self.consumers = graph.consumers()
        self.place = {node: i for i, node in enumerate(graph.order)}

    def others_come_later(self, value: Value, node: Node) -> bool:
        """Whether everyone else who reads `value` comes after `node`, so that a result of `node` can stand for it."""
        later = (self.place[reader] >= self.place[node] for reader in self.consumers.get(value, ()))
        return value not in self.results and all(later)


def _reads_statistics(node: Node) -> bool:
    statistics = any(value.index and isinstance(value.node.op, Normalize) for value in node.inputs)
    return statistics and not isinstance(node.op, NormalizeGradient)


def _normalization_before(node: Node, readers: _Readers):
    """The normalisation that can end with `node`, an addition or a ReLU: it, its new op and the residual if any."""
    value, added, activation = node.outputs[0], (), "linear"
    if is_function(value.node, "relu"):
        value, activation = value.node.inputs[0], "relu"
    if is_function(value.node, "add") and (value is node.outputs[0] or readers.uses[value] == 1):
        normalized = [_is_plain_normalization(v) and readers.uses[v] == 1 for v in value.node.inputs]
        if not any(normalized):
            return None
        first = normalized.index(True)
        value, *added = value.node.inputs[first], value.node.inputs[1 - first]
    if value is node.outputs[0] or not _is_plain_normalization(value) or readers.uses[value] != 1:
        return None
    normalize = value.node
    if any(v.type != value.type for v in (*added, node.outputs[0])):
        return None
    if not all(readers.others_come_later(statistic, node) for statistic in normalize.outputs[1:]):
        return None
    return normalize, replace(normalize.op, residual=bool(added), activation=activation), added


def _is_plain_normalization(value: Value) -> bool:
    op = value.node.op
    return isinstance(op, Normalize) and value.index == 0 and not op.residual and op.activation == "linear"


def _mask_before(node: Node) -> tuple[Value, Value] | None:
    """g and y, where node is the gradient of the normalisation that gave y, for where(y > 0, g, 0)."""
    if not isinstance(node.op, NormalizeGradient) or not is_function(node.inputs[0].node, "where"):
        return None
    positive, g, zero = node.inputs[0].node.inputs
    if not is_function(positive.node, "greater") or not _is_zero(zero) or not _is_zero(positive.node.inputs[1]):
        return None
    y = positive.node.inputs[0]
    op, normalize = y.node.op, y.node
    if not isinstance(op, Normalize) or y.index or op.activation != "relu" or g.type != y.type:
        return None
    same_op = (op.axes, op.epsilon, "linear") == (node.op.axes, node.op.epsilon, node.op.activation)
    same_inputs = node.inputs[1:] == (*normalize.inputs[:2], *normalize.outputs[1:])
    return (g, y) if same_op and same_inputs else None


def _is_zero(value: Value) -> bool:
    op = value.node.op
    return isinstance(op, Constant) and op.array.size == 1 and op.array.item() == 0
