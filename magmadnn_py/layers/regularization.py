"""Layers that are active in training only: dropout and noise; and a penalty on activations."""

from __future__ import annotations

import math
from typing import ClassVar

from .. import ops
from ..ops.activation import SELU_ALPHA, SELU_SCALE
from ..regularizers import L1L2
from .arguments import check_rank, seed_argument, unit_interval
from .arguments import data_format as checked_data_format
from .layer import Layer

__all__ = [
    "ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D",
    "SpatialDropout2D", "SpatialDropout3D",
]  # fmt: skip


class Dropout(Layer):
    """In training each element becomes 0 with probability `rate`, the others are divided by 1 - rate.

    Args:
        rate: from 0 to 1; 1 gives zeros.
        noise_shape: the shape of the random choice, broadcast to the inputs'; None in it stands for their extent.
        seed: an integer makes the choices independent of `set_random_seed`.
    """

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate = unit_interval(self, "rate", rate)
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)
        self.seed = seed_argument(self, seed)

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        return ops.dropout(inputs, self.rate, self._noise_shape(inputs.shape), self.seed)

    def _noise_shape(self, shape: tuple[int, ...]):
        return self.noise_shape


class SpatialDropout(Dropout):
    """Dropout of whole channels: all places of a sample's channel together."""

    rank: ClassVar[int]
    data_format = "channels_last"

    def build(self, input_shape):
        check_rank(self, input_shape, self.rank + 2)

    def _noise_shape(self, shape):
        if self.data_format == "channels_first":
            return (shape[0], shape[1], *(1,) * self.rank)
        return (shape[0], *(1,) * self.rank, shape[-1])


class SpatialDropout1D(SpatialDropout):
    __doc__ = SpatialDropout.__doc__
    rank = 1

    def __init__(self, rate, seed=None, name=None, dtype=None):
        super().__init__(rate, seed=seed, name=name, dtype=dtype)


class SpatialDropout2D(SpatialDropout):
    __doc__ = SpatialDropout.__doc__
    rank = 2

    def __init__(self, rate, data_format=None, seed=None, name=None, dtype=None):
        super().__init__(rate, seed=seed, name=name, dtype=dtype)
        self.data_format = checked_data_format(self, data_format)


class SpatialDropout3D(SpatialDropout):
    __doc__ = SpatialDropout.__doc__
    rank = 3

    def __init__(self, rate, data_format=None, seed=None, name=None, dtype=None):
        super().__init__(rate, seed=seed, name=name, dtype=dtype)
        self.data_format = checked_data_format(self, data_format)


class GaussianNoise(Layer):
    """In training adds normally distributed noise of mean 0 and deviation `stddev`."""

    def __init__(self, stddev, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(stddev, int | float) or stddev < 0:
            self._fail("stddev", repr(stddev), "a number of 0 or more")
        self.stddev = stddev
        self.seed = seed_argument(self, seed)

    def call(self, inputs, training=False):
        if not training or self.stddev == 0:
            return inputs
        return inputs + ops.normal(inputs.shape, 0.0, self.stddev, self.compute_dtype, self.seed)


class GaussianDropout(Layer):
    """In training multiplies by normally distributed noise of mean 1 and the deviation sqrt(rate / (1 - rate)).

    Args:
        rate: from 0 to below 1.
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate = unit_interval(self, "rate", rate)
        if self.rate == 1:
            self._fail("rate", rate, "less than 1")
        self.seed = seed_argument(self, seed)

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        deviation = math.sqrt(self.rate / (1 - self.rate))
        return inputs * ops.normal(inputs.shape, 1.0, deviation, self.compute_dtype, self.seed)


class AlphaDropout(Dropout):
    """Dropout that keeps mean 0 and variance 1 behind a SELU (Klambauer et al., 2017)."""

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        if self.rate == 1:
            return ops.zeros_like(inputs)
        dropped = -SELU_ALPHA * SELU_SCALE
        scale = ((1 - self.rate) * (1 + self.rate * dropped**2)) ** -0.5
        shape = inputs.shape if self.noise_shape is None else self._extents(inputs.shape)
        kept = ops.uniform(shape, dtype=self.compute_dtype, seed=self.seed) >= self.rate
        return ops.where(kept, inputs, dropped) * scale - scale * dropped * self.rate

    def _extents(self, shape):
        return tuple(own if extent is None else extent for own, extent in zip(shape, self.noise_shape, strict=True))


class ActivityRegularization(Layer):
    """The inputs themselves, with l1 * sum(|x|) + l2 * sum(x * x) added to the training loss."""

    def __init__(self, l1=0.0, l2=0.0, **kwargs):
        super().__init__(activity_regularizer=L1L2(l1, l2), **kwargs)
        self.l1 = l1
        self.l2 = l2

    def call(self, inputs):
        return inputs

    def get_config(self):
        config = super().get_config()
        del config["activity_regularizer"]
        return config
