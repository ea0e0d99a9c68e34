"""Elementwise functions: values, gradients, element types, broadcasting, and what a kernel must give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases import elementwise as cases
from magmadnn_py.benchmarks.cases.case import Case, types
from magmadnn_py.graph.types import DTYPES
from magmadnn_py.ops.elementwise import FUNCTIONS

from .checks import (
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    evaluate,
    parametrize,
    sum_gradients,
)

PUBLIC_NAMES = {"remainder": "mod"}
# Names of NumPy where they differ from ours.
NUMPY_NAMES = {"remainder": "mod", "round": "rint"}
OWN = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "relu": lambda x: np.maximum(x, 0),
    "erf": None,
}


@parametrize(cases.CASES)
def test_reference_has_the_inferred_types(case):
    check_reference(case)


@parametrize(cases.CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize([c for c in cases.FUNCTION_CASES + cases.BROADCAST_CASES])
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(cases.FUNCTION_CASES + cases.BROADCAST_CASES + cases.PROGRAM_CASES, ["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@parametrize(cases.INTEGER_CASES + cases.MIXED_CASES)
def test_kernel_of_other_types(case):
    check_kernel(case)


@parametrize([cases.special_case(name) for name in FUNCTIONS], ["float32", "float64"])
def test_kernel_of_special_numbers(case, dtype):
    check_kernel(case, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_is_numpys(name):
    case = next(case for case in cases.FUNCTION_CASES if case.label == name).retyped("float64")
    arrays = case.arrays()
    numpy_function = OWN.get(name, getattr(np, NUMPY_NAMES.get(name, name), None))
    if numpy_function is None:
        pytest.skip("NumPy has no such function")
    wanted = numpy_function(*arrays)
    got = evaluate(getattr(ops, PUBLIC_NAMES.get(name, name)), *arrays)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_erf():
    x = np.array([-10.0, -1.0, 0.0, 0.5, 2.0])
    np.testing.assert_allclose(evaluate(ops.erf, x), [-1, -0.842700793, 0, 0.520499878, 0.995322265], rtol=1e-8)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
@given(data=st.data())
def test_broadcasts_as_numpy(name, data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in shapes.input_shapes)
    np.testing.assert_array_equal(evaluate(getattr(ops, name), a, b), getattr(np, name)(a, b))


@given(data=st.data())
def test_gradient_of_broadcasting(data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0))
    check_reference_gradient(Case("product", cases.one("multiply"), types(*shapes.input_shapes)))


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"add: inputs: got shapes \(2, 3\), \(4,\)"):
        evaluate(ops.add, np.zeros((2, 3)), np.zeros(4))


@pytest.mark.parametrize("second", DTYPES)
@pytest.mark.parametrize("first", DTYPES)
def test_promotion(first, second):
    got = evaluate(ops.add, np.ones(3, first), np.ones(3, second))
    assert got.dtype == max(first, second, key=DTYPES.index)


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_take_the_type_of_the_tensor(dtype):
    assert evaluate(lambda x: x + 1, np.ones(3, dtype)).dtype == ("int32" if dtype == "bool" else dtype)
    floating = dtype if dtype.startswith("float") else "float32"
    assert evaluate(lambda x: 0.5 * x, np.ones(3, dtype)).dtype == floating
    assert evaluate(lambda x: x / 2, np.ones(3, dtype)).dtype == floating


def test_functions_of_integers_are_floating():
    got = evaluate(ops.exp, np.arange(3, dtype="int32"))
    np.testing.assert_allclose(got, np.exp(np.arange(3)), rtol=1e-6)
    assert got.dtype == np.float32


@pytest.mark.parametrize("function", [ops.floor_divide, ops.mod])
def test_integers_divided_by_zero_give_zero(function):
    np.testing.assert_array_equal(evaluate(function, np.array([5, -5, 0], "int32"), np.zeros(3, "int32")), [0, 0, 0])


@pytest.mark.parametrize("condition", [np.array([0.5, 0.0, np.nan]), np.array([256, 0, 1], "int32")])
def test_a_condition_is_true_where_it_is_not_zero(condition):
    got = evaluate(ops.where, condition, np.array([1, 1, 1], "uint8"), np.array([2, 2, 2], "uint8"))
    np.testing.assert_array_equal(got, [1, 2, 1])


def test_nan_passes_through_extremes_relu_and_clip():
    nan = np.array([np.nan])
    for function in (ops.relu, lambda x: ops.maximum(x, 0.0), lambda x: ops.clip(x, -1, 1)):
        assert np.isnan(evaluate(function, nan)).all()


def test_equal_extremes_share_the_gradient():
    both = np.array([1.0, 2.0])
    for function in (ops.maximum, ops.minimum):
        assert sum_gradients(function, both, both) == [[0.5, 0.5], [0.5, 0.5]]


def test_gradient_of_power_at_zero():
    base, exponent = np.array([0.0, 0.0, 0.0, -2.0]), np.array([0.0, 1.0, 2.0, 2.0])
    assert sum_gradients(ops.power, base, exponent)[0] == [0, 1, 0, -4]


def test_gradients_far_out_are_finite():
    x = np.array([-1000.0, -100.0, 100.0, 1000.0])
    assert sum_gradients(ops.sigmoid, x) == [[0, pytest.approx(0, abs=1e-40), 0, 0]]
    assert sum_gradients(ops.softplus, x) == [[0, pytest.approx(0, abs=1e-40), 1, 1]]
    assert sum_gradients(ops.tanh, x) == [[0, 0, 0, 0]]


def test_clip_gradient():
    check_gradient(lambda x: ops.clip(x, -0.7, 0.7), np.linspace(-2, 2, 10))


def test_a_call_on_arrays_runs_at_once():
    got = ops.add(np.ones((2, 3), "float32"), 1)
    np.testing.assert_array_equal(np.asarray(got), np.full((2, 3), 2.0))
