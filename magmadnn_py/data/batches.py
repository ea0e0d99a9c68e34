"""Datasets that come batch by batch: generators, `PyDataset`s, loaders of other libraries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arrays import ArrayData
from .py_dataset import batches_of


class BatchData:
    """Batches of (x,), (x, y) or (x, y, sample_weight) from an iterator, or from an indexable set of batches.

    A plain generator is used up as it goes, over epochs; an iterable (a loader) or a `PyDataset` starts again at each.
    `steps` limits an epoch.
    """

    def __init__(self, source, steps: int | None = None):
        self.source = source
        self.is_iterator = isinstance(source, Iterator)
        self.indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__") and not hasattr(source, "__iter__")
        self.steps = steps if steps is not None or self.is_iterator else _length(source)

    def epoch(self, shuffle: np.random.Generator | None = None) -> Iterator[ArrayData]:
        """The batches of one epoch; those of an indexable set in the order that `shuffle` draws."""
        self._tell("on_epoch_begin")
        batches = self._batches(shuffle)
        step = 0
        try:
            while step != self.steps:
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                yield ArrayData(*_unpack(batch))
                step += 1
        finally:
            if not self.is_iterator and hasattr(batches, "close"):
                batches.close()
        self._tell("on_epoch_end")

    def _batches(self, shuffle) -> Iterator:
        if self.is_iterator:
            return self.source
        if not self.indexed:
            return iter(self.source)
        count = _length(self.source)
        order = np.arange(count) if shuffle is None else shuffle.permutation(count)
        # Only those that are used: workers make batches ahead.
        return batches_of(self.source, [int(index) for index in order[: self.steps]])

    def _tell(self, event: str) -> None:
        if hasattr(self.source, event):
            getattr(self.source, event)()


def _length(source) -> int | None:
    length = getattr(source, "num_batches", None)
    if length is not None:
        return int(length)
    try:
        return len(source)
    except TypeError:  # a loader of a stream has a __len__ that fails
        return None


def _unpack(batch) -> tuple:
    parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"batch: got {len(parts)} parts, wanted (x,), (x, y) or (x, y, sample_weight)")
    return parts


def make_data(x, y=None, sample_weight=None, steps: int | None = None) -> ArrayData | BatchData:
    """The dataset for what the user passed.

    Raises:
        ValueError: `y` or `sample_weight` beside a dataset that brings its own.
        TypeError: nothing of what a dataset can be.
    """
    is_arrays = x is None or isinstance(x, list | tuple | dict) or hasattr(x, "__array__") or hasattr(x, "__dlpack__")
    if is_arrays:
        return ArrayData(x, y, sample_weight)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name}: got a value, wanted None: the dataset given as x brings its own")
    if hasattr(x, "as_numpy_iterator"):
        x = list(x.as_numpy_iterator())
    if isinstance(x, str | bytes) or not (hasattr(x, "__iter__") or hasattr(x, "__getitem__")):
        raise TypeError(f"x: got {type(x).__name__}, wanted arrays, a generator, a PyDataset or a loader")
    return BatchData(x, steps)
