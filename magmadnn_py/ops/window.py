"""Window arithmetic, shared by convolutions and pooling.

Along one axis: `size` cells with `low` and `high` cells of padding at its ends; a window of `window` cells that lie
`dilation` apart; windows that begin `stride` cells after one another. Tensors are [N, *spatial, C].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Padding = tuple[tuple[int, int], ...]


def span(window: int, dilation: int = 1) -> int:
    """Cells from the first of a window to its last, both counted."""
    return (window - 1) * dilation + 1


def output_extent(size: int, window: int, stride: int, low: int, high: int, dilation: int = 1) -> int:
    """How many windows fit; 0 if the padded axis is shorter than the window."""
    return max((size + low + high - span(window, dilation)) // stride + 1, 0)


def same_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Padding for ceil(size / stride) windows; the odd cell goes to the end."""
    total = max((-(-size // stride) - 1) * stride + span(window, dilation) - size, 0)
    return total // 2, total - total // 2


def ceil_padding(
    size: int, window: int, stride: int, low: int = 0, high: int = 0, dilation: int = 1
) -> tuple[int, int]:
    """Padding under which the last, partly filled window counts too, unless it has no real cell at all."""
    reach = span(window, dilation)
    windows = max(-(-(size + low + high - reach) // stride) + 1, 1)
    while windows > 1 and (windows - 1) * stride >= size + low:
        windows -= 1
    return low, max((windows - 1) * stride + reach - size - low, 0)


def per_axis(value, rank: int, owner: str, argument: str) -> tuple[int, ...]:
    """One positive integer per spatial axis, from a single one or a sequence."""
    result = (value,) * rank if isinstance(value, int | np.integer) else tuple(value)
    if len(result) != rank or any(not isinstance(i, int | np.integer) or i < 1 for i in result):
        raise ValueError(
            f"{owner}: {argument}: got {value}, wanted a positive integer or {rank} of them, one per spatial axis"
        )
    return tuple(int(i) for i in result)


def resolve_padding(
    padding, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int], owner: str
) -> Padding:
    """Pairs (low, high) per axis, from "valid", "same", "causal" (one spatial axis only) or such pairs.

    Raises:
        ValueError: another word, or pairs that are not one per axis or negative.
    """
    axes = list(zip(sizes, window, strides, dilation, strict=True))
    match padding.lower() if isinstance(padding, str) else padding:
        case "valid":
            return ((0, 0),) * len(axes)
        case "same":
            return tuple(same_padding(*axis) for axis in axes)
        case "causal" if len(axes) == 1:
            return ((span(window[0], dilation[0]) - 1, 0),)
        case [*pairs] if len(pairs) == len(axes) and all(_is_padding_pair(pair) for pair in pairs):
            return tuple((int(low), int(high)) for low, high in pairs)
    raise ValueError(
        f"{owner}: padding: got {padding!r}, wanted 'valid', 'same' or {len(axes)} pairs (low, high) of integers >= 0"
    )


def _is_padding_pair(pair) -> bool:
    return (
        isinstance(pair, Sequence) and len(pair) == 2 and all(isinstance(i, int | np.integer) and i >= 0 for i in pair)
    )


def output_extents(
    owner: str,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Windows per axis.

    Raises:
        ValueError: a window is larger than the padded input, or the attributes are not one per axis.
    """
    dilation = dilation or (1,) * len(sizes)
    attributes = {"window": window, "strides": strides, "padding": padding, "dilation": dilation}
    for argument, value in attributes.items():
        if len(value) != len(sizes):
            raise ValueError(f"{owner}: {argument}: got {tuple(value)}, wanted {len(sizes)} entries")
    result = tuple(
        output_extent(n, k, s, low, high, d)
        for n, k, s, (low, high), d in zip(sizes, window, strides, padding, dilation, strict=True)
    )
    if 0 in result:
        reach = tuple(span(k, d) for k, d in zip(window, dilation, strict=True))
        raise ValueError(
            f"{owner}: input: got spatial extents {tuple(sizes)} with padding {padding}, "
            f"wanted at least the window {reach}"
        )
    return result


def cells(window: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The cells of a window in row-major order."""
    return np.ndindex(*window)


def cell_slices(cell, extents, strides, dilation=None) -> tuple[slice, ...]:
    """Index into a padded [N, *spatial, C] tensor: what lies under one cell of every window."""
    dilation = dilation or (1,) * len(cell)
    spatial = (
        slice(k * d, k * d + (n - 1) * s + 1, s) for k, n, s, d in zip(cell, extents, strides, dilation, strict=True)
    )
    return (slice(None), *spatial)


def pad_spatial(xp, x, padding: Padding, value=0):
    return xp.pad(x, ((0, 0), *padding, (0, 0)), constant_values=value)


def padded_zeros(xp, batch: int, sizes: Sequence[int], padding: Padding, channels: int, dtype):
    """Zeros for a padded tensor, to be added to and then cropped."""
    extents = (n + low + high for n, (low, high) in zip(sizes, padding, strict=True))
    return xp.zeros((batch, *extents, channels), dtype)


def crop_spatial(xp, x, sizes: Sequence[int], padding: Padding):
    """The real cells of a padded tensor."""
    index = (slice(low, low + n) for n, (low, _) in zip(sizes, padding, strict=True))
    return xp.ascontiguousarray(x[(slice(None), *index)])


def window_halo(window: int, stride: int, padding: tuple[int, int], dilation: int = 1) -> tuple[int, int]:
    """Cells before and after a part of the input axis that the windows beginning in it reach.

    Parts begin at multiples of the stride.
    """
    low = padding[0]
    return low, max(span(window, dilation) - low - stride, 0)


def scatter_halo(window: int, stride: int, padding: tuple[int, int], dilation: int = 1) -> tuple[int, int]:
    """Windows before and after a part of the window axis that reach cells of the part of the input axis.

    This is `window_halo` seen from the windows: what a gradient of the input needs.
    """
    low = padding[0]
    return max((span(window, dilation) - 1 - low) // stride, 0), -(-low // stride)


def parts_are_independent(size: int, windows: int, stride: int, padding: tuple[int, int], halo) -> bool:
    """Whether an axis cut into parts of whole strides is the same op on each part, with nothing exchanged."""
    return halo == (0, 0) and padding == (0, 0) and size == windows * stride
