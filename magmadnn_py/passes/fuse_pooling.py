"""Max-pooling over windows side by side, and bias and ReLU behind it, into the convolution before it."""

from __future__ import annotations

from dataclasses import replace

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..ops.conv import Convolution
from ..ops.conv_pooled import ConvolutionMaxPool
from ..ops.elementwise import Elementwise
from ..ops.pool import MaxPool
from .views import source_of


def fuse_pooling(graph: Graph) -> Graph:
    """One node for each such chain that has a kernel; positions are made only where something reads them."""
    from .. import _core
    from ..runtime.kernels import algorithms

    threads = _core.get_threads()
    consumers = graph.consumers()
    results = set(graph.results)
    absorbed: dict[Node, int] = {}  # nodes whose work a fused one does, and which of their inputs stands for them

    def only_reader(value: Value) -> Node | None:
        readers = consumers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in results else None

    def rule(node: Node, inputs: tuple[Value, ...]):
        if node in absorbed:
            return (inputs[absorbed[node]],)
        if not _is_fusible(node) or only_reader(node.inputs[0]) is not node:
            return None
        y, positions = node.outputs
        op = ConvolutionMaxPool(
            *inputs[0].node.op.family(), node.op.window, positions in consumers or positions in results
        )
        operands = inputs[0].node.inputs
        chain = []
        reader = only_reader(y)
        if (place := _bias_place(reader, y)) is not None:
            chain.append((reader, 1 - place))
            op, operands = replace(op, bias=True), (*operands, reader.inputs[place])
            reader = only_reader(reader.outputs[0])
        if reader is not None and isinstance(reader.op, Elementwise) and reader.op.functions == ("relu",):
            chain.append((reader, 0))
            op = replace(op, activation="relu")
        fused = Node(op, operands, node.scope)
        if not algorithms(fused, threads):
            return None
        absorbed.update(chain)
        return fused.outputs if op.positions else (fused.outputs[0], positions)

    return rewrite(graph, rule)[0]


def _is_fusible(node: Node) -> bool:
    """Whether it pools a plain convolution over windows that lie side by side."""
    op = node.op
    if not isinstance(op, MaxPool) or op.window != op.strides or any(pair != (0, 0) for pair in op.padding):
        return False
    before = node.inputs[0].node.op
    return isinstance(before, Convolution) and not (before.bias or before.residual) and before.activation == "linear"


def _bias_place(reader: Node | None, y: Value) -> int | None:
    """Which input of the addition `reader` is a number per channel of y that is there from the start."""
    if reader is None or not isinstance(reader.op, Elementwise) or reader.op.functions != ("add",):
        return None
    place = 1 - reader.inputs.index(y)
    bias = reader.inputs[place]
    given = source_of(bias)[0].node.op.is_leaf
    return place if given and bias.shape == y.shape[-1:] and bias.dtype == y.dtype else None
