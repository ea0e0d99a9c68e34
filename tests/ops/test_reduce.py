"""Reductions: NumPy's numbers, gradients with ties and zeros, NaN and empty tensors."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases import reduce as cases
from magmadnn_py.graph.types import DTYPES

from .checks import (
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    evaluate,
    op_names,
    parametrize,
    sum_gradients,
)

GRADIENT_CASES = cases.SMOOTH_CASES + cases.ZERO_CASES
INTEGER_CASES = [
    case
    for case in cases.SMOOTH_CASES + cases.LOGICAL_CASES + cases.ARG_CASES
    if "mean" not in case.label and "NaN" not in case.label and case.make is not cases._some_nan
]


@parametrize(cases.CASES)
def test_reference_has_the_inferred_types(case):
    check_reference(case)


@parametrize(cases.CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(GRADIENT_CASES)
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(cases.CASES, ["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@parametrize(INTEGER_CASES, ["int32", "int64", "uint8", "bool"])
def test_kernel_of_other_types(case, dtype):
    if dtype == "bool" and not case.label.startswith(("any", "all")):
        pytest.skip("bool has no arithmetic")
    check_kernel(case, dtype)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "var", "std"])
@given(data=st.data())
def test_is_numpys(name, data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=4))
    axes = data.draw(st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True, max_size=len(shape)))
    keepdims = data.draw(st.booleans())
    x = np.random.default_rng(0).integers(-3, 4, shape).astype("float64")
    axis = axes if axes is None else tuple(axes)
    got = evaluate(lambda v: getattr(ops, name)(v, axis=axis, keepdims=keepdims), x)
    wanted = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis,keepdims", [(None, False), (None, True), (0, False), (-1, True)])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_place_of_the_first_extreme(name, axis, keepdims):
    x = np.random.default_rng(0).integers(0, 4, (5, 7)).astype("float32")
    got = evaluate(lambda v: getattr(ops, name)(v, axis, keepdims), x)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_nan_is_the_extreme():
    x = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    for function in (ops.max, ops.min):
        np.testing.assert_array_equal(np.isnan(evaluate(lambda v, f=function: f(v, 1), x)), [True, False])
    assert evaluate(lambda v: ops.argmax(v, 1), x).tolist() == [1, 2]
    assert evaluate(lambda v: ops.argmin(v, 1), x).tolist() == [1, 0]


def test_empty_tensors():
    empty = np.zeros((0, 3), "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(ops.sum, empty) == 0
        assert evaluate(ops.prod, empty) == 1
        assert np.isnan(evaluate(ops.mean, empty))
        assert evaluate(ops.any, empty) == np.False_
        assert evaluate(ops.all, empty) == np.True_
        assert evaluate(lambda x: ops.max(x, 1), empty).shape == (0,)


@pytest.mark.parametrize("function", [ops.max, ops.min, ops.argmax])
def test_extremes_of_nothing_are_an_error(function):
    with pytest.raises(ValueError, match="elements"):
        evaluate(lambda x: function(x, 0), np.zeros((0, 3)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype):
    x = np.ones((2, 3), dtype)
    counted = "int32" if dtype in ("bool", "uint8") else dtype
    assert evaluate(ops.sum, x).dtype == counted and evaluate(ops.prod, x).dtype == counted
    assert evaluate(ops.mean, x).dtype == ("float64" if dtype == "float64" else "float32")
    assert evaluate(ops.max, x).dtype == dtype
    assert evaluate(ops.any, x).dtype == bool
    assert evaluate(ops.sum, np.ones(300, dtype)) == 300


def test_gradient_is_shared_among_ties():
    x = np.array([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 1.0, 0.0]])
    assert sum_gradients(lambda v: ops.max(v, 1), x) == [[[0, 1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0, 0]]]
    assert sum_gradients(ops.min, x) == [[[0, 0, 0, 0], [0, 0, 0, 1]]]


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("function", [ops.var, ops.std, ops.logsumexp, ops.norm, ops.prod])
def test_gradients_of_compositions(function, axis):
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    check_gradient(lambda v: function(v, axis=axis), x)
    check_gradient(lambda v: function(v, axis=axis, keepdims=True), x)


def test_logsumexp_does_not_overflow():
    x = np.array([[1000.0, 0.0], [-1000.0, -1000.0], [-np.inf, -np.inf], [np.inf, 0.0]])
    got = evaluate(lambda v: ops.logsumexp(v, 1), x)
    np.testing.assert_allclose(got, [1000, -1000 + np.log(2), -np.inf, np.inf])


def test_norm_and_std_have_gradient_zero_at_zero():
    assert sum_gradients(ops.norm, np.zeros(3)) == [[0, 0, 0]]
    assert sum_gradients(ops.std, np.ones(3)) == [[0, 0, 0]]
    assert evaluate(ops.norm, np.array([3.0, 4.0])) == 5
    assert np.isnan(evaluate(ops.norm, np.array([np.nan, 4.0])))
    with pytest.raises(NotImplementedError, match="norm: ord"):
        evaluate(lambda x: ops.norm(x, ord=1), np.ones(3))


def test_count_nonzero_and_initial():
    x = np.array([[0.0, 1.0, np.nan], [0.0, 0.0, -1.0]])
    assert evaluate(lambda v: ops.count_nonzero(v, 1), x).tolist() == [2, 1]
    assert evaluate(lambda v: ops.max(v, initial=7), np.array([1.0, 2.0])) == 7
    assert evaluate(ops.amax, np.array([1.0, 2.0])) == 2


def test_no_node_where_nothing_is_reduced():
    x = np.ones((1, 4, 1))
    assert op_names(lambda v: ops.sum(v, (0, 2), keepdims=True), x) == []
    assert op_names(lambda v: ops.mean(v, 0), x) == ["reshape"]
    assert op_names(lambda v: ops.sum(v, ()), x) == []


@pytest.mark.parametrize("axis", [3, -4, (0, 0)])
def test_wrong_axes_are_named(axis):
    with pytest.raises(ValueError, match="sum: axis"):
        evaluate(lambda x: ops.sum(x, axis), np.zeros((2, 3, 4)))
