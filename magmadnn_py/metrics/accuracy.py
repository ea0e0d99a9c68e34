"""How often predictions are right."""

from __future__ import annotations

from .. import ops
from ..losses.matching import floating, matched, plain
from ..ops.function import convert, function
from .reduction import MeanMetricWrapper


@function
def accuracy(y_true, y_pred):
    """1 where the two are equal, else 0."""
    y_true, y_pred = matched(y_true, y_pred, "accuracy")
    return ops.cast(ops.equal(y_true, y_pred), y_pred.dtype)


@function
def binary_accuracy(y_true, y_pred, threshold=0.5):
    """1 where `y_pred` > threshold is what `y_true` (0 or 1) says, else 0."""
    y_true, y_pred = matched(y_true, y_pred, "binary_accuracy")
    return ops.cast(ops.equal(y_true, ops.cast(y_pred > threshold, y_pred.dtype)), y_pred.dtype)


@function
def categorical_accuracy(y_true, y_pred):
    """1 where both have their largest entry along the last axis at the same place, else 0."""
    y_true, y_pred = matched(y_true, y_pred, "categorical_accuracy")
    return ops.cast(ops.equal(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1)), y_pred.dtype)


@function
def sparse_categorical_accuracy(y_true, y_pred):
    """1 where the largest entry of `y_pred` along the last axis is at the class number `y_true`, else 0."""
    y_pred = floating(y_pred)
    return ops.cast(ops.equal(_labels(y_true, y_pred), ops.argmax(y_pred, axis=-1)), y_pred.dtype)


@function
def top_k_categorical_accuracy(y_true, y_pred, k=5):
    """1 where fewer than k classes score higher than the one where `y_true` is largest, else 0."""
    y_true, y_pred = matched(y_true, y_pred, "top_k_categorical_accuracy")
    return _in_top_k(ops.argmax(y_true, axis=-1), y_pred, k)


@function
def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5, from_sorted_ids=False):
    """1 where fewer than k classes score higher than class number `y_true`, else 0.

    With `from_sorted_ids`, `y_pred` holds class numbers, the best first.
    """
    y_pred = floating(y_pred)
    labels = _labels(y_true, y_pred)
    if from_sorted_ids:
        found = ops.equal(ops.cast(y_pred[..., :k], labels.dtype), ops.expand_dims(labels, -1))
        return ops.cast(ops.any(found, axis=-1), y_pred.dtype)
    return _in_top_k(labels, y_pred, k)


def _labels(y_true, y_pred):
    """Class numbers in the shape of `y_pred` without its last axis."""
    labels = convert(plain(y_true))
    labels = labels if labels.dtype in ("int32", "int64") else ops.cast(labels, "int32")
    if labels.ndim == y_pred.ndim and labels.shape[-1] == 1:
        labels = ops.squeeze(labels, -1)
    if labels.shape != y_pred.shape[:-1]:
        raise ValueError(f"accuracy: y_true: got shape {labels.shape}, wanted {y_pred.shape[:-1]}")
    return labels


def _in_top_k(labels, scores, k: int):
    # Comparison instead of a sort: the rank of a class is the number of scores above its own.
    own = ops.one_hot(labels, scores.shape[-1], dtype="bool")
    score = ops.sum(ops.where(own, scores, 0.0), axis=-1, keepdims=True)
    rank = ops.sum(ops.cast(scores > score, scores.dtype), axis=-1)
    right = ops.logical_and(rank < float(k), ops.isfinite(ops.squeeze(score, -1)))
    return ops.cast(right, scores.dtype)


class Accuracy(MeanMetricWrapper):
    """How often predictions equal targets."""

    direction = "up"

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """How often predictions, compared with `threshold`, are the targets 0 and 1."""

    direction = "up"

    def __init__(self, name="binary_accuracy", dtype=None, threshold=0.5):
        if not 0 <= threshold <= 1:
            raise ValueError(f"BinaryAccuracy: threshold: got {threshold}, wanted a number from 0 to 1")
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """How often the class of the largest score is that of the one-hot target."""

    direction = "up"

    def __init__(self, name="categorical_accuracy", dtype=None):
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """How often the class of the largest score is the class number that is the target."""

    direction = "up"
    integer_targets = True

    def __init__(self, name="sparse_categorical_accuracy", dtype=None):
        super().__init__(sparse_categorical_accuracy, name, dtype)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class of the one-hot target is among the k largest scores."""

    direction = "up"

    def __init__(self, k=5, name="top_k_categorical_accuracy", dtype=None):
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class number that is the target is among the k largest scores."""

    direction = "up"
    integer_targets = True

    def __init__(self, k=5, name="sparse_top_k_categorical_accuracy", dtype=None, from_sorted_ids=False):
        arguments = {"from_sorted_ids": True} if from_sorted_ids else {}
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k, **arguments)
