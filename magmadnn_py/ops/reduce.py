"""Reductions over axes: sums, extremes, means and what is made of them.

The public names are NumPy's, and hide Python's own in this module (`builtins.sum` where that is meant).
"""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass

import numpy as np

from ..graph.node import AxisSplit, Cost, Op, Value, total_bytes
from ..graph.types import TensorType, is_floating, normalize_axes, normalize_axis
from .elementwise import equal, exp, isfinite, log, maximum, minimum, not_equal, sqrt, square, to_floating, where
from .function import convert, function
from .movement import Pad, broadcast_to, cast, getitem, ravel, reshape, stop_gradient, transpose

__all__ = [
    "ArgReduce", "Reduce", "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max",
    "mean", "min", "norm", "prod", "std", "sum", "var",
]  # fmt: skip

_NUMPY_NAMES = ("sum", "mean", "max", "min", "prod", "any", "all")


@dataclass(frozen=True)
class Reduce(Op):
    """`function` over the sorted `axes`. The element type is kept, but "any" and "all" give bool.

    A NaN among the elements is the maximum and the minimum. Over no elements a sum is 0, a product 1, a mean NaN.
    """

    function: str
    axes: tuple[int, ...]
    keepdims: bool = False

    name = "reduce"

    def infer(self, x):
        if self.function not in _NUMPY_NAMES:
            self.fail("function", repr(self.function), f"one of {', '.join(_NUMPY_NAMES)}")
        if self.axes != normalize_axes(self.axes, x.rank, self.name, "axes"):
            self.fail("axes", self.axes, "sorted, non-negative axes")
        if self.function in ("max", "min") and math.prod(x.shape[axis] for axis in self.axes) == 0:
            self.fail("x", x, f"elements to take the {self.function} of")
        if self.function == "mean" and not is_floating(x.dtype):
            self.fail("x", x.dtype, "a floating-point type")
        kept = kept_shape(x.shape, self.axes)
        shape = kept if self.keepdims else tuple(e for i, e in enumerate(kept) if i not in self.axes)
        return (TensorType(shape, "bool" if self.function in ("any", "all") else x.dtype),)

    def gradient(self, node, gradients):
        (x,), (y,) = node.inputs, node.outputs
        kept = kept_shape(x.shape, self.axes)
        g, y = reshape(gradients[0], kept), reshape(y, kept)
        match self.function:
            case "sum":
                return (broadcast_to(g, x.shape),)
            case "mean":
                count = math.prod(x.shape[axis] for axis in self.axes)
                return (broadcast_to(g / float(count or 1), x.shape),)
            case "max" | "min":
                # Equal extremes share the gradient.
                chosen = cast(equal(x, y), x.dtype)
                return (chosen * (g / sum(chosen, self.axes, keepdims=True)),)
            case "prod":
                return (g * _products_of_others(x, self.axes),)
        return (None,)

    def cost(self, inputs, outputs):
        return Cost(inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        rank = inputs[0].rank
        kept = [axis for axis in range(rank) if self.keepdims or axis not in self.axes]
        splits = [
            AxisSplit(f"axis{axis}", (axis,), (place,)) for place, axis in enumerate(kept) if axis not in self.axes
        ]
        if self.function == "sum":
            splits += [AxisSplit(f"axis{axis}", (axis,), (None,), needs="reduction") for axis in self.axes]
        return tuple(splits)

    def reference(self, xp, x):
        with np.errstate(all="ignore"):  # overflow, and the mean of nothing
            y = _reduced(xp, self.function, x, self.axes, self.keepdims)
        return xp.asarray(y, dtype="bool" if self.function in ("any", "all") else x.dtype)


def _reduced(xp, function: str, x, axes: tuple[int, ...], keepdims: bool):
    if function == "mean":  # as NumPy, but without its warning
        count = math.prod(x.shape[axis] for axis in axes)
        return xp.sum(x, axis=axes, keepdims=keepdims) / xp.asarray(count, x.dtype)
    return getattr(xp, function)(x, axis=axes, keepdims=keepdims)


@dataclass(frozen=True)
class ArgReduce(Op):
    """The place of the first "argmax" or "argmin" along `axis`, as int32; a NaN is both."""

    function: str
    axis: int
    keepdims: bool = False

    name = "arg_reduce"

    def infer(self, x):
        if self.function not in ("argmax", "argmin"):
            self.fail("function", repr(self.function), "argmax or argmin")
        if not 0 <= self.axis < x.rank:
            self.fail("axis", self.axis, f"an axis of a tensor of rank {x.rank}")
        if x.shape[self.axis] == 0:
            self.fail("x", x, f"elements along axis {self.axis}")
        kept = (1,) if self.keepdims else ()
        return (TensorType(x.shape[: self.axis] + kept + x.shape[self.axis + 1 :], "int32"),)

    def gradient(self, node, gradients):
        return (None,)

    def cost(self, inputs, outputs):
        return Cost(inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        places = [a if a < self.axis or self.keepdims else a - 1 for a in range(inputs[0].rank)]
        return tuple(
            AxisSplit(f"axis{axis}", (axis,), (place,)) for axis, place in enumerate(places) if axis != self.axis
        )

    def reference(self, xp, x):
        return xp.asarray(getattr(xp, self.function)(x, axis=self.axis, keepdims=self.keepdims), dtype="int32")


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with extent 1 at the reduced axes."""
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def _products_of_others(x: Value, axes: tuple[int, ...]) -> Value:
    """For each element the product of all others over `axes`, right also where there are zeros.

    It is the product of those before times that of those after, both by scans of log2(count) steps.
    """
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*rest, *axes)
    moved = transpose(x, order)
    count = math.prod(x.shape[axis] for axis in axes)
    rows = reshape(moved, (math.prod(x.shape[axis] for axis in rest), count))
    before, after = _shifted(rows, 1), _shifted(rows, -1)
    by = 1
    while by < count:
        before, after = before * _shifted(before, by), after * _shifted(after, -by)
        by *= 2
    inverse = [order.index(axis) for axis in range(x.ndim)]
    return transpose(reshape(before * after, moved.shape), inverse)


def _shifted(rows: Value, by: int) -> Value:
    """Every row moved by so many places to the right (negative: to the left), ones moving in."""
    places = builtins.min(abs(by), rows.shape[1])
    if by > 0:
        return Pad((0, places), (0, 0), (0, 0), 1.0)(getitem(rows, (slice(None), slice(0, rows.shape[1] - places))))
    return Pad((0, 0), (0, places), (0, 0), 1.0)(getitem(rows, (slice(None), slice(places, None))))


def _reduce(function: str, x: Value, axis, keepdims: bool) -> Value:
    """A reduction node, or none where every reduced axis has extent 1."""
    axes = normalize_axes(axis, x.ndim, function)
    if math.prod(x.shape[axis] for axis in axes) != 1 or function in ("any", "all"):
        return Reduce(function, axes, bool(keepdims))(x)
    kept = kept_shape(x.shape, axes)
    return reshape(x, kept if keepdims else tuple(e for i, e in enumerate(kept) if i not in axes))


def _countable(x) -> Value:
    """bool and uint8 as int32, in which they can be added."""
    x = convert(x)
    return cast(x, "int32") if x.dtype in ("bool", "uint8") else x


@function
def sum(x, axis=None, keepdims=False):
    """The sum over `axis` (one, several, or by default all); bool and uint8 are added as int32."""
    return _reduce("sum", _countable(x), axis, keepdims)


@function
def mean(x, axis=None, keepdims=False):
    """The mean over `axis` (one, several, or by default all); float32 for integers, NaN of no elements."""
    return _reduce("mean", to_floating(convert(x)), axis, keepdims)


@function
def prod(x, axis=None, keepdims=False):
    """The product over `axis` (one, several, or by default all); bool and uint8 are multiplied as int32."""
    return _reduce("prod", _countable(x), axis, keepdims)


@function
def max(x, axis=None, keepdims=False, initial=None):
    """The maximum over `axis` (one, several, or by default all) and of `initial`; NaN if there is one.

    Raises:
        ValueError: there are no elements.
    """
    y = _reduce("max", convert(x), axis, keepdims)
    return y if initial is None else maximum(y, initial)


@function
def min(x, axis=None, keepdims=False, initial=None):
    """The minimum over `axis` (one, several, or by default all) and of `initial`; NaN if there is one.

    Raises:
        ValueError: there are no elements.
    """
    y = _reduce("min", convert(x), axis, keepdims)
    return y if initial is None else minimum(y, initial)


amax = max
amin = min


@function
def any(x, axis=None, keepdims=False):
    """Whether any element is non-zero, as bool."""
    return _reduce("any", convert(x), axis, keepdims)


@function
def all(x, axis=None, keepdims=False):
    """Whether all elements are non-zero, as bool."""
    return _reduce("all", convert(x), axis, keepdims)


@function
def count_nonzero(x, axis=None):
    """How many elements are not zero, as int32."""
    return sum(cast(not_equal(convert(x), 0), "int32"), axis)


@function
def var(x, axis=None, keepdims=False):
    """The variance over `axis`, with the number of elements as divisor; float32 for integers."""
    x = to_floating(convert(x))
    return mean(square(x - mean(x, axis, keepdims=True)), axis, keepdims)


@function
def std(x, axis=None, keepdims=False):
    """The square root of the variance. Its gradient is 0 where all elements are equal."""
    return _safe_sqrt(var(x, axis, keepdims))


@function
def norm(x, ord=None, axis=None, keepdims=False):
    """The Euclidean norm over `axis` (one, several, or by default all). Its gradient at 0 is 0.

    Raises:
        NotImplementedError: `ord` is none of None, "fro" and 2.
    """
    if ord not in (None, "fro", 2):
        raise NotImplementedError(f"norm: ord: got {ord!r}, wanted None, 'fro' or 2")
    x = to_floating(convert(x))
    return _safe_sqrt(sum(square(x), axis, keepdims))


def _safe_sqrt(x: Value) -> Value:
    """The square root with gradient 0, not infinity, at 0."""
    zero = equal(x, 0.0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, x)))


@function
def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))) over `axis` (one, several, or by default all), without overflow."""
    x = to_floating(convert(x))
    largest = stop_gradient(max(x, axis, keepdims=True))
    shift = where(isfinite(largest), largest, 0.0)
    y = log(sum(exp(x - shift), axis, keepdims=True)) + shift
    axes = normalize_axes(axis, x.ndim, "logsumexp")
    return y if keepdims else reshape(y, tuple(e for i, e in enumerate(x.shape) if i not in axes))


@function
def argmax(x, axis=None, keepdims=False):
    """The place of the first maximum along `axis`, by default of x as a vector; int32. A NaN is the maximum."""
    return _arg_reduce("argmax", convert(x), axis, keepdims)


@function
def argmin(x, axis=None, keepdims=False):
    """The place of the first minimum along `axis`, by default of x as a vector; int32. A NaN is the minimum."""
    return _arg_reduce("argmin", convert(x), axis, keepdims)


def _arg_reduce(function: str, x: Value, axis, keepdims: bool) -> Value:
    if axis is None:
        place = ArgReduce(function, 0)(ravel(x))
        return reshape(place, (1,) * x.ndim) if keepdims else place
    return ArgReduce(function, normalize_axis(int(axis), x.ndim, function), bool(keepdims))(x)
