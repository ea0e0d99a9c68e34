import json

import numpy as np
import pytest

from magmadnn_py import constraints, regularizers
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret

W = np.array([[1.0, -2.0], [3.0, 0.0]], "float32")


@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [
        (regularizers.L1(0.1), 0.6),
        (regularizers.L2(0.1), 1.4),
        (regularizers.L1L2(0.1, 0.2), 0.6 + 2.8),
        (regularizers.get("l1"), 0.06),
        (regularizers.get("l2"), 0.14),
        (regularizers.get("L1L2"), 0.0),
        (regularizers.OrthogonalRegularizer(0.5), 0.5 / np.sqrt(5)),
        (regularizers.OrthogonalRegularizer(0.5, "columns"), 0.5 / np.sqrt(10)),
    ],
)
def test_regularizers(regularizer, expected):
    np.testing.assert_allclose(np.asarray(regularizer(W)), expected, rtol=1e-5)
    again = regularizers.get(json.loads(json.dumps(regularizers.serialize(regularizer))))
    assert again.get_config() == regularizer.get_config()


def test_gradient_of_l2():
    with Trace() as trace:
        w = trace.input(W.shape)
        (gradient,) = gradients(regularizers.L2(0.5)(w), [w])
    (array,), _ = interpret(trace.graph([gradient]), [W])
    np.testing.assert_allclose(array, W)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: regularizers.L2(-1), "l2: got -1"),
        (lambda: regularizers.L1(float("nan")), "l1: got nan"),
        (lambda: regularizers.OrthogonalRegularizer(mode="all"), "mode"),
        (lambda: regularizers.OrthogonalRegularizer()(np.ones(3, "float32")), "rank 2"),
        (lambda: regularizers.get("l3"), "l3"),
        (lambda: constraints.get("maxnorm2"), "did you mean 'max_norm'"),
        (lambda: constraints.get(3), "can be called"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


NORMS = np.sqrt((W * W).sum(0, keepdims=True))


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (constraints.MaxNorm(2), W * np.minimum(NORMS, 2) / NORMS),
        (constraints.MaxNorm(1, axis=(0, 1)), W / np.sqrt(14)),
        (constraints.NonNeg(), np.maximum(W, 0)),
        (constraints.UnitNorm(), W / NORMS),
        (constraints.MinMaxNorm(2.5, 3.0), W * np.clip(NORMS, 2.5, 3) / NORMS),
        (constraints.MinMaxNorm(0, 1, rate=0.5), W * (0.5 + 0.5 * NORMS) / NORMS),
    ],
)
def test_constraints(constraint, expected):
    np.testing.assert_allclose(np.asarray(constraint(W)), expected, rtol=1e-5)
    with Trace() as trace:
        w = trace.input(W.shape)
        y = constraint(w)
    (array,), _ = interpret(trace.graph([y]), [W])
    np.testing.assert_allclose(array, expected, rtol=1e-5)
    again = constraints.get(json.loads(json.dumps(constraints.serialize(constraint))))
    assert again.get_config() == json.loads(json.dumps(constraint.get_config()))


def test_get_keeps_functions_and_none():
    assert constraints.get(None) is None
    assert regularizers.get(abs) is abs
    assert isinstance(constraints.get("UnitNorm"), constraints.UnitNorm)
