"""Zeros around an image become padding of what reads it, and nothing else changes."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.passes.absorb_padding import absorb_padding

SHAPE = (2, 6, 7, 3)
UNEVEN = ((0, 0), (1, 2), (2, 0), (0, 0))
KERNEL = np.random.default_rng(0).normal(size=(3, 3, 3, 4))


def run(build, change):
    """Names of the forward ops, values and gradient of the sum of their squares."""
    with Trace() as trace:
        x = trace.input(SHAPE, "float64")
        y = build(x)
        (y,) = trace.rewrite(change, [y])
        names = [node.op.name for node in trace.graph([y]).order]
        graph = trace.graph([y, *gradients(ops.sum(ops.square(y)), [x])])
    arrays, _ = interpret(graph, [np.random.default_rng(1).normal(size=SHAPE)])
    return names, arrays


def compare(build) -> list[str]:
    """The names of the ops after the pass; values and gradients must be those before it."""
    _, wanted = run(build, lambda graph: graph)
    names, found = run(build, absorb_padding)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    return names


@pytest.mark.parametrize(
    "build",
    [
        lambda x: ops.conv(ops.pad(x, UNEVEN), KERNEL),
        lambda x: ops.conv(ops.pad(x, UNEVEN), KERNEL, strides=2),
        lambda x: ops.conv(ops.pad(x, UNEVEN), KERNEL, padding="same"),
        lambda x: ops.max_pool(ops.pad(ops.relu(x), UNEVEN), 3, strides=2),
    ],
)
def test_values_and_gradients_stay(build):
    assert "pad" not in compare(build)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: ops.max_pool(ops.pad(x, UNEVEN), 3),  # numbers below zero
        lambda x: ops.max_pool(ops.pad(ops.relu(x), UNEVEN), 2),  # windows of padding alone
        lambda x: ops.max_pool(ops.pad(ops.relu(x), UNEVEN), 3, strides=2, padding="same"),  # minus infinity and zeros
        lambda x: ops.max_pool(ops.relu(ops.pad(ops.relu(x), UNEVEN)), 3),  # a ReLU in between
        lambda x: ops.average_pool(ops.pad(x, UNEVEN), 3),  # padding is no part of an average
        lambda x: ops.conv(ops.pad(x, UNEVEN, constant_values=1.0), KERNEL),
        lambda x: ops.conv(ops.pad(x[..., :2], ((0, 0), (0, 0), (0, 0), (0, 1))), KERNEL),  # channels
        lambda x: ops.conv(ops.pad(x, ((1, 0), (0, 0), (0, 0), (0, 0))), KERNEL),  # images
    ],
)
def test_other_paddings_stay(build):
    assert "pad" in compare(build)
