"""A callback of functions."""

from __future__ import annotations

from .callback import Callback


class LambdaCallback(Callback):
    """Calls the given functions as hooks.

    Args:
        on_epoch_begin, on_epoch_end, on_train_begin, ...: functions with the hook's arguments (epoch or batch, and
            logs).

    Raises:
        ValueError: there is no hook of that name.
    """

    def __init__(self, **hooks):
        super().__init__()
        for name, function in hooks.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ValueError(f"LambdaCallback: got '{name}', wanted names of hooks such as on_epoch_end")
            if function is not None:
                setattr(self, name, function)
