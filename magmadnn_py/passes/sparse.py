"""Gradients of convolutions from the compressed gradient of the max-pooling behind them, where that is faster.

The tuner times both forms; without timing, the compressed one is taken wherever a kernel can run it: it does the same
sums with a quarter of the work or less.
"""

from __future__ import annotations

import math

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.conv import ConvolutionInputGradient, ConvolutionWeightGradient
from ..ops.conv_pooled import PooledConvolutionInputGradient, PooledConvolutionWeightGradient
from ..ops.pool import MaxPoolGradient


def sparse(graph: Graph) -> Graph:
    readers = graph.consumers()
    chosen: set[Node] = set()
    for node in graph.order:
        if _is_sparse(node):
            (gradient,) = node.outputs
            stays = gradient in graph.results
            chosen.update(_faster(node, readers.get(gradient, []), stays))

    def rule(node: Node, inputs: tuple[Value, ...]):
        return _compressed(node, inputs).outputs if node in chosen else None

    return rewrite(graph, rule)[0]


def _is_sparse(node: Node) -> bool:
    """Whether it is the gradient of max-pooling over windows of four cells or more that lie side by side."""
    op = node.op
    if not isinstance(op, MaxPoolGradient):
        return False
    unpadded = all(pair == (0, 0) for pair in op.padding)
    return op.window == op.strides and unpadded and math.prod(op.window) >= 4


def _compressed(node: Node, inputs: tuple[Value, ...]) -> Node | None:
    """The node that takes the compressed gradient in place of the dense one; None for other ops than gradients."""
    if type(node.op) is ConvolutionWeightGradient and _is_sparse(inputs[1].node):
        x, pooling = inputs[0], inputs[1].node
        op = PooledConvolutionWeightGradient(*node.op.family(), node.op.kernel, pooling.op.window, pooling.op.spatial)
        return Node(op, (x, *pooling.inputs), node.scope)
    if type(node.op) is ConvolutionInputGradient and _is_sparse(inputs[0].node):
        pooling, w = inputs[0].node, inputs[1]
        op = PooledConvolutionInputGradient(*node.op.family(), node.op.spatial, pooling.op.window, pooling.op.spatial)
        return Node(op, (*pooling.inputs, w), node.scope)
    return None


def _faster(pooling: Node, readers: list[Node], stays: bool) -> list[Node]:
    """Those readers of a pooling's gradient that should take the compressed one.

    The dense gradient need not be made where all do and it does not stay for another reason.
    """
    from .. import _core
    from ..runtime.kernels import algorithms
    from ..runtime.tuner import default_tuner

    threads = _core.get_threads()
    compressed = {node: _compressed(node, node.inputs) for node in readers}
    able = {node: c for node, c in compressed.items() if c is not None and algorithms(c, threads)}
    times = default_tuner().seconds([pooling, *able, *able.values()], threads) if able else None
    if times is None:
        return list(able)
    making, pairs = times[0], list(zip(times[1 : 1 + len(able)], times[1 + len(able) :], strict=True))
    faster = [node for node, (dense, sparse) in zip(able, pairs, strict=True) if sparse < dense]
    mixed = making + sum(map(min, pairs))
    all_compressed = sum(sparse for _, sparse in pairs)
    needed = stays or len(able) < len(compressed)
    return faster if needed or mixed < all_compressed else list(able)
