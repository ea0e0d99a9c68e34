"""Softmax and the cross-entropies: definition, gradients, stability, Keras's values, errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases.case import types
from magmadnn_py.benchmarks.cases.loss import CASES, CROSS_ENTROPY_CASES, LARGE_CASES, SOFTMAX_CASES
from magmadnn_py.ops.loss import LogSoftmax, Softmax, SoftmaxCrossEntropy, SoftmaxCrossEntropyGradient
from ops.checks import (
    apply,
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    parametrize,
)
from ops.evaluate import differentiate, evaluate


def f32(*values):
    return np.array(values, "float32")


@parametrize(SOFTMAX_CASES)
def test_softmax_is_the_definition(case):
    case = case.retyped("float64")
    (x,) = case.arrays()
    wanted = np.exp(x) / np.exp(x).sum(case.op.axis, keepdims=True)
    wanted = np.log(wanted) if isinstance(case.op, LogSoftmax) else wanted
    check_reference(case, [wanted], rtol=1e-12, atol=1e-12)


@parametrize(CROSS_ENTROPY_CASES)
def test_cross_entropy_is_the_definition(case):
    case = case.retyped("float64")
    logits, labels, *dloss = case.arrays()
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    weights = np.eye(logits.shape[-1])[labels] if case.op.sparse else labels
    if dloss:
        wanted = (p * weights.sum(-1, keepdims=True) - weights) * dloss[0][..., None]
    else:
        wanted = -(weights * np.log(p)).sum(-1)
    check_reference(case, [wanted], rtol=1e-11, atol=1e-11)


@parametrize(CASES)
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(CASES + LARGE_CASES, dtypes=["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@parametrize(LARGE_CASES)
def test_large_logits_stay_finite(case):
    for array in apply(case.op, case.arrays()):
        assert np.isfinite(array).all()


@pytest.mark.parametrize("op", [SoftmaxCrossEntropy(True), SoftmaxCrossEntropyGradient(True)], ids=str)
@pytest.mark.parametrize("label", [5, -1])
def test_behaviour_19_label_that_is_no_class(op, label):
    arrays = [np.zeros((2, 3)), np.array([0, label]), np.ones(2)][: 2 if op.name == "softmax_cross_entropy" else 3]
    with pytest.raises(ValueError, match=f"labels: got {label}, wanted class numbers from 0 to 2"):
        op.reference(np, *arrays)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("label", [5, -1])
def test_behaviour_19_in_the_public_function(label, from_logits):
    with pytest.raises(ValueError, match=f"got {label}, wanted class numbers from 0 to 2"):
        evaluate(
            ops.sparse_categorical_crossentropy,
            np.array([0, label]),
            np.full((2, 3), 0.3, "float32"),
            from_logits=from_logits,
        )


def test_errors():
    with pytest.raises(ValueError, match="softmax: input: got int32"):
        Softmax(0).infer(*types((3,), dtype="int32"))
    with pytest.raises(ValueError, match="softmax: axis: got 2"):
        Softmax(2).infer(*types((3, 4)))
    with pytest.raises(ValueError, match="softmax: input: got shape .* at least one element"):
        Softmax(1).infer(*types((3, 0)))
    with pytest.raises(ValueError, match="softmax_cross_entropy: labels"):
        SoftmaxCrossEntropy(False).infer(*types((3, 4), (3, 5)))
    with pytest.raises(ValueError, match="softmax_cross_entropy: labels"):
        SoftmaxCrossEntropy(True).infer(*types((3, 4)), *types((3,), dtype="float32"))
    with pytest.raises(ValueError, match="softmax: axis: got 2"):
        evaluate(ops.softmax, np.ones((2, 3)), axis=2)
    with pytest.raises(ValueError, match="categorical_crossentropy: target: got shape"):
        evaluate(ops.categorical_crossentropy, np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="sparse_categorical_crossentropy: target: got shape"):
        evaluate(ops.sparse_categorical_crossentropy, np.zeros(3, "int32"), np.ones((2, 4)))
    with pytest.raises(ValueError, match="binary_crossentropy: target: got shape"):
        evaluate(ops.binary_crossentropy, np.ones((2, 3)), np.ones((2, 4)))


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_softmax_along_any_axis(axis):
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    wanted = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    np.testing.assert_allclose(evaluate(ops.softmax, x, axis=axis), wanted, rtol=1e-12)
    np.testing.assert_allclose(evaluate(ops.log_softmax, x, axis=axis), np.log(wanted), rtol=1e-11)


# Values that Keras gives.


@pytest.mark.parametrize("logits,label,wanted", [([1000, 0], 1, 1000), ([14.4, 50.1, 3.5], 0, 35.7)])
def test_behaviour_17_logits(logits, label, wanted):
    logits = f32(logits)
    one_hot = np.eye(logits.shape[-1], dtype="float32")[[label]]
    loss = evaluate(ops.categorical_crossentropy, one_hot, logits, from_logits=True)
    np.testing.assert_allclose(loss, [wanted], rtol=1e-6)
    loss = evaluate(ops.sparse_categorical_crossentropy, np.array([label]), logits, from_logits=True)
    np.testing.assert_allclose(loss, [wanted], rtol=1e-6)


def test_behaviour_17_binary_logits():
    target, logits = f32(0, 1, 0, 1), f32(100, 100, -100, -100)
    loss = evaluate(ops.binary_crossentropy, target, logits, from_logits=True)
    np.testing.assert_allclose(loss, [100, 0, 0, 100], atol=1e-6)
    _, gradient = differentiate(ops.binary_crossentropy, target, logits, from_logits=True)
    np.testing.assert_allclose(gradient, [1, 0, 0, -1], atol=1e-6)


def test_behaviour_17_probabilities_saturate():
    p = f32([1, 0])
    np.testing.assert_allclose(evaluate(ops.categorical_crossentropy, f32([0, 1]), p), [16.118], rtol=1e-4)
    np.testing.assert_allclose(evaluate(ops.sparse_categorical_crossentropy, [1], p), [16.118], rtol=1e-4)


def test_behaviour_17_a_softmax_in_the_graph_gives_its_logits():
    logits = f32([1000, 0], [0, 1000])

    def dense(target, x):
        return ops.categorical_crossentropy(target, ops.softmax(x))

    def sparse(target, x):
        return ops.sparse_categorical_crossentropy(target, ops.softmax(x))

    np.testing.assert_allclose(evaluate(dense, f32([0, 1], [0, 1]), logits), [1000, 0])
    np.testing.assert_allclose(evaluate(sparse, np.array([1, 1]), logits), [1000, 0])
    np.testing.assert_allclose(differentiate(sparse, np.array([1, 1]), logits)[0], [[1, -1], [0, 0]])


def test_behaviour_17_a_sigmoid_in_the_graph_gives_its_logits():
    def function(target, x):
        return ops.binary_crossentropy(target, ops.sigmoid(x))

    np.testing.assert_allclose(evaluate(function, f32(0, 1), f32(100, 100)), [100, 0], atol=1e-6)


def test_a_softmax_over_another_axis_is_not_taken_for_the_logits():
    x = np.random.default_rng(0).standard_normal((3, 3))
    target = np.eye(3)
    p = np.exp(x) / np.exp(x).sum(0)
    rows = p / p.sum(1, keepdims=True)
    got = evaluate(lambda t, x: ops.categorical_crossentropy(t, ops.softmax(x, axis=0)), target, x)
    np.testing.assert_allclose(got, -np.log(np.diag(rows)), rtol=1e-6)


def test_behaviour_18_epsilon_is_applied_once():
    loss = evaluate(ops.binary_crossentropy, f32(0, 1, 0), f32(0.9999999, 0.9999999, 1e-7))
    np.testing.assert_allclose(loss, [15.942, 0, 0], rtol=1e-4, atol=1e-6)


def test_rows_are_renormalised():
    p = f32([2, 6], [0.5, 0.25])
    wanted = -np.log([0.75, 2 / 3])
    np.testing.assert_allclose(evaluate(ops.categorical_crossentropy, f32([0, 1], [1, 0]), p), wanted, rtol=1e-6)
    np.testing.assert_allclose(evaluate(ops.sparse_categorical_crossentropy, [1, 0], p), wanted, rtol=1e-6)


def test_label_smoothing_value():
    """Keras: K = 3, smoothing 0.1, probability 0.8 of the right class."""
    target = f32([1, 0, 0]) * 0.9 + 0.1 / 3
    loss = evaluate(ops.categorical_crossentropy, target, f32([0.8, 0.1, 0.1]))
    np.testing.assert_allclose(loss, [0.361773], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "bool"])
def test_labels_of_any_type_and_with_a_last_axis_of_one(dtype):
    logits = np.random.default_rng(0).standard_normal((2, 3)).astype("float32")
    labels = np.array([1, 0])
    wanted = evaluate(ops.sparse_categorical_crossentropy, labels, logits, from_logits=True)
    for given in (labels.astype(dtype), labels.astype(dtype)[:, None]):
        got = evaluate(ops.sparse_categorical_crossentropy, given, logits, from_logits=True)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("from_logits", [True, False])
def test_classes_on_another_axis(from_logits):
    rng = np.random.default_rng(0)
    output = rng.random((2, 4, 3))
    labels = rng.integers(0, 4, (2, 3))
    target = np.moveaxis(np.eye(4)[labels], -1, 1)
    log_p = np.log(output / output.sum(1, keepdims=True))
    if from_logits:
        log_p = output - np.log(np.exp(output).sum(1, keepdims=True))
    wanted = -(target * log_p).sum(1)
    arguments = {"from_logits": from_logits, "axis": 1}
    np.testing.assert_allclose(evaluate(ops.categorical_crossentropy, target, output, **arguments), wanted, rtol=1e-6)
    got = evaluate(ops.sparse_categorical_crossentropy, labels, output, **arguments)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_gradients_of_sparse_and_dense_probabilities_agree():
    rng = np.random.default_rng(0)
    p, labels = rng.random((5, 4)), rng.integers(0, 4, 5)
    (sparse,) = differentiate(ops.sparse_categorical_crossentropy, labels, p)
    _, dense = differentiate(ops.categorical_crossentropy, np.eye(4)[labels], p)
    np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-9)


def test_weights_may_be_integers():
    loss = evaluate(ops.categorical_crossentropy, np.array([[0, 1]]), f32([0.5, 0.5]))
    assert loss.dtype == np.float32
    np.testing.assert_allclose(loss, [np.log(2)], rtol=1e-6)


def test_gradient_goes_into_the_weights():
    """Soft labels may be trained too; and a loss that is used twice adds up."""
    rng = np.random.default_rng(0)

    def function(target, logits):
        loss = ops.categorical_crossentropy(target, logits, from_logits=True)
        return loss + ops.square(loss)

    check_gradient(function, rng.random((2, 3)), rng.standard_normal((2, 3)))


@pytest.mark.parametrize("from_logits", [True, False])
def test_gradients_of_the_public_functions(from_logits):
    rng = np.random.default_rng(0)
    arrays = rng.random((2, 3)), rng.uniform(0.1, 0.9, (2, 3))
    for function in (ops.categorical_crossentropy, ops.binary_crossentropy):
        check_gradient(partial(function, from_logits=from_logits), *arrays)
