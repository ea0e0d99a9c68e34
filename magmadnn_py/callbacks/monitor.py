"""What callbacks that watch one number share."""

from __future__ import annotations

import math
import warnings

from .callback import Callback

#: Parts of names of metrics of which more is better.
_UP = ("acc", "auc", "precision", "recall", "f1", "fbeta", "iou", "io_u", "top_k", "cosine", "r2", "fmeasure")


class MonitorCallback(Callback):
    """Base of callbacks that look at `monitor` at the end of each epoch. NaN is never an improvement.

    Args:
        monitor: a name in the logs.
        mode: "min", "max", or "auto": by the metric's direction or its name; a loss is to be small.
        min_delta: a smaller change than this is no improvement.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode: got {mode!r}, wanted 'auto', 'min' or 'max'")
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)

    @property
    def rises(self) -> bool:
        """Whether more is better."""
        if self.mode != "auto":
            return self.mode == "max"
        name = self.monitor.removeprefix("val_")
        if name == "loss" or name.endswith("_loss"):
            return False
        metrics = getattr(self.model, "metrics", None) or ()
        known = next((m.direction for m in metrics if m.name == name and getattr(m, "direction", None)), None)
        return known == "up" if known else any(part in name for part in _UP)

    @property
    def worst(self) -> float:
        """What every number is better than."""
        return -math.inf if self.rises else math.inf

    def is_better(self, value: float, best: float) -> bool:
        """Whether `value` is better than `best` by more than `min_delta`."""
        return value - self.min_delta > best if self.rises else value + self.min_delta < best

    def current(self, logs) -> float | None:
        """The number in the logs; None, with a warning, where it is missing."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            names = ", ".join(sorted(logs or {})) or "none"
            warnings.warn(f"{type(self).__name__}: '{self.monitor}' is not in the logs; there is {names}", stacklevel=3)
        return None if value is None else float(value)
