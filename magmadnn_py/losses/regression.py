"""Losses that compare numbers, vectors or distributions."""

from __future__ import annotations

import math

from .. import ops
from ..config import epsilon
from ..ops.function import function
from .loss import FunctionLoss
from .matching import matched

_SUM = "sum_over_batch_size"


@function
def mean_squared_error(y_true, y_pred):
    """mean((y_pred - y_true)^2) over the last axis."""
    y_true, y_pred = matched(y_true, y_pred, "mean_squared_error")
    return ops.mean(ops.square(y_pred - y_true), axis=-1)


@function
def mean_absolute_error(y_true, y_pred):
    """mean(|y_pred - y_true|) over the last axis."""
    y_true, y_pred = matched(y_true, y_pred, "mean_absolute_error")
    return ops.mean(ops.abs(y_pred - y_true), axis=-1)


@function
def mean_absolute_percentage_error(y_true, y_pred):
    """100 * mean(|y_pred - y_true| / |y_true|) over the last axis; |y_true| is taken as at least epsilon."""
    y_true, y_pred = matched(y_true, y_pred, "mean_absolute_percentage_error")
    return 100.0 * ops.mean(ops.abs((y_true - y_pred) / ops.maximum(ops.abs(y_true), epsilon())), axis=-1)


@function
def mean_squared_logarithmic_error(y_true, y_pred):
    """mean((log(1 + y_pred) - log(1 + y_true))^2) over the last axis; both are taken as at least epsilon."""
    y_true, y_pred = matched(y_true, y_pred, "mean_squared_logarithmic_error")
    logs = [ops.log(ops.maximum(y, epsilon()) + 1.0) for y in (y_pred, y_true)]
    return ops.mean(ops.square(logs[0] - logs[1]), axis=-1)


@function
def huber(y_true, y_pred, delta=1.0):
    """The mean over the last axis of e^2 / 2 where |e| <= delta, else delta * (|e| - delta / 2)."""
    y_true, y_pred = matched(y_true, y_pred, "huber")
    error = ops.abs(y_pred - y_true)
    return ops.mean(ops.where(error <= delta, 0.5 * ops.square(error), delta * error - 0.5 * delta * delta), axis=-1)


@function
def log_cosh(y_true, y_pred):
    """mean(log(cosh(y_pred - y_true))) over the last axis, without overflow."""
    y_true, y_pred = matched(y_true, y_pred, "log_cosh")
    error = y_pred - y_true
    return ops.mean(error + ops.softplus(-2.0 * error) - math.log(2.0), axis=-1)


@function
def cosine_similarity(y_true, y_pred, axis=-1):
    """Minus the cosine of the angle between the vectors along `axis`; 0 where one is a zero vector."""
    y_true, y_pred = matched(y_true, y_pred, "cosine_similarity")
    return -ops.sum(_unit(y_true, axis) * _unit(y_pred, axis), axis=axis)


def _unit(x, axis):
    squares = ops.sum(ops.square(x), axis=axis, keepdims=True)
    return x * ops.rsqrt(ops.maximum(squares, epsilon() ** 2))


@function
def kl_divergence(y_true, y_pred):
    """sum(y_true * log(y_true / y_pred)) over the last axis; both are kept in [epsilon, 1]."""
    y_true, y_pred = (ops.clip(y, epsilon(), 1.0) for y in matched(y_true, y_pred, "kl_divergence"))
    return ops.sum(y_true * ops.log(y_true / y_pred), axis=-1)


@function
def poisson(y_true, y_pred):
    """mean(y_pred - y_true * log(y_pred + epsilon)) over the last axis."""
    y_true, y_pred = matched(y_true, y_pred, "poisson")
    return ops.mean(y_pred - y_true * ops.log(y_pred + epsilon()), axis=-1)


class MeanSquaredError(FunctionLoss):
    """mean((y_pred - y_true)^2)."""

    def __init__(self, reduction=_SUM, name="mean_squared_error", dtype=None):
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(FunctionLoss):
    """mean(|y_pred - y_true|)."""

    def __init__(self, reduction=_SUM, name="mean_absolute_error", dtype=None):
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(FunctionLoss):
    """100 * mean(|y_pred - y_true| / |y_true|)."""

    def __init__(self, reduction=_SUM, name="mean_absolute_percentage_error", dtype=None):
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(FunctionLoss):
    """mean((log(1 + y_pred) - log(1 + y_true))^2)."""

    def __init__(self, reduction=_SUM, name="mean_squared_logarithmic_error", dtype=None):
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class Huber(FunctionLoss):
    """Quadratic up to an error of `delta`, linear beyond."""

    def __init__(self, delta=1.0, reduction=_SUM, name="huber_loss", dtype=None):
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(FunctionLoss):
    """mean(log(cosh(y_pred - y_true)))."""

    def __init__(self, reduction=_SUM, name="log_cosh", dtype=None):
        super().__init__(log_cosh, reduction, name, dtype)


class CosineSimilarity(FunctionLoss):
    """Minus the cosine of the angle between the vectors along `axis`."""

    def __init__(self, axis=-1, reduction=_SUM, name="cosine_similarity", dtype=None):
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)


class KLDivergence(FunctionLoss):
    """sum(y_true * log(y_true / y_pred))."""

    def __init__(self, reduction=_SUM, name="kl_divergence", dtype=None):
        super().__init__(kl_divergence, reduction, name, dtype)


class Poisson(FunctionLoss):
    """mean(y_pred - y_true * log(y_pred))."""

    def __init__(self, reduction=_SUM, name="poisson", dtype=None):
        super().__init__(poisson, reduction, name, dtype)
