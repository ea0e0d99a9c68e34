"""Losses against Keras's values, and what Keras gets wrong."""

import math

import numpy as np
import pytest

from magmadnn_py import graph, losses, ops, saving

from .golden import LOSSES


def compute(loss, y_true, y_pred, sample_weight=None):
    return np.asarray(loss(np.array(y_true), np.array(y_pred, "float32"), sample_weight=sample_weight))


@pytest.mark.parametrize("name, arguments, y_true, y_pred, weight, expected", LOSSES)
def test_value_of_keras(name, arguments, y_true, y_pred, weight, expected):
    loss = getattr(losses, name)(**arguments)
    np.testing.assert_allclose(compute(loss, y_true, y_pred, weight), expected, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name, arguments, y_true, y_pred, weight, expected", LOSSES)
def test_config_round_trip(name, arguments, y_true, y_pred, weight, expected):
    config = losses.serialize(getattr(losses, name)(**arguments))
    loss = losses.deserialize(config)
    assert losses.serialize(loss) == config
    np.testing.assert_allclose(compute(loss, y_true, y_pred, weight), expected, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name, arguments, y_true, y_pred, weight, expected", LOSSES)
def test_traced_is_eager(name, arguments, y_true, y_pred, weight, expected):
    arrays = [np.array(y_true), np.array(y_pred, "float32")]
    with graph.Trace() as trace:
        inputs = [trace.input(array.shape, array.dtype.name) for array in arrays]
        value = getattr(losses, name)(**arguments)(*inputs, sample_weight=weight)
    from magmadnn_py.graph.interpret import interpret

    (result,), _ = interpret(trace.graph([value]), arrays)
    np.testing.assert_allclose(result, expected, rtol=3e-6, atol=2e-6)


def gradient(loss, y_true, y_pred):
    from magmadnn_py.graph.interpret import interpret

    y_pred = np.array(y_pred, "float32")
    with graph.Trace() as trace:
        value = trace.input(y_pred.shape)
        (result,) = graph.gradients(loss(np.array(y_true), value), [value])
    return interpret(trace.graph([result]), [y_pred])[0][0]


def test_cross_entropy_of_large_logits_does_not_saturate():
    sparse = losses.SparseCategoricalCrossentropy(from_logits=True)
    assert compute(sparse, [1], [[1000.0, 0.0]]) == 1000.0
    np.testing.assert_allclose(compute(sparse, [0], [[14.4, 50.1, 3.5]]), 35.7, rtol=1e-6)
    binary = losses.BinaryCrossentropy(from_logits=True)
    assert compute(binary, [[0.0]], [[100.0]]) == 100.0
    np.testing.assert_allclose(gradient(binary, [[0.0]], [[100.0]]), [[1.0]])
    assert compute(binary, [[0.0]], [[-100.0]]) < 1e-40


def test_binary_gradient_at_zero_logit():
    np.testing.assert_allclose(
        gradient(losses.BinaryCrossentropy(from_logits=True), [[1.0, 0.0]], [[0.0, 0.0]]), [[-0.25, 0.25]]
    )


def test_probabilities_are_clipped_once():
    np.testing.assert_allclose(
        compute(losses.CategoricalCrossentropy(), [[0.0, 1.0]], [[1.0, 0.0]]), 16.118096, rtol=1e-6
    )
    values = losses.binary_crossentropy([[0.0], [1.0], [0.0]], [[0.9999999], [0.9999999], [1e-7]])
    np.testing.assert_allclose(np.asarray(values), [15.942385, 0.0, 0.0], atol=2e-6)


def test_gradient_goes_past_a_saturated_softmax():
    def loss(y_true, logits):
        return losses.CategoricalCrossentropy()(y_true, ops.softmax(logits))

    np.testing.assert_allclose(gradient(loss, [[0.0, 1.0]], [[200.0, 0.0]]), [[1.0, -1.0]])


def test_label_smoothing():
    loss = losses.CategoricalCrossentropy(label_smoothing=0.1)
    np.testing.assert_allclose(compute(loss, [[1.0, 0.0, 0.0]], [[0.8, 0.1, 0.1]]), 0.361773, atol=1e-6)


def test_weights_do_not_enter_the_divisor():
    loss = losses.MeanSquaredError()
    assert compute(loss, [[1.0], [1.0]], [[0.0], [0.0]], [2.0, 0.0]) == 1.0
    assert compute(loss, [[1.0], [1.0]], [[0.0], [0.0]], [[2.0], [0.0]]) == 1.0


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "mean", "mean_with_sample_weight"])
def test_weights_of_zero_give_zero(reduction):
    loss = losses.MeanAbsoluteError(reduction=reduction)
    assert compute(loss, [[1.0], [2.0]], [[0.0], [0.0]], [0.0, 0.0]) == 0.0


def test_weights_per_sample_of_maps():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    logits = np.zeros((2, 3, 3, 4), "float32")
    labels = np.zeros((2, 3, 3), "int32")
    np.testing.assert_allclose(compute(loss, labels, logits, [1.0, 0.0]), math.log(4) / 2, rtol=1e-6)
    np.testing.assert_allclose(compute(loss, labels, logits, np.ones((2, 3, 3), "float32")), math.log(4), rtol=1e-6)


@pytest.mark.parametrize("labels", [[0, 5], [0, -1], [0.0, 1.5]])
def test_label_out_of_range(labels):
    loss = losses.SparseCategoricalCrossentropy()
    with pytest.raises(ValueError, match=rf"label {labels[1]} at \[1\], wanted integers from 0 to 2"):
        loss(np.array(labels), np.full((2, 3), 1 / 3, "float32"))


def test_ignored_label_may_be_out_of_range():
    loss = losses.SparseCategoricalCrossentropy(ignore_class=255)
    value = compute(loss, [0, 255], np.full((2, 4), 0.25))
    np.testing.assert_allclose(value, math.log(4), rtol=1e-6)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"mean_squared_error: y_true: got shape \(2, 3\), wanted .* \(2, 1\)"):
        losses.mean_squared_error(np.zeros((2, 3), "float32"), np.zeros((2, 1), "float32"))
    with pytest.raises(ValueError, match="sample_weight"):
        compute(losses.MeanSquaredError(), np.zeros((4, 2)), np.zeros((4, 2)), [1.0, 2.0, 3.0])


def test_vector_of_targets_for_a_column():
    assert compute(losses.MeanSquaredError(), [1.0, 2.0], [[1.0], [2.0]]) == 0.0


def test_zero_vectors_have_finite_gradients():
    result = gradient(losses.CosineSimilarity(), [[1.0, 1.0]], [[0.0, 0.0]])
    assert np.isfinite(result).all()


def test_nan_stays_nan():
    assert np.isnan(compute(losses.MeanSquaredError(), [[1.0]], [[math.nan]]))


@pytest.mark.parametrize(
    "name, cls",
    [
        ("mse", losses.MeanSquaredError),
        ("MAE", losses.MeanAbsoluteError),
        ("mean_absolute_error", losses.MeanAbsoluteError),
        ("kl_divergence", losses.KLDivergence),
        ("categorical_crossentropy", losses.CategoricalCrossentropy),
        ("SparseCategoricalCrossentropy", losses.SparseCategoricalCrossentropy),
        ("bce", losses.BinaryCrossentropy),
    ],
)
def test_names(name, cls):
    assert isinstance(losses.as_loss(name), cls)


def test_name_of_a_function_gives_the_function():
    assert losses.get("mse") is losses.mean_squared_error
    assert losses.get(None) is None


def test_unknown_name_lists_close_ones():
    with pytest.raises(ValueError, match="'categorical_crossentropi'.*did you mean.*'categorical_crossentropy'"):
        losses.get("categorical_crossentropi")


def test_unknown_reduction():
    with pytest.raises(ValueError, match="reduction"):
        losses.MeanSquaredError(reduction="average")


def test_custom_function_and_class():
    def twice(y_true, y_pred):
        return 2.0 * ops.mean(ops.abs(y_true - y_pred), axis=-1)

    class Largest(losses.Loss):
        def call(self, y_true, y_pred):
            return ops.max(ops.abs(y_true - y_pred), axis=-1)

    y_true, y_pred = [[1, 2], [3, 4]], [[1.5, 2.0], [3.0, 5.0]]
    assert compute(losses.as_loss(twice), y_true, y_pred) == 0.75
    assert compute(Largest(), y_true, y_pred) == 0.75
    assert Largest().name == "largest"


def test_registered_function_round_trip():
    @saving.register_keras_serializable("test_losses")
    def registered_loss(y_true, y_pred):
        return ops.mean(ops.square(y_true - y_pred), axis=-1)

    loss = losses.deserialize(losses.serialize(losses.as_loss(registered_loss)))
    assert loss.fn is registered_loss


def test_float64_stays_float64():
    value = losses.MeanSquaredError()(np.zeros((2, 2)), np.ones((2, 2)))
    assert value.dtype == "float64"
