"""Helpers that scripts use around a model: labels, seeds, progress, splits."""

from __future__ import annotations

import random

import numpy as np

from .arrays import normalize, split_dataset, to_categorical
from .naming import clear_session
from .progress import Progbar

__all__ = [
    "CustomObjectScope", "Progbar", "PyDataset", "Sequence", "clear_session", "custom_object_scope",
    "deserialize_keras_object", "get_custom_objects", "get_registered_name", "get_registered_object", "normalize",
    "register_keras_serializable", "serialize_keras_object", "set_random_seed", "split_dataset", "to_categorical",
]  # fmt: skip


def set_random_seed(seed: int) -> None:
    """Seeds Python's and NumPy's generators, the initializers and the random ops.

    Raises:
        ValueError: the seed is not an integer from 0 to 2**32 - 1.
    """
    from .. import initializers, ops

    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"set_random_seed: seed: got {seed!r}, wanted an integer from 0 to 2**32 - 1")
    random.seed(int(seed))
    np.random.seed(int(seed))
    initializers.set_seed(int(seed))
    ops.set_seed(int(seed))


def __getattr__(name: str):
    # `saving` and `data` build on this package, so their names, which Keras has here too, are looked up when used.
    if name in ("PyDataset", "Sequence"):
        from ..data import PyDataset

        return PyDataset
    if name in __all__:
        from .. import saving

        return getattr(saving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
