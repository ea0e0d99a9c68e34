"""Checks of what fit, evaluate and predict are given."""

from __future__ import annotations

import numpy as np

from ..data import BatchData, make_data


def positive(value, argument: str) -> None:
    """Raises ValueError unless `value` is a positive integer."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument}: got {value!r}, wanted a positive integer")


def checked_batch_size(batch_size, data, part: str = "") -> int | None:
    """The batch size for arrays (32 by default); None for a dataset that brings its own batches."""
    if isinstance(data, BatchData):
        if batch_size is not None and not part:
            raise ValueError(f"batch_size: got {batch_size}, wanted None: the dataset brings its own batches")
        return None
    if not len(data):
        raise ValueError(f"{part and 'validation_data: '}x: got no rows, wanted at least one")
    batch_size = 32 if batch_size is None else batch_size
    positive(batch_size, f"{part}batch_size")
    return int(batch_size)


def step_count(data, batch_size, limit) -> int | None:
    """Steps of an epoch, None where that is not known."""
    if isinstance(data, BatchData):
        return data.steps
    steps = -(-len(data) // batch_size)
    return steps if limit is None else min(steps, limit)


def validates(epoch: int, frequency) -> bool:
    """Whether there is validation after the epoch: every `frequency` epochs, or after those it lists (from 1)."""
    if isinstance(frequency, list | tuple | set):
        return epoch + 1 in frequency
    return (epoch + 1) % frequency == 0


def make_validation_data(given, steps):
    """The dataset for (x, y), (x, y, sample_weight), or a dataset of batches."""
    if not isinstance(given, tuple | list):
        return make_data(given, steps=steps)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"validation_data: got {len(given)} parts, wanted (x, y) or (x, y, sample_weight)")
    try:
        return make_data(*given, steps=steps)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation_data: {error}") from None


def class_weights(labels: np.ndarray, class_weight: dict) -> np.ndarray:
    """A weight per sample, from the weights of the classes; 1 where a class has none."""
    if not isinstance(class_weight, dict) or not all(isinstance(label, int | np.integer) for label in class_weight):
        raise ValueError(f"class_weight: got {class_weight!r}, wanted a dict of class numbers to weights")
    if labels.ndim > 2:
        raise ValueError(
            f"class_weight: targets have shape {labels.shape}; for maps use sample_weight of shape (batch, h, w)"
        )
    if labels.ndim == 2:
        labels = labels.argmax(axis=1) if labels.shape[1] > 1 else labels[:, 0]
    weights = np.ones(len(labels), np.float32)
    for label, weight in class_weight.items():
        weights[labels == label] = weight
    return weights
