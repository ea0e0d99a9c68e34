"""What `fit`, `evaluate` and `predict` are given, in the forms that programs take."""

from .arrays import ArrayData
from .batches import BatchData, make_data
from .py_dataset import PyDataset

__all__ = ["ArrayData", "BatchData", "PyDataset", "make_data"]
