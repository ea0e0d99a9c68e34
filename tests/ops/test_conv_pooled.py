"""Convolutions with max-pooling behind them, and their sparse gradients: equal to the plain ops, whichever way they
run, and used where they should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases.conv_pooled import CASES, FORWARD_CASES, OTHER_CASES, OTHER_FORWARD_CASES, forward
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.ops.pool import MaxPoolGradient
from magmadnn_py.passes.pool_first import pool_first
from magmadnn_py.runtime.program import Program
from ops.checks import check_cost_and_split, check_kernel, parametrize, run_algorithm, trace_op


def dense_gradient(case, arrays):
    """The plain op on the gradient that the sparse one does not make."""
    op = case.op
    plain = type(op).__mro__[2]
    pooling = MaxPoolGradient(op.window, op.window, ((0, 0),) * len(op.window), op.unpooled)
    if "weight" in case.label:
        x, dy, positions = arrays
        return plain(*op.family(), op.kernel).reference(np, x, pooling.reference(np, dy, positions))
    dy, positions, w = arrays
    return plain(*op.family(), op.spatial).reference(np, pooling.reference(np, dy, positions), w)


@parametrize(CASES + OTHER_CASES)
def test_reference_is_the_dense_gradient(case):
    arrays = case.retyped("float64").arrays()
    np.testing.assert_array_equal(case.op.reference(np, *arrays), dense_gradient(case, arrays))


@parametrize(CASES + OTHER_CASES + FORWARD_CASES + OTHER_FORWARD_CASES)
def test_kernel(case):
    check_kernel(case)


@parametrize(CASES + OTHER_CASES + FORWARD_CASES + OTHER_FORWARD_CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_case_of_the_list_has_a_kernel(threads):
    from magmadnn_py import _core

    before = _core.get_threads()
    _core.set_threads(threads)
    try:
        for case in CASES + FORWARD_CASES:
            trace, _, values = trace_op(case)
            program = Program(trace.graph(values))
            assert "reference" not in program.algorithms.values(), case.label
    finally:
        _core.set_threads(before)


def step(strides=None):
    """Weight and input gradients of convolution, bias, ReLU, pooling."""
    with Trace() as trace:
        x, w, b = trace.input((4, 8, 8, 3)), trace.input((3, 3, 3, 5)), trace.input((5,))
        pooled = ops.max_pool(ops.relu(ops.conv(x, w) + b), 2, strides)
        (loss,) = trace.rewrite(pool_first, [ops.sum(ops.square(pooled))])
        return trace.graph(gradients(loss, [x, w, b]))


def test_the_pass_puts_them_where_windows_lie_side_by_side(monkeypatch):
    names = {node.op.name for node in Program(step()).graph.order}
    assert {"pooled_convolution_weight_gradient", "pooled_convolution_input_gradient"} <= names
    overlapping = {node.op.name for node in Program(step(strides=1)).graph.order}
    assert "pooled_convolution_weight_gradient" not in overlapping
    monkeypatch.setenv("MAGMADNN_PASSES", "-sparse")
    assert "pooled_convolution_weight_gradient" not in {node.op.name for node in Program(step()).graph.order}


def test_gradients_are_those_of_the_dense_step(monkeypatch):
    rng = np.random.default_rng(0)
    graph = step()
    arrays = [rng.normal(size=v.shape).astype("float32") for v in graph.inputs]
    sparse = Program(graph).run(*arrays)
    monkeypatch.setenv("MAGMADNN_PASSES", "-sparse")
    for a, b in zip(sparse, Program(graph).run(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [2, 8])
def test_equal_cells_and_nan(channels):
    """The first of equal cells is chosen, and a NaN passes through, by each kernel."""
    case = forward("ties", (2, 10, 10, channels), (3, 3, channels, 11), bias=True, activation="relu")
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-1, 2, t.shape).astype("float32") for t in case.inputs)
    check_kernel(replace(case, make=lambda rng, types: (x, w, b)))
    broken = x.copy()
    broken[1, 4, 5, 0] = np.nan
    expected, _ = case.op.reference(np, broken, w, b)
    (got, _), _ = run_algorithm(case, [broken, w, b], None)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
