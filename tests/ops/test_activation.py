"""Activations: values from their formulas, derivatives by differences, NaN and extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from magmadnn_py import ops
from ops.evaluate import differentiate, evaluate

X = np.array([-20.0, -4.0, -3.5, -1.5, -0.9, -0.3, 0.0, 0.2, 0.7, 1.3, 2.9, 4.0, 7.0, 20.0])
# Away from the kinks.
SMOOTH = X[X != 0.0]

normal_distribution = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


ACTIVATIONS = {
    "celu": elu,
    "elu": elu,
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "silu": lambda x: x * sigmoid(x),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "tanh_shrink": lambda x: x - np.tanh(x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values(name):
    got = evaluate(getattr(ops, name), X)
    np.testing.assert_allclose(got, ACTIVATIONS[name](X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives(name):
    (got,) = differentiate(getattr(ops, name), SMOOTH)
    step = 1e-6
    wanted = (ACTIVATIONS[name](SMOOTH + step) - ACTIVATIONS[name](SMOOTH - step)) / (2 * step)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*ACTIVATIONS, "gelu"])
def test_nan_passes(name):
    assert np.isnan(evaluate(getattr(ops, name), np.array([np.nan]))).all()


@pytest.mark.parametrize("name", [*ACTIVATIONS, "gelu"])
def test_extremes_have_finite_derivatives(name):
    """In float32, where exp overflows early."""
    x = np.array([-1e4, -200.0, 200.0, 1e4], "float32")
    assert np.isfinite(evaluate(getattr(ops, name), x)).all()
    assert np.isfinite(differentiate(getattr(ops, name), x)[0]).all()


@pytest.mark.parametrize("name", [*ACTIVATIONS, "gelu"])
def test_float32_stays(name):
    assert evaluate(getattr(ops, name), X.astype("float32")).dtype == np.float32


def test_gelu():
    np.testing.assert_allclose(evaluate(ops.gelu, X, approximate=False), X * normal_distribution(X), atol=1e-9)
    tanh = 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(evaluate(ops.gelu, X), tanh, rtol=1e-9, atol=1e-12)


def test_parameters():
    np.testing.assert_allclose(evaluate(ops.leaky_relu, X, negative_slope=0.3), np.where(X > 0, X, 0.3 * X))
    np.testing.assert_allclose(evaluate(ops.elu, X, alpha=0.5), elu(X, 0.5))
    np.testing.assert_allclose(
        evaluate(ops.celu, X, alpha=0.5), np.where(X > 0, X, 0.5 * np.expm1(2 * np.minimum(X, 0)))
    )
    got = evaluate(ops.threshold, X, threshold=0.5, default_value=9.0)
    np.testing.assert_array_equal(got, np.where(X > 0.5, X, 9.0))


def test_elu_has_the_slope_alpha_at_zero():
    np.testing.assert_allclose(differentiate(ops.elu, np.zeros(1), alpha=2.0)[0], [2])


def test_names_that_mean_the_same():
    assert ops.swish is ops.silu
    assert ops.hard_swish is ops.hard_silu


def test_glu():
    x = np.random.default_rng(0).standard_normal((2, 6))
    np.testing.assert_allclose(evaluate(ops.glu, x), x[:, :3] * sigmoid(x[:, 3:]), rtol=1e-12)
    np.testing.assert_allclose(evaluate(ops.glu, x, axis=0), x[:1] * sigmoid(x[1:]), rtol=1e-12)
