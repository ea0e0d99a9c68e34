"""Gradients of convolutions from the compressed gradient of the max-pooling behind them, where a kernel can do that."""

from __future__ import annotations

import math

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.conv import ConvolutionInputGradient, ConvolutionWeightGradient
from ..ops.conv_pooled import PooledConvolutionInputGradient, PooledConvolutionWeightGradient
from ..ops.pool import MaxPoolGradient


def sparse(graph: Graph) -> Graph:
    from .. import _core
    from ..runtime.kernels import algorithms

    threads = _core.get_threads()

    def rule(node: Node, inputs: tuple[Value, ...]):
        candidate = None
        if type(node.op) is ConvolutionWeightGradient and _is_sparse(inputs[1]):
            x, dy = inputs
            op = PooledConvolutionWeightGradient(*node.op.family(), node.op.kernel, *_pooling(dy))
            candidate = Node(op, (x, *dy.node.inputs), node.scope)
        elif type(node.op) is ConvolutionInputGradient and _is_sparse(inputs[0]):
            dy, w = inputs
            op = PooledConvolutionInputGradient(*node.op.family(), node.op.spatial, *_pooling(dy))
            candidate = Node(op, (*dy.node.inputs, w), node.scope)
        return candidate.outputs if candidate is not None and algorithms(candidate, threads) else None

    return rewrite(graph, rule)[0]


def _is_sparse(gradient: Value) -> bool:
    """Whether it comes from max-pooling over windows of four cells or more that lie side by side."""
    op = gradient.node.op
    if not isinstance(op, MaxPoolGradient):
        return False
    unpadded = all(pair == (0, 0) for pair in op.padding)
    return op.window == op.strides and unpadded and math.prod(op.window) >= 4


def _pooling(gradient: Value) -> tuple:
    return gradient.node.op.window, gradient.node.op.spatial
