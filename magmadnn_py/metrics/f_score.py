"""The weighted harmonic mean of precision and recall."""

from __future__ import annotations

from .. import ops
from ..losses.matching import matched, plain
from ..ops.function import convert, function
from .metric import STATE_DTYPE, Metric, contents
from .reduction import ratio

_STATE = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")


@function
def _counts(y_true, y_pred, weight, threshold, axis):
    y_true, y_pred = (ops.cast(y, STATE_DTYPE) for y in matched(y_true, y_pred, "FBetaScore"))
    if threshold is None:
        highest = ops.equal(y_pred, ops.max(y_pred, axis=-1, keepdims=True))
        chosen = ops.logical_and(highest, ops.abs(y_pred) > 1e-9)
    else:
        chosen = y_pred > float(threshold)
    chosen = ops.cast(chosen, STATE_DTYPE)
    factor = 1.0 if weight is None else ops.reshape(ops.cast(convert(weight), STATE_DTYPE), (-1, 1))
    return (
        ops.sum(chosen * y_true * factor, axis=axis),
        ops.sum(chosen * (1.0 - y_true) * factor, axis=axis),
        ops.sum((1.0 - chosen) * y_true * factor, axis=axis),
        ops.sum(y_true * factor, axis=axis),
    )


class FBetaScore(Metric):
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall), per class or averaged.

    Args:
        average: None (one score per class), "micro" (of all classes' counts), "macro" (mean of the classes) or
            "weighted" (mean weighted by the samples of each class).
        beta: how much more recall counts than precision.
        threshold: scores above it are predictions; None: the largest score of each row is.

    Targets and predictions have shape [batch, classes].
    """

    direction = "up"

    def __init__(self, average=None, beta=1.0, threshold=None, name="fbeta_score", dtype=None):
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"FBetaScore: average: got {average!r}, wanted None, 'micro', 'macro' or 'weighted'")
        if not isinstance(beta, float) or beta <= 0:
            raise ValueError(f"FBetaScore: beta: got {beta!r}, wanted a float above 0")
        if threshold is not None and not (isinstance(threshold, float) and 0 < threshold <= 1):
            raise ValueError(f"FBetaScore: threshold: got {threshold!r}, wanted None or a float in (0, 1]")
        self.average, self.beta, self.threshold = average, beta, threshold
        self.axis = None if average == "micro" else 0

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        y_true, y_pred = plain(y_true), plain(y_pred)
        if len(y_pred.shape) != 2:
            raise ValueError(f"FBetaScore: y_pred: got shape {y_pred.shape}, wanted [batch, classes]")
        if not self.variables:
            shape = () if self.axis is None else (y_pred.shape[-1],)
            for name in _STATE:
                setattr(self, name, self.add_variable(shape, name=name))
        counts = _counts(y_true, y_pred, plain(sample_weight), threshold=self.threshold, axis=self.axis)
        for variable, more in zip(self.variables, counts, strict=True):
            variable.assign(ops.add(contents(variable), more))

    def result(self):
        if not self.variables:
            return ops.zeros((), self.dtype)
        state = (contents(variable) for variable in self.variables)
        return _score(*state, beta=self.beta, average=self.average, dtype=self.dtype)

    def get_config(self) -> dict:
        own = {"average": self.average, "beta": self.beta, "threshold": self.threshold}
        return {**super().get_config(), **own}


@function
def _score(true_positives, false_positives, false_negatives, support, beta, average, dtype):
    tp, support = convert(true_positives), convert(support)
    precision = ratio(tp, tp + false_positives, STATE_DTYPE)
    recall = ratio(tp, tp + false_negatives, STATE_DTYPE)
    score = ratio((1.0 + beta**2) * precision * recall, precision * beta**2 + recall, STATE_DTYPE)
    if average == "macro":
        score = ops.mean(score)
    elif average == "weighted":
        score = ops.sum(score * ratio(support, ops.sum(support), STATE_DTYPE))
    return ops.cast(score, dtype)


class F1Score(FBetaScore):
    """2 * precision * recall / (precision + recall); arguments as for `FBetaScore`."""

    def __init__(self, average=None, threshold=None, name="f1_score", dtype=None):
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["beta"]
        return config
