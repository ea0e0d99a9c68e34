"""The progress line of fit, evaluate and predict."""

from __future__ import annotations

import sys

from ..utils.progress import Progbar
from .callback import Callback


class ProgbarLogger(Callback):
    """Prints "Epoch 1/5" and a line of steps, time, speed, loss and metrics.

    Args:
        mode: "train", "test" or "predict". In "train" what happens in validation is not shown until the epoch ends.
    """

    def __init__(self, mode: str = "train"):
        super().__init__()
        self.mode = mode
        self._bar: Progbar | None = None
        self._steps: int | None = None

    @property
    def moves(self) -> bool:
        """Whether the line is printed before the end."""
        return self.params["verbose"] == 1 and sys.stdout.isatty()

    def set_params(self, params):
        super().set_params(params)
        self._steps = params.get("steps")

    def needs_batch_hooks(self, mode):
        return False  # it is content with being called now and then

    def on_epoch_begin(self, epoch, logs=None):
        if self.params["verbose"]:
            print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self._start()

    def on_epoch_end(self, epoch, logs=None):
        self._finish(logs)

    def on_train_batch_end(self, batch, logs=None):
        self._show(batch, logs)

    def on_test_begin(self, logs=None):
        if self.mode == "test":
            self._start()

    def on_test_batch_end(self, batch, logs=None):
        if self.mode == "test":
            self._show(batch, logs)

    def on_test_end(self, logs=None):
        if self.mode == "test":
            self._finish(logs)

    def on_predict_begin(self, logs=None):
        self._start()

    def on_predict_batch_end(self, batch, logs=None):
        self._show(batch, logs)

    def on_predict_end(self, logs=None):
        self._finish(logs)

    def _start(self) -> None:
        samples = self.params.get("samples")
        self._bar = Progbar(self._steps, verbose=self.params["verbose"], samples=samples)
        self._seen = 0

    def _show(self, batch: int, logs) -> None:
        self._seen = batch + 1
        self._update(logs, finalize=False)

    def _finish(self, logs) -> None:
        self._update(logs, finalize=True)
        # After one epoch the number of steps is known.
        self._steps = self._steps or self._seen

    def _update(self, logs, finalize: bool) -> None:
        logs = logs or {}
        self._bar.stateful_metrics.update(logs)  # the numbers are means already
        self._bar.update(self._seen, logs.items(), finalize=finalize)
