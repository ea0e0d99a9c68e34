"""Normalisation by mean and variance over some axes: one op for batch, layer, group and instance normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..graph.gradient import gradients as gradients_of
from ..graph.graph import Graph, rewrite
from ..graph.node import AxisSplit, Cost, Input, Op, Value, total_bytes
from ..graph.types import TensorType, is_floating, normalize_axes, normalize_axis
from .elementwise import greater, multiply, rsqrt, square, to_floating, unbroadcast, where
from .function import convert, function
from .matmul import EPILOGUE_ACTIVATIONS
from .movement import broadcast_to, cast, full, reshape
from .reduce import mean as reduce_mean

__all__ = [
    "Normalize", "NormalizeGradient", "batch_normalization", "layer_normalization", "moments", "normalize_over",
    "rms_normalization",
]  # fmt: skip


@dataclass(frozen=True)
class NormalizeFamily(Op):
    """What the op and its gradient share: the axes of the statistics (sorted, not negative), epsilon, and what the
    fuse pass adds to the op: a residual and an activation."""

    axes: tuple[int, ...]
    epsilon: float
    residual: bool = False
    activation: str = "linear"

    def statistics_shape(self, x: TensorType) -> tuple[int, ...]:
        return tuple(1 if axis in self.axes else extent for axis, extent in enumerate(x.shape))

    def statistics_count(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape[axis] for axis in self.axes)

    def check(self, x: TensorType, scale: TensorType, others: Sequence[TensorType]) -> None:
        if not is_floating(x.dtype) or any(t.dtype != x.dtype for t in (scale, *others)):
            dtypes = ", ".join(t.dtype for t in (x, scale, *others))
            self.fail("inputs", dtypes, "one floating-point element type")
        if self.activation not in EPILOGUE_ACTIVATIONS:
            self.fail("activation", self.activation, f"one of {', '.join(EPILOGUE_ACTIVATIONS)}")
        if any(not 0 <= axis < x.rank for axis in self.axes):
            self.fail("axes", self.axes, f"axes of shape {x.shape}")
        fits = (e in (1, extent) for e, extent in zip(scale.shape, x.shape, strict=False))
        if scale.rank != x.rank or not all(fits):
            self.fail("scale", f"shape {scale.shape}", f"for each extent of {x.shape} that or 1")

    def free_axes(self, x: TensorType, scale: TensorType):
        """The axes that are not normalised over: (axis, the same for scale or None where scale is broadcast)."""
        return [
            (axis, axis if scale.shape[axis] == extent else None)
            for axis, extent in enumerate(x.shape)
            if axis not in self.axes
        ]


@dataclass(frozen=True)
class Normalize(NormalizeFamily):
    """x, scale, offset -> y = (x - mean) / sqrt(variance + epsilon) * scale + offset, mean, variance.

    The variance is the biased one. Mean and variance keep the axes, as 1. Scale and offset have one shape, of x's
    rank, and are broadcast to x. With `residual`, an input of x's shape follows that is added to y; `activation` is
    applied last.
    """

    name = "normalize"

    def infer(self, x, scale, offset, *residual):
        self.check(x, scale, (offset, *residual))
        if offset.shape != scale.shape:
            self.fail("offset", f"shape {offset.shape}", f"the shape of scale, {scale.shape}")
        if self.residual and residual[0].shape != x.shape:
            self.fail("residual", f"shape {residual[0].shape}", x.shape)
        statistics = TensorType(self.statistics_shape(x), x.dtype)
        return x, statistics, statistics

    def gradient(self, node, gradients):
        g, g_mean, g_variance = gradients
        x, scale, offset = node.inputs[:3]
        y, mean, variance = node.outputs
        dx, dscale, doffset, dresidual = None, None, None, (None,) * self.residual
        if g is not None and self.activation == "linear":
            dx, dscale, doffset = NormalizeGradient(self.axes, self.epsilon)(g, x, scale, mean, variance)
            dresidual = (g,) * self.residual
        elif g is not None:
            op = NormalizeGradient(self.axes, self.epsilon, self.residual, self.activation)
            dx, dscale, doffset, *dresidual = op(g, x, scale, mean, variance, y if self.residual else offset)
        factor = 1.0 / max(self.statistics_count(x.shape), 1)
        if g_mean is not None:
            dx = _add(dx, broadcast_to(g_mean * factor, x.shape))
        if g_variance is not None:
            dx = _add(dx, (x - mean) * (g_variance * (2.0 * factor)))
        return dx, dscale, doffset, *dresidual

    def cost(self, inputs, outputs):
        # Mean 1, variance 3, normalise 4 per element; a root and a division per statistic.
        epilogue = self.residual + (self.activation != "linear")
        return Cost((8 + epilogue) * inputs[0].size + 5 * outputs[1].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        x, scale = inputs[:2]
        return tuple(
            AxisSplit(f"axis{axis}", (axis, own, own, *(axis,) * self.residual), (axis, axis, axis))
            for axis, own in self.free_axes(x, scale)
        )

    def reference(self, xp, x, scale, offset, *residual):
        if self.statistics_count(x.shape) == 0:
            statistics = xp.full(self.statistics_shape(TensorType(x.shape)), xp.nan, x.dtype)
            return xp.empty(x.shape, x.dtype), statistics, statistics.copy()
        mean = x.mean(self.axes, keepdims=True)
        variance = xp.square(x - mean).mean(self.axes, keepdims=True)
        y = (x - mean) / xp.sqrt(variance + self.epsilon) * scale + offset
        for term in residual:
            y = y + term
        if self.activation == "relu":
            y = xp.maximum(y, 0)
        return y.astype(x.dtype), mean, variance


@dataclass(frozen=True)
class NormalizeGradient(NormalizeFamily):
    """dy, x, scale, mean, variance -> dx, dscale, doffset, where dy is the gradient of y alone.

    With a ReLU as `activation`, dy counts as zero where y is not positive. A further input tells that: with `residual`
    it is y, else the offset, from which y is computed again. With `residual`, its gradient is a further output: dy,
    with those zeros.
    """

    name = "normalize_gradient"

    def infer(self, dy, x, scale, mean, variance, *y_or_offset):
        self.check(x, scale, (dy, mean, variance, *y_or_offset))
        if self.residual and self.activation == "linear":
            self.fail("residual", True, "an activation with it")
        statistics = self.statistics_shape(x)
        for argument, got, wanted in (
            ("dy", dy.shape, x.shape),
            ("mean", mean.shape, statistics),
            ("variance", variance.shape, statistics),
            *(("y or offset", value.shape, x.shape if self.residual else scale.shape) for value in y_or_offset),
        ):
            if got != wanted:
                self.fail(argument, f"shape {got}", wanted)
        return x, scale, scale, *(x,) * self.residual

    def gradient(self, node, gradients):
        def body(dy, x, scale, mean, variance, *y_or_offset):
            root = rsqrt(variance + self.epsilon)
            normal = (x - mean) * root
            for value in y_or_offset:
                dy = where(greater(value if self.residual else normal * scale + value, 0.0), dy, 0.0)
            scaled = dy * scale
            correction = reduce_mean(scaled, self.axes, keepdims=True)
            slope = reduce_mean(scaled * normal, self.axes, keepdims=True)
            dx = (scaled - correction - normal * slope) * root
            parameters = unbroadcast(dy * normal, scale.shape), unbroadcast(dy, scale.shape)
            return dx, *parameters, *(dy,) * self.residual

        return gradient_of_composition(body, node.inputs, gradients)

    def cost(self, inputs, outputs):
        epilogue = int(self.activation != "linear")
        return Cost((14 + epilogue) * inputs[0].size + 5 * inputs[3].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        _, x, scale, _, _, *y_or_offset = inputs
        return tuple(
            AxisSplit(
                f"axis{axis}",
                (axis, axis, own, axis, axis, *(axis if self.residual else own for _ in y_or_offset)),
                (axis, own, own, *(axis,) * self.residual),
                "nothing" if own is not None else "reduction",
            )
            for axis, own in self.free_axes(x, scale)
        )

    def may_overwrite(self, output, input):
        """dx may lie where dy or x does; with a residual, whose gradient is made first, only that one where dy does."""
        dy, x = 0, 1
        if output == 0:
            return input == x or (input == dy and not self.residual)
        return output == 3 and input == dy

    def reference(self, xp, dy, x, scale, mean, variance, *y_or_offset):
        axes = tuple(axis for axis, extent in enumerate(scale.shape) if extent == 1)
        root = 1 / xp.sqrt(variance + self.epsilon)
        normal = (x - mean) * root
        for value in y_or_offset:
            dy = xp.where((value if self.residual else normal * scale + value) > 0, dy, xp.zeros_like(dy))
        scaled = dy * scale
        count = max(self.statistics_count(x.shape), 1)
        correction = scaled.sum(self.axes, keepdims=True) / count
        slope = (scaled * normal).sum(self.axes, keepdims=True) / count
        dx = (scaled - correction - normal * slope) * root
        parameters = (dy * normal).sum(axes, keepdims=True), dy.sum(axes, keepdims=True)
        return dx.astype(x.dtype), *parameters, *(dy,) * self.residual


def _add(a: Value | None, b: Value) -> Value:
    return b if a is None else a + b


def gradient_of_composition(body, inputs: Sequence[Value], gradients: Sequence[Value | None]) -> list[Value | None]:
    """The gradients of `inputs` for an op that equals `body`, a composition of other ops with several outputs.

    The composition is differentiated on stand-ins: differentiating on the inputs themselves would also follow how
    one of them depends on another.
    """
    stand_ins = [Input(value.type)() for value in inputs]
    pairs = [(y, g) for y, g in zip(body(*stand_ins), gradients, strict=True) if g is not None]
    found = gradients_of([y for y, _ in pairs], stand_ins, [g for _, g in pairs])
    real = dict(zip(stand_ins, inputs, strict=True))
    # Whatever the output gradients are made of stays as it is.
    graph = Graph((), tuple(value for value in found if value is not None))
    _, new = rewrite(graph, lambda node, _: [real[node.outputs[0]]] if node.outputs[0] in real else None)
    return [None if value is None else new[value] for value in found]


@function
def normalize_over(x, axes, epsilon, scale=None, offset=None):
    """Normalises `x` over `axes`: the op under batch, layer, group and instance normalisation.

    Args:
        x: any shape; floating-point, or taken as float32.
        axes: axes over which mean and variance are taken.
        epsilon: added to the variance.
        scale, offset: of x's rank, each extent x's or 1; by default ones and zeros.

    Returns:
        (y, mean, variance): y in the shape of x; the (biased) statistics keep the axes, as 1.
    """
    x = to_floating(convert(x))
    axes = normalize_axes(axes, x.ndim, "normalize_over", "axes")
    scale, offset = (None if part is None else cast(convert(part), x.dtype) for part in (scale, offset))
    shape = next((part.shape for part in (scale, offset) if part is not None), (1,) * x.ndim)
    scale = full(shape, 1, x.dtype) if scale is None else scale
    offset = full(shape, 0, x.dtype) if offset is None else offset
    return Normalize(axes, float(epsilon))(x, scale, offset)


def _along(vector: Value, axis: int, rank: int, owner: str) -> Value:
    """A vector [C] as a tensor that broadcasts along `axis`."""
    if vector.ndim != 1:
        raise ValueError(f"{owner}: parameters: got shape {vector.shape}, wanted one value per channel")
    return reshape(vector, tuple(-1 if i == axis else 1 for i in range(rank)))


@function
def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    """Normalises `x` by given statistics: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    Args:
        x: any shape; `axis` is the one of the channels.
        mean, variance, offset, scale: [channels]; offset and scale may be None.

    Returns:
        The shape and element type of x.
    """
    x = to_floating(convert(x))
    axis = normalize_axis(axis, x.ndim, "batch_normalization")

    def parameter(value):
        return _along(cast(convert(value), x.dtype), axis, x.ndim, "batch_normalization")

    # Per channel first, so that the tensor itself takes one multiplication and one addition.
    factor = rsqrt(parameter(variance) + epsilon)
    if scale is not None:
        factor = factor * parameter(scale)
    shift = -parameter(mean) * factor
    if offset is not None:
        shift = shift + parameter(offset)
    return x * factor + shift


@function
def layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=1e-7):
    """Normalises `x` over `axis` (one or several), with parameters of the shape of those axes.

    Args:
        x: any shape.
        gamma, beta: scale and offset, in the shape of x's `axis` axes; None for none.

    Returns:
        The shape and element type of x.
    """
    x = to_floating(convert(x))
    axes = normalize_axes(axis, x.ndim, "layer_normalization")
    shape = tuple(extent if i in axes else 1 for i, extent in enumerate(x.shape))
    scale, offset = (None if part is None else reshape(convert(part), shape) for part in (gamma, beta))
    return normalize_over(x, axes, epsilon, scale, offset)[0]


@function
def rms_normalization(x, scale=1, axis=-1, epsilon=1e-7):
    """x / sqrt(mean(x * x) + epsilon) * scale, the mean over `axis`; `scale` is in the shape of those axes."""
    x = to_floating(convert(x))
    axes = normalize_axes(axis, x.ndim, "rms_normalization")
    scale = cast(convert(scale), x.dtype)
    if scale.ndim:
        scale = reshape(scale, tuple(extent if i in axes else 1 for i, extent in enumerate(x.shape)))
    return multiply(x * rsqrt(reduce_mean(square(x), axes, keepdims=True) + epsilon), scale)


@function
def moments(x, axes, keepdims=False):
    """Mean and (biased) variance of `x` over `axes`, in its element type; integers as float32."""
    x = to_floating(convert(x))
    axes = normalize_axes(axes, x.ndim, "moments", "axes")
    mean = reduce_mean(x, axes, keepdims=True)
    variance = reduce_mean(square(x - mean), axes, keepdims=keepdims)
    return (mean if keepdims else reshape(mean, variance.shape)), variance
