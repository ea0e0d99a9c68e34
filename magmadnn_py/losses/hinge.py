"""Losses of the largest-margin kind."""

from __future__ import annotations

from .. import ops
from ..ops.function import function
from .loss import FunctionLoss
from .matching import matched

_SUM = "sum_over_batch_size"


def _signs(y_true):
    """Targets as -1 and 1, if all of them are 0 or 1."""
    binary = ops.all(ops.logical_or(ops.equal(y_true, 0.0), ops.equal(y_true, 1.0)))
    return ops.where(binary, 2.0 * y_true - 1.0, y_true)


@function
def hinge(y_true, y_pred):
    """mean(max(1 - y_true * y_pred, 0)) over the last axis; targets are -1 and 1, or 0 and 1."""
    y_true, y_pred = matched(y_true, y_pred, "hinge")
    return ops.mean(ops.maximum(1.0 - _signs(y_true) * y_pred, 0.0), axis=-1)


@function
def squared_hinge(y_true, y_pred):
    """mean(max(1 - y_true * y_pred, 0)^2) over the last axis; targets are -1 and 1, or 0 and 1."""
    y_true, y_pred = matched(y_true, y_pred, "squared_hinge")
    return ops.mean(ops.square(ops.maximum(1.0 - _signs(y_true) * y_pred, 0.0)), axis=-1)


@function
def categorical_hinge(y_true, y_pred):
    """max(1 + the largest score of a wrong class - the score of the right one, 0); targets are one-hot."""
    y_true, y_pred = matched(y_true, y_pred, "categorical_hinge")
    right = ops.sum(y_true * y_pred, axis=-1)
    wrong = ops.max((1.0 - y_true) * y_pred, axis=-1)
    return ops.maximum(wrong - right + 1.0, 0.0)


class Hinge(FunctionLoss):
    """mean(max(1 - y_true * y_pred, 0)); targets are -1 and 1, or 0 and 1."""

    def __init__(self, reduction=_SUM, name="hinge", dtype=None):
        super().__init__(hinge, reduction, name, dtype)


class SquaredHinge(FunctionLoss):
    """mean(max(1 - y_true * y_pred, 0)^2); targets are -1 and 1, or 0 and 1."""

    def __init__(self, reduction=_SUM, name="squared_hinge", dtype=None):
        super().__init__(squared_hinge, reduction, name, dtype)


class CategoricalHinge(FunctionLoss):
    """max(1 + the largest score of a wrong class - the score of the right one, 0); targets are one-hot."""

    def __init__(self, reduction=_SUM, name="categorical_hinge", dtype=None):
        super().__init__(categorical_hinge, reduction, name, dtype)
