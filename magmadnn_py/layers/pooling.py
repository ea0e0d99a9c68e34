"""Pooling layers. One class for each kind serves 1, 2 and 3 spatial axes; the public classes only say how many."""

from __future__ import annotations

from typing import ClassVar

from .. import ops
from .arguments import check_rank, check_window, one_of, per_axis
from .arguments import data_format as checked_data_format
from .layer import Layer

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "AvgPool1D", "AvgPool2D", "AvgPool3D",
    "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalAvgPool1D",
    "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D",
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
    "MaxPooling1D", "MaxPooling2D", "MaxPooling3D",
]  # fmt: skip


class Pooling(Layer):
    """Slides a window over the spatial axes.

    Args:
        pool_size: the window, an integer or one per spatial axis.
        strides: likewise; None for the window.
        padding: "valid" or "same" (the odd cell at the end); padding is no part of a maximum or an average.
        data_format: "channels_last", "channels_first", or None for `config.image_data_format()`.

    Raises:
        ValueError: an argument is out of its range; the input has another rank, or is smaller than the window.
    """

    rank: ClassVar[int]
    pool: ClassVar

    def __init__(self, pool_size, strides=None, padding="valid", data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.pool_size = per_axis(self, "pool_size", pool_size, self.rank)
        self.strides = self.pool_size if strides is None else per_axis(self, "strides", strides, self.rank)
        self.padding = one_of(self, "padding", padding, ("valid", "same"))
        self.data_format = checked_data_format(self, data_format)

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)
        if self.padding == "valid":
            check_window(self, "pool_size", input_shape, self.pool_size, self.data_format)

    def call(self, inputs):
        return type(self).pool(inputs, self.pool_size, self.strides, self.padding, self.data_format)


class MaxPooling(Pooling):
    __doc__ = Pooling.__doc__
    pool = staticmethod(ops.max_pool)

    def __init__(self, pool_size=2, strides=None, padding="valid", data_format=None, **kwargs):
        super().__init__(pool_size, strides, padding, data_format, **kwargs)


class MaxPooling1D(MaxPooling):
    __doc__ = Pooling.__doc__
    rank = 1


class MaxPooling2D(MaxPooling):
    __doc__ = Pooling.__doc__
    rank = 2


class MaxPooling3D(MaxPooling):
    __doc__ = Pooling.__doc__
    rank = 3


class AveragePooling(Pooling):
    __doc__ = Pooling.__doc__
    pool = staticmethod(ops.average_pool)


class AveragePooling1D(AveragePooling):
    __doc__ = Pooling.__doc__
    rank = 1


class AveragePooling2D(AveragePooling):
    __doc__ = Pooling.__doc__
    rank = 2


class AveragePooling3D(AveragePooling):
    __doc__ = Pooling.__doc__
    rank = 3


class GlobalPooling(Layer):
    """Reduces all spatial axes: [N, *spatial, C] -> [N, C], or [N, 1, ..., C] with `keepdims`."""

    rank: ClassVar[int]
    reduction: ClassVar

    def __init__(self, data_format=None, keepdims=False, **kwargs):
        super().__init__(**kwargs)
        self.data_format = checked_data_format(self, data_format)
        self.keepdims = bool(keepdims)

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)

    def call(self, inputs):
        first = 1 if self.data_format == "channels_last" else 2
        return type(self).reduction(inputs, axis=tuple(range(first, first + self.rank)), keepdims=self.keepdims)


class GlobalAveragePooling1D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 1
    reduction = staticmethod(ops.mean)


class GlobalAveragePooling2D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 2
    reduction = staticmethod(ops.mean)


class GlobalAveragePooling3D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 3
    reduction = staticmethod(ops.mean)


class GlobalMaxPooling1D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 1
    reduction = staticmethod(ops.max)


class GlobalMaxPooling2D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 2
    reduction = staticmethod(ops.max)


class GlobalMaxPooling3D(GlobalPooling):
    __doc__ = GlobalPooling.__doc__
    rank = 3
    reduction = staticmethod(ops.max)


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
)
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
