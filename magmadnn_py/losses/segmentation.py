"""Losses of overlap, for masks."""

from __future__ import annotations

from .. import ops
from ..config import epsilon
from ..ops.function import function
from .loss import FunctionLoss
from .matching import matched

_SUM = "sum_over_batch_size"


@function
def dice(y_true, y_pred, axis=None):
    """1 - 2 * |both| / (|true| + |predicted|), summed over `axis` (all of them by default)."""
    y_true, y_pred = matched(y_true, y_pred, "dice")
    both = ops.sum(y_true * y_pred, axis=axis)
    return 1.0 - 2.0 * both / (ops.sum(y_true, axis=axis) + ops.sum(y_pred, axis=axis) + epsilon())


@function
def tversky(y_true, y_pred, alpha=0.5, beta=0.5, axis=None):
    """1 - |both| / (|both| + alpha * |missed| + beta * |false alarms|), summed over `axis` (all of them by default).

    Salehi, Erdogmus and Gholipour, 2017, with the factors the way round that Keras computes: `alpha` is that of
    y_true * (1 - y_pred). alpha = beta = 0.5 is `dice`.
    """
    y_true, y_pred = matched(y_true, y_pred, "tversky")
    both = ops.sum(y_true * y_pred, axis=axis)
    missed = ops.sum(y_true * (1.0 - y_pred), axis=axis)
    false_alarms = ops.sum((1.0 - y_true) * y_pred, axis=axis)
    return 1.0 - both / (both + alpha * missed + beta * false_alarms + epsilon())


class Dice(FunctionLoss):
    """1 - 2 * |both| / (|true| + |predicted|)."""

    def __init__(self, reduction=_SUM, name="dice", axis=None, dtype=None):
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(FunctionLoss):
    """1 - |both| / (|both| + alpha * |missed| + beta * |false alarms|)."""

    def __init__(self, alpha=0.5, beta=0.5, reduction=_SUM, name="tversky", axis=None, dtype=None):
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)
