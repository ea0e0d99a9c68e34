"""The record of a training run."""

from __future__ import annotations

from .callback import Callback


class History(Callback):
    """`history`: name -> list of the values of all epochs; `epoch`: their numbers. `fit` returns it."""

    def __init__(self):
        super().__init__()
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs=None):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
