"""Penalties on weights and activations. A regularizer is called with a tensor and returns a scalar."""

from __future__ import annotations

import math

from . import ops
from .saving import registry


class Regularizer:
    """Base class: `regularizer(x)` returns the penalty of `x`, a scalar of its element type."""

    def __call__(self, x):
        raise NotImplementedError(type(self).__name__)

    def get_config(self) -> dict:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict) -> Regularizer:
        return cls(**config)


class L1(Regularizer):
    """l1 * sum(|x|)."""

    def __init__(self, l1=0.01):
        self.l1 = _factor("L1", "l1", l1)

    def __call__(self, x):
        return ops.sum(ops.absolute(x)) * self.l1


class L2(Regularizer):
    """l2 * sum(x * x), without a factor of one half."""

    def __init__(self, l2=0.01):
        self.l2 = _factor("L2", "l2", l2)

    def __call__(self, x):
        return ops.sum(ops.square(x)) * self.l2


class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x * x)."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1 = _factor("L1L2", "l1", l1 or 0.0)
        self.l2 = _factor("L1L2", "l2", l2 or 0.0)

    def __call__(self, x):
        return ops.sum(ops.absolute(x)) * self.l1 + ops.sum(ops.square(x)) * self.l2


class OrthogonalRegularizer(Regularizer):
    """factor * the mean of |cosine| over all pairs of rows (or columns) of a matrix.

    Args:
        mode: "rows" or "columns".
    """

    def __init__(self, factor=0.01, mode="rows"):
        self.factor = _factor("OrthogonalRegularizer", "factor", factor)
        if mode not in ("rows", "columns"):
            raise ValueError(f"OrthogonalRegularizer: mode: got {mode!r}, wanted 'rows' or 'columns'")
        self.mode = mode

    def __call__(self, x):
        if len(x.shape) != 2:
            raise ValueError(f"OrthogonalRegularizer: input: got shape {tuple(x.shape)}, wanted rank 2")
        rows = x if self.mode == "rows" else ops.transpose(x)
        count = rows.shape[0]
        norm = ops.sqrt(ops.maximum(ops.sum(ops.square(rows), axis=1, keepdims=True), 1e-12))
        rows = rows / norm
        cosines = ops.matmul(rows, ops.transpose(rows)) * (1.0 - ops.eye(count, dtype=x.dtype))
        return ops.sum(ops.absolute(cosines)) * (self.factor / (count * (count - 1)))


def _factor(owner: str, argument: str, value) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{owner}: {argument}: got {value!r}, wanted a finite number of 0 or more")
    return float(value)


# Keras's other names.
l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer

_NAMES = {"l1": L1, "l2": L2, "l1_l2": L1L2, "l1l2": L1L2, "orthogonal_regularizer": OrthogonalRegularizer}


def get(identifier):
    """A regularizer from a name ("l2"), a config, a class or a function; None stays None.

    Raises:
        ValueError: there is no regularizer of that name.
    """
    return registry.lookup("regularizer", identifier, _NAMES)


def serialize(regularizer):
    return registry.serialize(regularizer)


def deserialize(config, custom_objects=None):
    return registry.deserialize(config, custom_objects, module="keras.regularizers")
