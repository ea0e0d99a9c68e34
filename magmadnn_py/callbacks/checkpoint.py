"""Saving the model while it is trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .monitor import MonitorCallback


class ModelCheckpoint(MonitorCallback):
    """Saves the model, or its weights, at the end of epochs or after numbers of batches.

    Args:
        filepath: ends in `.keras`, or `.weights.h5` with `save_weights_only`; may hold names of logs, "{epoch}" (from
            1) and "{batch}", as in "model-{epoch:02d}-{val_loss:.2f}.keras".
        monitor, mode: as for `MonitorCallback`, for `save_best_only`.
        verbose: 1 says what is saved.
        save_best_only: only where `monitor` improved.
        save_freq: "epoch" or a number of batches.
        initial_value_threshold: with `save_best_only`, what the first saved value must beat.

    The file is written under another name and renamed, so that it is never half a file.
    """

    def __init__(
        self,
        filepath,
        monitor="val_loss",
        verbose=0,
        save_best_only=False,
        save_weights_only=False,
        mode="auto",
        save_freq="epoch",
        initial_value_threshold=None,
    ):
        super().__init__(monitor, mode)
        self.filepath = os.fspath(filepath)
        ending = ".weights.h5" if save_weights_only else ".keras"
        if not self.filepath.endswith(ending):
            raise ValueError(f"ModelCheckpoint: filepath: got {self.filepath!r}, wanted a name that ends in '{ending}'")
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(f"ModelCheckpoint: save_freq: got {save_freq!r}, wanted 'epoch' or a number of batches")
        self.verbose, self.save_freq = verbose, save_freq
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.best = initial_value_threshold
        self._batches = 0
        self._epoch = 0

    def needs_batch_hooks(self, mode):
        return mode == "train" and self.save_freq != "epoch"

    def on_train_begin(self, logs=None):
        if self.best is None:
            self.best = self.worst

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches % self.save_freq == 0:
            self._save(logs or {}, batch)

    def on_epoch_end(self, epoch, logs=None):
        if self.save_freq == "epoch":
            self._save(logs or {})

    def _save(self, logs: dict, batch: int | None = None) -> None:
        path = self._path(logs, batch)
        if self.save_best_only:
            current = self.current(logs)
            if current is None:
                return
            if not self.is_better(current, self.best):
                self._say(f"{self.monitor} did not improve from {self.best:.5f}")
                return
            self._say(f"{self.monitor} improved from {self.best:.5f} to {current:.5f}, saving model to {path}")
            self.best = current
        else:
            self._say(f"saving model to {path}")
        write_through(path, self.model.save_weights if self.save_weights_only else self.model.save)

    def _path(self, logs: dict, batch: int | None) -> Path:
        try:
            names = {**logs, "epoch": self._epoch + 1, "batch": 0 if batch is None else batch + 1}
            return Path(self.filepath.format(**names))
        except KeyError as error:
            known = ", ".join(sorted({"epoch", "batch", *logs}))
            raise KeyError(
                f"ModelCheckpoint: filepath '{self.filepath}': {error} is not known; there is {known}"
            ) from None

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"\nEpoch {self._epoch + 1}: {text}")


def write_through(path: Path, save: Callable) -> None:
    """Calls `save` with another name in the same folder, which is made, and renames the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{os.getpid()}.unfinished.{path.name}")
    try:
        save(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
