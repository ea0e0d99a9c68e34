"""Convolution, max-pooling, bias and ReLU become one node where nothing else needs what lies between."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.pool import MaxPool
from magmadnn_py.passes.fuse import fuse


def fused(build, shape=(2, 8, 8, 3), kernel=(3, 3, 3, 5)):
    """The computing nodes of `build(x, w, b)` after fusing, after a check that the numbers are the same."""
    with Trace() as trace:
        x, w, b = trace.input(shape), trace.input(kernel), trace.input(kernel[-1:])
        graph = trace.graph(list(build(x, w, b)))
    after = fuse(graph)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=v.shape).astype("float32") for v in graph.inputs]
    for a, c in zip(interpret(graph, arrays)[0], interpret(after, arrays)[0], strict=True):
        np.testing.assert_array_equal(a, c)
    return [node for node in after.order if not node.op.is_leaf]


def pool(x):
    return MaxPool((2, 2), (2, 2), ((0, 0), (0, 0)))(x)


def test_a_chain_becomes_one_node():
    (node,) = fused(lambda x, w, b: [ops.relu(pool(ops.conv(x, w))[0] + b)])
    assert node.op.name == "convolution_max_pool"
    assert (node.op.bias, node.op.activation, node.op.positions) == (True, "relu", False)


def test_positions_are_made_where_they_are_read():
    def build(x, w, b):
        y, positions = pool(ops.conv(x, w))
        return ops.relu(b + y), positions

    (node,) = fused(build)
    assert node.op.positions and len(node.outputs) == 2


@pytest.mark.parametrize("name", ["bias", "relu"])
def test_parts_of_the_chain(name):
    (node,) = fused(
        lambda x, w, b: [pool(ops.conv(x, w))[0] + b if name == "bias" else ops.relu(pool(ops.conv(x, w))[0])]
    )
    assert (node.op.bias, node.op.activation == "relu") == (name == "bias", name == "relu")


def test_what_is_read_elsewhere_stays():
    def unpooled(x, w, b):
        y = ops.conv(x, w)
        return y, pool(y)[0]

    assert "convolution" in {node.op.name for node in fused(unpooled)}

    def without_bias(x, w, b):
        y = pool(ops.conv(x, w))[0]
        return y, ops.relu(y + b)

    first, *_ = fused(without_bias)
    assert first.op.name == "convolution_max_pool" and not first.op.bias


@pytest.mark.parametrize("bias", [lambda b: ops.exp(b), lambda b: ops.reshape(b, (1, 5)), lambda b: 2.0])
def test_a_bias_that_is_computed_or_of_another_shape_stays_outside(bias):
    nodes = fused(lambda x, w, b: [pool(ops.conv(x, w))[0] + bias(b)])
    (node,) = [node for node in nodes if node.op.name == "convolution_max_pool"]
    assert not node.op.bias


def test_overlapping_windows_stay():
    nodes = fused(lambda x, w, b: [ops.max_pool(ops.conv(x, w), 2, 1)])
    assert [node.op.name for node in nodes] == ["convolution", "max_pool"]


def test_a_layer_of_many_weights_stays_in_two():
    nodes = fused(lambda x, w, b: [pool(ops.conv(x, w))[0]], (1, 6, 6, 128), (3, 3, 128, 128))
    assert [node.op.name for node in nodes] == ["convolution", "max_pool"]
