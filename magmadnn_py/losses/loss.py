"""The base classes of losses: per-sample values, weighted and reduced to one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ops
from ..graph.node import Value
from ..graph.symbolic import contains_symbol, leaves, record
from ..graph.trace import current_trace
from ..graph.types import standardize_dtype
from ..ops.function import convert
from ..utils.naming import to_snake_case
from .matching import floating, matched_weight, plain

REDUCTIONS = ("sum_over_batch_size", "sum", "none", "mean", "mean_with_sample_weight")


class Loss:
    """Base class. A subclass writes `call(y_true, y_pred)`, which returns a value per sample (or per pixel, ...).

    Args:
        name: for messages; by default the class's in snake case.
        reduction: "sum_over_batch_size" or "mean" (the sum over the number of values, whatever their weights),
            "sum", "mean_with_sample_weight" (the sum over the sum of the weights), "none" or None.
        dtype: floating-point type to compute in; by default that of `y_pred`.
    """

    #: Targets that are class numbers stay integers; all others are cast to the type of `y_pred`.
    integer_targets = False

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype=None):
        self.name = name or to_snake_case(type(self).__name__)
        self.reduction = _standardize_reduction(reduction)
        self.dtype = None if dtype is None else standardize_dtype(dtype)

    def call(self, y_true, y_pred):
        """Values of shape [batch, ...] for targets and predictions."""
        raise NotImplementedError(f"{type(self).__name__}.call(y_true, y_pred)")

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The reduced loss, of rank 0; without a reduction the weighted values.

        Args:
            y_true, y_pred: targets and predictions.
            sample_weight: factors of the values: of shape [batch], or of the values' first axes, or all of them.

        Raises:
            ValueError: shapes that do not fit, or a target that is not a class number.
        """
        args = (plain(y_true), plain(y_pred), plain(sample_weight))
        if contains_symbol(args):
            return record(self, args, {}, self.name)
        if current_trace() is not None or any(isinstance(leaf, Value) for leaf in leaves(args)):
            return self._reduced(*args)
        from ..runtime.eager import run_now

        self.check_targets(np.asarray(args[0]), np.shape(args[1]))
        return run_now(self._reduced, args, {}, cache=False)

    def check_targets(self, y_true: np.ndarray, y_pred_shape: tuple[int, ...]) -> None:
        """Looks at a batch of targets before they are used: ValueError naming a bad one. By default all are good."""

    def valid(self, y_true: Value, y_pred: Value) -> Value | None:
        """Which values count (bool, in their shape); None for all. The others must be 0."""
        return None

    def _reduced(self, y_true, y_pred, sample_weight=None):
        y_pred = floating(y_pred)
        if self.dtype is not None:
            y_pred = ops.cast(y_pred, self.dtype)
        y_true = convert(y_true)
        if not self.integer_targets:
            y_true = ops.cast(y_true, y_pred.dtype)
        values = convert(self.call(y_true, y_pred))
        weight = None if sample_weight is None else matched_weight(sample_weight, values, self.name)
        return reduce_values(values, weight, self.reduction, self.valid(y_true, y_pred))

    def get_config(self) -> dict:
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict) -> Loss:
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}', reduction={self.reduction}>"


class FunctionLoss(Loss):
    """The loss that a function `fn(y_true, y_pred, **arguments)` of per-sample values makes."""

    def __init__(self, fn: Callable, reduction="sum_over_batch_size", name=None, dtype=None, **arguments):
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self.arguments = arguments

    def call(self, y_true, y_pred):
        return self.fn(y_true, y_pred, **self.arguments)

    def get_config(self) -> dict:
        # A subclass knows its function.
        own = {} if type(self) is not FunctionLoss else {"fn": self.fn}
        return {**own, **super().get_config(), **self.arguments}

    @classmethod
    def from_config(cls, config: dict) -> FunctionLoss:
        from ..saving import deserialize

        fn = {"fn": deserialize(config["fn"])} if isinstance(config.get("fn"), dict) else {}
        return cls(**{**config, **fn})


def reduce_values(values: Value, weight: Value | None, reduction: str, valid: Value | None = None) -> Value:
    """Weights and reduces; 0 where nothing counts."""
    weighted = values if weight is None else values * weight
    if reduction == "none":
        return weighted
    total = ops.sum(weighted)
    if reduction == "sum":
        return total
    if reduction == "mean_with_sample_weight" and weight is not None:
        weight = ops.broadcast_to(weight, values.shape)
        divisor = ops.sum(weight if valid is None else ops.where(valid, weight, 0.0))
        return ops.where(ops.equal(divisor, 0.0), 0.0, total / ops.where(ops.equal(divisor, 0.0), 1.0, divisor))
    if valid is None:
        return total / float(max(values.type.size, 1))
    return total / ops.maximum(ops.sum(ops.cast(valid, values.dtype)), 1.0)


def _standardize_reduction(reduction: str | None) -> str:
    reduction = "none" if reduction is None else reduction
    if reduction not in REDUCTIONS:
        raise ValueError(f"loss: reduction: got {reduction!r}, wanted one of {', '.join(REDUCTIONS)} or None")
    return reduction
