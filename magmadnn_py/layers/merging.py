"""Layers of several inputs, and lower-case functions that make and call one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..graph.types import broadcast_shapes, normalize_axis
from .arguments import is_integer
from .layer import Layer

__all__ = [
    "Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract", "add", "average",
    "concatenate", "dot", "maximum", "minimum", "multiply", "subtract",
]  # fmt: skip


class Merge(Layer):
    """Base: called with a list of tensors, which are broadcast; those of lower rank get axes behind the batch's."""

    least: ClassVar[int] = 1

    def build(self, input_shape):
        self._check_list(input_shape)
        rank = max(len(shape) for shape in input_shape)
        aligned = [(*shape[:1], *(1,) * (rank - len(shape)), *shape[1:]) for shape in input_shape]
        try:
            # An unknown extent may still fit.
            broadcast_shapes(*(tuple(1 if extent is None else extent for extent in shape) for shape in aligned))
        except ValueError:
            self._fail("inputs", f"shapes {', '.join(map(str, input_shape))}", "shapes that broadcast")

    def _check_list(self, input_shape) -> None:
        if not isinstance(input_shape, list) or not all(isinstance(shape, Sequence) for shape in input_shape):
            self._fail("inputs", f"one tensor of shape {input_shape}", "a list of tensors")
        if len(input_shape) < self.least:
            self._fail("inputs", f"{len(input_shape)} tensors", f"at least {self.least}")

    def call(self, inputs):
        rank = max(len(value.shape) for value in inputs)
        return self.merge([_with_rank(value, rank) for value in inputs])

    def merge(self, inputs: list):
        """Combines tensors of one rank; by default pairwise by `self.pair`."""
        return functools.reduce(type(self).pair, inputs)


def _with_rank(value, rank: int):
    missing = rank - len(value.shape)
    return ops.reshape(value, (value.shape[0], *(1,) * missing, *value.shape[1:])) if missing else value


class Add(Merge):
    """The sum of all inputs."""

    pair = staticmethod(ops.add)


class Multiply(Merge):
    """The product of all inputs."""

    pair = staticmethod(ops.multiply)


class Maximum(Merge):
    """The greatest of all inputs, element by element."""

    pair = staticmethod(ops.maximum)


class Minimum(Merge):
    """The least of all inputs, element by element."""

    pair = staticmethod(ops.minimum)


class Average(Merge):
    """The mean of all inputs."""

    def merge(self, inputs):
        return functools.reduce(ops.add, inputs) / len(inputs)


class Subtract(Merge):
    """The first of two inputs less the second."""

    def build(self, input_shape):
        super().build(input_shape)
        if len(input_shape) != 2:
            self._fail("inputs", f"{len(input_shape)} tensors", "exactly 2")

    def merge(self, inputs):
        return ops.subtract(*inputs)


class Concatenate(Merge):
    """The inputs one after the other along `axis`; all other extents must agree."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        if not is_integer(axis):
            self._fail("axis", repr(axis), "an integer")
        self.axis = int(axis)

    def build(self, input_shape):
        self._check_list(input_shape)
        first = input_shape[0]
        axis = normalize_axis(self.axis, len(first), f"layer '{self.name}' ({type(self).__name__})")
        for shape in input_shape:
            agree = len(shape) == len(first) and all(
                i == axis or None in (mine, other) or mine == other
                for i, (mine, other) in enumerate(zip(first, shape, strict=True))
            )
            if not agree:
                shapes = ", ".join(map(str, input_shape))
                self._fail("inputs", f"shapes {shapes}", f"shapes that agree in all axes but axis {axis}")

    def call(self, inputs):
        return ops.concatenate(inputs, axis=self.axis)


class Dot(Merge):
    """Products of two tensors, sample by sample, summed over an axis of each.

    Args:
        axes: the axis of both, or one for each; never the batch's.
        normalize: whether to divide by the norms along those axes, giving cosines.

    Result: the axes of the first that are left, then those of the second; (N, 1) if there are none.
    """

    def __init__(self, axes, normalize=False, **kwargs):
        super().__init__(**kwargs)
        pair = (axes, axes) if is_integer(axes) else tuple(axes) if isinstance(axes, Sequence) else ()
        if len(pair) != 2 or not all(map(is_integer, pair)) or 0 in pair:
            self._fail("axes", repr(axes), "a non-zero integer or two of them")
        self.axes = axes
        self.normalize = bool(normalize)

    def _axes(self, *shapes) -> tuple[int, int]:
        pair = (self.axes, self.axes) if is_integer(self.axes) else self.axes
        owner = f"layer '{self.name}' ({type(self).__name__})"
        return tuple(normalize_axis(axis, len(shape), owner, "axes") for axis, shape in zip(pair, shapes, strict=True))

    def build(self, input_shape):
        self._check_list(input_shape)
        if len(input_shape) != 2:
            self._fail("inputs", f"{len(input_shape)} tensors", "exactly 2")
        first, second = (shape[axis] for shape, axis in zip(input_shape, self._axes(*input_shape), strict=True))
        if None not in (first, second) and first != second:
            shapes = f"shapes {input_shape[0]} and {input_shape[1]}"
            self._fail("inputs", shapes, f"equal extents along axes {self.axes}")

    def call(self, inputs):
        a, b = inputs
        axis_a, axis_b = self._axes(a.shape, b.shape)
        if self.normalize:
            a, b = _unit(a, axis_a), _unit(b, axis_b)
        a, b = ops.moveaxis(a, axis_a, -1), ops.moveaxis(b, axis_b, -1)
        batch, *free_a, inner = a.shape
        free_b = b.shape[1:-1]
        rows = ops.reshape(a, (batch, -1, inner))
        columns = ops.transpose(ops.reshape(b, (batch, -1, inner)), (0, 2, 1))
        return ops.reshape(ops.matmul(rows, columns), (batch, *((*free_a, *free_b) or (1,))))


def _unit(x, axis: int):
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=axis, keepdims=True), 1e-12))


def add(inputs, **kwargs):
    """`Add(**kwargs)(inputs)`."""
    return Add(**kwargs)(inputs)


def subtract(inputs, **kwargs):
    """`Subtract(**kwargs)(inputs)`."""
    return Subtract(**kwargs)(inputs)


def multiply(inputs, **kwargs):
    """`Multiply(**kwargs)(inputs)`."""
    return Multiply(**kwargs)(inputs)


def average(inputs, **kwargs):
    """`Average(**kwargs)(inputs)`."""
    return Average(**kwargs)(inputs)


def maximum(inputs, **kwargs):
    """`Maximum(**kwargs)(inputs)`."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs, **kwargs):
    """`Minimum(**kwargs)(inputs)`."""
    return Minimum(**kwargs)(inputs)


def concatenate(inputs, axis=-1, **kwargs):
    """`Concatenate(axis, **kwargs)(inputs)`."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs, axes=-1, **kwargs):
    """`Dot(axes, **kwargs)(inputs)`."""
    return Dot(axes=axes, **kwargs)(inputs)
