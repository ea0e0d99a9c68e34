"""Max-pooling moves before ReLU and bias, and nothing else changes."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.pool import MaxPool
from magmadnn_py.passes.pool_first import pool_first


def names(graph):
    return [node.op.functions[0] if node.op.name == "elementwise" else node.op.name for node in graph.order]


def pooled(build, shape=(2, 6, 6, 3)):
    """The graph of `build(x, bias)` followed by 2x2 max-pooling, before and after the pass."""
    with Trace() as trace:
        x, bias = trace.input(shape), trace.input((shape[-1],))
        value = build(x, bias)
        y, positions = MaxPool((2, 2), (2, 2), ((0, 0), (0, 0)))(value)
        graph = trace.graph([y, positions])
    return graph, pool_first(graph)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, b: ops.relu(x),
        lambda x, b: ops.relu(x + b),
        lambda x, b: b + x,
        lambda x, b: ops.relu(ops.relu(x + 1.0) + b),
        lambda x, b: ops.relu(x + ops.reshape(b, (1, 1, 1, 3))),
    ],
)
def test_pooling_comes_first_and_values_stay(build):
    before, after = pooled(build)
    assert names(after).index("max_pool") < min(i for i, n in enumerate(names(after)) if n in ("relu", "add"))
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=v.shape).astype("float32") for v in before.inputs]
    (y0, _), _ = interpret(before, arrays)
    (y1, _), _ = interpret(after, arrays)
    np.testing.assert_array_equal(y0, y1)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, b: ops.exp(x),  # not a function the pass knows
        lambda x, b: -x,  # decreasing
        lambda x, b: x * b,  # decreasing for a negative factor
        lambda x, b: x + ops.relu(x),  # not one number per channel
    ],
)
def test_other_functions_stay_before_the_pooling(build):
    before, after = pooled(build)
    assert names(before) == names(after)


def test_a_value_that_is_used_elsewhere_stays():
    with Trace() as trace:
        x = trace.input((1, 4, 4, 2))
        value = ops.relu(x)
        graph = trace.graph([ops.max_pool(value, 2), value])
    assert names(pool_first(graph)) == names(graph)


def test_gradients_are_those_of_the_plain_order():
    def gradient(change):
        with Trace() as trace:
            x, bias = trace.input((2, 6, 6, 3), "float64"), trace.input((3,), "float64")
            loss = ops.sum(ops.square(ops.max_pool(ops.relu(x + bias), 2)))
            (loss,) = trace.rewrite(change, [loss])
            return trace.graph(gradients(loss, [x, bias]))

    generator = np.random.default_rng(1)
    arrays = [generator.normal(size=(2, 6, 6, 3)), generator.normal(size=3)]
    plain, _ = interpret(gradient(lambda graph: graph), arrays)
    moved, _ = interpret(gradient(pool_first), arrays)
    for a, b in zip(plain, moved, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
