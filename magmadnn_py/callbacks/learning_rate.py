"""Changing the learning rate while training."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from .callback import Callback
from .monitor import MonitorCallback


def _rate(model) -> float:
    return float(np.asarray(model.optimizer.learning_rate))


class LearningRateScheduler(Callback):
    """Sets the learning rate at the begin of each epoch.

    Args:
        schedule: a function of the epoch (from 0) and the learning rate, or of the epoch alone.
        verbose: 1 says what is set.
    """

    def __init__(self, schedule: Callable, verbose=0):
        super().__init__()
        self.schedule, self.verbose = schedule, verbose
        try:
            inspect.signature(schedule).bind(0, 0.1)
            self._takes_rate = True
        except TypeError:
            self._takes_rate = False

    def on_epoch_begin(self, epoch, logs=None):
        rate = self.schedule(epoch, _rate(self.model)) if self._takes_rate else self.schedule(epoch)
        if not isinstance(rate, float | np.floating):
            raise ValueError(f"LearningRateScheduler: schedule: returned {rate!r}, wanted a float")
        self.model.optimizer.learning_rate = rate
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = _rate(self.model)


class ReduceLROnPlateau(MonitorCallback):
    """Multiplies the learning rate by `factor` when `monitor` has not improved for `patience` epochs.

    Args:
        monitor, mode, min_delta: as for `MonitorCallback`.
        factor: below 1.
        patience: epochs without improvement to wait.
        verbose: 1 says what is set.
        cooldown: epochs after a reduction that do not count.
        min_lr: the rate is not made smaller than this.
    """

    def __init__(
        self,
        monitor="val_loss",
        factor=0.1,
        patience=10,
        verbose=0,
        mode="auto",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0.0,
    ):
        super().__init__(monitor, mode, min_delta)
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor: got {factor}, wanted a number below 1")
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.wait = self.cooldown_counter = 0
        self.best: float | None = None

    def on_train_begin(self, logs=None):
        self.wait = self.cooldown_counter = 0
        self.best = self.worst

    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = _rate(self.model)
        current = self.current(logs)
        if current is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_better(current, self.best):
            self.best, self.wait = current, 0
        elif self.cooldown_counter == 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(epoch)

    def _reduce(self, epoch: int) -> None:
        old = _rate(self.model)
        if old <= float(np.float32(self.min_lr)):
            return
        new = max(old * self.factor, self.min_lr)
        self.model.optimizer.learning_rate = new
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
        self.cooldown_counter, self.wait = self.cooldown, 0
