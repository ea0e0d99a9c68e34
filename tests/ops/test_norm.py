"""Normalisation: references against NumPy's mean and variance, gradients through every output, Keras's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases.case import types
from magmadnn_py.benchmarks.cases.norm import CASES
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.ops.norm import Normalize, NormalizeGradient
from magmadnn_py.runtime.program import Program
from ops.checks import (
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    parametrize,
)
from ops.evaluate import evaluate

NORMALIZE_CASES = [case for case in CASES if isinstance(case.op, Normalize)]
FILLED_CASES = [case for case in NORMALIZE_CASES if case.inputs[0].size]


@parametrize(FILLED_CASES)
def test_values(case):
    case = case.retyped("float64")
    x, scale, offset, *residual = case.arrays()
    mean = np.mean(x, case.op.axes, keepdims=True)
    variance = np.var(x, case.op.axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + case.op.epsilon) * scale + offset + sum(residual)
    y = np.maximum(y, 0) if case.op.activation == "relu" else y
    check_reference(case, [y, mean, variance], rtol=1e-12, atol=1e-12)


@parametrize(CASES)
def test_types(case):
    if isinstance(case.op, Normalize) and case not in FILLED_CASES:
        return  # statistics of nothing are NaN
    check_reference(case)


@parametrize(NORMALIZE_CASES)
def test_gradient_of_y(case):
    check_reference_gradient(case, outputs=[0], tolerance=1e-5)


@parametrize(FILLED_CASES)
@pytest.mark.parametrize("outputs", [[1], [2], [1, 2], [0, 1, 2]], ids=str)
def test_gradient_through_the_statistics(case, outputs):
    check_reference_gradient(case, outputs=outputs, tolerance=1e-5)


@parametrize([case for case in CASES if not isinstance(case.op, Normalize) and case.inputs[0].size])
def test_second_derivative(case):
    """A large epsilon: the differences of a test step need a moderate curvature."""
    check_reference_gradient(replace(case, op=replace(case.op, epsilon=0.5)), tolerance=1e-5)


def test_second_derivative_through_both_ops():
    """A function of a gradient, where the statistics depend on x."""
    rng = np.random.default_rng(0)

    def squared_gradient(x, scale, weights):
        y, mean, variance = ops.normalize_over(x, 0, 0.1, scale)
        return ops.square(gradients([ops.square(y) * weights, mean * variance], [x])[0])

    check_gradient(squared_gradient, *(rng.standard_normal(s) for s in [(4, 3), (1, 3), (4, 3)]))


@parametrize(CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(CASES, dtypes=["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


def run_kernel(op, *arrays):
    with Trace() as trace:
        program = Program(trace.graph(op(*(trace.input(a.shape, a.dtype.name) for a in arrays))))
    assert not program.references
    return [np.array(a) for a in program.run(*arrays)]


LARGE = [("batch", (16, 40, 41, 9), (0, 1, 2)), ("batch-dense", (30_000, 33), (0,)), ("layer", (3, 30_001), (1,))]


@pytest.mark.parametrize(("label", "shape", "axes"), LARGE, ids=[label for label, *_ in LARGE])
@pytest.mark.parametrize(("mean", "spread"), [(0, 1), (1000, 1), (-3e5, 10)], ids=str)
def test_float32_statistics_of_many_numbers(label, shape, axes, mean, spread):
    """Within what the rounding of x itself permits, however large the mean is beside the spread."""
    rng = np.random.default_rng(0)
    x = (mean + spread * rng.standard_normal(shape)).astype("float32")
    scale = np.ones([1 if axis in axes else extent for axis, extent in enumerate(shape)], "float32")
    y, found_mean, found_variance = run_kernel(Normalize(axes, 1e-3), x, scale, scale * 0)
    exact = x.astype("float64")
    true_mean, true_variance = exact.mean(axes, keepdims=True), exact.var(axes, keepdims=True)
    np.testing.assert_allclose(found_mean, true_mean, rtol=1e-7, atol=1e-6 * spread)
    np.testing.assert_allclose(found_variance, true_variance, rtol=2e-6)
    # The stored mean is rounded: by that much, and no more, may y be off.
    shift = np.abs(mean) * 2**-24 / spread
    np.testing.assert_allclose(y, (exact - true_mean) / np.sqrt(true_variance + 1e-3), rtol=0, atol=1e-5 + shift)


@pytest.mark.parametrize(("label", "shape", "axes"), LARGE, ids=[label for label, *_ in LARGE])
def test_float32_gradient_of_many_numbers(label, shape, axes):
    rng = np.random.default_rng(0)
    dy, x = ((1000 + rng.standard_normal(shape)).astype("float32") for _ in range(2))
    scale = np.ones([1 if axis in axes else extent for axis, extent in enumerate(shape)], "float32")
    mean, variance = x.mean(axes, keepdims=True, dtype="float64"), x.var(axes, keepdims=True, dtype="float64")
    arrays = [dy, x, scale, mean.astype("float32"), variance.astype("float32")]
    op = NormalizeGradient(axes, 1e-3)
    wanted = op.reference(np, *(a.astype("float64") for a in arrays))
    for got, exact, size in zip(run_kernel(op, *arrays), wanted, (1e3, 1e3 * x.size, 1e3 * x.size), strict=True):
        # Sums of thousands: relative to the size of what is summed.
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=2e-7 * size)


def test_errors():
    op = Normalize((0,), 1e-3)
    with pytest.raises(ValueError, match="normalize: scale: got shape"):
        op.infer(*types((4, 3), (1, 2), (1, 2)))
    with pytest.raises(ValueError, match="normalize: scale: got shape"):
        op.infer(*types((4, 3), (3,), (3,)))
    with pytest.raises(ValueError, match="normalize: offset: got shape"):
        op.infer(*types((4, 3), (1, 3), (1, 1)))
    with pytest.raises(ValueError, match="normalize: axes: got"):
        Normalize((2,), 1e-3).infer(*types((4, 3), (1, 3), (1, 3)))
    with pytest.raises(ValueError, match="normalize: inputs: got float32, float32, float64"):
        op.infer(*types((4, 3), (1, 3)), *types((1, 3), dtype="float64"))
    with pytest.raises(ValueError, match="batch_normalization: parameters"):
        evaluate(ops.batch_normalization, np.ones((2, 3)), np.ones((1, 3)), np.ones(3), axis=-1)


def test_behaviour_1_one_value_per_channel():
    offset = np.array([[1.0, 2.0, 3.0]], "float32")
    x = np.array([[5, -2, 7]], "float32")
    y, mean, variance = evaluate(lambda x, offset: ops.normalize_over(x, 0, 1e-3, offset=offset), x, offset)
    np.testing.assert_array_equal(y, offset)
    np.testing.assert_array_equal(mean, x)
    np.testing.assert_array_equal(variance, [[0, 0, 0]])


def test_behaviour_2_the_variance_is_biased():
    x = np.array([[1], [2], [3], [4]], "float32")
    _, mean, variance = evaluate(ops.normalize_over, x, axes=0, epsilon=1e-3)
    assert (mean.item(), variance.item()) == (2.5, 1.25)
    mean, variance = evaluate(ops.moments, x, axes=[0])
    assert (mean.shape, mean.item(), variance.shape, variance.item()) == ((1,), 2.5, (1,), 1.25)


def test_batch_normalization_with_given_statistics():
    """Keras's frozen layer at its first values: mean 0, variance 1."""
    x = np.array([[1], [2], [3], [4]], "float32")
    y = evaluate(ops.batch_normalization, x, np.zeros(1, "float32"), np.ones(1, "float32"), axis=-1)
    np.testing.assert_allclose(y.ravel(), [0.9995, 1.999, 2.9985, 3.998], rtol=1e-4)


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_normalization_along_any_axis(axis):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3, 3))
    mean, variance, offset, scale = (
        rng.standard_normal(3),
        rng.random(3),
        rng.standard_normal(3),
        rng.standard_normal(3),
    )

    def function(x, mean, variance, offset, scale):
        return ops.batch_normalization(x, mean, variance, axis, offset, scale, 0.01)

    shape = (1, 3, 1) if axis == 1 else (1, 1, 3)
    m, v, o, s = (a.reshape(shape) for a in (mean, variance, offset, scale))
    wanted = (x - m) / np.sqrt(v + 0.01) * s + o
    np.testing.assert_allclose(evaluate(function, x, mean, variance, offset, scale), wanted, rtol=1e-10)


@pytest.mark.parametrize("axis", [-1, (1, 2), [0]])
def test_layer_normalization(axis):
    x = np.random.default_rng(0).standard_normal((4, 3, 5))
    axes = tuple(a % 3 for a in ([axis] if isinstance(axis, int) else axis))
    shape = tuple(x.shape[a] for a in axes)
    gamma, beta = (np.random.default_rng(i).standard_normal(shape) for i in (1, 2))
    broadcast = tuple(e if i in axes else 1 for i, e in enumerate(x.shape))
    normal = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(evaluate(ops.layer_normalization, x, axis=axis, epsilon=1e-3), normal, rtol=1e-10)
    y = evaluate(lambda x, g, b: ops.layer_normalization(x, g, b, axis, 1e-3), x, gamma, beta)
    np.testing.assert_allclose(y, normal * gamma.reshape(broadcast) + beta.reshape(broadcast), rtol=1e-10)


def test_rms_normalization():
    x = np.random.default_rng(0).standard_normal((4, 5))
    scale = np.arange(5.0)
    wanted = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(evaluate(ops.rms_normalization, x, epsilon=1e-6), wanted, rtol=1e-10)
    np.testing.assert_allclose(evaluate(ops.rms_normalization, x, scale, epsilon=1e-6), wanted * scale, rtol=1e-10)


def test_moments_keep_dimensions():
    x = np.random.default_rng(0).standard_normal((4, 3, 5))
    mean, variance = evaluate(ops.moments, x, axes=(0, 2), keepdims=True)
    np.testing.assert_allclose(mean, x.mean((0, 2), keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(variance, x.var((0, 2), keepdims=True), rtol=1e-10)
