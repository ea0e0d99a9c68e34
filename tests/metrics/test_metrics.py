"""Metrics against Keras's values, exact counts, names and configs."""

import math

import numpy as np
import pytest

from magmadnn_py import graph, losses, metrics, ops
from magmadnn_py.runtime.program import Program

from .golden import METRICS


def arrays(batch):
    y_true, y_pred, weight = batch
    return np.array(y_true), np.array(y_pred, "float32"), None if weight is None else np.array(weight, "float32")


@pytest.mark.parametrize("name, arguments, batches, expected", METRICS)
def test_value_of_keras(name, arguments, batches, expected):
    metric = getattr(metrics, name)(**arguments)
    for _ in range(2):
        for batch in batches:
            y_true, y_pred, weight = arrays(batch)
            metric.update_state(y_true, y_pred, sample_weight=weight)
        np.testing.assert_allclose(np.asarray(metric.result()), expected, rtol=3e-6, atol=2e-6)
        assert metric.result().dtype == "float32"
        metric.reset_state()


@pytest.mark.parametrize("name, arguments, batches, expected", METRICS)
def test_in_a_program(name, arguments, batches, expected):
    metric = metrics.deserialize(metrics.serialize(getattr(metrics, name)(**arguments)))
    for batch in batches:
        given = [array for array in arrays(batch) if array is not None]
        with graph.Trace() as trace:
            inputs = [trace.input(array.shape, array.dtype.name) for array in given]
            metric.update_state(*inputs)
        Program(trace.graph([])).run(*given)
    np.testing.assert_allclose(np.asarray(metric.result()), expected, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name, arguments, batches, expected", METRICS)
def test_config_round_trip(name, arguments, batches, expected):
    config = metrics.serialize(getattr(metrics, name)(**arguments))
    assert metrics.serialize(metrics.deserialize(config)) == config


def test_nothing_seen_gives_zero():
    for metric in (metrics.Mean(), metrics.Precision(), metrics.BinaryAccuracy(), metrics.AUC(), metrics.F1Score()):
        assert float(np.asarray(metric.result())) == 0.0


def test_counts_stay_exact_beyond_float32():
    metric = metrics.Mean()
    metric.count.assign(2.0**24)
    metric.total.assign(2.0**24)
    metric.update_state(np.ones(1, "float32"))
    assert metric.count.numpy() == 2**24 + 1
    assert metric.total.numpy() == 2**24 + 1


def test_smaller_last_batch_counts_by_its_size():
    metric = metrics.Mean()
    metric.update_state(np.array([10.0, 10.0], "float32"))
    metric.update_state(np.array([9.0], "float32"))
    np.testing.assert_allclose(np.asarray(metric.result()), 29 / 3, rtol=1e-6)
    other = metrics.Mean()
    other.update_state(10.0, sample_weight=2.0)
    other.update_state(9.0, sample_weight=1.0)
    np.testing.assert_allclose(np.asarray(other.result()), 29 / 3, rtol=1e-6)


def test_sum():
    metric = metrics.Sum()
    metric.update_state(np.arange(12, dtype="float32").reshape(2, 3, 2), sample_weight=[1.0, 3.0])
    assert float(np.asarray(metric.result())) == 168.0


def test_weighted_accuracy():
    y_true, y_pred = np.array([[1.0], [0.0]]), np.array([[0.9], [0.8]], "float32")
    metric = metrics.BinaryAccuracy()
    assert float(np.asarray(metric(y_true, y_pred))) == 0.5
    metric.reset_state()
    assert float(np.asarray(metric(y_true, y_pred, sample_weight=[1.0, 0.0]))) == 1.0


def test_top_k_of_equal_and_infinite_scores():
    labels = np.array([0, 0, 1])
    scores = np.array([[1.0, 1.0, 1.0], [math.nan, 1.0, 2.0], [0.0, math.inf, 1.0]], "float32")
    found = metrics.sparse_top_k_categorical_accuracy(labels, scores, k=1)
    np.testing.assert_array_equal(np.asarray(found), [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "name, y_true, y_pred, cls",
    [
        ("accuracy", (8, 1), (8, 1), metrics.BinaryAccuracy),
        ("acc", (8,), (8, 10), metrics.SparseCategoricalAccuracy),
        ("accuracy", (8, 1), (8, 10), metrics.SparseCategoricalAccuracy),
        ("accuracy", (8, 10), (8, 10), metrics.CategoricalAccuracy),
        ("accuracy", (8, 4, 4), (8, 4, 4, 3), metrics.SparseCategoricalAccuracy),
        ("ce", (8, 10), (8, 10), metrics.CategoricalCrossentropy),
        ("crossentropy", (8,), (8, 10), metrics.SparseCategoricalCrossentropy),
        ("mse", (8, 1), (8, 1), metrics.MeanSquaredError),
        (metrics.categorical_accuracy, (8, 10), (8, 10), metrics.MeanMetricWrapper),
    ],
)
def test_resolve(name, y_true, y_pred, cls):
    metric = metrics.resolve(name, None, y_true, y_pred)
    assert type(metric) is cls
    if name in ("accuracy", "acc", "ce", "crossentropy"):
        assert metric.name == name


def test_resolved_cross_entropy_takes_logits_where_the_loss_does():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    metric = metrics.resolve("crossentropy", loss, (2,), (2, 2))
    metric.update_state(np.array([1]), np.array([[1000.0, 0.0]], "float32"))
    assert float(np.asarray(metric.result())) == 1000.0


def test_unknown_name_lists_close_ones():
    with pytest.raises(ValueError, match="'binary_acuracy'.*did you mean.*'binary_accuracy'"):
        metrics.get("binary_acuracy")


def test_names_are_numbered():
    from magmadnn_py.utils import clear_session

    clear_session()
    assert [metrics.AUC().name, metrics.AUC().name, metrics.Precision().name] == ["auc", "auc_1", "precision"]


def test_custom_metric():
    class TruePart(metrics.Metric):
        def __init__(self, name="true_part", **options):
            super().__init__(name=name, **options)
            self.count = self.add_variable(shape=(), initializer="zeros", name="count")
            self.inner = metrics.Mean()

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count.assign_add(ops.sum(ops.cast(ops.equal(y_true, y_pred), "float64")))
            self.inner.update_state(y_pred)

        def result(self):
            return self.count * 1.0

    metric = TruePart()
    assert len(metric.variables) == 3
    metric.update_state(np.array([1.0, 2.0], "float32"), np.array([1.0, 3.0], "float32"))
    metric.update_state(np.array([1.0], "float32"), np.array([1.0], "float32"))
    assert float(np.asarray(metric.result())) == 2.0
    metric.reset_state()
    assert all(np.all(variable.numpy() == 0) for variable in metric.variables)


def test_ignored_class_of_iou_may_be_out_of_range():
    metric = metrics.MeanIoU(num_classes=2, ignore_class=255)
    metric.update_state(np.array([0, 1, 255]), np.array([0, 1, 1]))
    assert float(np.asarray(metric.result())) == 1.0


@pytest.mark.parametrize("make", [lambda: metrics.BinaryAccuracy(threshold=2.0), lambda: metrics.Precision(-0.1)])
def test_threshold_out_of_range(make):
    with pytest.raises(ValueError, match="threshold"):
        make()
