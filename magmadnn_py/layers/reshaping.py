"""Layers that move elements around: Flatten, Reshape, Permute, padding, cropping, up-sampling."""

from __future__ import annotations

import math
from typing import ClassVar

from .. import ops
from .arguments import check_rank, is_integer, one_of, per_axis, positive, spatial_extents
from .arguments import data_format as checked_data_format
from .images import INTERPOLATIONS, resize
from .layer import Layer

__all__ = [
    "Cropping1D", "Cropping2D", "Cropping3D", "Flatten", "Permute", "RepeatVector", "Reshape", "UpSampling1D",
    "UpSampling2D", "UpSampling3D", "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D",
]  # fmt: skip


class Flatten(Layer):
    """[N, ...] -> [N, product of the rest]; channels-first inputs are flattened as if they were channels-last."""

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = checked_data_format(self, data_format)

    def call(self, inputs):
        if self.data_format == "channels_first" and inputs.ndim > 2:
            inputs = ops.moveaxis(inputs, 1, -1)
        return ops.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))


class Reshape(Layer):
    """[N, ...] -> [N, *target_shape]; one extent of the target may be -1 and follows from the others."""

    def __init__(self, target_shape, **kwargs):
        super().__init__(**kwargs)
        self.target_shape = (target_shape,) if is_integer(target_shape) else tuple(target_shape)
        if not all(is_integer(i) and i >= -1 for i in self.target_shape) or self.target_shape.count(-1) > 1:
            self._fail("target_shape", repr(target_shape), "extents of 0 or more, one of them possibly -1")

    def build(self, input_shape):
        sample = input_shape[1:]
        if None in sample:
            return
        known = math.prod(extent for extent in self.target_shape if extent != -1)
        size = math.prod(sample)
        fits = (known > 0 and size % known == 0) if -1 in self.target_shape else size == known
        if not fits:
            self._fail("target_shape", self.target_shape, f"the {size} elements of a sample of shape {tuple(sample)}")

    def call(self, inputs):
        target = self.target_shape
        if -1 in target:
            known = math.prod(extent for extent in target if extent != -1)
            rest = math.prod(inputs.shape[1:]) // max(known, 1)
            target = tuple(rest if extent == -1 else extent for extent in target)
        return ops.reshape(inputs, (inputs.shape[0], *target))


class Permute(Layer):
    """Axes in another order: axis i of a sample's result is axis dims[i], counted from 1."""

    def __init__(self, dims, **kwargs):
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            self._fail("dims", repr(dims), f"the numbers 1 to {len(self.dims)} in some order")

    def build(self, input_shape):
        check_rank(self, input_shape, len(self.dims) + 1)

    def call(self, inputs):
        return ops.transpose(inputs, (0, *self.dims))


class RepeatVector(Layer):
    """[N, C] -> [N, n, C]."""

    def __init__(self, n, **kwargs):
        super().__init__(**kwargs)
        self.n = positive(self, "n", n)

    def build(self, input_shape):
        check_rank(self, input_shape, 2)

    def call(self, inputs):
        batch, channels = inputs.shape
        return ops.broadcast_to(ops.reshape(inputs, (batch, 1, channels)), (batch, self.n, channels))


def _pairs(layer: Layer, argument: str, value, rank: int) -> tuple[tuple[int, int], ...]:
    """(low, high) per spatial axis, from an integer, one integer per axis (for one axis: a pair), or pairs."""
    items = (value,) * rank if is_integer(value) else value
    if rank == 1 and not is_integer(value) and len(items) == 2 and all(map(is_integer, items)):
        items = (items,)
    pairs = tuple((item, item) if is_integer(item) else tuple(item) for item in items)
    if len(pairs) != rank or not all(len(pair) == 2 and all(is_integer(i) and i >= 0 for i in pair) for pair in pairs):
        layer._fail(argument, repr(value), f"an integer of 0 or more, or {rank} of them or of pairs (low, high)")
    return tuple((int(low), int(high)) for low, high in pairs)


class ZeroPadding(Layer):
    """Zeros around the spatial axes.

    Args:
        padding: an integer; one per spatial axis; or pairs (low, high). With one axis a pair is (low, high).
        data_format: "channels_last", "channels_first", or None for `config.image_data_format()`.
    """

    rank: ClassVar[int]

    def __init__(self, padding=1, data_format=None, **kwargs):
        super().__init__(**kwargs)
        pairs = _pairs(self, "padding", padding, self.rank)
        self.padding = pairs[0] if self.rank == 1 else pairs
        self.data_format = checked_data_format(self, data_format)

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)

    def call(self, inputs):
        pairs = (self.padding,) if self.rank == 1 else self.padding
        first = self.data_format == "channels_first"
        return ops.pad(inputs, ((0, 0), (0, 0), *pairs) if first else ((0, 0), *pairs, (0, 0)))


class ZeroPadding1D(ZeroPadding):
    __doc__ = ZeroPadding.__doc__
    rank = 1


class ZeroPadding2D(ZeroPadding):
    __doc__ = ZeroPadding.__doc__
    rank = 2


class ZeroPadding3D(ZeroPadding):
    __doc__ = ZeroPadding.__doc__
    rank = 3


class Cropping(Layer):
    """Cells cut off at the ends of the spatial axes.

    Args:
        cropping: an integer; one per spatial axis; or pairs (low, high). With one axis a pair is (low, high).
        data_format: "channels_last", "channels_first", or None for `config.image_data_format()`.

    Raises:
        ValueError: nothing would be left of the input.
    """

    rank: ClassVar[int]
    data_format = "channels_last"

    def __init__(self, cropping, **kwargs):
        super().__init__(**kwargs)
        pairs = _pairs(self, "cropping", cropping, self.rank)
        self.cropping = pairs[0] if self.rank == 1 else pairs

    def _pairs(self):
        return (self.cropping,) if self.rank == 1 else self.cropping

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)
        for extent, (low, high) in zip(spatial_extents(input_shape, self.data_format), self._pairs(), strict=True):
            if extent is not None and low + high >= extent:
                self._fail("cropping", self.cropping, f"less than an input of shape {tuple(input_shape)}")

    def call(self, inputs):
        extents = spatial_extents(inputs.shape, self.data_format)
        cut = tuple(slice(low, n - high) for n, (low, high) in zip(extents, self._pairs(), strict=True))
        first = self.data_format == "channels_first"
        return inputs[(slice(None), slice(None), *cut) if first else (slice(None), *cut)]


class Cropping1D(Cropping):
    __doc__ = Cropping.__doc__
    rank = 1

    def __init__(self, cropping=(1, 1), **kwargs):
        super().__init__(cropping, **kwargs)


class Cropping2D(Cropping):
    __doc__ = Cropping.__doc__
    rank = 2

    def __init__(self, cropping=((0, 0), (0, 0)), data_format=None, **kwargs):
        super().__init__(cropping, **kwargs)
        self.data_format = checked_data_format(self, data_format)


class Cropping3D(Cropping):
    __doc__ = Cropping.__doc__
    rank = 3

    def __init__(self, cropping=((1, 1), (1, 1), (1, 1)), data_format=None, **kwargs):
        super().__init__(cropping, **kwargs)
        self.data_format = checked_data_format(self, data_format)


class UpSampling(Layer):
    """Each cell `size` times along the spatial axes."""

    rank: ClassVar[int]
    data_format = "channels_last"

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)

    def call(self, inputs):
        first = 1 if self.data_format == "channels_last" else 2
        sizes = (self.size,) if self.rank == 1 else self.size
        for axis, size in enumerate(sizes, start=first):
            inputs = _repeat(inputs, size, axis)
        return inputs


def _repeat(x, count: int, axis: int):
    """Every cell along `axis` so many times in a row."""
    if count == 1:
        return x
    lead, extent, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    repeated = ops.broadcast_to(ops.reshape(x, (*lead, extent, 1, *rest)), (*lead, extent, count, *rest))
    return ops.reshape(repeated, (*lead, extent * count, *rest))


class UpSampling1D(UpSampling):
    __doc__ = UpSampling.__doc__
    rank = 1

    def __init__(self, size=2, **kwargs):
        super().__init__(**kwargs)
        self.size = positive(self, "size", size)


class UpSampling2D(UpSampling):
    """An image `size` times as large.

    Args:
        size: an integer or one per spatial axis.
        interpolation: "nearest" (each cell repeated), "bilinear" or "bicubic".
    """

    rank = 2

    def __init__(self, size=(2, 2), data_format=None, interpolation="nearest", **kwargs):
        super().__init__(**kwargs)
        self.size = per_axis(self, "size", size, 2)
        self.data_format = checked_data_format(self, data_format)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)

    def call(self, inputs):
        if self.interpolation == "nearest":
            return super().call(inputs)
        extents = spatial_extents(inputs.shape, self.data_format)
        height, width = (n * size for n, size in zip(extents, self.size, strict=True))
        return resize(inputs, height, width, self.interpolation, self.data_format)


class UpSampling3D(UpSampling):
    __doc__ = UpSampling.__doc__
    rank = 3

    def __init__(self, size=(2, 2, 2), data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.size = per_axis(self, "size", size, 3)
        self.data_format = checked_data_format(self, data_format)
