"""Pooling: references against a direct loop, gradients, Keras's values, errors."""

from __future__ import annotations

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases.case import types
from magmadnn_py.benchmarks.cases.pool import CASES, EXTREME_CASES
from magmadnn_py.graph import gradients
from magmadnn_py.ops.pool import AveragePool, MaxPool
from magmadnn_py.ops.window import ceil_padding, output_extent
from ops.checks import (
    apply,
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    parametrize,
)
from ops.evaluate import differentiate, evaluate, image

FORWARD_CASES = [case for case in CASES + EXTREME_CASES if isinstance(case.op, MaxPool | AveragePool)]
COUNTING = np.arange(1.0, 26.0).reshape(5, 5)


def direct_pool(op, x) -> list[np.ndarray]:
    """One window at a time, from the definition."""
    types_ = op.infer(*types(x.shape, dtype=x.dtype.name))
    y = np.empty(types_[0].shape)
    positions = np.empty(y.shape, types_[-1].dtype)
    for index in np.ndindex(*y.shape):
        n, *place, c = index
        found = []
        for position, cell in enumerate(np.ndindex(*op.window)):
            at = tuple(p * s - low + k for p, s, (low, _), k in zip(place, op.strides, op.padding, cell, strict=True))
            if all(0 <= i < extent for i, extent in zip(at, x.shape[1:-1], strict=True)):
                found.append((x[(n, *at, c)], position))
        values = np.array([value for value, _ in found])
        if isinstance(op, MaxPool):
            best = int(np.argmax(values))  # the first NaN, else the first maximum
            y[index], positions[index] = found[best]
        else:
            y[index] = values.sum() / (np.prod(op.window) if op.count_include_padding else len(values))
    return [y, positions] if isinstance(op, MaxPool) else [y]


@parametrize(FORWARD_CASES)
def test_forward_is_the_definition(case):
    case = case.retyped("float64")
    check_reference(case, direct_pool(case.op, *case.arrays()), rtol=1e-12, atol=1e-12)


@parametrize(CASES)
def test_gradient(case):
    check_reference(case)
    check_reference_gradient(case)


@parametrize(CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(CASES + EXTREME_CASES, dtypes=["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@pytest.mark.parametrize("pool", [ops.max_pool, ops.average_pool], ids=["max", "average"])
def test_second_derivative(pool):
    """The gradient of a function of a gradient, with windows that overlap and padding."""

    def squared_gradient(x):
        y = pool(x, (3, 2), strides=(1, 2), padding="same")
        return ops.square(gradients(y * ops.square(y), [x])[0])

    check_gradient(squared_gradient, np.random.default_rng(0).permutation(20).reshape(1, 5, 4, 1) * 0.1)


def test_behaviour_12_window_larger_than_input():
    for name in ("max_pool", "average_pool"):
        with pytest.raises(ValueError, match=rf"{name}: input: .*\(2, 5\).* wanted at least the window \(3, 3\)"):
            evaluate(getattr(ops, name), np.ones((1, 2, 5, 1)), pool_size=3)


def test_errors():
    x = np.ones((1, 6, 1))
    with pytest.raises(ValueError, match="max_pool: padding: .* wanted real cells in every window"):
        evaluate(ops.max_pool, x, pool_size=2, padding=((2, 0),))
    with pytest.raises(ValueError, match="average_pool: padding: .* wanted real cells in every window"):
        evaluate(ops.average_pool, x, pool_size=2, padding=((0, 2),))
    with pytest.raises(ValueError, match="max_pool: pool_size: got"):
        evaluate(ops.max_pool, x, pool_size=(2, 2))
    with pytest.raises(ValueError, match="max_pool: inputs: got shape"):
        evaluate(ops.max_pool, np.ones((6, 1)), pool_size=2)
    with pytest.raises(ValueError, match="max_pool: padding: got 'full'"):
        evaluate(ops.max_pool, x, pool_size=2, padding="full")


# Values that Keras gives.


def test_behaviour_6_even_window_same_keeps_the_shape():
    assert evaluate(ops.max_pool, np.ones((1, 16, 16, 1)), pool_size=2, strides=1, padding="same").shape[1:3] == (
        16,
        16,
    )


@pytest.mark.parametrize("size,padding,wanted", [(25, "valid", 12), (25, "same", 13), (8, "same", 4), (25, "ceil", 13)])
def test_behaviour_7_odd_sizes(size, padding, wanted):
    for pool in (ops.max_pool, ops.average_pool):
        y = evaluate(pool, np.ones((1, size, size, 1)), pool_size=2, padding=padding)
        assert y.shape == (1, wanted, wanted, 1)


def test_behaviour_9_average_does_not_count_padding():
    y = evaluate(ops.average_pool, image([[1, 2], [3, 4]]), pool_size=3, strides=1, padding="same")
    np.testing.assert_array_equal(y.ravel(), [2.5] * 4)
    constant = evaluate(ops.average_pool, np.full((1, 7, 6, 1), 3.0), pool_size=(3, 2), strides=2, padding="same")
    np.testing.assert_allclose(constant, 3)


def test_behaviour_10_ceil_drops_windows_outside():
    y = evaluate(ops.max_pool, np.zeros((1, 6, 7, 1)), pool_size=1, strides=2, padding="ceil")
    assert y.shape == (1, 3, 4, 1)
    assert np.isfinite(y).all()


def test_behaviour_11_windows_of_pure_padding_are_dropped():
    padding = [ceil_padding(5, 3, 3, 1, 1)] * 2
    y = evaluate(ops.max_pool, image(-COUNTING), pool_size=3, strides=3, padding=padding)
    assert y.shape == (1, 2, 2, 1)
    np.testing.assert_array_equal(y[0, ..., 0], [[-1, -3], [-11, -13]])


@pytest.mark.parametrize("size", range(1, 12))
def test_ceil_windows_begin_on_real_cells(size):
    for window in range(1, 5):
        for stride in range(1, 5):
            for low in range(window):
                if size + 2 * low < window:
                    continue
                pads = ceil_padding(size, window, stride, low, low)
                count = output_extent(size, window, stride, *pads)
                assert (count - 1) * stride < size + low  # the last one begins before the end
                uncovered = size - (count * stride - low)  # cells from where the next one would begin
                next_fits = -(-(size + 2 * low - window) // stride) + 1 > count
                assert not (next_fits and uncovered > 0)


def test_behaviour_11_max_never_takes_padding():
    y = evaluate(ops.max_pool, np.full((1, 4, 4, 1), -1.0), pool_size=3, strides=1, padding="same")
    np.testing.assert_array_equal(y, np.full((1, 4, 4, 1), -1.0))


def test_same_values():
    y = evaluate(ops.max_pool, image(COUNTING), pool_size=2, padding="same")
    np.testing.assert_array_equal(y[0, ..., 0], [[7, 9, 10], [17, 19, 20], [22, 24, 25]])
    y = evaluate(ops.average_pool, image(COUNTING), pool_size=2, padding="same")
    np.testing.assert_array_equal(y[0, ..., 0], [[4, 6, 7.5], [14, 16, 17.5], [21.5, 23.5, 25]])


def test_nan_passes():
    x = image([[1, np.nan], [3, 4]])
    assert np.isnan(evaluate(ops.max_pool, x, pool_size=2)).all()
    np.testing.assert_array_equal(differentiate(ops.max_pool, x, pool_size=2)[0][0, ..., 0], [[0, 1], [0, 0]])


def test_first_of_equal_cells_takes_the_gradient():
    (dx,) = differentiate(ops.max_pool, np.zeros((1, 2, 2, 1)), pool_size=2)
    np.testing.assert_array_equal(dx[0, ..., 0], [[1, 0], [0, 0]])


def test_positions_of_large_windows_are_int32():
    for window, dtype in ((256, "uint8"), (257, "int32")):
        op = MaxPool((window,), (1,), ((0, 0),))
        assert op.infer(*types((1, 300, 1)))[1].dtype == dtype
        x = np.zeros((1, 300, 1))
        x[0, window - 1] = 1
        assert apply(op, [x])[1][0, 0, 0] == window - 1


@pytest.mark.parametrize("name", ["max_pool", "average_pool"])
def test_channels_first(name):
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 3))
    arguments = {"pool_size": (3, 2), "strides": 2, "padding": "same"}
    got = evaluate(getattr(ops, name), np.moveaxis(x, -1, 1), **arguments, data_format="channels_first")
    np.testing.assert_array_equal(got, np.moveaxis(evaluate(getattr(ops, name), x, **arguments), -1, 1))
