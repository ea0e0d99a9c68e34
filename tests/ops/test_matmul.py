"""Matrix products: NumPy's rules, gradients, errors, kernels."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases import matmul as cases
from magmadnn_py.graph import Trace
from magmadnn_py.ops.matmul import MatMul

from .checks import (
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    evaluate,
    parametrize,
)


@parametrize(cases.CASES)
def test_reference_has_the_inferred_types(case):
    check_reference(case)


@parametrize(cases.CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(cases.MATRIX_CASES + cases.BATCH_CASES)
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(cases.CASES, ["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@pytest.mark.parametrize(
    "a,b",
    [((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)), ((2, 5, 4), (4,)), ((4,), (2, 4, 3)), ((2, 5, 4), (4, 3)),
     ((2, 5, 4), (2, 4, 3)), ((6, 1, 5, 4), (2, 4, 3)), ((0,), (0,)), ((2, 5, 0), (0, 3)), ((0, 5, 4), (4, 3))],
)  # fmt: skip
def test_shapes_follow_numpy(a, b):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(a), rng.standard_normal(b)
    np.testing.assert_allclose(evaluate(ops.matmul, x, y), x @ y, rtol=1e-12, atol=1e-12)
    check_gradient(ops.matmul, x, y)


def test_dot():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(ops.dot, x, x.T), x @ x.T)
    np.testing.assert_array_equal(evaluate(ops.dot, x, np.float64(2)), 2 * x)


def test_a_dense_layer_on_a_sequence_is_one_tall_product():
    with Trace() as trace:
        y = ops.matmul(trace.input((8, 5, 4)), trace.input((4, 3)))
    (product,) = [node for node in trace.graph([y]).order if isinstance(node.op, MatMul)]
    assert product.outputs[0].shape == (40, 3)


def test_uint8_and_bool_promote():
    got = evaluate(ops.matmul, np.ones((2, 3), "bool"), np.ones((3, 2), "float32"))
    np.testing.assert_array_equal(got, np.full((2, 2), 3, "float32"))


@pytest.mark.parametrize("a,b", [((2, 3), (4, 5)), ((2, 3), (4,)), ((2, 2, 3), (3, 3, 4))])
def test_unequal_extents_are_named(a, b):
    with pytest.raises(ValueError, match="matmul: inputs: got shapes"):
        evaluate(ops.matmul, np.zeros(a), np.zeros(b))


def test_rank_0_is_named():
    with pytest.raises(ValueError, match="wanted rank 1 or more"):
        evaluate(ops.matmul, np.zeros(()), np.zeros(3))


def test_a_bias_of_another_extent_is_named():
    with Trace() as trace, pytest.raises(ValueError, match=r"matmul: bias: got shape \(3,\), wanted \(5,\)"):
        MatMul(bias=True)(trace.input((2, 4)), trace.input((4, 5)), trace.input((3,)))
