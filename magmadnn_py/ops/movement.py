"""Ops that move elements without arithmetic: shapes, order, parts, indices and element types.

Public functions make no node where nothing would change: a reshape to the same shape, a cast to the same type.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..graph.node import AxisSplit, Constant, Op, Value
from ..graph.types import (
    DTYPES,
    TensorType,
    broadcast_shapes,
    is_floating,
    normalize_axes,
    normalize_axis,
    standardize_dtype,
)
from .elementwise import unbroadcast
from .function import convert, convert_all, function

__all__ = [
    "BroadcastTo", "Cast", "Concatenate", "Copy", "Gather", "OneHot", "Pad", "Reshape", "ScatterAdd", "Slice",
    "StopGradient", "Transpose", "arange", "broadcast_to", "cast", "concatenate", "copy", "expand_dims", "eye", "flip",
    "full", "getitem", "identity", "moveaxis", "one_hot", "ones", "pad", "permute", "ravel", "repeat", "reshape",
    "roll", "shape", "split", "squeeze", "stack", "stop_gradient", "swapaxes", "take", "take_along_axis", "tile",
    "transpose", "unstack", "zeros",
]  # fmt: skip


def _every_axis(rank: int) -> tuple[AxisSplit, ...]:
    """Splits of an op that keeps every element in its place."""
    return tuple(AxisSplit(f"axis{axis}", (axis,), (axis,)) for axis in range(rank))


@dataclass(frozen=True)
class Copy(Op):
    """The same numbers in memory of their own."""

    name = "copy"
    inplace = True

    def infer(self, x):
        return (x,)

    def gradient(self, node, gradients):
        return gradients

    def split(self, inputs, outputs):
        return _every_axis(outputs[0].rank)

    def reference(self, xp, x):
        return xp.array(x)


@dataclass(frozen=True)
class StopGradient(Op):
    """The same tensor, through which no gradient flows."""

    name = "stop_gradient"
    is_view = True

    def infer(self, x):
        return (x,)

    def gradient(self, node, gradients):
        return (None,)

    def split(self, inputs, outputs):
        return _every_axis(outputs[0].rank)

    def reference(self, xp, x):
        return x


@dataclass(frozen=True)
class Cast(Op):
    """Elements converted to `dtype` as C does: floats to integers towards zero, to bool by comparison with 0."""

    dtype: str

    name = "cast"

    def infer(self, x):
        if self.dtype not in DTYPES:
            self.fail("dtype", repr(self.dtype), f"one of {', '.join(DTYPES)}")
        return (TensorType(x.shape, self.dtype),)

    def gradient(self, node, gradients):
        (x,) = node.inputs
        return (cast(gradients[0], x.dtype) if is_floating(x.dtype) else None,)

    def split(self, inputs, outputs):
        return _every_axis(outputs[0].rank)

    def reference(self, xp, x):
        with np.errstate(invalid="ignore"):  # the integer for NaN is whatever the processor gives
            return x.astype(self.dtype)


@dataclass(frozen=True)
class Reshape(Op):
    """The same memory under another shape."""

    shape: tuple[int, ...]

    name = "reshape"
    is_view = True

    def infer(self, x):
        if math.prod(self.shape) != x.size:
            self.fail("newshape", f"{self.shape} for {x}", f"a shape of {x.size} elements")
        return (TensorType(self.shape, x.dtype),)

    def gradient(self, node, gradients):
        return (reshape(gradients[0], node.inputs[0].shape),)

    def split(self, inputs, outputs):
        """Axes that keep their extent and all that is before them, for then parts stay parts, even uneven ones."""
        before, after = (_extents_before(t.shape) for t in (inputs[0], outputs[0]))
        return tuple(
            AxisSplit(f"axis{i}", (i,), (j,))
            for i, entry in enumerate(before)
            for j, other in enumerate(after)
            if entry == other and entry[1] > 1 and entry[0] > 0
        )

    def resized(self, outputs):
        return replace(self, shape=outputs[0].shape)

    def reference(self, xp, x):
        return xp.reshape(x, self.shape)


def _extents_before(extents: tuple[int, ...]) -> list[tuple[int, int]]:
    """For each axis the product of the extents before it, and its own."""
    return [(math.prod(extents[:axis]), extent) for axis, extent in enumerate(extents)]


@dataclass(frozen=True)
class Transpose(Op):
    """Output axis i is input axis permutation[i]."""

    permutation: tuple[int, ...]

    name = "transpose"

    def infer(self, x):
        if sorted(self.permutation) != list(range(x.rank)):
            self.fail("axes", self.permutation, f"a permutation of the {x.rank} axes")
        return (TensorType(tuple(x.shape[axis] for axis in self.permutation), x.dtype),)

    def gradient(self, node, gradients):
        inverse = tuple(self.permutation.index(axis) for axis in range(len(self.permutation)))
        return (Transpose(inverse)(gradients[0]),)

    def split(self, inputs, outputs):
        return tuple(AxisSplit(f"axis{i}", (axis,), (i,)) for i, axis in enumerate(self.permutation))

    def reference(self, xp, x):
        return xp.array(xp.transpose(x, self.permutation), order="C")


@dataclass(frozen=True)
class BroadcastTo(Op):
    """NumPy's broadcast to `shape`."""

    shape: tuple[int, ...]

    name = "broadcast_to"

    def infer(self, x):
        try:
            fits = broadcast_shapes(x.shape, self.shape) == self.shape
        except ValueError:
            fits = False
        if not fits:
            self.fail("shape", f"{self.shape} for {x}", "a shape that x broadcasts to")
        return (TensorType(self.shape, x.dtype),)

    def gradient(self, node, gradients):
        return (unbroadcast(gradients[0], node.inputs[0].shape),)

    def split(self, inputs, outputs):
        x, lead = inputs[0], outputs[0].rank - inputs[0].rank

        def own(axis: int):
            return axis - lead if axis >= lead and x.shape[axis - lead] == self.shape[axis] else None

        return tuple(AxisSplit(f"axis{axis}", (own(axis),), (axis,)) for axis in range(outputs[0].rank))

    def resized(self, outputs):
        return replace(self, shape=outputs[0].shape)

    def reference(self, xp, x):
        return xp.array(xp.broadcast_to(x, self.shape), order="C")


@dataclass(frozen=True)
class Concatenate(Op):
    """Any number of tensors, one after the other along `axis`."""

    axis: int

    name = "concatenate"

    def infer(self, *inputs):
        if not inputs:
            self.fail("xs", "no tensors", "one or more")
        first = inputs[0]
        if not 0 <= self.axis < first.rank:
            self.fail("axis", self.axis, f"an axis of a tensor of rank {first.rank}")
        for t in inputs[1:]:
            same = t.rank == first.rank and _without(t.shape, self.axis) == _without(first.shape, self.axis)
            if not same or t.dtype != first.dtype:
                self.fail("xs", f"{first} and {t}", f"equal types but for the extent of axis {self.axis}")
        extent = sum(t.shape[self.axis] for t in inputs)
        return (TensorType(_with_extent(first.shape, self.axis, extent), first.dtype),)

    def gradient(self, node, gradients):
        (g,) = gradients
        ends = np.cumsum([0] + [value.shape[self.axis] for value in node.inputs]).tolist()
        return [_part(g, self.axis, start, stop) for start, stop in pairwise(ends)]

    def split(self, inputs, outputs):
        return tuple(
            AxisSplit(f"axis{axis}", (axis,) * len(inputs), (axis,))
            for axis in range(outputs[0].rank)
            if axis != self.axis
        )

    def reference(self, xp, *arrays):
        return xp.concatenate(arrays, self.axis)


def _without(extents: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return extents[:axis] + extents[axis + 1 :]


def _with_extent(extents: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return extents[:axis] + (extent,) + extents[axis + 1 :]


@dataclass(frozen=True)
class Slice(Op):
    """Along every axis the elements start, start + step, ... before stop. Steps may be negative, stops then -1."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    name = "slice"

    def points(self) -> list[range]:
        return [range(*bounds) for bounds in zip(self.starts, self.stops, self.steps, strict=True)]

    def infer(self, x):
        points = self.points()
        if len(points) != x.rank:
            self.fail("starts", f"{len(points)} of them for {x}", f"{x.rank}")
        for axis, (chosen, extent) in enumerate(zip(points, x.shape, strict=True)):
            if len(chosen) and not (0 <= chosen[0] < extent and 0 <= chosen[-1] < extent):
                self.fail("starts and stops", f"{chosen} for axis {axis} of {x}", f"elements below {extent}")
        return (TensorType(tuple(len(chosen) for chosen in points), x.dtype),)

    def gradient(self, node, gradients):
        (g,), (x,) = gradients, node.inputs
        points = self.points()
        if any(len(chosen) == 0 for chosen in points):
            return (filled(x.shape, 0, x.dtype),)
        forward = [chosen if chosen.step > 0 else chosen[::-1] for chosen in points]
        g = flip(g, [axis for axis, chosen in enumerate(points) if chosen.step < 0])
        low = tuple(chosen[0] for chosen in forward)
        high = tuple(extent - chosen[-1] - 1 for chosen, extent in zip(forward, x.shape, strict=True))
        return (_padded(g, low, high, tuple(chosen.step - 1 for chosen in forward)),)

    def split(self, inputs, outputs):
        return tuple(
            AxisSplit(f"axis{axis}", (axis,), (axis,))
            for axis, extent in enumerate(inputs[0].shape)
            if self.points()[axis] == range(extent)
        )

    def resized(self, outputs):
        # Only an axis taken whole is ever split, so its part is whole again.
        stops = tuple(
            stop if len(chosen) == extent else extent
            for chosen, stop, extent in zip(self.points(), self.stops, outputs[0].shape, strict=True)
        )
        return replace(self, stops=stops)

    def reference(self, xp, x):
        bounds = zip(self.starts, self.stops, self.steps, strict=True)
        return xp.array(x[tuple(slice(i, None if j < 0 else j, k) for i, j, k in bounds)], order="C")


@dataclass(frozen=True)
class Pad(Op):
    """`value` put before (low), after (high) and between (interior) the elements of every axis."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]
    value: float = 0.0

    name = "pad"

    def infer(self, x):
        for argument in ("low", "high", "interior"):
            counts = getattr(self, argument)
            if len(counts) != x.rank or any(count < 0 for count in counts):
                self.fail(argument, f"{counts} for {x}", f"{x.rank} counts of 0 or more")
        extents = zip(self.low, x.shape, self.interior, self.high, strict=True)
        return (TensorType(tuple(i + _spread(n, k) + j for i, n, k, j in extents), x.dtype),)

    def gradient(self, node, gradients):
        extents = node.inputs[0].shape
        stops = tuple(i + _spread(n, k) for i, n, k in zip(self.low, extents, self.interior, strict=True))
        points = zip(self.low, stops, (k + 1 for k in self.interior), strict=True)
        return (_sliced(gradients[0], [range(*bounds) for bounds in points]),)

    def split(self, inputs, outputs):
        untouched = [not any(counts) for counts in zip(self.low, self.high, self.interior, strict=True)]
        return tuple(s for s, whole in zip(_every_axis(len(untouched)), untouched, strict=True) if whole)

    def reference(self, xp, x):
        y = xp.full(self.infer(TensorType(tuple(x.shape), x.dtype.name))[0].shape, self.value, x.dtype)
        places = zip(self.low, x.shape, self.interior, strict=True)
        y[tuple(slice(i, i + _spread(n, k), k + 1) for i, n, k in places)] = x
        return y


def _spread(extent: int, interior: int) -> int:
    """The extent of an axis with `interior` cells between neighbours."""
    return extent + max(extent - 1, 0) * interior


@dataclass(frozen=True)
class Gather(Op):
    """x[..., indices, ...]: the indices' axes take the place of `axis`. Negative indices count from the end.

    An index out of range is an IndexError when the op runs.
    """

    axis: int

    name = "gather"

    def infer(self, x, indices):
        if not 0 <= self.axis < x.rank:
            self.fail("axis", self.axis, f"an axis of a tensor of rank {x.rank}")
        if indices.dtype not in ("int32", "int64"):
            self.fail("indices", indices.dtype, "int32 or int64")
        return (TensorType(x.shape[: self.axis] + indices.shape + x.shape[self.axis + 1 :], x.dtype),)

    def gradient(self, node, gradients):
        x, indices = node.inputs
        return ScatterAdd(self.axis, x.shape[self.axis])(indices, gradients[0]), None

    def split(self, inputs, outputs):
        x, indices = inputs
        kept = [axis for axis in range(x.rank) if axis != self.axis]
        return tuple(
            AxisSplit(f"axis{a}", (a, None), (a if a < self.axis else a + indices.rank - 1,)) for a in kept
        ) + tuple(AxisSplit(f"indices{i}", (None, i), (self.axis + i,)) for i in range(indices.rank))

    def reference(self, xp, x, indices):
        return xp.take(x, _in_range(xp, indices, x.shape[self.axis], self.name), self.axis)


@dataclass(frozen=True)
class ScatterAdd(Op):
    """Zeros of extent `size` along `axis`, to which the updates are added where the indices say."""

    axis: int
    size: int

    name = "scatter_add"

    def infer(self, indices, updates):
        if indices.dtype not in ("int32", "int64"):
            self.fail("indices", indices.dtype, "int32 or int64")
        end = self.axis + indices.rank
        if updates.shape[self.axis : end] != indices.shape:
            self.fail("updates", f"shape {updates.shape}", f"the indices' {indices.shape} from axis {self.axis}")
        return (TensorType(updates.shape[: self.axis] + (self.size,) + updates.shape[end:], updates.dtype),)

    def gradient(self, node, gradients):
        return None, Gather(self.axis)(gradients[0], node.inputs[0])

    def split(self, inputs, outputs):
        rank = inputs[0].rank
        kept = [axis for axis in range(outputs[0].rank) if axis != self.axis]
        return tuple(AxisSplit(f"axis{a}", (None, a if a < self.axis else a + rank - 1), (a,)) for a in kept) + tuple(
            AxisSplit(f"indices{i}", (i, self.axis + i), (None,), needs="reduction") for i in range(rank)
        )

    def reference(self, xp, indices, updates):
        before = updates.shape[: self.axis]
        after = updates.shape[self.axis + indices.ndim :]
        y = xp.zeros((math.prod(before), self.size, math.prod(after)), updates.dtype)
        places = _in_range(xp, indices, self.size, self.name).reshape(-1)
        xp.add.at(y, (slice(None), places), updates.reshape(y.shape[0], places.size, y.shape[2]))
        return y.reshape(*before, self.size, *after)


def _in_range(xp, indices, extent: int, owner: str):
    """Indices counted from the start; IndexError if one is out of range."""
    wrong = indices[(indices < -extent) | (indices >= extent)]
    if wrong.size:
        raise IndexError(f"{owner}: indices: got {int(wrong[0])}, wanted -{extent} to {extent - 1}")
    return xp.where(indices < 0, indices + extent, indices)


@dataclass(frozen=True)
class OneHot(Op):
    """A new last axis of extent `depth`, 1 at the index and 0 elsewhere; all 0 for an index out of range."""

    depth: int
    dtype: str = "float32"

    name = "one_hot"

    def infer(self, indices):
        if indices.dtype not in ("int32", "int64"):
            self.fail("x", indices.dtype, "int32 or int64")
        return (TensorType((*indices.shape, self.depth), self.dtype),)

    def gradient(self, node, gradients):
        return (None,)

    def split(self, inputs, outputs):
        return _every_axis(inputs[0].rank)

    def reference(self, xp, indices):
        return (indices[..., None] == xp.arange(self.depth)).astype(self.dtype)


# --------------------------------------------------------------------------- helpers on graph values


def filled(shape: tuple[int, ...], value, dtype: str) -> Value:
    """A number broadcast to `shape`; unlike `full`, a graph value even where no network is being traced."""
    scalar = Constant(np.array(value, dtype))()
    return BroadcastTo(shape)(scalar) if shape else scalar


def _sliced(x: Value, points: list[range]) -> Value:
    """The chosen points of every axis; x itself if that is all of it."""
    if all(chosen == range(extent) for chosen, extent in zip(points, x.shape, strict=True)):
        return x
    # One form for equal slices: nothing is (0, 0, 1), the stop is one past the last point.
    bounds = [
        (c[0], c[-1] + (1 if c.step > 0 else -1), c.step) if len(c) > 1 else (c[0], c[0] + 1, 1) if c else (0, 0, 1)
        for c in points
    ]
    starts, stops, steps = zip(*bounds, strict=True)
    return Slice(starts, stops, steps)(x)


def _part(x: Value, axis: int, start: int, stop: int) -> Value:
    return _sliced(x, [range(start, stop) if i == axis else range(extent) for i, extent in enumerate(x.shape)])


def _padded(x: Value, low, high, interior=None, value: float = 0.0) -> Value:
    interior = interior or (0,) * x.ndim
    return Pad(low, high, interior, value)(x) if any((*low, *high, *interior)) else x


def _extents(value, owner: str, argument: str = "shape") -> tuple[int, ...]:
    """A shape from an integer or a sequence of them."""
    given = (value,) if isinstance(value, int | np.integer) else tuple(value)
    try:
        result = tuple(operator.index(extent) for extent in given)
    except TypeError:
        raise ValueError(f"{owner}: {argument}: got {value}, wanted integers") from None
    if any(extent < 0 for extent in result):
        raise ValueError(f"{owner}: {argument}: got {value}, wanted extents of 0 or more")
    return result


def _to_indices(value, owner: str, argument: str = "indices") -> Value:
    """Integer indices as int32 or int64."""
    value = convert(value)
    if value.dtype == "bool" or is_floating(value.dtype):
        raise ValueError(f"{owner}: {argument}: got {value.dtype}, wanted integers")
    return value if value.dtype in ("int32", "int64") else cast(value, "int32")


# --------------------------------------------------------------------------- shapes and order of axes


def shape(x) -> tuple:
    """The shape as a tuple; extents of a symbol that are not known yet are None."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


@function
def cast(x, dtype):
    """x with elements of type `dtype`; floats become integers towards zero, and bool by comparison with 0."""
    x, dtype = convert(x), standardize_dtype(dtype)
    return x if x.dtype == dtype else Cast(dtype)(x)


@function
def copy(x):
    """The same numbers in a tensor of their own."""
    return Copy()(convert(x))


@function
def stop_gradient(variable):
    """The same tensor, taken as a constant by differentiation."""
    return StopGradient()(convert(variable))


@function
def reshape(x, newshape):
    """The elements of x, in order, under another shape; one extent may be -1 (or None) and follows from the others.

    Raises:
        ValueError: the number of elements differs.
    """
    x = convert(x)
    given = (newshape,) if isinstance(newshape, int | np.integer) else tuple(newshape)
    given = tuple(-1 if extent is None else operator.index(extent) for extent in given)
    if given.count(-1) > 1:
        raise ValueError(f"reshape: newshape: got {newshape}, wanted at most one unknown extent")
    if -1 in given:
        known = math.prod(extent for extent in given if extent != -1)
        if known == 0 or x.type.size % known:
            raise ValueError(f"reshape: newshape: got {newshape} for {x.type}, wanted a divisor of {x.type.size}")
        given = tuple(x.type.size // known if extent == -1 else extent for extent in given)
    given = _extents(given, "reshape", "newshape")
    return x if given == x.shape else Reshape(given)(x)


@function
def ravel(x):
    """The elements of x as a vector."""
    x = convert(x)
    return reshape(x, (x.type.size,))


@function
def transpose(x, axes=None):
    """Output axis i is input axis axes[i]; by default the axes in reverse.

    Raises:
        ValueError: `axes` is not a permutation of x's axes.
    """
    x = convert(x)
    axes = range(x.ndim)[::-1] if axes is None else axes
    permutation = tuple(normalize_axis(int(axis), x.ndim, "transpose", "axes") for axis in axes)
    return x if permutation == tuple(range(x.ndim)) else Transpose(permutation)(x)


permute = transpose


@function
def moveaxis(x, source, destination):
    """Axes `source` moved to the places `destination`, the others in order; both an integer or a sequence."""
    x = convert(x)
    source, destination = (
        [normalize_axis(int(axis), x.ndim, "moveaxis", name) for axis in np.atleast_1d(axes)]
        for name, axes in (("source", source), ("destination", destination))
    )
    if len(source) != len(destination) or len(set(source)) != len(source) or len(set(destination)) != len(source):
        raise ValueError(f"moveaxis: got {source} to {destination}, wanted as many places, none of them twice")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


@function
def swapaxes(x, axis1, axis2):
    """x with two axes exchanged."""
    x = convert(x)
    order = list(range(x.ndim))
    i, j = (normalize_axis(axis, x.ndim, "swapaxes", f"axis{n}") for n, axis in ((1, axis1), (2, axis2)))
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


@function
def expand_dims(x, axis):
    """New axes of extent 1 at the places `axis` (an integer or several) of the result."""
    x = convert(x)
    rank = x.ndim + (1 if isinstance(axis, int | np.integer) else len(axis))
    new = normalize_axes(axis, rank, "expand_dims")
    old = iter(x.shape)
    return reshape(x, tuple(1 if place in new else next(old) for place in range(rank)))


@function
def squeeze(x, axis=None):
    """x without the axes `axis`, by default without every axis of extent 1.

    Raises:
        ValueError: an axis of `axis` has another extent than 1.
    """
    x = convert(x)
    if axis is None:
        return reshape(x, tuple(extent for extent in x.shape if extent != 1))
    gone = normalize_axes(axis, x.ndim, "squeeze")
    if any(x.shape[place] != 1 for place in gone):
        raise ValueError(f"squeeze: axis: got {axis} for {x.type}, wanted axes of extent 1")
    return reshape(x, tuple(extent for place, extent in enumerate(x.shape) if place not in gone))


@function
def broadcast_to(x, shape):
    """x repeated to `shape` by NumPy's rules."""
    x, shape = convert(x), _extents(shape, "broadcast_to")
    return x if x.shape == shape else BroadcastTo(shape)(x)


@function
def repeat(x, repeats, axis=None):
    """Every element `repeats` times in a row along `axis` (by default of x as a vector); one count, or one each."""
    x = ravel(x) if axis is None else convert(x)
    axis = normalize_axis(0 if axis is None else axis, x.ndim, "repeat")
    counts = np.asarray(repeats)
    if counts.ndim == 0 or counts.size == 1:
        apart = expand_dims(x, axis + 1)
        times = broadcast_to(apart, _with_extent(apart.shape, axis + 1, int(counts.reshape(-1)[0])))
        return reshape(times, _with_extent(x.shape, axis, x.shape[axis] * times.shape[axis + 1]))
    if counts.shape != (x.shape[axis],):
        raise ValueError(f"repeat: repeats: got {counts.size} counts, wanted 1 or {x.shape[axis]}")
    return take(x, np.repeat(np.arange(x.shape[axis], dtype="int32"), counts), axis)


@function
def tile(x, repeats):
    """The whole of x, repeats[i] times along axis i; missing axes of either count as 1 in front."""
    x, counts = convert(x), _extents(repeats, "tile", "repeats")
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    extents = (1,) * (rank - x.ndim) + x.shape
    apart = reshape(x, tuple(extent for e in extents for extent in (1, e)))
    times = broadcast_to(apart, tuple(extent for pair in zip(counts, extents, strict=True) for extent in pair))
    return reshape(times, tuple(count * extent for count, extent in zip(counts, extents, strict=True)))


# --------------------------------------------------------------------------- joining and cutting


@function
def concatenate(xs, axis=0):
    """Tensors one after the other along `axis`; element types are promoted.

    Raises:
        ValueError: no tensors, or extents that differ along another axis.
    """
    if not len(xs):
        raise ValueError("concatenate: xs: got no tensors, wanted one or more")
    values = convert_all(*xs)
    axis = normalize_axis(axis, values[0].ndim, "concatenate")
    return values[0] if len(values) == 1 else Concatenate(axis)(*values)


@function
def stack(x, axis=0):
    """Tensors of one shape along a new axis at the place `axis` of the result."""
    return concatenate([expand_dims(value, axis) for value in x], axis)


@function
def split(x, indices_or_sections, axis=0):
    """A list of parts along `axis`: so many equal ones, or cut before the given indices.

    Raises:
        ValueError: the extent is not a multiple of the number of parts.
    """
    x = convert(x)
    axis = normalize_axis(axis, x.ndim, "split")
    extent = x.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        if parts < 1 or extent % parts:
            raise ValueError(f"split: indices_or_sections: got {parts}, wanted a divisor of the extent {extent}")
        ends = [extent // parts * i for i in range(parts + 1)]
    else:
        cuts = [slice(int(cut)).indices(extent)[1] for cut in indices_or_sections]
        ends = [0, *cuts, extent]
    return [_part(x, axis, start, max(start, stop)) for start, stop in pairwise(ends)]


@function
def unstack(x, num=None, axis=0):
    """A list of the slices of x along `axis`, without it."""
    x = convert(x)
    axis = normalize_axis(axis, x.ndim, "unstack")
    if num is not None and num != x.shape[axis]:
        raise ValueError(f"unstack: num: got {num}, wanted the extent {x.shape[axis]}")
    rest = _without(x.shape, axis)
    return [reshape(_part(x, axis, i, i + 1), rest) for i in range(x.shape[axis])]


@function
def pad(x, pad_width, mode="constant", constant_values=None):
    """x with cells added around it.

    Args:
        pad_width: (before, after) for each axis; one pair, or one number, is for all axes.
        mode: "constant", or "edge", "reflect", "symmetric", "wrap" as in NumPy.
        constant_values: a number, by default 0; only for "constant".
    """
    x = convert(x)
    widths = np.broadcast_to(np.asarray(pad_width, dtype=int), (x.ndim, 2)).tolist()
    if any(count < 0 for pair in widths for count in pair):
        raise ValueError(f"pad: pad_width: got {pad_width}, wanted counts of 0 or more")
    if mode == "constant":
        low, high = zip(*widths, strict=True) if widths else ((), ())
        return _padded(x, low, high, value=float(constant_values or 0))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise NotImplementedError(f"pad: mode: got {mode!r}, wanted constant, edge, reflect, symmetric or wrap")
    if constant_values is not None:
        raise ValueError(f"pad: constant_values: got {constant_values} with mode {mode!r}, wanted none")
    for axis, pair in enumerate(widths):
        if any(pair):
            x = take(x, np.pad(np.arange(x.shape[axis], dtype="int32"), pair, mode), axis)
    return x


@function
def flip(x, axis=None):
    """x with the order of elements along `axis` (one, several or, by default, all) reversed."""
    x = convert(x)
    axes = normalize_axes(axis, x.ndim, "flip")
    return _sliced(x, [range(n)[::-1] if i in axes and n > 1 else range(n) for i, n in enumerate(x.shape)])


@function
def roll(x, shift, axis=None):
    """Elements moved by `shift` along `axis`, those past the end put first; by default of x as a vector."""
    x = convert(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    for by, one in np.broadcast(shift, axis):
        place = normalize_axis(int(one), x.ndim, "roll")
        extent = x.shape[place]
        cut = -int(by) % extent if extent else 0
        if cut:
            x = concatenate([_part(x, place, cut, extent), _part(x, place, 0, cut)], place)
    return x


# --------------------------------------------------------------------------- indexing


@function
def getitem(x, key):
    """x[key] for integers, slices with any step, Ellipsis, None, and an integer array or tensor in one axis.

    Raises:
        IndexError: too many indices, or one out of range.
        NotImplementedError: several arrays, an array apart from integers, or a mask (its shape would depend on data).
    """
    x = convert(x)
    entries = _expand_key(key if isinstance(key, tuple) else (key,), x.ndim)
    points, result_shape, chosen = [], [], None
    for entry in entries:
        if entry is None:
            result_shape.append(1)
            continue
        extent = x.shape[len(points)]
        if isinstance(entry, slice):
            points.append(range(*entry.indices(extent)))
            result_shape.append(len(points[-1]))
        elif _is_integer(entry):
            points.append(_point(int(entry), extent, len(points)))
        else:
            chosen = (len(result_shape), _index_tensor(entry))
            points.append(range(extent))
            result_shape.append(extent)
    x = reshape(_sliced(x, points), tuple(result_shape))
    return x if chosen is None else Gather(chosen[0])(x, chosen[1])


def _is_integer(entry) -> bool:
    return isinstance(entry, int | np.integer) and not isinstance(entry, bool)


def _is_basic(entry) -> bool:
    return entry is None or entry is Ellipsis or isinstance(entry, slice)


def _expand_key(key: tuple, rank: int) -> list:
    """The key with the Ellipsis, or its absence, written out as full slices."""
    ellipses = [place for place, entry in enumerate(key) if entry is Ellipsis]
    missing = rank - sum(entry is not None and entry is not Ellipsis for entry in key)
    if missing < 0:
        raise IndexError(f"getitem: key: got {rank - missing} indices, wanted at most {rank}")
    if len(ellipses) > 1:
        raise IndexError("getitem: key: got several Ellipsis, wanted one")
    arrays = [entry for entry in key if not _is_basic(entry) and not _is_integer(entry)]
    advanced = [place for place, entry in enumerate(key) if not _is_basic(entry)]
    apart = any(j - i > 1 for i, j in pairwise(advanced))
    if len(arrays) > 1 or (arrays and apart):
        raise NotImplementedError("getitem: key: several arrays, or an array apart from integers; use ops.take")
    place = ellipses[0] if ellipses else len(key)
    return [*key[:place], *[slice(None)] * missing, *key[place + 1 :]]


def _point(index: int, extent: int, axis: int) -> range:
    if not -extent <= index < extent:
        raise IndexError(f"getitem: key: got {index} for axis {axis}, wanted -{extent} to {extent - 1}")
    return range(index % extent, index % extent + 1)


def _index_tensor(entry) -> Value:
    value = convert(entry)
    if value.dtype == "bool":
        raise NotImplementedError("getitem: key: a mask's result has no fixed shape; use ops.where")
    return _to_indices(value, "getitem", "key")


@function
def take(x, indices, axis=None):
    """The elements of x at `indices` along `axis`, by default of x as a vector.

    The indices' axes take the place of `axis`; negative ones count from the end.

    Raises:
        IndexError: when it runs, an index is out of range.
    """
    x = ravel(x) if axis is None else convert(x)
    axis = normalize_axis(0 if axis is None else axis, x.ndim, "take")
    return Gather(axis)(x, _to_indices(indices, "take"))


@function
def take_along_axis(x, indices, axis=None):
    """For every place of `indices` the element of x at that place, but at the index along `axis`.

    `indices` has x's shape except along `axis`. By default both are taken as vectors. Indices are not negative.
    """
    x, indices = convert(x), _to_indices(indices, "take_along_axis")
    if axis is None:
        x, indices, axis = ravel(x), ravel(indices), 0
    axis = normalize_axis(axis, x.ndim, "take_along_axis")
    if indices.ndim != x.ndim or _without(indices.shape, axis) != _without(x.shape, axis):
        raise ValueError(f"take_along_axis: indices: got {indices.type}, wanted the shape of {x.type} but for {axis}")
    stride = math.prod(x.shape[axis + 1 :])
    places = np.arange(x.type.size, dtype=indices.dtype).reshape(x.shape)
    first = np.take(places, [0], axis) if x.shape[axis] else np.zeros((1,) * x.ndim, indices.dtype)
    return Gather(0)(ravel(x), convert(first) + indices * stride)


@function
def one_hot(x, num_classes, axis=-1, dtype=None):
    """1 at the place that x says along a new axis of extent `num_classes`, else 0 (float32 by default)."""
    x = convert(x)
    indices = x if x.dtype in ("int32", "int64") else cast(x, "int32")
    hot = OneHot(int(num_classes), standardize_dtype(dtype or "float32"))(indices)
    return moveaxis(hot, -1, axis)


# --------------------------------------------------------------------------- new tensors


@function
def full(shape, fill_value, dtype=None):
    """A tensor of one value (float32 by default)."""
    shape, dtype = _extents(shape, "full"), standardize_dtype(dtype or "float32")
    if isinstance(fill_value, bool | int | float):
        return filled(shape, fill_value, dtype)
    return broadcast_to(cast(convert(fill_value), dtype), shape)


@function
def zeros(shape, dtype=None):
    """A tensor of zeros (float32 by default)."""
    return full(shape, 0, dtype)


@function
def ones(shape, dtype=None):
    """A tensor of ones (float32 by default)."""
    return full(shape, 1, dtype)


@function
def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... before stop; 0, 1, ... before start if there is no stop. int32, or float32 of floats."""
    bounds = (0, start, step) if stop is None else (start, stop, step)
    if dtype is None:
        dtype = "float32" if any(isinstance(bound, float | np.floating) for bound in bounds) else "int32"
    return Constant(np.arange(*bounds).astype(standardize_dtype(dtype)))()


@function
def eye(N, M=None, k=0, dtype=None):  # noqa: N803 (NumPy's names)
    """An N x M matrix (M = N by default) with ones on the k-th diagonal, else zeros (float32 by default)."""
    return Constant(np.eye(N, M, k, dtype=standardize_dtype(dtype or "float32")))()


@function
def identity(n, dtype=None):
    """The n x n identity matrix (float32 by default)."""
    return eye(n, dtype=dtype)
