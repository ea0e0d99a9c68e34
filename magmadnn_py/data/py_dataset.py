"""Datasets that make each batch on demand, in worker threads or processes."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor


class PyDataset:
    """Base class. A subclass defines `__len__`, the number of batches, and `__getitem__(index)`, one batch: (x,),
    (x, y) or (x, y, sample_weight).

    Args:
        workers: how many batches are made at the same time; with 1 or 0 they are made in turn, where they are used,
            unless `use_multiprocessing` is set.
        use_multiprocessing: whether the workers are processes. They are started anew in each epoch, by "spawn", with
            a copy of this object, so it must be one that can be pickled.
        max_queue_size: how many batches are made ahead.

    Batches come in the order of their indices (shuffled by `fit(shuffle=True)`), however many workers make them.
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10):
        if workers < 0 or max_queue_size < 1:
            raise ValueError(
                f"PyDataset: workers, max_queue_size: got {workers}, {max_queue_size}, wanted at least 0 and 1"
            )
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int):
        raise NotImplementedError(f"{type(self).__name__}.__getitem__(index)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}.__len__()")

    @property
    def num_batches(self) -> int:
        return len(self)

    def on_epoch_begin(self) -> None:
        """Called before each epoch."""

    def on_epoch_end(self) -> None:
        """Called after each epoch, when no worker runs."""


def batches_of(dataset, order: Iterable[int]) -> Iterator:
    """The batches of those indices, in order, made by the dataset's workers; an error in one of them comes out here.

    No worker is left when the iterator ends or is closed.
    """
    workers = getattr(dataset, "workers", 1)
    in_processes = getattr(dataset, "use_multiprocessing", False)
    if workers == 0 or (workers == 1 and not in_processes):
        yield from (dataset[index] for index in order)
        return
    executor = _executor(dataset, workers, in_processes)
    make = _make_batch if in_processes else dataset.__getitem__
    try:
        indices = iter(order)
        waiting = deque(executor.submit(make, i) for i in itertools.islice(indices, dataset.max_queue_size))
        while waiting:
            batch = waiting.popleft().result()
            waiting.extend(executor.submit(make, i) for i in itertools.islice(indices, 1))
            yield batch
    finally:
        executor.shutdown(cancel_futures=True)


def _executor(dataset, workers: int, in_processes: bool) -> Executor:
    if not in_processes:
        return ThreadPoolExecutor(workers, thread_name_prefix="PyDataset")
    # A forked child would inherit the locks of this process's threads, and could wait for them forever.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, initializer=_remember, initargs=(dataset,))


_dataset_of_process = None


def _remember(dataset) -> None:
    global _dataset_of_process
    _dataset_of_process = dataset


def _make_batch(index: int):
    return _dataset_of_process[index]
