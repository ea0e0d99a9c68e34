"""Differentiation of graphs: several consumers, several outputs, and gradients that never share memory."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret


def derivatives(function, *numbers, weights=None):
    """d function / d each argument, by the references; None where it does not depend on one."""
    arrays = [np.asarray(n, "float64") for n in numbers]
    with Trace() as trace:
        inputs = [trace.input(a.shape, "float64") for a in arrays]
        found = gradients(function(*inputs), inputs, weights)
    present = [value for value in found if value is not None]
    computed = iter(interpret(trace.graph(present), arrays)[0])
    return [None if value is None else next(computed).tolist() for value in found]


@pytest.mark.parametrize(
    "function,numbers,wanted",
    [
        (lambda a, b: a - b, (5, 3), [1, -1]),
        (lambda x, v: 3.0 * x + v, (2, 7), [3, 1]),
        (lambda x, c: (x + c) + x * x, (2, 7), [5, 1]),
        (lambda x: -x, (2,), [-1]),
        (lambda x: x + x, (2,), [2]),
        (lambda x: x + x + x, (2,), [3]),
        (lambda x: x * x * x, (2,), [12]),
        (lambda x: ops.exp(x) + ops.sin(x) + ops.square(x) + 4.0 * x, (0,), [1 + 1 + 0 + 4]),
        (lambda a, b: (a + b) * (a - b), (5, 3), [10, -6]),
        (lambda a, b: ops.divide(a, b), (6, 3), [1 / 3, -2 / 3]),
    ],
)
def test_by_hand(function, numbers, wanted):
    assert derivatives(function, *numbers) == pytest.approx(wanted)


@pytest.mark.parametrize("consumers", [1, 2, 3, 4, 7])
def test_any_number_of_consumers(consumers):
    def function(x):
        return sum(((k + 1.0) * ops.square(x) for k in range(consumers)), start=ops.zeros_like(x))

    assert derivatives(function, 3.0) == [6.0 * consumers * (consumers + 1) / 2]


def test_a_shared_gradient_is_not_changed_by_accumulation():
    # Both additions hand the same gradient value to their inputs; x gets a sum, y and z must not.
    def function(x, y, z):
        return ops.add(ops.add(x, y), ops.add(ops.add(x, z), ops.multiply(x, x)))

    assert derivatives(function, 2.0, 3.0, 4.0) == [6, 1, 1]


def test_a_value_used_twice_by_one_node():
    assert derivatives(lambda x: ops.concatenate([x, x, x]), [1.0, 2.0]) == [[3, 3]]
    assert derivatives(lambda x: ops.matmul(x, x), [[1.0, 2.0], [3.0, 4.0]]) == [[[7, 11], [9, 13]]]


def test_deep_diamonds():
    def function(x):
        for _ in range(40):
            x = x + x
        return x

    assert derivatives(function, 1.0) == [2.0**40]


def test_several_outputs_and_weights():
    with Trace() as trace:
        x = trace.input((2,), "float64")
        outputs = [ops.square(x), 3.0 * x]
        weights = [ops.full((2,), 10, "float64"), ops.full((2,), 100, "float64")]
        (dx,) = gradients(outputs, [x], weights)
    (got,), _ = interpret(trace.graph([dx]), [np.array([1.0, 2.0])])
    assert got.tolist() == [320, 340]


def test_an_output_twice_and_an_output_that_is_an_input():
    with Trace() as trace:
        x = trace.input((), "float64")
        y = 3.0 * x
        (dx,) = gradients([y, y, x], [x])
    assert interpret(trace.graph([dx]), [np.array(1.0)])[0][0] == 7


def test_intermediate_values():
    with Trace() as trace:
        x = trace.input((), "float64")
        y = ops.square(x)
        z = ops.exp(y) + y
        dy, dx = gradients(z, [y, x])
    got = interpret(trace.graph([dy, dx]), [np.array(0.5)])[0]
    np.testing.assert_allclose(got, [np.exp(0.25) + 1, np.exp(0.25) + 1])


def test_none_where_there_is_no_dependence():
    assert derivatives(lambda a, b: ops.square(a), 2.0, 3.0) == [4, None]
    assert derivatives(lambda a, b: ops.cast(ops.greater(a, b), "float64"), 2.0, 3.0) == [None, None]


def test_gradients_of_gradients():
    with Trace() as trace:
        x = trace.input((), "float64")
        y = ops.sin(x) * ops.exp(x) + x**3
        for _ in range(3):
            (y,) = gradients(y, [x])
    got = interpret(trace.graph([y]), [np.array(0.7)])[0][0]
    e, s, c = np.exp(0.7), np.sin(0.7), np.cos(0.7)
    assert got == pytest.approx(2 * e * (c - s) + 6)


def test_a_wrong_output_gradient_is_named():
    with Trace() as trace:
        x = trace.input((2,))
        with pytest.raises(ValueError, match=r"output_gradients: got float32\[3\], wanted float32\[2\]"):
            gradients(ops.square(x), [x], [ops.zeros((3,))])


def test_without_a_trace():
    with Trace() as trace:
        x = trace.input((2, 3), "float64")
        y = ops.sum(ops.max(ops.relu(x) * ops.reshape(ops.exp(x), (2, 3)), 1))
    (dx,) = gradients(y, [x])
    assert interpret(trace.graph([dx]), [np.ones((2, 3))])[0][0].shape == (2, 3)


def test_a_small_network_against_differences():
    from ops.checks import check_gradient

    rng = np.random.default_rng(0)

    def loss(x, w, b, v):
        hidden = ops.tanh(ops.matmul(x, w) + b)
        scores = ops.matmul(hidden, v) + ops.matmul(hidden, v) * ops.mean(hidden)
        return ops.mean(ops.logsumexp(scores, 1) - scores[:, 0]) + 0.1 * ops.sum(ops.square(w))

    check_gradient(loss, *(rng.standard_normal(shape) for shape in [(5, 4), (4, 6), (6,), (6, 3)]))
