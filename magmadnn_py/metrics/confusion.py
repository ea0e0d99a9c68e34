"""True and false positives and negatives of scores, each at one or many thresholds, and what is made of them."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..losses.matching import matched, matched_weight, plain
from ..ops.function import convert, function
from .metric import STATE_DTYPE, Metric, contents
from .reduction import ratio

COUNTS = ("true_positives", "false_positives", "true_negatives", "false_negatives")


@function
def confusion_counts(y_true, y_pred, weight, thresholds, top_k=None, class_id=None, per_label=False):
    """Weighted counts of true positives, false positives, true negatives and false negatives at each threshold.

    Args:
        y_true: 0 or 1.
        y_pred: scores of the same shape; above the threshold counts as positive.
        weight: as for losses, or None.
        thresholds: a tuple of T numbers.
        top_k: only the k highest scores of the last axis can be positive.
        class_id: only this index of the last axis counts.
        per_label: whether the last axis is kept.

    Returns:
        Four float64 tensors of shape [T], or [T, labels].
    """
    y_true, y_pred = matched(y_true, y_pred, "confusion_counts")
    if top_k is not None:
        above = ops.expand_dims(y_pred, -2) > ops.expand_dims(y_pred, -1)
        rank = ops.sum(ops.cast(above, "float32"), axis=-1)
        y_pred = ops.where(rank < float(top_k), y_pred, float("-inf"))
    if weight is not None:
        weight = ops.broadcast_to(matched_weight(weight, y_pred, "sample_weight"), y_pred.shape)
    if class_id is not None:
        y_true, y_pred = y_true[..., class_id], y_pred[..., class_id]
        weight = None if weight is None else weight[..., class_id]
    kept = (y_pred.shape[-1],) if per_label else ()
    rows = (-1, *kept)
    real = ops.cast(ops.reshape(y_true, rows) > 0.5, STATE_DTYPE)
    factor = 1.0 if weight is None else ops.cast(ops.reshape(weight, rows), STATE_DTYPE)
    positive, negative = real * factor, (1.0 - real) * factor
    limits = np.asarray(thresholds, y_pred.dtype).reshape((len(thresholds), 1) + (1,) * len(kept))
    predicted = ops.cast(ops.expand_dims(ops.reshape(y_pred, rows), 0) > limits, STATE_DTYPE)
    true_positives, false_positives = ops.sum(predicted * positive, axis=1), ops.sum(predicted * negative, axis=1)
    return (
        true_positives,
        false_positives,
        ops.sum(negative, axis=0) - false_positives,
        ops.sum(positive, axis=0) - true_positives,
    )


class ConfusionMetric(Metric):
    """Base of metrics of counts at thresholds; `counts` names those that are kept, each as a variable."""

    counts: tuple[str, ...] = COUNTS
    direction = "up"

    def __init__(self, limits, shape, name=None, dtype=None, top_k=None, class_id=None, per_label=False):
        super().__init__(dtype, name)
        self.limits = tuple(float(limit) for limit in limits)
        self._options = {"top_k": top_k, "class_id": class_id, "per_label": per_label}
        if shape is not None:
            self._make_variables(shape)

    def _make_variables(self, shape) -> None:
        for count in self.counts:
            setattr(self, count, self.add_variable(shape, name=count))

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        args = (plain(y_true), plain(y_pred), plain(sample_weight), self.limits)
        for name, more in zip(COUNTS, confusion_counts(*args, **self._options), strict=True):
            if name in self.counts:
                variable = getattr(self, name)
                variable.assign(ops.add(contents(variable), more))

    def _contents(self) -> list:
        return [contents(getattr(self, name)) for name in self.counts]

    def _single(self, result):
        """One threshold: a number instead of a vector."""
        return ops.reshape(result, ()) if len(self.limits) == 1 else result


def _thresholds(given, owner: str, default: float = 0.5) -> list[float]:
    if given is None:
        return [default]
    limits = list(given) if isinstance(given, list | tuple) else [given]
    for limit in limits:
        if limit is None or not 0 <= limit <= 1:
            raise ValueError(f"{owner}: thresholds: got {given}, wanted numbers from 0 to 1")
    return limits


class _Count(ConfusionMetric):
    """The number of one kind of outcome."""

    def __init__(self, thresholds=None, name=None, dtype=None):
        limits = _thresholds(thresholds, type(self).__name__)
        super().__init__(limits, (len(limits),), name, dtype)
        self.thresholds = thresholds

    def result(self):
        return self._single(ops.cast(self._contents()[0], self.dtype))

    def get_config(self) -> dict:
        return {**super().get_config(), "thresholds": self.thresholds}


class TruePositives(_Count):
    """The number of samples of class 1 with scores above the threshold (0.5 by default)."""

    counts = ("true_positives",)


class FalsePositives(_Count):
    """The number of samples of class 0 with scores above the threshold (0.5 by default)."""

    counts = ("false_positives",)
    direction = "down"


class TrueNegatives(_Count):
    """The number of samples of class 0 with scores not above the threshold (0.5 by default)."""

    counts = ("true_negatives",)


class FalseNegatives(_Count):
    """The number of samples of class 1 with scores not above the threshold (0.5 by default)."""

    counts = ("false_negatives",)
    direction = "down"


class _Fraction(ConfusionMetric):
    """True positives over the sum of both counts."""

    def __init__(self, thresholds=None, top_k=None, class_id=None, name=None, dtype=None):
        # With top_k and no threshold everything among the k best is positive.
        limits = _thresholds(thresholds, type(self).__name__, 0.5 if top_k is None else float("-inf"))
        super().__init__(limits, (len(limits),), name, dtype, top_k, class_id)
        self.thresholds, self.top_k, self.class_id = thresholds, top_k, class_id

    def result(self):
        right, wrong = self._contents()
        return self._single(ratio(right, ops.add(right, wrong), self.dtype))

    def get_config(self) -> dict:
        own = {"thresholds": self.thresholds, "top_k": self.top_k, "class_id": self.class_id}
        return {**super().get_config(), **own}


class Precision(_Fraction):
    """The part of the samples predicted as class 1 that are of class 1.

    Args:
        thresholds: one or several numbers from 0 to 1; above is predicted as class 1 (0.5 by default).
        top_k: only the k highest scores of the last axis count as predicted.
        class_id: only this index of the last axis counts.
    """

    counts = ("true_positives", "false_positives")


class Recall(_Fraction):
    """The part of the samples of class 1 that are predicted as such; arguments as for `Precision`."""

    counts = ("true_positives", "false_negatives")


def even_thresholds(number: int) -> list[float]:
    """`number` of them from just below 0 to just above 1, evenly spaced."""
    margin = 1e-7
    return [-margin, *(i / (number - 1) for i in range(1, number - 1)), 1.0 + margin]


class AUC(ConfusionMetric):
    """The area under the curve of recall over the rate of false alarms ("ROC") or of precision over recall ("PR").

    Args:
        num_thresholds: the number of points of the curve.
        curve: "ROC" or "PR".
        summation_method: "interpolation" (trapezoids; for "PR" as Davis and Goadrich, 2006), "minoring" or
            "majoring".
        thresholds: numbers from 0 to 1 in the place of evenly spaced ones.
        multi_label: whether each column of the predictions has a curve of its own; the result is their mean,
            weighted by `label_weights`. `num_labels` says how many there are, else the first batch does.
        from_logits: whether a sigmoid is applied to the predictions first.
    """

    def __init__(
        self,
        num_thresholds=200,
        curve="ROC",
        summation_method="interpolation",
        name=None,
        dtype=None,
        thresholds=None,
        multi_label=False,
        num_labels=None,
        label_weights=None,
        from_logits=False,
    ):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"AUC: curve: got {curve!r}, wanted 'ROC' or 'PR'")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            wanted = "'interpolation', 'minoring' or 'majoring'"
            raise ValueError(f"AUC: summation_method: got {summation_method!r}, wanted {wanted}")
        if thresholds is None and num_thresholds < 2:
            raise ValueError(f"AUC: num_thresholds: got {num_thresholds}, wanted 2 or more")
        limits = even_thresholds(num_thresholds)
        if thresholds is not None:
            limits = [limits[0], *sorted(_thresholds(thresholds, "AUC")), limits[-1]]
        columns = (num_labels,) if multi_label else ()
        shape = None if multi_label and num_labels is None else (len(limits), *columns)
        super().__init__(limits, shape, name, dtype, per_label=multi_label)
        self.curve, self.summation_method = curve, summation_method
        self.thresholds, self.from_logits = thresholds, from_logits
        self.multi_label, self.num_labels, self.label_weights = multi_label, num_labels, label_weights

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        y_pred = plain(y_pred)
        if not self.variables:
            self._make_variables((len(self.limits), y_pred.shape[-1]))
        super().update_state(y_true, ops.sigmoid(y_pred) if self.from_logits else y_pred, sample_weight)

    def result(self):
        if not self.variables:
            return ops.zeros((), self.dtype)
        weights = None if self.label_weights is None else np.asarray(self.label_weights, np.float64)
        area = _area(*self._contents(), weights, curve=self.curve, method=self.summation_method)
        return ops.cast(area, self.dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_thresholds": len(self.limits),
            "curve": self.curve,
            "summation_method": self.summation_method,
            "multi_label": self.multi_label,
            "num_labels": self.num_labels,
            "label_weights": self.label_weights,
            "from_logits": self.from_logits,
            **({} if self.thresholds is None else {"thresholds": list(self.thresholds)}),
        }


@function
def _area(tp, fp, tn, fn, weights, curve: str, method: str):
    """The area under a curve whose points are along the first axis, averaged over the second if there is one."""
    tp, fp, tn, fn = (convert(count) for count in (tp, fp, tn, fn))
    if curve == "PR" and method == "interpolation":
        area = _interpolated_precision(tp, fp, fn)
    else:
        recall = ratio(tp, tp + fn, STATE_DTYPE)
        if curve == "ROC":
            x, y = ratio(fp, fp + tn, STATE_DTYPE), recall
        else:
            x, y = recall, ratio(tp, tp + fp, STATE_DTYPE)
        before, after = y[:-1], y[1:]
        pick = {"minoring": ops.minimum, "majoring": ops.maximum}.get(method, lambda a, b: (a + b) * 0.5)
        area = ops.sum((x[:-1] - x[1:]) * pick(before, after), axis=0)
    if area.ndim == 0:
        return area
    if weights is None:
        return ops.mean(area)
    return ratio(ops.sum(area * weights), ops.sum(convert(weights)), STATE_DTYPE)


def _interpolated_precision(tp, fp, fn):
    """Davis and Goadrich, 2006: between two points true positives are linear in the number predicted positive."""
    positive = tp + fp
    more_true = tp[:-1] - tp[1:]
    slope = ratio(more_true, ops.maximum(positive[:-1] - positive[1:], 0.0), STATE_DTYPE)
    intercept = tp[1:] - slope * positive[1:]
    both = ops.logical_and(positive[:-1] > 0.0, positive[1:] > 0.0)
    growth = ops.where(both, positive[:-1] / ops.where(both, positive[1:], 1.0), 1.0)
    parts = slope * (more_true + intercept * ops.log(growth))
    return ops.sum(ratio(parts, ops.maximum(tp[1:] + fn[1:], 0.0), STATE_DTYPE), axis=0)
