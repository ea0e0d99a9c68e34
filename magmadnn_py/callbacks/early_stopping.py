"""Stopping when nothing improves any more, or nothing makes sense any more."""

from __future__ import annotations

import math

from .callback import Callback
from .monitor import MonitorCallback


class EarlyStopping(MonitorCallback):
    """Ends training when `monitor` has not improved for `patience` epochs.

    Args:
        monitor, min_delta, mode: as for `MonitorCallback`.
        patience: epochs without improvement to wait.
        verbose: 1 says when it stops or restores.
        baseline: an improvement counts only if it also beats this number.
        restore_best_weights: whether the model gets the weights of its best epoch at the end.
        start_from_epoch: epochs before this one do not count.
    """

    def __init__(
        self,
        monitor="val_loss",
        min_delta=0,
        patience=0,
        verbose=0,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
        start_from_epoch=0,
    ):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self._begin()

    def _begin(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best: float | None = None
        self.best_epoch = 0
        self.best_weights = None

    def on_train_begin(self, logs=None):
        self._begin()
        self.best = self.worst

    def on_epoch_end(self, epoch, logs=None):
        current = self.current(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self.is_better(current, self.best):
            self.best, self.best_epoch = current, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.is_better(current, self.baseline):
                self.wait = 0
                return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                print(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


class TerminateOnNaN(Callback):
    """Ends training at the batch whose loss is NaN or infinite.

    Args:
        raise_error: whether this is a RuntimeError.
    """

    def __init__(self, raise_error: bool = False):
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss")
        if loss is None or math.isfinite(loss):
            return
        message = f"Batch {batch}: invalid loss {loss}, terminating training"
        self.model.stop_training = True
        if self.raise_error:
            raise RuntimeError(message)
        print(message)
