"""All callbacks of a run, called as one."""

from __future__ import annotations

from collections.abc import Iterable

from .callback import Callback
from .history import History
from .progress import ProgbarLogger


class CallbackList:
    """Calls every callback's hook in order; a progress line and the history come last.

    Args:
        callbacks: a callback, several, or another CallbackList's; None for none.
        add_history, add_progbar: whether these are added where they are missing.
        model: given to every callback; gets `history`.
        verbose: 0 silent, 1 a moving line, 2 one line per epoch; "auto" is 1.
        mode: "train", "test" or "predict": what the progress line is for.
        params: "epochs", "steps", "samples" for the callbacks.
    """

    def __init__(
        self, callbacks=None, add_history=True, add_progbar=True, model=None, verbose="auto", mode="train", **params
    ):
        self.callbacks: list[Callback] = _as_list(callbacks)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: got {callback!r}, wanted callbacks")
        verbose = 1 if verbose == "auto" else int(verbose)
        if add_progbar and verbose and not any(isinstance(c, ProgbarLogger) for c in self.callbacks):
            self.callbacks.append(ProgbarLogger(mode))
        history = next((c for c in self.callbacks if isinstance(c, History)), None)
        if history is None and add_history and mode == "train":
            history = History()
            self.callbacks.append(history)
        self.set_params({"verbose": verbose, "epochs": 1, "steps": None, "samples": None, **params})
        if model is not None:
            self.set_model(model)
            if history is not None:
                model.history = history

    def set_params(self, params: dict) -> None:
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model) -> None:
        self.model = model
        for callback in self.callbacks:
            callback.set_model(model)

    def append(self, callback: Callback) -> None:
        self.callbacks.append(callback)

    def __iter__(self):
        return iter(self.callbacks)

    @property
    def initial_epoch(self) -> int | None:
        """After `on_train_begin`: the epoch to go on with, where a callback restored an interrupted run."""
        restored = [getattr(callback, "restored_epoch", None) for callback in self.callbacks]
        return next((epoch for epoch in restored if epoch is not None), None)

    def needs_batch_hooks(self, mode: str = "train") -> bool:
        """Whether any callback, the progress line apart, wants to be called at each batch."""
        return any(callback.needs_batch_hooks(mode) for callback in self.callbacks)

    def wants_batch_logs(self, mode: str = "train") -> bool:
        """Whether anyone looks at the numbers at the end of a batch, or of several run at once."""
        shown = any(isinstance(callback, ProgbarLogger) and callback.moves for callback in self.callbacks)
        return shown or self.needs_batch_hooks(mode)

    def on_batch_begin(self, mode: str, batch: int, logs=None) -> None:
        self._call(f"on_{mode}_batch_begin", batch, logs)

    def on_batch_end(self, mode: str, batch: int, logs=None) -> None:
        self._call(f"on_{mode}_batch_end", batch, logs)

    def on_epoch_begin(self, epoch: int, logs=None) -> None:
        self._call("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs=None) -> None:
        self._call("on_epoch_end", epoch, logs)

    def on_train_begin(self, logs=None) -> None:
        self._call("on_train_begin", logs)

    def on_train_end(self, logs=None) -> None:
        self._call("on_train_end", logs)

    def on_test_begin(self, logs=None) -> None:
        self._call("on_test_begin", logs)

    def on_test_end(self, logs=None) -> None:
        self._call("on_test_end", logs)

    def on_predict_begin(self, logs=None) -> None:
        self._call("on_predict_begin", logs)

    def on_predict_end(self, logs=None) -> None:
        self._call("on_predict_end", logs)

    def _call(self, hook: str, *args) -> None:
        # All get the same dict, so that one can add to what later ones see.
        *position, logs = args
        logs = {} if logs is None else logs
        for callback in self.callbacks:
            getattr(callback, hook)(*position, logs)


def _as_list(callbacks) -> list:
    if callbacks is None:
        return []
    if isinstance(callbacks, CallbackList):
        return list(callbacks.callbacks)
    return list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
