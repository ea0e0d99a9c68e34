"""Zeros put around an image become the padding of the convolution or max-pooling that reads it: no padded copy.

Max-pooling pads with minus infinity; that is the same as zero where the input is the result of a ReLU. Runs on the
forward graph, before it is differentiated, so that the backward pass has no padded gradients either.
"""

from __future__ import annotations

from dataclasses import replace

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.conv import Convolution
from ..ops.elementwise import Elementwise
from ..ops.movement import Pad
from ..ops.pool import MaxPool


def absorb_padding(graph: Graph) -> Graph:
    def rule(node: Node, inputs: tuple[Value, ...]):
        if not isinstance(node.op, Convolution | MaxPool) or not _is_spatial_zeros(inputs[0].node):
            return None
        padded, *others = inputs
        (source,) = padded.node.inputs
        if isinstance(node.op, MaxPool) and not _pads_as_zero(node.op, padded.node.op, source):
            return None
        low, high = (counts[1:-1] for counts in (padded.node.op.low, padded.node.op.high))
        pairs = zip(low, node.op.padding, high, strict=True)
        op = replace(node.op, padding=tuple((i + before, after + j) for i, (before, after), j in pairs))
        return Node(op, (source, *others), node.scope).outputs

    return rewrite(graph, rule)[0]


def _is_spatial_zeros(node: Node) -> bool:
    """Whether a node puts zeros around the spatial axes, and nothing else."""
    op = node.op
    if not isinstance(op, Pad) or op.value or any(op.interior):
        return False
    return not any(counts[axis] for counts in (op.low, op.high) for axis in (0, -1))


def _pads_as_zero(pool: MaxPool, pad: Pad, source: Value) -> bool:
    """Whether leaving the padding to the pooling changes nothing: no number below zero, a real cell in each window."""
    op = source.node.op
    if not isinstance(op, Elementwise) or op.functions != ("relu",) or any(map(any, pool.padding)):
        return False
    low, high = pad.low[1:-1], pad.high[1:-1]
    return all(i < k and j < k for i, j, k in zip(low, high, pool.window, strict=True))
