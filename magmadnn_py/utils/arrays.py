"""NumPy helpers for data and labels."""

from __future__ import annotations

import numpy as np


def to_categorical(x, num_classes: int | None = None) -> np.ndarray:
    """One-hot rows for integer labels.

    Args:
        x: integers of shape [...]; a last axis of extent 1 is dropped.
        num_classes: length of a row; by default the largest label + 1.

    Returns:
        float32 of shape [..., num_classes].

    Raises:
        ValueError: a label is negative or not below `num_classes`.
    """
    labels = np.asarray(x).astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    largest = int(labels.max(initial=-1))
    classes = largest + 1 if num_classes is None else int(num_classes)
    if labels.size and (labels.min() < 0 or largest >= classes):
        raise ValueError(f"to_categorical: x: got labels from {labels.min()} to {largest}, wanted 0 to {classes - 1}")
    return np.eye(classes, dtype=np.float32)[labels]


def normalize(x, axis: int = -1, order: int = 2) -> np.ndarray:
    """The array divided by its norm of the given order along an axis; rows of zeros stay zeros."""
    x = np.asarray(x)
    norm = np.atleast_1d(np.linalg.norm(x, order, axis))
    norm[norm == 0] = 1
    return x / np.expand_dims(norm, axis)


def split_dataset(dataset, left_size=None, right_size=None, shuffle: bool = False, seed: int | None = None):
    """Splits an array, or a tuple or list of arrays with equal first extents, into two parts of rows.

    Args:
        left_size, right_size: rows of each part, or fractions of them; what is not given is the rest.
        shuffle: whether rows are first put into a random order, drawn from `seed`.

    Returns:
        (left, right), each built like `dataset`.
    """
    arrays = list(dataset) if isinstance(dataset, tuple | list) else [dataset]
    arrays = [np.asarray(array) for array in arrays]
    total = len(arrays[0])
    if any(len(array) != total for array in arrays):
        raise ValueError(f"split_dataset: dataset: got {[len(a) for a in arrays]} rows, wanted equal numbers")
    if left_size is None and right_size is None:
        raise ValueError("split_dataset: got neither left_size nor right_size")
    right = None if right_size is None else _rows(right_size, total)
    left = total - right if left_size is None else _rows(left_size, total)
    right = total - left if right is None else right
    if left + right > total:
        raise ValueError(f"split_dataset: got {left} + {right} rows, wanted at most {total}")
    order = np.random.default_rng(seed).permutation(total) if shuffle else np.arange(total)
    parts = [[array[rows] for array in arrays] for rows in (order[:left], order[left : left + right])]
    if not isinstance(dataset, tuple | list):
        return parts[0][0], parts[1][0]
    return type(dataset)(parts[0]), type(dataset)(parts[1])


def _rows(size, total: int) -> int:
    rows = round(size * total) if isinstance(size, float) else int(size)
    if not 0 <= rows <= total:
        raise ValueError(
            f"split_dataset: got {size} of {total} rows, wanted a fraction from 0 to 1 or a number of rows"
        )
    return rows
