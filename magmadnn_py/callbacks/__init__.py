"""Callbacks: what happens between the steps of training."""

from .backup import BackupAndRestore
from .callback import Callback
from .callback_list import CallbackList
from .checkpoint import ModelCheckpoint
from .csv_logger import CSVLogger
from .early_stopping import EarlyStopping, TerminateOnNaN
from .history import History
from .lambda_callback import LambdaCallback
from .learning_rate import LearningRateScheduler, ReduceLROnPlateau
from .progress import ProgbarLogger
from .tensor_board import TensorBoard

__all__ = [
    "BackupAndRestore", "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN",
]  # fmt: skip
