"""Tensors, the fillers that give them first values, and CSV files of them.

A filler is a function that writes into a tensor. `Tensor(shape, fill=filler)` and `tensor.fill(filler)` call it;
a number serves as a filler too. Random fillers draw from one generator of their own (NumPy's Philox): with a seed
a filler gives the same values in every process, and two tensors filled one after the other still differ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from math import prod, sqrt
from pathlib import Path

import numpy as np

from .._core import Tensor
from ..graph.operators import Operators

__all__ = [
    "Tensor",
    "constant",
    "diagonal",
    "glorot",
    "identity",
    "load_csv",
    "mask",
    "none",
    "normal",
    "one",
    "save_csv",
    "uniform",
    "zero",
]

Filler = Callable[[Tensor], None]

# `tensor + 1` runs at once; indexing stays the native class's own, which makes views.
for _name, _method in vars(Operators).items():
    if _name.startswith("__") and _name not in (
        "__getitem__",
        "__iter__",
        "__hash__",
        "__slots__",
        "__module__",
        "__doc__",
    ):
        setattr(Tensor, _name, _method)


def none(tensor: Tensor) -> None:
    """Leave the memory as it is (uninitialised in a new tensor)."""


def zero(tensor: Tensor) -> None:
    """Fill with 0."""
    tensor.fill(0)


def one(tensor: Tensor) -> None:
    """Fill with 1."""
    tensor.fill(1)


def constant(value: float) -> Filler:
    """Fill with `value`. ValueError at the fill if an integer tensor cannot hold it."""
    return lambda tensor: tensor.fill(value)


def uniform(low: float = 0.0, high: float = 1.0, seed: int | None = None) -> Filler:
    """Uniform in [low, high), rounded to the dtype; whole numbers of that range for integer tensors.

    ValueError unless low < high; TypeError for bool tensors.
    """
    if not low < high:
        raise ValueError(f"uniform: low is {low} and high is {high}, wanted low < high")
    generator = _generator(seed)

    def fill(tensor: Tensor) -> None:
        _refuse("uniform", tensor, "bool")
        if tensor.dtype.startswith("float"):
            values = generator.uniform(low, high, tensor.shape)
        else:
            values = generator.integers(low, high, tensor.shape, dtype=tensor.dtype)
        tensor.copy_from(values)

    return fill


def normal(mean: float = 0.0, stddev: float = 1.0, seed: int | None = None) -> Filler:
    """Normal with the given mean and standard deviation, for float tensors (else TypeError)."""
    if not stddev >= 0:
        raise ValueError(f"normal: stddev is {stddev}, wanted 0 or more")
    generator = _generator(seed)

    def fill(tensor: Tensor) -> None:
        _refuse("normal", tensor, "bool", "int", "uint")
        tensor.copy_from(generator.normal(mean, stddev, tensor.shape))

    return fill


def glorot(seed: int | None = None) -> Filler:
    """Uniform within +-sqrt(6 / (fan_in + fan_out)), for float tensors (Glorot and Bengio, 2010).

    The last two axes are inputs and outputs; those before are a window that multiplies both fans, as in the
    weights of a convolution. A tensor of rank 1 has both fans of its length, one of rank 0 of 1.
    """
    generator = _generator(seed)

    def fill(tensor: Tensor) -> None:
        _refuse("glorot", tensor, "bool", "int", "uint")
        shape = tensor.shape
        inputs, outputs = shape[-2:] if len(shape) > 1 else (shape or (1,)) * 2
        fans = (inputs + outputs) * prod(shape[:-2])
        limit = sqrt(6.0 / max(fans, 1))
        tensor.copy_from(generator.uniform(-limit, limit, tensor.shape))

    return fill


def mask(p: float, value: float = 1.0, seed: int | None = None) -> Filler:
    """`value` with probability `p`, else 0, each element on its own (Bernoulli)."""
    if not 0 <= p <= 1:
        raise ValueError(f"mask: p is {p}, wanted 0 to 1")
    generator = _generator(seed)

    def fill(tensor: Tensor) -> None:
        chosen = Tensor((), tensor.dtype, fill=value).numpy()
        tensor.copy_from(np.where(generator.random(tensor.shape) < p, chosen, np.zeros_like(chosen)))

    return fill


def identity(tensor: Tensor) -> None:
    """1 on the main diagonal of a matrix, 0 elsewhere. ValueError unless the rank is 2."""
    diagonal(1)(tensor)


def diagonal(values: float | Sequence[float]) -> Filler:
    """`values` (one, or one for each cell) on the main diagonal of a matrix, 0 elsewhere."""

    def fill(tensor: Tensor) -> None:
        if tensor.ndim != 2:
            raise ValueError(f"diagonal: the tensor has shape {tensor.shape}, wanted a matrix")
        length = min(tensor.shape)
        if np.ndim(values) > 0 and np.shape(values) != (length,):
            raise ValueError(f"diagonal: values have shape {np.shape(values)}, wanted one or {length} values")
        tensor.fill(0)
        cells = np.arange(length)
        tensor.numpy()[cells, cells] = values

    return fill


def _generator(seed: int | None) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def _refuse(filler: str, tensor: Tensor, *kinds: str) -> None:
    if tensor.dtype.rstrip("0123456789") in kinds:
        raise TypeError(f"{filler}: the tensor is of dtype {tensor.dtype}, which this filler has no values for")


# ---- CSV

_HEADER = re.compile(r"# dtype=(float32|float64|int32|int64|uint8|bool) shape=((?:\d+(?:,\d+)*)?)\s*")

# Digits that give back the same float.
_FORMATS = {"float32": "%.9g", "float64": "%.17g"}


def save_csv(path: str | os.PathLike, tensor: Tensor) -> None:
    """Write a tensor as text: a comment with dtype and shape, then a line for each row of the last axis.

    The file is written under another name and then renamed, so that `path` is never half a file.
    """
    path = Path(path)
    rows = tensor.numpy().reshape(prod(tensor.shape[:-1]), tensor.shape[-1] if tensor.ndim else 1)
    header = f"dtype={tensor.dtype} shape={','.join(map(str, tensor.shape))}"
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(f"# {header}\n")
            if tensor.size:
                np.savetxt(file, rows, fmt=_FORMATS.get(tensor.dtype, "%d"), delimiter=",")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_csv(path: str | os.PathLike) -> Tensor:
    """Read what save_csv wrote, with its dtype and shape. ValueError names the file and line of a fault."""
    path = Path(path)
    with open(path, encoding="utf-8", errors="replace") as file:
        header = _HEADER.fullmatch(file.readline())
        if not header:
            raise ValueError(f"{path}, line 1: wanted '# dtype=<dtype> shape=<extent>,<extent>,...'")
        dtype = header[1]
        shape = tuple(map(int, header[2].split(","))) if header[2] else ()
        columns = shape[-1] if shape else 1
        wanted = prod(shape[:-1]) if columns else 0
        rows = []
        for number, line in enumerate(file, start=2):
            if len(rows) == wanted:
                raise ValueError(f"{path}, line {number}: wanted the end of the file after {wanted} rows")
            rows.append(_parse_row(line, dtype, columns, f"{path}, line {number}"))
    if len(rows) != wanted:
        raise ValueError(f"{path}, line {len(rows) + 2}: the file ends here, wanted {wanted} rows")
    return Tensor.from_array(np.array(rows, dtype=dtype).reshape(shape))


def _parse_row(line: str, dtype: str, columns: int, place: str) -> np.ndarray:
    cells = line.strip().split(",")
    if len(cells) != columns:
        raise ValueError(f"{place}: got {len(cells)} values, wanted {columns}")
    if dtype == "bool":
        if not set(map(str.strip, cells)) <= {"0", "1"}:
            raise ValueError(f"{place}: got other values than 0 and 1 for bool")
        return np.array([cell.strip() == "1" for cell in cells])
    number = float if dtype.startswith("float") else int
    try:
        return np.array([number(cell) for cell in cells], dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from None
