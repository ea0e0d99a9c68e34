"""The base class of callbacks."""

from __future__ import annotations

_MODES = ("train", "test", "predict")


class Callback:
    """Base class. A subclass overrides the hooks it wants; `self.model` and `self.params` are set before any.

    Epochs and batches count from 0. `logs` maps names to numbers. `self.model.stop_training = True` ends training after
    the batch. A callback that overrides a batch hook makes `fit` come back to Python after each step.
    """

    def __init__(self):
        self.model = None
        self.params: dict | None = None

    def set_params(self, params: dict) -> None:
        """`params`: "verbose", "epochs", "steps" (batches of an epoch, or None) and "samples" (or None)."""
        self.params = params

    def set_model(self, model) -> None:
        self.model = model

    def on_train_begin(self, logs=None): ...

    def on_train_end(self, logs=None): ...

    def on_epoch_begin(self, epoch, logs=None): ...

    def on_epoch_end(self, epoch, logs=None): ...

    def on_batch_begin(self, batch, logs=None):
        """An older name of `on_train_batch_begin`, called by it."""

    def on_batch_end(self, batch, logs=None):
        """An older name of `on_train_batch_end`, called by it."""

    def on_train_batch_begin(self, batch, logs=None):
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs=None): ...

    def on_test_end(self, logs=None): ...

    def on_test_batch_begin(self, batch, logs=None): ...

    def on_test_batch_end(self, batch, logs=None): ...

    def on_predict_begin(self, logs=None): ...

    def on_predict_end(self, logs=None): ...

    def on_predict_batch_begin(self, batch, logs=None): ...

    def on_predict_batch_end(self, batch, logs=None): ...

    def needs_batch_hooks(self, mode: str) -> bool:
        """Whether the hooks of single batches in `mode` ("train", "test" or "predict") do anything here."""
        if mode not in _MODES:
            raise ValueError(f"callback: mode: got {mode!r}, wanted one of {', '.join(_MODES)}")
        hooks = [f"on_{mode}_batch_begin", f"on_{mode}_batch_end"]
        hooks += ["on_batch_begin", "on_batch_end"] if mode == "train" else []
        return any(self._overrides(hook) for hook in hooks)

    def _overrides(self, hook: str) -> bool:
        return hook in self.__dict__ or getattr(type(self), hook) is not getattr(Callback, hook)
