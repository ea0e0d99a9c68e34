"""Datasets that lie in memory as arrays."""

from __future__ import annotations

import numpy as np

from ..graph.symbolic import leaves, map_structure
from ..runtime.tensor import Tensor


class ArrayData:
    """Arrays with one row per sample: inputs, targets and sample weights, each any nesting of arrays.

    Arrays of any NumPy layout are taken; those that are not contiguous are copied once.

    Raises:
        ValueError: no arrays, different numbers of rows, or a scalar; the message names the argument.
    """

    def __init__(self, x, y=None, sample_weight=None):
        self.x = _tensors(x, "x")
        self.y = _tensors(y, "y")
        self.sample_weight = _tensors(sample_weight, "sample_weight")
        lengths = {
            name: {len(leaf) for leaf in leaves(part) if leaf is not None}
            for name, part in (("x", self.x), ("y", self.y), ("sample_weight", self.sample_weight))
        }
        every = set().union(*lengths.values())
        if not every:
            raise ValueError("x: got no arrays, wanted at least one")
        if len(every) > 1:
            found = ", ".join(f"{name} {sorted(sizes)}" for name, sizes in lengths.items() if sizes)
            raise ValueError(f"x, y, sample_weight: got different numbers of rows ({found}), wanted the same")
        self.rows = every.pop()

    def __len__(self) -> int:
        return self.rows

    @property
    def structure(self) -> tuple:
        return (self.x, self.y, self.sample_weight)

    def tensors(self) -> list[Tensor]:
        """All arrays in the order of a program's inputs."""
        return [leaf for leaf in leaves(self.structure) if leaf is not None]

    def split(self, fraction: float) -> tuple[ArrayData, ArrayData]:
        """All but the last `fraction` of the rows, and those.

        Raises:
            ValueError: one of the parts would be empty.
        """
        if not 0 < fraction < 1:
            raise ValueError(f"validation_split: got {fraction}, wanted a number between 0 and 1")
        at = int(self.rows * (1 - fraction))
        if at in (0, self.rows):
            raise ValueError(f"validation_split: {fraction} of {self.rows} samples leaves one part empty")

        def part(rows: slice) -> ArrayData:
            return ArrayData(*map_structure(lambda leaf: None if leaf is None else leaf[rows], self.structure))

        return part(slice(0, at)), part(slice(at, self.rows))


def _tensors(structure, name: str):
    if isinstance(structure, list) and structure and not any(hasattr(leaf, "shape") for leaf in leaves(structure)):
        structure = _array(structure, name)  # rows as lists of numbers
    return map_structure(lambda leaf: None if leaf is None else _tensor(leaf, name), structure)


def _tensor(leaf, name: str) -> Tensor:
    if hasattr(leaf, "detach"):  # a tensor of PyTorch, which may carry gradients or lie elsewhere
        leaf = leaf.detach().cpu().numpy()
    array = leaf if isinstance(leaf, Tensor | np.ndarray) else _array(leaf, name)
    if array.ndim == 0:
        raise ValueError(f"{name}: got a scalar, wanted arrays with one row per sample")
    try:
        tensor = array if isinstance(array, Tensor) else Tensor.from_array(array)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return tensor.contiguous()


def _array(values, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name}: {error}") from None
