"""Going on with a training run that was interrupted."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from .callback import Callback
from .checkpoint import write_through


class BackupAndRestore(Callback):
    """Saves weights and optimizer state, and begins from there when `fit` is called again with the same arguments.

    Args:
        backup_dir: a folder of its own for each training run.
        save_freq: "epoch", or a number of batches (an interrupted epoch is then done again from its begin, with the
            weights it had reached).
        double_checkpoint: whether the backup before the last is kept too, as "prev".
        delete_checkpoint: whether the backup is deleted when training has come to its end.
    """

    def __init__(self, backup_dir, save_freq="epoch", double_checkpoint=False, delete_checkpoint=True):
        super().__init__()
        if not os.fspath(backup_dir):
            raise ValueError("BackupAndRestore: backup_dir: got an empty name, wanted a folder")
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(f"BackupAndRestore: save_freq: got {save_freq!r}, wanted 'epoch' or a number of batches")
        self.backup_dir = Path(backup_dir)
        self.save_freq = save_freq
        self.double_checkpoint, self.delete_checkpoint = double_checkpoint, delete_checkpoint
        #: The epoch to go on with, if there was a backup.
        self.restored_epoch: int | None = None
        self._epoch = 0
        self._batches = 0

    def needs_batch_hooks(self, mode):
        return mode == "train" and self.save_freq != "epoch"

    @property
    def _weights(self) -> Path:
        return self.backup_dir / "latest.weights.h5"

    @property
    def _metadata(self) -> Path:
        return self.backup_dir / "training_metadata.json"

    def on_train_begin(self, logs=None):
        self.restored_epoch = None
        if self._weights.exists() and self._metadata.exists():
            self.model.load_weights(self._weights)
            self.restored_epoch = int(json.loads(self._metadata.read_text(encoding="utf-8"))["epoch"])

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        self._epoch = epoch + 1
        if self.save_freq == "epoch":
            self._save()

    def on_train_batch_end(self, batch, logs=None):
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches % self.save_freq == 0:
            self._save()

    def on_train_end(self, logs=None):
        complete = self._epoch >= self.params["epochs"] or self.model.stop_training
        if complete and self.delete_checkpoint:
            shutil.rmtree(self.backup_dir, ignore_errors=True)

    def _save(self) -> None:
        if self.double_checkpoint and self._weights.exists():
            os.replace(self._weights, self.backup_dir / "prev.weights.h5")
            if self._metadata.exists():
                shutil.copyfile(self._metadata, self.backup_dir / "prev_training_metadata.json")
        text = json.dumps({"epoch": self._epoch})
        write_through(self._weights, self.model.save_weights)
        write_through(self._metadata, lambda path: path.write_text(text, encoding="utf-8"))
