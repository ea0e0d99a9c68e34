"""Cross-entropies: binary, categorical, sparse, and the focal ones of Lin et al., 2018."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..config import epsilon
from ..graph.types import is_floating
from ..ops.function import convert, function
from .loss import FunctionLoss
from .matching import floating, matched, plain

_SUM = "sum_over_batch_size"


@function
def binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """The mean over `axis` of -y log(p) - (1 - y) log(1 - p).

    Args:
        y_true: targets from 0 to 1, in the shape of `y_pred`.
        y_pred: probabilities, kept in [1e-7, 1 - 1e-7]; with `from_logits` numbers before the sigmoid.
        label_smoothing: the part s of y (1 - s) + s / 2.
    """
    y_true, y_pred = matched(y_true, y_pred, "binary_crossentropy")
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return ops.mean(ops.binary_crossentropy(y_true, y_pred, from_logits=from_logits), axis=axis)


@function
def categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """-sum(y_true * log(p)) over `axis`.

    Args:
        y_true: weights of the classes (one-hot), in the shape of `y_pred`.
        y_pred: probabilities, divided by their sum and kept in [1e-7, 1 - 1e-7]; with `from_logits` numbers before
            the softmax.
        label_smoothing: the part s of y (1 - s) + s / classes.
    """
    y_true, y_pred = matched(y_true, y_pred, "categorical_crossentropy")
    y_true = _smoothed(y_true, label_smoothing, axis)
    return ops.categorical_crossentropy(y_true, y_pred, from_logits=from_logits, axis=axis)


def _smoothed(y_true, label_smoothing: float, axis: int):
    if not label_smoothing:
        return y_true
    return y_true * (1.0 - label_smoothing) + label_smoothing / y_true.shape[axis]


@function
def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1):
    """-log(p) of the true class.

    Args:
        y_true: class numbers, in the shape of `y_pred` without `axis` (or with 1 there).
        y_pred: as in `categorical_crossentropy`.
        ignore_class: a class number whose samples get the value 0.

    Raises:
        ValueError, IndexError: a class number is out of range.
    """
    y_pred = floating(y_pred)
    labels = _class_numbers(y_true, y_pred, axis)
    if ignore_class is None:
        return ops.sparse_categorical_crossentropy(labels, y_pred, from_logits=from_logits, axis=axis)
    valid = ops.not_equal(labels, ignore_class)
    values = ops.sparse_categorical_crossentropy(
        ops.where(valid, labels, 0), y_pred, from_logits=from_logits, axis=axis
    )
    return ops.where(valid, values, 0.0)


def _class_numbers(y_true, y_pred, axis: int):
    """Integers in the shape of `y_pred` without `axis`."""
    labels = convert(plain(y_true))
    labels = labels if labels.dtype in ("int32", "int64") else ops.cast(labels, "int32")
    return ops.squeeze(labels, axis) if labels.ndim == y_pred.ndim and labels.shape[axis] == 1 else labels


@function
def binary_focal_crossentropy(
    y_true,
    y_pred,
    apply_class_balancing=False,
    alpha=0.25,
    gamma=2.0,
    from_logits=False,
    label_smoothing=0.0,
    axis=-1,
):
    """`binary_crossentropy` times (1 - p of what is right)^gamma; balanced, also times alpha or 1 - alpha."""
    y_true, y_pred = matched(y_true, y_pred, "binary_focal_crossentropy")
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    p = ops.sigmoid(y_pred) if from_logits else y_pred
    right = y_true * p + (1.0 - y_true) * (1.0 - p)
    values = ops.power(1.0 - right, gamma) * ops.binary_crossentropy(y_true, y_pred, from_logits=from_logits)
    if apply_class_balancing:
        values = values * (y_true * alpha + (1.0 - y_true) * (1.0 - alpha))
    return ops.mean(values, axis=axis)


@function
def categorical_focal_crossentropy(
    y_true, y_pred, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1
):
    """-sum(alpha * (1 - p)^gamma * y_true * log(p)) over `axis`; `alpha` is a number or one for each class."""
    y_true, y_pred = matched(y_true, y_pred, "categorical_focal_crossentropy")
    y_true = _smoothed(y_true, label_smoothing, axis)
    p = ops.softmax(y_pred, axis=axis) if from_logits else y_pred / ops.sum(y_pred, axis=axis, keepdims=True)
    p = ops.clip(p, epsilon(), 1.0 - epsilon())
    factor = ops.power(1.0 - p, gamma) * ops.cast(convert(plain(alpha)), p.dtype)
    return -ops.sum(factor * y_true * ops.log(p), axis=axis)


class BinaryCrossentropy(FunctionLoss):
    """The mean of -y log(p) - (1 - y) log(1 - p); see `binary_crossentropy`."""

    def __init__(
        self,
        from_logits=False,
        label_smoothing=0.0,
        axis=-1,
        reduction=_SUM,
        name="binary_crossentropy",
        dtype=None,
    ):
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_crossentropy, reduction, name, dtype, **arguments)


class BinaryFocalCrossentropy(FunctionLoss):
    """Binary cross-entropy that counts easy samples less; see `binary_focal_crossentropy`."""

    def __init__(
        self,
        apply_class_balancing=False,
        alpha=0.25,
        gamma=2.0,
        from_logits=False,
        label_smoothing=0.0,
        axis=-1,
        reduction=_SUM,
        name="binary_focal_crossentropy",
        dtype=None,
    ):
        arguments = {"apply_class_balancing": apply_class_balancing, "alpha": alpha, "gamma": gamma}
        arguments |= {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_focal_crossentropy, reduction, name, dtype, **arguments)


class CategoricalCrossentropy(FunctionLoss):
    """-sum(y_true * log(p)) for one-hot targets; see `categorical_crossentropy`."""

    def __init__(
        self,
        from_logits=False,
        label_smoothing=0.0,
        axis=-1,
        reduction=_SUM,
        name="categorical_crossentropy",
        dtype=None,
    ):
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_crossentropy, reduction, name, dtype, **arguments)


class CategoricalFocalCrossentropy(FunctionLoss):
    """Categorical cross-entropy that counts easy samples less; see `categorical_focal_crossentropy`."""

    def __init__(
        self,
        alpha=0.25,
        gamma=2.0,
        from_logits=False,
        label_smoothing=0.0,
        axis=-1,
        reduction=_SUM,
        name="categorical_focal_crossentropy",
        dtype=None,
    ):
        arguments = {"alpha": alpha, "gamma": gamma, "from_logits": from_logits}
        arguments |= {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_focal_crossentropy, reduction, name, dtype, **arguments)


class SparseCategoricalCrossentropy(FunctionLoss):
    """-log(p) of the true class; see `sparse_categorical_crossentropy`.

    With `ignore_class` the mean is over the samples of other classes.
    """

    integer_targets = True

    def __init__(
        self,
        from_logits=False,
        ignore_class=None,
        reduction=_SUM,
        axis=-1,
        name="sparse_categorical_crossentropy",
        dtype=None,
    ):
        arguments = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(sparse_categorical_crossentropy, reduction, name, dtype, **arguments)
        self.ignore_class = ignore_class

    def valid(self, y_true, y_pred):
        if self.ignore_class is None:
            return None
        return ops.not_equal(_class_numbers(y_true, y_pred, self.arguments["axis"]), self.ignore_class)

    def check_targets(self, y_true, y_pred_shape):
        classes = y_pred_shape[self.arguments["axis"]]
        labels = np.asarray(y_true)
        wrong = (labels < 0) | (labels >= classes)
        if is_floating(labels.dtype.name):
            wrong |= labels != np.floor(labels)
        if self.ignore_class is not None:
            wrong &= labels != self.ignore_class
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"{self.name}: y_true: got label {labels[place]} at {list(place)}, "
                f"wanted integers from 0 to {classes - 1}"
            )
