"""A table of the epochs in a file."""

from __future__ import annotations

import csv
import os

from .callback import Callback


class CSVLogger(Callback):
    """Writes a row with the logs of each epoch; the columns are those of the first.

    Args:
        filename: of the file.
        separator: between the cells.
        append: whether rows are added to a file that exists.
    """

    def __init__(self, filename, separator=",", append=False):
        super().__init__()
        self.filename, self.separator, self.append = os.fspath(filename), separator, append
        self._file = self._writer = None

    def on_train_begin(self, logs=None):
        self._has_header = self.append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self._file = open(self.filename, "a" if self.append else "w", newline="", encoding="utf-8")  # noqa: SIM115
        self._writer = None

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch, **(logs or {})}
        if self._writer is None:
            columns = ["epoch", *sorted(set(row) - {"epoch"})]
            self._writer = csv.DictWriter(
                self._file, columns, restval="NA", extrasaction="ignore", delimiter=self.separator
            )
            if not self._has_header:
                self._writer.writeheader()
        self._writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs=None):
        self._file.close()
        self._file = self._writer = None
