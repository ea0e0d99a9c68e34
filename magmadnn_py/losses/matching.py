"""Targets, predictions and weights brought to types and shapes that fit each other."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..graph.node import Value
from ..graph.types import is_floating
from ..ops.function import convert


def plain(value):
    """Numbers and lists as arrays (floats as float32); everything else, None too, as it is."""
    if value is None or hasattr(value, "dtype") or not isinstance(value, bool | int | float | list | tuple):
        return value
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def floating(value) -> Value:
    """A graph value with floating-point elements; integers and bools become float32."""
    value = convert(plain(value))
    return value if is_floating(value.dtype) else ops.cast(value, "float32")


def same_rank(a: Value, b: Value) -> tuple[Value, Value]:
    """Where one has one axis more than the other, of extent 1 and last: both with it if the other is a vector, else
    both without it."""
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, ops.expand_dims(b, -1)) if b.ndim == 1 else (ops.squeeze(a, -1), b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (ops.expand_dims(a, -1), b) if a.ndim == 1 else (a, ops.squeeze(b, -1))
    return a, b


def matched(y_true, y_pred, owner: str) -> tuple[Value, Value]:
    """Targets and predictions of one shape and the predictions' floating-point type.

    Raises:
        ValueError: their shapes differ by more than a last axis of extent 1.
    """
    y_pred = floating(y_pred)
    y_true = ops.cast(convert(plain(y_true)), y_pred.dtype)
    y_true, y_pred = same_rank(y_true, y_pred)
    if y_true.shape != y_pred.shape:
        raise ValueError(f"{owner}: y_true: got shape {y_true.shape}, wanted that of y_pred, {y_pred.shape}")
    return y_true, y_pred


def matched_weight(weight, values: Value, owner: str) -> Value:
    """Weights that broadcast to `values`: one for all, one per sample, or one per element.

    Raises:
        ValueError: the shape is none of these.
    """
    weight = ops.cast(convert(plain(weight)), values.dtype)
    if weight.ndim == values.ndim + 1 and weight.shape[-1] == 1:
        weight = ops.squeeze(weight, -1)
    lead = weight.shape == values.shape[: weight.ndim]
    ones = all(own in (1, other) for own, other in zip(weight.shape, values.shape, strict=False))
    if weight.ndim > values.ndim or not (lead or ones):
        raise ValueError(
            f"{owner}: sample_weight: got shape {weight.shape}, wanted the first extents of {values.shape}"
        )
    return ops.reshape(weight, weight.shape + (1,) * (values.ndim - weight.ndim))
