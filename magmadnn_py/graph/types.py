"""Types of graph values: shapes, element types and how element types combine."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# In order of promotion: the result of mixing two is the later one.
DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
ITEMSIZE = {"bool": 1, "uint8": 1, "int32": 4, "int64": 8, "float32": 4, "float64": 8}


def is_floating(dtype: str) -> bool:
    return dtype.startswith("float")


def standardize_dtype(dtype) -> str:
    """The name of a supported element type, from a name, a NumPy dtype or a Python type.

    Raises:
        TypeError: the type is none of bool, uint8, int32, int64, float32, float64.
    """
    if dtype is float:
        return "float32"
    if dtype is int:
        return "int32"
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise TypeError(f"dtype: got {dtype!r}, wanted one of {', '.join(DTYPES)}")
    return name


def promote(*dtypes: str) -> str:
    """The element type that holds a mixture: any float with any integer stays that float."""
    return max(dtypes, key=DTYPES.index)


@dataclass(frozen=True)
class TensorType:
    """Shape and element type of a value; every extent is known."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * ITEMSIZE[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of several shapes. Raises ValueError where they do not fit."""
    return tuple(int(extent) for extent in np.broadcast_shapes(*shapes))


def normalize_axis(axis: int, rank: int, owner: str, argument: str = "axis") -> int:
    """A non-negative axis; ValueError naming `owner` and `argument` if it is out of range."""
    if not -rank <= axis < rank:
        raise ValueError(f"{owner}: {argument}: got {axis}, wanted an axis of a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes, rank: int, owner: str, argument: str = "axis") -> tuple[int, ...]:
    """Sorted non-negative axes; None means all of them. Duplicates are an error."""
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    result = tuple(sorted(normalize_axis(int(axis), rank, owner, argument) for axis in given))
    if len(set(result)) != len(result):
        raise ValueError(f"{owner}: {argument}: got {axes}, wanted no axis twice")
    return result
