"""Losses as metrics: their values averaged over samples and batches."""

from __future__ import annotations

from .. import losses, ops
from ..losses.matching import matched
from ..ops.function import function
from .metric import contents
from .reduction import Mean, MeanMetricWrapper, as_floating, ratio


@function
def cosine_similarity(y_true, y_pred, axis=-1):
    """The cosine of the angle between the vectors along `axis`."""
    return -losses.cosine_similarity(y_true, y_pred, axis=axis)


@function
def squared_error(y_true, y_pred):
    """(y_pred - y_true)^2, elementwise."""
    y_true, y_pred = matched(y_true, y_pred, "squared_error")
    return ops.square(y_pred - y_true)


class MeanSquaredError(MeanMetricWrapper):
    """mean((y_pred - y_true)^2)."""

    direction = "down"

    def __init__(self, name="mean_squared_error", dtype=None):
        super().__init__(losses.mean_squared_error, name, dtype)


class RootMeanSquaredError(Mean):
    """sqrt(mean((y_pred - y_true)^2)) over all batches."""

    direction = "down"

    def __init__(self, name="root_mean_squared_error", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        super().update_state(squared_error(*as_floating(y_true, y_pred)), sample_weight)

    def result(self):
        return ops.cast(ops.sqrt(ratio(contents(self.total), contents(self.count), "float64")), self.dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """mean(|y_pred - y_true|)."""

    direction = "down"

    def __init__(self, name="mean_absolute_error", dtype=None):
        super().__init__(losses.mean_absolute_error, name, dtype)


class MeanAbsolutePercentageError(MeanMetricWrapper):
    """100 * mean(|y_pred - y_true| / |y_true|)."""

    direction = "down"

    def __init__(self, name="mean_absolute_percentage_error", dtype=None):
        super().__init__(losses.mean_absolute_percentage_error, name, dtype)


class MeanSquaredLogarithmicError(MeanMetricWrapper):
    """mean((log(1 + y_pred) - log(1 + y_true))^2)."""

    direction = "down"

    def __init__(self, name="mean_squared_logarithmic_error", dtype=None):
        super().__init__(losses.mean_squared_logarithmic_error, name, dtype)


class LogCoshError(MeanMetricWrapper):
    """mean(log(cosh(y_pred - y_true)))."""

    direction = "down"

    def __init__(self, name="logcosh", dtype=None):
        super().__init__(losses.log_cosh, name, dtype)


class CosineSimilarity(MeanMetricWrapper):
    """The cosine of the angle between targets and predictions along `axis`; 1 is best."""

    direction = "up"

    def __init__(self, name="cosine_similarity", dtype=None, axis=-1):
        super().__init__(cosine_similarity, name, dtype, axis=axis)


class Hinge(MeanMetricWrapper):
    """mean(max(1 - y_true * y_pred, 0))."""

    direction = "down"

    def __init__(self, name="hinge", dtype=None):
        super().__init__(losses.hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """mean(max(1 - y_true * y_pred, 0)^2)."""

    direction = "down"

    def __init__(self, name="squared_hinge", dtype=None):
        super().__init__(losses.squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """max(1 + the largest score of a wrong class - the score of the right one, 0)."""

    direction = "down"

    def __init__(self, name="categorical_hinge", dtype=None):
        super().__init__(losses.categorical_hinge, name, dtype)


class KLDivergence(MeanMetricWrapper):
    """sum(y_true * log(y_true / y_pred))."""

    direction = "down"

    def __init__(self, name="kl_divergence", dtype=None):
        super().__init__(losses.kl_divergence, name, dtype)


class Poisson(MeanMetricWrapper):
    """mean(y_pred - y_true * log(y_pred))."""

    direction = "down"

    def __init__(self, name="poisson", dtype=None):
        super().__init__(losses.poisson, name, dtype)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of -y log(p) - (1 - y) log(1 - p)."""

    direction = "down"

    def __init__(self, name="binary_crossentropy", dtype=None, from_logits=False, label_smoothing=0):
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(losses.binary_crossentropy, name, dtype, **arguments)


class CategoricalCrossentropy(MeanMetricWrapper):
    """-sum(y_true * log(p)) for one-hot targets."""

    direction = "down"

    def __init__(self, name="categorical_crossentropy", dtype=None, from_logits=False, label_smoothing=0, axis=-1):
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(losses.categorical_crossentropy, name, dtype, **arguments)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """-log(p) of the true class; samples of `ignore_class` count as 0."""

    direction = "down"
    integer_targets = True

    def __init__(
        self, name="sparse_categorical_crossentropy", dtype=None, from_logits=False, ignore_class=None, axis=-1
    ):
        arguments = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(losses.sparse_categorical_crossentropy, name, dtype, **arguments)
