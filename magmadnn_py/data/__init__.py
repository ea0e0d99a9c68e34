"""What `fit`, `evaluate` and `predict` are given, in the forms that programs take."""

from .arrays import ArrayData
from .batches import BatchData, make_data

__all__ = ["ArrayData", "BatchData", "make_data"]
