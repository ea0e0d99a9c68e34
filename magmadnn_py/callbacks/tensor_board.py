"""What is not here, said clearly."""

from __future__ import annotations

from .callback import Callback


class TensorBoard(Callback):
    """Not part of this library: making one raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "TensorBoard: its event files are not written by this library; use CSVLogger for a table of the epochs, "
            "or LambdaCallback(on_epoch_end=...) to hand the logs to a writer of your own"
        )
