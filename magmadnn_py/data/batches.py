"""Datasets that come batch by batch: generators, `PyDataset`s, loaders of other libraries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arrays import ArrayData


class BatchData:
    """Batches of (x,), (x, y) or (x, y, sample_weight) from an iterator, or from an indexable set of batches.

    A plain generator is used up as it goes, over epochs; an iterable (a loader, a `PyDataset`) starts again at each.
    `steps` limits an epoch.
    """

    def __init__(self, source, steps: int | None = None):
        self.source = source
        self._endless = iter(source) if isinstance(source, Iterator) else None
        self.indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        length = getattr(source, "num_batches", None) or (len(source) if hasattr(source, "__len__") else None)
        self.steps = steps if steps is not None else length
        if self._endless is not None and steps is None:
            self.steps = None

    def epoch(self, shuffle: np.random.Generator | None = None) -> Iterator[ArrayData]:
        """The batches of one epoch."""
        if self._endless is not None:
            batches = self._endless
        elif self.indexed and not hasattr(self.source, "__iter__"):
            order = np.arange(self.steps) if shuffle is None else shuffle.permutation(self.steps)
            batches = (self.source[int(i)] for i in order)
        else:
            batches = iter(self.source)
        for step, batch in enumerate(batches):
            yield ArrayData(*_unpack(batch))
            if self.steps is not None and step + 1 >= self.steps:
                break
        if hasattr(self.source, "on_epoch_end"):
            self.source.on_epoch_end()


def _unpack(batch) -> tuple:
    if isinstance(batch, tuple | list) and not isinstance(batch, np.ndarray):
        if isinstance(batch, list):
            batch = tuple(batch)
        if not 1 <= len(batch) <= 3:
            raise ValueError(f"batch: got {len(batch)} parts, wanted (x,), (x, y) or (x, y, sample_weight)")
        return tuple(_numpy(part) for part in batch)
    return (_numpy(batch),)


def _numpy(part):
    """Tensors of other libraries as NumPy arrays."""
    if hasattr(part, "detach"):
        return part.detach().cpu().numpy()
    return part


def make_data(x, y=None, sample_weight=None, steps: int | None = None) -> ArrayData | BatchData:
    """The dataset for what the user passed.

    Raises:
        ValueError: `y` or `sample_weight` beside a dataset that brings its own.
    """
    is_arrays = x is None or isinstance(x, list | tuple | dict) or hasattr(x, "__array__") or hasattr(x, "__dlpack__")
    if is_arrays:
        return ArrayData(x, y, sample_weight)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name}: got a value, wanted None: the dataset given as x brings its own")
    if hasattr(x, "as_numpy_iterator"):
        x = list(x.as_numpy_iterator())
    if not hasattr(x, "__iter__") and not hasattr(x, "__getitem__"):
        raise TypeError(f"x: got {type(x).__name__}, wanted arrays, a generator, a PyDataset or a loader")
    return BatchData(x, steps)
