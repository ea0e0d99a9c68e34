"""Checks of layer arguments. Every error names the layer, the argument, what came and what was wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..config import standardize_data_format
from .layer import Layer


def is_integer(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def positive(layer: Layer, argument: str, value) -> int:
    """A positive integer."""
    if not is_integer(value) or value < 1:
        layer._fail(argument, repr(value), "a positive integer")
    return int(value)


def per_axis(layer: Layer, argument: str, value, rank: int, least: int = 1) -> tuple[int, ...]:
    """One integer of at least `least` per spatial axis, from a single one or a sequence."""
    values = (value,) * rank if is_integer(value) else value
    if (
        not isinstance(values, Sequence | np.ndarray)
        or len(values) != rank
        or not all(is_integer(i) and i >= least for i in values)
    ):
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        layer._fail(argument, repr(value), f"{kind}, or {rank} of them")
    return tuple(int(i) for i in values)


def one_of(layer: Layer, argument: str, value, choices: Sequence[str]) -> str:
    """A lower-case word out of `choices`."""
    word = value.lower() if isinstance(value, str) else value
    if word not in choices:
        layer._fail(argument, repr(value), f"one of {', '.join(choices)}")
    return word


def data_format(layer: Layer, value) -> str:
    """The default for None."""
    return standardize_data_format(value, f"layer '{layer.name}' ({type(layer).__name__})")


def check_rank(layer: Layer, shape: tuple, rank: int) -> None:
    if len(shape) != rank:
        layer._fail("input", f"shape {tuple(shape)}", f"rank {rank}, the batch included")


def channel_axis(layer_data_format: str) -> int:
    return -1 if layer_data_format == "channels_last" else 1


def channel_count(layer: Layer, shape: tuple, axis: int = -1) -> int:
    """The extent of the channel axis, which weights depend on."""
    extent = shape[axis]
    if extent is None or extent < 1:
        layer._fail("input", f"shape {tuple(shape)}", f"a known, positive extent of axis {axis}")
    return int(extent)


def spatial_extents(shape: tuple, layer_data_format: str) -> tuple:
    return tuple(shape[1:-1] if layer_data_format == "channels_last" else shape[2:])


def check_window(layer: Layer, argument: str, shape: tuple, window: Sequence[int], layer_data_format: str) -> None:
    """A window without padding must fit into every known extent of the input."""
    extents = spatial_extents(shape, layer_data_format)
    if any(extent is not None and extent < size for extent, size in zip(extents, window, strict=True)):
        layer._fail(
            argument, f"a window of {tuple(window)} for an input of shape {tuple(shape)}", "one not larger than it"
        )


def unit_interval(layer: Layer, argument: str, value) -> float:
    """A number from 0 to 1."""
    if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        layer._fail(argument, repr(value), "a number from 0 to 1")
    return value


def seed_argument(layer: Layer, seed):
    """An integer, or None for the numbers that `set_random_seed` governs."""
    if seed is not None and not is_integer(seed):
        layer._fail("seed", repr(seed), "an integer or None")
    return seed
