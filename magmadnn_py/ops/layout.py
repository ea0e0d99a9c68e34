"""Data formats: tensors in graphs are channels-last; channels-first is a transposition at the rim."""

from __future__ import annotations

from ..graph.node import Value
from .movement import transpose

DATA_FORMATS = ("channels_last", "channels_first")


def to_channels_last(x: Value, data_format: str, owner: str) -> Value:
    """[N, *spatial, C] from a tensor in `data_format`. Raises ValueError for an unknown format or too low a rank."""
    if data_format not in DATA_FORMATS:
        raise ValueError(f"{owner}: data_format: got {data_format!r}, wanted one of {', '.join(DATA_FORMATS)}")
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"{owner}: inputs: got shape {x.shape}, wanted rank 3, 4 or 5")
    return transpose(x, (0, *range(2, x.ndim), 1)) if data_format == "channels_first" else x


def from_channels_last(x: Value, data_format: str) -> Value:
    """The tensor [N, *spatial, C] in `data_format`."""
    return transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if data_format == "channels_first" else x
