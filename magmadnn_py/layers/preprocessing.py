"""Layers that prepare images (and other numbers) at the entrance of a network. The random ones act in training only."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..config import epsilon
from ..graph.types import normalize_axes
from .arguments import channel_count, one_of, positive, seed_argument
from .arguments import data_format as checked_data_format
from .images import FILL_MODES, INTERPOLATIONS, affine, cells_at, resize
from .layer import Layer

__all__ = [
    "CenterCrop", "Normalization", "RandomBrightness", "RandomContrast", "RandomCrop", "RandomFlip",
    "RandomRotation", "RandomTranslation", "RandomZoom", "Rescaling", "Resizing",
]  # fmt: skip


class Rescaling(Layer):
    """inputs * scale + offset, both numbers or one per channel (the last axis)."""

    def __init__(self, scale, offset=0.0, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset

    def call(self, inputs):
        scale, offset = (np.asarray(value, self.compute_dtype) for value in (self.scale, self.offset))
        return ops.cast(inputs, self.compute_dtype) * scale + offset


class Normalization(Layer):
    """(inputs - mean) / sqrt(variance), with statistics that are given or taken from data by `adapt`.

    Weights, if the statistics are not given: mean, variance (both of the shape of `axis`), count.

    Args:
        axis: the axes (one, several or None) along which statistics differ.
        mean, variance: numbers, or arrays that fit `axis`.
        invert: do the reverse, inputs * sqrt(variance) + mean.
    """

    def __init__(self, axis=-1, mean=None, variance=None, invert=False, **kwargs):
        super().__init__(**kwargs)
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        if (mean is None) != (variance is None):
            self._fail("mean, variance", f"{mean} and {variance}", "both or neither")
        if np.shape(mean) != np.shape(variance) or np.ndim(mean) > len(self.axis):
            shapes = f"shapes {np.shape(mean)} and {np.shape(variance)}"
            self._fail("mean, variance", shapes, f"one shape, for axis {self.axis}")
        self.input_mean = mean
        self.input_variance = variance
        self.invert = bool(invert)

    def build(self, input_shape):
        axes = normalize_axes(self.axis, len(input_shape), f"layer '{self.name}' ({type(self).__name__})")
        shape = tuple(channel_count(self, input_shape, axis) for axis in axes)
        self._reduced = tuple(axis for axis in range(len(input_shape)) if axis not in axes)
        self._kept = tuple(input_shape[axis] if axis in axes else 1 for axis in range(len(input_shape)))
        if self.input_mean is None:
            self.mean = self.add_weight(shape, "zeros", trainable=False, name="mean")
            self.variance = self.add_weight(shape, "ones", trainable=False, name="variance")
            self.count = self.add_weight((), "zeros", dtype="int32", trainable=False, name="count")
        else:
            self.mean, self.variance = (
                np.broadcast_to(np.asarray(given, self.compute_dtype), shape)
                for given in (self.input_mean, self.input_variance)
            )

    def adapt(self, data) -> None:
        """Sets mean and variance from an array, or from an iterable of batches (of which a tuple's first counts).

        Raises:
            ValueError: there are no data, the statistics were given, or the shape is not the layer's.
        """
        if self.input_mean is not None:
            self._fail("adapt", "a layer whose mean and variance were given", "one without")
        count, mean, squares = 0, 0.0, 0.0
        for batch in [data] if hasattr(data, "__array__") else data:
            array = np.asarray(batch[0] if isinstance(batch, tuple | list) else batch, "float64")
            if not self.built:
                self.build((None, *array.shape[1:]))
            # Chan's way to join the statistics of two sets without loss of digits.
            size = math.prod(array.shape[axis] for axis in self._reduced)
            batch_mean = array.mean(self._reduced)
            shift = batch_mean - mean
            squares = squares + array.var(self._reduced) * size + shift**2 * count * size / (count + size)
            mean = mean + shift * size / (count + size)
            count += size
        if count == 0:
            self._fail("adapt", "no data", "at least one batch")
        self.mean.assign(mean)
        self.variance.assign(squares / count)

    def call(self, inputs):
        mean = ops.reshape(self.mean, self._kept)
        deviation = ops.maximum(ops.sqrt(ops.reshape(self.variance, self._kept)), epsilon())
        inputs = ops.cast(inputs, self.compute_dtype)
        return inputs * deviation + mean if self.invert else (inputs - mean) / deviation

    def get_config(self):
        config = super().get_config()
        for key, value in (("mean", self.input_mean), ("variance", self.input_variance)):
            config[key] = None if value is None else np.asarray(value).tolist()
        return config


class ImageLayer(Layer):
    """Base: `transform` sees a batch [N, H, W, C] of the layer's element type, whatever came in.

    Inputs are a batch of images, or one image; channels-first where `data_format` says so.
    """

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = checked_data_format(self, data_format)

    def build(self, input_shape):
        if len(input_shape) not in (3, 4):
            self._fail("input", f"shape {tuple(input_shape)}", "rank 4 (a batch of images) or 3 (one image)")

    def call(self, inputs, training=False):
        x = ops.cast(inputs, self.compute_dtype)
        if self.acts_in_training_only and not training:
            return x
        single, first = len(inputs.shape) == 3, self.data_format == "channels_first"
        x = ops.expand_dims(x, 0) if single else x
        x = self.transform(ops.moveaxis(x, 1, -1) if first else x, training)
        x = ops.moveaxis(x, -1, 1) if first else x
        return ops.squeeze(x, 0) if single else x

    acts_in_training_only = False

    def transform(self, x, training: bool):
        raise NotImplementedError(type(self).__name__)


class Resizing(ImageLayer):
    """Images at another height and width.

    Args:
        interpolation: "bilinear", "nearest" or "bicubic".
        crop_to_aspect_ratio: first cut off what does not fit the new proportions.
        pad_to_aspect_ratio: first add what is missing to them, with `fill_value`.
    """

    def __init__(
        self, height, width, interpolation="bilinear", crop_to_aspect_ratio=False, pad_to_aspect_ratio=False,
        fill_mode="constant", fill_value=0.0, antialias=False, data_format=None, **kwargs,
    ):  # fmt: skip
        super().__init__(data_format, **kwargs)
        self.height = positive(self, "height", height)
        self.width = positive(self, "width", width)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            self._fail("crop_to_aspect_ratio, pad_to_aspect_ratio", "both", "one of them at most")
        self.crop_to_aspect_ratio = bool(crop_to_aspect_ratio)
        self.pad_to_aspect_ratio = bool(pad_to_aspect_ratio)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, ("constant",))
        self.fill_value = fill_value
        if antialias:
            self._fail("antialias", antialias, "False: smoothing is not supported")
        self.antialias = False

    def transform(self, x, training):
        if self.crop_to_aspect_ratio:
            x = _center_crop(x, *_window_of_aspect(x.shape, self.height, self.width))
        elif self.pad_to_aspect_ratio:
            x = self._pad(x)
        return resize(x, self.height, self.width, self.interpolation)

    def _pad(self, x):
        _, height, width, _ = x.shape
        missing = (
            max(width * self.height // self.width - height, 0),
            max(height * self.width // self.height - width, 0),
        )
        pairs = [(extra // 2, extra // 2) for extra in missing]
        return ops.pad(x, ((0, 0), *pairs, (0, 0)), constant_values=self.fill_value)


def _window_of_aspect(shape, height: int, width: int) -> tuple[int, int]:
    """The largest window of an image whose sides are as height to width."""
    _, rows, columns, _ = shape
    return max(min(rows, columns * height // width), 1), max(min(columns, rows * width // height), 1)


def _center_crop(x, height: int, width: int):
    top, left = (x.shape[1] - height) // 2, (x.shape[2] - width) // 2
    return x[:, top : top + height, left : left + width, :]


class CenterCrop(ImageLayer):
    """The middle of images; smaller images are enlarged to fit."""

    def __init__(self, height, width, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.height = positive(self, "height", height)
        self.width = positive(self, "width", width)

    def transform(self, x, training):
        if x.shape[1] >= self.height and x.shape[2] >= self.width:
            return _center_crop(x, self.height, self.width)
        return _fit(x, self.height, self.width)


def _fit(x, height: int, width: int):
    """The largest window of the new proportions, resized."""
    return resize(_center_crop(x, *_window_of_aspect(x.shape, height, width)), height, width, "bilinear")


class RandomCrop(ImageLayer):
    """A window of each image, at a random place in training; else the largest one of its proportions, resized."""

    def __init__(self, height, width, seed=None, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.height = positive(self, "height", height)
        self.width = positive(self, "width", width)
        self.seed = seed_argument(self, seed)

    def transform(self, x, training):
        batch, rows, columns, _ = x.shape
        if not training or rows < self.height or columns < self.width:
            return _fit(x, self.height, self.width)
        top, left = (
            ops.floor(ops.uniform((batch, 1, 1), seed=self.seed) * float(spare + 1))
            for spare in (rows - self.height, columns - self.width)
        )
        i = np.arange(self.height, dtype="float32").reshape(1, -1, 1)
        j = np.arange(self.width, dtype="float32").reshape(1, 1, -1)
        full = np.zeros((1, self.height, self.width), "float32")
        return cells_at(x, top + i + full, left + j + full, "nearest", 0.0)


class RandomFlip(ImageLayer):
    """In training mirrors each image with probability 1/2.

    Args:
        mode: "horizontal", "vertical" or "horizontal_and_vertical" (each on its own).
    """

    acts_in_training_only = True

    def __init__(self, mode="horizontal_and_vertical", seed=None, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.mode = one_of(self, "mode", mode, ("horizontal", "vertical", "horizontal_and_vertical"))
        self.seed = seed_argument(self, seed)

    def transform(self, x, training):
        for word, axis in (("horizontal", 2), ("vertical", 1)):
            if word in self.mode:
                chosen = ops.uniform((x.shape[0], 1, 1, 1), seed=self.seed) < 0.5
                x = ops.where(chosen, ops.flip(x, axis), x)
        return x


class RandomAffine(ImageLayer):
    """Base of layers that move each image by a random map of its own: `maps` gives its six numbers per image.

    Args:
        fill_mode: what lies outside of an image: "reflect", "constant" (`fill_value`), "nearest" or "wrap".
        interpolation: "bilinear" or "nearest".
    """

    acts_in_training_only = True

    def __init__(self, fill_mode, interpolation, seed, fill_value, data_format, **kwargs):
        super().__init__(data_format, **kwargs)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation = one_of(self, "interpolation", interpolation, ("nearest", "bilinear"))
        self.seed = seed_argument(self, seed)
        self.fill_value = fill_value

    def transform(self, x, training):
        batch, height, width, _ = x.shape
        return affine(x, self.maps(batch, height, width), self.interpolation, self.fill_mode, self.fill_value)

    def maps(self, batch: int, height: int, width: int) -> tuple:
        """(a, b, c, d, e, f), each [N] or a number: see `images.affine`."""
        raise NotImplementedError(type(self).__name__)

    def _uniform(self, batch: int, bounds: tuple[float, float]):
        return ops.uniform((batch,), *bounds, seed=self.seed)


def _bounds(layer: Layer, argument: str, factor, least: float = -1.0) -> tuple[float, float]:
    """(low, high) from such a pair, or from a number f: (-f, f)."""
    pair = (-abs(factor), abs(factor)) if isinstance(factor, int | float) else tuple(factor)
    if len(pair) != 2 or not least <= pair[0] <= pair[1]:
        layer._fail(argument, repr(factor), f"a number, or a pair (low, high) from {least} on")
    return float(pair[0]), float(pair[1])


class RandomRotation(RandomAffine):
    """In training turns each image about its centre.

    Args:
        factor: largest angle as a fraction of a full turn, or (low, high); counter-clockwise.
    """

    def __init__(
        self, factor, fill_mode="reflect", interpolation="bilinear", seed=None, fill_value=0.0, data_format=None,
        **kwargs,
    ):  # fmt: skip
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.factor = _bounds(self, "factor", factor)

    def maps(self, batch, height, width):
        angle = self._uniform(batch, self.factor) * (2 * math.pi)
        cos, sin = ops.cos(angle), ops.sin(angle)
        x, y = (width - 1) / 2, (height - 1) / 2  # the centre stays where it is
        return cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y


class RandomZoom(RandomAffine):
    """In training enlarges or shrinks each image about its centre.

    Args:
        height_factor, width_factor: f for factors from 1 - f to 1 + f, or (low, high) to be added to 1; positive
            ones show more of what is around. Without a width factor the proportions stay.
    """

    def __init__(
        self, height_factor, width_factor=None, fill_mode="reflect", interpolation="bilinear", seed=None,
        fill_value=0.0, data_format=None, **kwargs,
    ):  # fmt: skip
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor = height_factor
        self.width_factor = width_factor
        for argument in ("height_factor", "width_factor"):
            if getattr(self, argument) is not None:
                _bounds(self, argument, getattr(self, argument))

    def maps(self, batch, height, width):
        vertical = self._uniform(batch, _bounds(self, "height_factor", self.height_factor)) + 1.0
        horizontal = vertical
        if self.width_factor is not None:
            horizontal = self._uniform(batch, _bounds(self, "width_factor", self.width_factor)) + 1.0
        x, y = (width - 1) / 2, (height - 1) / 2
        return horizontal, 0.0, (1.0 - horizontal) * x, 0.0, vertical, (1.0 - vertical) * y


class RandomTranslation(RandomAffine):
    """In training shifts each image.

    Args:
        height_factor, width_factor: f for shifts up to the fraction f of the extent both ways, or (low, high);
            positive ones go down and to the right.
    """

    def __init__(
        self, height_factor, width_factor, fill_mode="reflect", interpolation="bilinear", seed=None, fill_value=0.0,
        data_format=None, **kwargs,
    ):  # fmt: skip
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor = height_factor
        self.width_factor = width_factor
        for argument in ("height_factor", "width_factor"):
            _bounds(self, argument, getattr(self, argument))

    def maps(self, batch, height, width):
        down = self._uniform(batch, _bounds(self, "height_factor", self.height_factor)) * float(height)
        right = self._uniform(batch, _bounds(self, "width_factor", self.width_factor)) * float(width)
        return 1.0, 0.0, -right, 0.0, 1.0, -down


class RandomContrast(ImageLayer):
    """In training moves each image's values from or towards its channels' means, by a random factor.

    Args:
        factor: f for factors from 1 - f to 1 + f, or (low, high) for 1 - low to 1 + high.
        value_range: what the result is limited to.
    """

    acts_in_training_only = True

    def __init__(self, factor, value_range=(0, 255), seed=None, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.factor = (factor, factor) if isinstance(factor, int | float) else tuple(factor)
        if len(self.factor) != 2 or min(self.factor) < 0:
            self._fail("factor", repr(factor), "a number of 0 or more, or a pair of such")
        self.value_range = tuple(value_range)
        self.seed = seed_argument(self, seed)

    def transform(self, x, training):
        low, high = self.factor
        factor = ops.uniform((x.shape[0], 1, 1, 1), 1.0 - low, 1.0 + high, seed=self.seed)
        mean = ops.mean(x, axis=(1, 2), keepdims=True)
        return ops.clip((x - mean) * factor + mean, *self.value_range)


class RandomBrightness(ImageLayer):
    """In training adds to each image a random share of the extent of its range.

    Args:
        factor: f for shares from -f to f, or (low, high).
        value_range: the range, which the result is limited to.
    """

    acts_in_training_only = True

    def __init__(self, factor, value_range=(0, 255), seed=None, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.factor = _bounds(self, "factor", factor)
        self.value_range = tuple(value_range)
        self.seed = seed_argument(self, seed)

    def transform(self, x, training):
        low, high = self.value_range
        share = ops.uniform((x.shape[0], 1, 1, 1), *self.factor, seed=self.seed)
        return ops.clip(x + share * float(high - low), low, high)
