"""Sums and means of values over batches."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..graph.node import Value
from ..graph.types import is_floating
from ..losses.matching import plain, same_rank
from ..ops.function import convert, function
from .metric import STATE_DTYPE, Metric, contents


def per_sample(values, weight, reduce) -> tuple[Value, Value]:
    """Values times weights, reduced to one per sample (of the first axis), and the sum of the samples' weights."""
    values = ops.cast(convert(values), STATE_DTYPE)
    if weight is None:
        values = reduce(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values
        return values, convert(float(values.type.size), STATE_DTYPE)
    values, weight = same_rank(values, ops.cast(convert(weight), STATE_DTYPE))
    if 0 < weight.ndim < values.ndim:
        values = reduce(values, axis=tuple(range(weight.ndim, values.ndim)))
    weight = ops.broadcast_to(weight, values.shape)
    weighted, rest = values * weight, tuple(range(1, values.ndim))
    if rest:
        weighted, weight = reduce(weighted, axis=rest), ops.mean(weight, axis=rest)
    return weighted, ops.sum(weight)


@function
def _add_sum(total, values, weight):
    return convert(total) + ops.sum(per_sample(values, weight, ops.sum)[0])


@function
def _add_mean(total, count, values, weight):
    values, weight = per_sample(values, weight, ops.mean)
    return convert(total) + ops.sum(values), convert(count) + weight


@function
def ratio(total, count, dtype="float32"):
    """total / count, and 0 where the count is 0."""
    total, count = convert(total), convert(count)
    none = ops.equal(count, 0.0)
    return ops.cast(ops.where(none, 0.0, total / ops.where(none, 1.0, count)), dtype)


class Sum(Metric):
    """The weighted sum of values."""

    def __init__(self, name="sum", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total")

    def update_state(self, values, sample_weight=None) -> None:
        self.total.assign(_add_sum(contents(self.total), plain(values), plain(sample_weight)))

    def result(self):
        return ops.cast(contents(self.total), self.dtype)


class Mean(Metric):
    """The weighted mean of values; 0 before any."""

    def __init__(self, name="mean", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total")
        self.count = self.add_variable(name="count")

    def update_state(self, values, sample_weight=None) -> None:
        """Takes values of shape [batch, ...], averaged to one per sample, and weights of their first axes."""
        total, count = _add_mean(contents(self.total), contents(self.count), plain(values), plain(sample_weight))
        self.total.assign(total)
        self.count.assign(count)

    def result(self):
        return ratio(contents(self.total), contents(self.count), self.dtype)


class MeanMetricWrapper(Mean):
    """The mean of `fn(y_true, y_pred, **arguments)` over batches."""

    #: Targets that are class numbers stay integers; all others are cast to the type of `y_pred`.
    integer_targets = False

    def __init__(self, fn: Callable, name=None, dtype=None, **arguments):
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self.fn = fn
        self.arguments = arguments

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        floating_true, y_pred = as_floating(y_true, y_pred)
        y_true = plain(y_true) if self.integer_targets else floating_true
        super().update_state(self.fn(y_true, y_pred, **self.arguments), sample_weight)

    def get_config(self) -> dict:
        own = {} if type(self) is not MeanMetricWrapper else {"fn": self.fn}
        return {**super().get_config(), **own, **self.arguments}

    @classmethod
    def from_config(cls, config: dict) -> MeanMetricWrapper:
        from ..saving import deserialize

        fn = {"fn": deserialize(config["fn"])} if isinstance(config.get("fn"), dict) else {}
        return cls(**{**config, **fn})


def as_floating(y_true, y_pred) -> tuple:
    """Both as tensors of one floating-point type: that of the predictions, or float32."""
    y_true, y_pred = plain(y_true), plain(y_pred)
    dtype = str(y_pred.dtype) if is_floating(str(y_pred.dtype)) else "float32"
    return ops.cast(y_true, dtype), ops.cast(y_pred, dtype)
