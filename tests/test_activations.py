import math

import numpy as np
import pytest

from magmadnn_py import activations

X = np.array([-3.0, -0.5, 0.0, 0.25, 7.0], "float32")
FORMULAS = {
    "linear": lambda x: x,
    "exponential": np.exp,
    "relu6": lambda x: np.clip(x, 0, 6),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2))),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    y = np.asarray(activations.get(name)(X))
    np.testing.assert_allclose(y, FORMULAS[name](X.astype("float64")), rtol=1e-5, atol=1e-7)


def test_arguments_of_relu():
    np.testing.assert_allclose(np.asarray(activations.relu(X, negative_slope=0.1)), np.where(X > 0, X, 0.1 * X))
    np.testing.assert_allclose(np.asarray(activations.relu(X, max_value=2.0)), np.clip(X, 0, 2))
    np.testing.assert_allclose(np.asarray(activations.relu(X, threshold=0.5)), np.where(X > 0.5, X, 0))
    shifted = np.where(X > 0.5, X, 0.1 * (X - 0.5))
    np.testing.assert_allclose(np.asarray(activations.relu(X, 0.1, threshold=0.5)), shifted, rtol=1e-6)


@pytest.mark.parametrize("arguments", [{}, {"negative_slope": 0.1}, {"max_value": 1.0}, {"threshold": 1.0}])
def test_nan_passes_relu(arguments):
    assert np.isnan(np.asarray(activations.relu(np.array([np.nan], "float32"), **arguments))).all()


def test_names():
    for name in activations._NAMES:
        assert activations.serialize(activations.get(name)) == name
    assert activations.get(None) is activations.linear
    assert activations.get(abs) is abs
    assert activations.serialize(activations.get("swish")) == "silu"
    with pytest.raises(ValueError, match="did you mean 'sigmoid'"):
        activations.get("sigmod")
