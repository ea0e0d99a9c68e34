"""Convolutions: three ops that are one another's gradients, and the public functions made of them.

Tensors are channels-last. x[N, *S, C] with weights w[*K, C/groups, F] gives y[N, *S', F]; filter f of group g sees
the input channels of group g. S' = floor((S + low + high - ((K-1)*dilation+1)) / stride) + 1 per spatial axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..graph.node import AxisSplit, Cost, Op, Value, total_bytes
from ..graph.types import TensorType, is_floating
from .elementwise import to_floating
from .function import convert_all, function
from .layout import from_channels_last, to_channels_last
from .matmul import EPILOGUE_ACTIVATIONS
from .movement import reshape
from .window import (
    Padding,
    cell_slices,
    cells,
    crop_spatial,
    output_extents,
    pad_spatial,
    padded_zeros,
    parts_are_independent,
    per_axis,
    resolve_padding,
    scatter_halo,
    span,
    window_halo,
)

__all__ = [
    "Convolution", "ConvolutionInputGradient", "ConvolutionWeightGradient", "conv", "conv_transpose",
    "depthwise_conv", "separable_conv",
]  # fmt: skip


@dataclass(frozen=True)
class ConvolutionFamily(Op):
    """What the three ops share: the attributes of the forward convolution, and its rules."""

    strides: tuple[int, ...]
    padding: Padding
    dilation: tuple[int, ...]
    groups: int

    def check_types(self, *inputs: TensorType) -> None:
        """All of one floating type and one rank, 3 to 5."""
        first = inputs[0]
        if any(t.dtype != first.dtype for t in inputs) or not is_floating(first.dtype):
            self.fail("inputs", ", ".join(t.dtype for t in inputs), "one floating-point element type")
        if not 3 <= first.rank <= 5 or any(t.rank != first.rank for t in inputs):
            self.fail("inputs", f"shapes {', '.join(str(t.shape) for t in inputs)}", "one rank of 3, 4 or 5")

    def check_filters(self, filters: int) -> None:
        if filters % self.groups:
            self.fail("filters", filters, f"a multiple of the {self.groups} groups")

    def window_counts(self, spatial, kernel) -> tuple[int, ...]:
        return output_extents(self.name, spatial, kernel, self.strides, self.padding, self.dilation)

    def family(self) -> tuple:
        """The shared attributes, to make another op of the family."""
        return self.strides, self.padding, self.dilation, self.groups

    def multiplications(self, y: TensorType, w: TensorType) -> int:
        """Multiply-adds of the forward convolution, cells of padding included; its gradients have as many."""
        return y.size * math.prod(w.shape[:-1])

    def spatial_axes(self, x: TensorType, w: TensorType, y: TensorType, halo_rule):
        """For each spatial axis: its name, its number, what a split of it needs, and the halo."""
        rules = zip(w.shape[:-2], self.strides, self.padding, self.dilation, strict=True)
        for axis, (k, stride, padding, d) in enumerate(rules, start=1):
            halo = halo_rule(k, stride, padding, d)
            free = parts_are_independent(x.shape[axis], y.shape[axis], stride, padding, halo)
            yield f"spatial{axis - 1}", axis, "nothing" if free else "halo", halo

    def cells_of(self, kernel, extents):
        """For each cell of the kernel: the cell, and where it lies in a padded input."""
        for cell in cells(kernel):
            yield cell, cell_slices(cell, extents, self.strides, self.dilation)

    def by_group(self, xp, x):
        """[..., C] as [groups, everything else, C/groups]."""
        per_group = x.shape[-1] // self.groups
        return xp.swapaxes(x.reshape(math.prod(x.shape[:-1]), self.groups, per_group), 0, 1)


@dataclass(frozen=True)
class Convolution(ConvolutionFamily):
    """x[N, *S, C], w[*K, C/groups, F] -> y[N, *S', F].

    With `bias`, an input of shape [F] follows, with `residual` one of y's shape; both are added to the sums, and
    `activation` is applied last.
    """

    bias: bool = False
    residual: bool = False
    activation: str = "linear"

    name = "convolution"

    def infer(self, x, w, *added):
        self.check_types(x, w)
        *_, channels = x.shape
        *kernel, per_group, filters = w.shape
        if channels != per_group * self.groups:
            self.fail("kernel", f"shape {w.shape} for {channels} channels in {self.groups} groups",
                      "channels = kernel.shape[-2] * groups")  # fmt: skip
        self.check_filters(filters)
        if self.bias and added[0] != TensorType((filters,), x.dtype):
            self.fail("bias", added[0], TensorType((filters,), x.dtype))
        if self.activation not in EPILOGUE_ACTIVATIONS:
            self.fail("activation", self.activation, f"one of {', '.join(EPILOGUE_ACTIVATIONS)}")
        extents = self.window_counts(x.shape[1:-1], kernel)
        y = TensorType((x.shape[0], *extents, filters), x.dtype)
        if self.residual and added[-1] != y:
            self.fail("residual", added[-1], y)
        return (y,)

    def gradient(self, node, gradients):
        if self.bias or self.residual or self.activation != "linear":
            raise NotImplementedError("gradient of a fused convolution: differentiate before fusing")
        (g,), (x, w) = gradients, node.inputs
        return (
            ConvolutionInputGradient(*self.family(), x.shape[1:-1])(g, w),
            ConvolutionWeightGradient(*self.family(), w.shape[:-2])(x, g),
        )

    def cost(self, inputs, outputs):
        (y,) = outputs
        epilogue = y.size * (self.bias + self.residual + (self.activation != "linear"))
        return Cost(2 * self.multiplications(y, inputs[1]) + epilogue, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        x, w, *added = inputs
        (y,) = outputs
        channel = x.rank - 1

        def of_added(axis):
            """Axes of bias and residual where `axis` of y is split."""
            return (0 if axis == channel else None,) * self.bias + (axis,) * self.residual

        splits = [AxisSplit("batch", (0, None, *of_added(0)), (0,))]
        for name, axis, needs, halo in self.spatial_axes(x, w, y, window_halo):
            splits.append(AxisSplit(name, (axis, None, *of_added(axis)), (axis,), needs, halo))
        if self.groups == 1:
            splits.append(AxisSplit("filter", (None, channel, *of_added(channel)), (channel,)))
            if not added and self.activation == "linear":  # else they would be applied to partial sums
                splits.append(AxisSplit("channel", (channel, channel - 1), (None,), "reduction"))
        return tuple(splits)

    def reference(self, xp, x, w, *added):
        extents = self.window_counts(x.shape[1:-1], w.shape[:-2])
        padded = pad_spatial(xp, x, self.padding)
        filters = w.shape[-1]
        total = xp.zeros((self.groups, x.shape[0] * math.prod(extents), filters // self.groups), x.dtype)
        for cell, index in self.cells_of(w.shape[:-2], extents):
            total += self.by_group(xp, padded[index]) @ self.by_group(xp, w[cell])
        y = xp.swapaxes(total, 0, 1).reshape(x.shape[0], *extents, filters)
        for term in added:
            y = y + term
        return xp.maximum(y, 0) if self.activation == "relu" else y


@dataclass(frozen=True)
class ConvolutionInputGradient(ConvolutionFamily):
    """dy[N, *S', F], w[*K, C/groups, F] -> dx[N, *spatial, C]: also the forward of a transposed convolution."""

    spatial: tuple[int, ...]

    name = "convolution_input_gradient"

    def infer(self, dy, w):
        self.check_types(dy, w)
        *kernel, per_group, filters = w.shape
        self.check_filters(filters)
        wanted = (*self.window_counts(self.spatial, kernel), filters)
        if dy.shape[1:] != wanted:
            self.fail("inputs", f"shape {dy.shape}", f"[N, {', '.join(map(str, wanted))}]")
        return (TensorType((dy.shape[0], *self.spatial, per_group * self.groups), dy.dtype),)

    def gradient(self, node, gradients):
        (h,), (dy, w) = gradients, node.inputs
        return (
            Convolution(*self.family())(h, w),
            ConvolutionWeightGradient(*self.family(), w.shape[:-2])(h, dy),
        )

    def cost(self, inputs, outputs):
        return Cost(2 * self.multiplications(*inputs), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        dy, w = inputs
        splits = [AxisSplit("batch", (0, None), (0,))]
        for name, axis, needs, halo in self.spatial_axes(outputs[0], w, dy, scatter_halo):
            splits.append(AxisSplit(name, (axis, None), (axis,), needs, halo))
        channel = dy.rank - 1
        if self.groups == 1:
            splits.append(AxisSplit("filter", (channel, channel), (None,), "reduction"))
            splits.append(AxisSplit("channel", (None, channel - 1), (channel,)))
        return tuple(splits)

    def resized(self, outputs) -> ConvolutionInputGradient:
        return replace(self, spatial=outputs[0].shape[1:-1])

    def reference(self, xp, dy, w):
        batch, *extents, _ = dy.shape
        channels = w.shape[-2] * self.groups
        padded = padded_zeros(xp, batch, self.spatial, self.padding, channels, dy.dtype)
        grouped = self.by_group(xp, dy)
        for cell, index in self.cells_of(w.shape[:-2], extents):
            part = grouped @ xp.swapaxes(self.by_group(xp, w[cell]), 1, 2)
            padded[index] += xp.swapaxes(part, 0, 1).reshape(batch, *extents, channels)
        return crop_spatial(xp, padded, self.spatial, self.padding)


@dataclass(frozen=True)
class ConvolutionWeightGradient(ConvolutionFamily):
    """x[N, *S, C], dy[N, *S', F] -> dw[*kernel, C/groups, F]."""

    kernel: tuple[int, ...]

    name = "convolution_weight_gradient"

    def infer(self, x, dy):
        self.check_types(x, dy)
        channels, filters = x.shape[-1], dy.shape[-1]
        self.check_filters(filters)
        if channels % self.groups:
            self.fail("inputs", f"{channels} channels", f"a multiple of the {self.groups} groups")
        wanted = (x.shape[0], *self.window_counts(x.shape[1:-1], self.kernel))
        if dy.shape[:-1] != wanted:
            self.fail("gradient", f"shape {dy.shape}", f"[{', '.join(map(str, wanted))}, F]")
        return (TensorType((*self.kernel, channels // self.groups, filters), x.dtype),)

    def gradient(self, node, gradients):
        (h,), (x, dy) = gradients, node.inputs
        return (
            ConvolutionInputGradient(*self.family(), x.shape[1:-1])(dy, h),
            Convolution(*self.family())(x, h),
        )

    def cost(self, inputs, outputs):
        return Cost(2 * self.multiplications(inputs[1], outputs[0]), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        """Of a split with a halo, the output is a partial sum too; only x has the halo."""
        x, dy = inputs
        (dw,) = outputs
        splits = [AxisSplit("batch", (0, 0), (None,), "reduction")]
        for name, axis, needs, halo in self.spatial_axes(x, dw, dy, window_halo):
            needs = "reduction" if needs == "nothing" else needs
            splits.append(AxisSplit(name, (axis, axis), (None,), needs, halo))
        channel = x.rank - 1
        if self.groups == 1:
            splits.append(AxisSplit("filter", (None, channel), (channel,)))
            splits.append(AxisSplit("channel", (channel, None), (channel - 1,)))
        return tuple(splits)

    def reference(self, xp, x, dy):
        channels, filters = x.shape[-1], dy.shape[-1]
        padded = pad_spatial(xp, x, self.padding)
        grouped = self.by_group(xp, dy)
        dw = xp.empty((*self.kernel, channels // self.groups, filters), x.dtype)
        for cell, index in self.cells_of(self.kernel, dy.shape[1:-1]):
            part = xp.swapaxes(self.by_group(xp, padded[index]), 1, 2) @ grouped
            dw[cell] = xp.swapaxes(part, 0, 1).reshape(channels // self.groups, filters)
        return dw


def _prepare(owner: str, inputs, kernel, data_format: str) -> tuple[Value, Value]:
    """Channels-last inputs, and a kernel of the same rank and floating type."""
    x, w = (to_floating(value) for value in convert_all(inputs, kernel))
    x = to_channels_last(x, data_format, owner)
    if w.ndim != x.ndim:
        raise ValueError(f"{owner}: kernel: got shape {w.shape}, wanted rank {x.ndim}, that of the inputs")
    return x, w


def _attributes(owner: str, sizes, window, strides, padding, dilation_rate):
    """Strides, padding and dilation per axis."""
    strides = per_axis(strides, len(sizes), owner, "strides")
    dilation = per_axis(dilation_rate, len(sizes), owner, "dilation_rate")
    return strides, resolve_padding(padding, sizes, window, strides, dilation, owner), dilation


def _convolve(owner: str, x: Value, w: Value, groups: int, strides, padding, dilation_rate) -> Value:
    attributes = _attributes(owner, x.shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
    return Convolution(*attributes, groups)(x, w)


@function
def conv(inputs, kernel, strides=1, padding="valid", data_format="channels_last", dilation_rate=1):
    """Convolution over 1, 2 or 3 spatial axes.

    Args:
        inputs: [N, *spatial, C], or [N, C, *spatial] with `data_format="channels_first"`.
        kernel: [*window, C/groups, F]; the number of groups follows from the shapes.
        strides, dilation_rate: an integer, or one per spatial axis.
        padding: "valid", "same" (the odd cell at the end), "causal" (one spatial axis), or pairs (low, high).

    Returns:
        [N, *spatial', F] in the same data format; float32, or float64 if either input is.

    Raises:
        ValueError: shapes or attributes do not fit; the window is larger than the padded input.
    """
    x, w = _prepare("conv", inputs, kernel, data_format)
    channels, per_group = x.shape[-1], w.shape[-2]
    if per_group == 0 or channels % per_group:
        raise ValueError(
            f"conv: kernel: got shape {w.shape} for {channels} channels, wanted kernel.shape[-2] to divide them"
        )
    y = _convolve("conv", x, w, channels // per_group, strides, padding, dilation_rate)
    return from_channels_last(y, data_format)


@function
def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format="channels_last", dilation_rate=1):
    """Convolution of every channel on its own. The arguments are those of `conv`.

    Args:
        kernel: [*window, C, multiplier]; output channel c*multiplier + m is channel c under kernel[..., c, m].

    Returns:
        [N, *spatial', C*multiplier] in the same data format.
    """
    x, w = _prepare("depthwise_conv", inputs, kernel, data_format)
    y = _depthwise("depthwise_conv", x, w, strides, padding, dilation_rate)
    return from_channels_last(y, data_format)


def _depthwise(owner: str, x: Value, w: Value, strides, padding, dilation_rate) -> Value:
    *window, channels, multiplier = w.shape
    if channels != x.shape[-1]:
        raise ValueError(
            f"{owner}: kernel: got shape {w.shape}, wanted kernel.shape[-2] to be the {x.shape[-1]} input channels"
        )
    w = reshape(w, (*window, 1, channels * multiplier))
    return _convolve(owner, x, w, channels, strides, padding, dilation_rate)


@function
def separable_conv(
    inputs,
    depthwise_kernel,
    pointwise_kernel,
    strides=1,
    padding="valid",
    data_format="channels_last",
    dilation_rate=1,
):
    """A depthwise convolution, then one with a window of 1 that mixes the channels.

    Args:
        depthwise_kernel: [*window, C, multiplier].
        pointwise_kernel: [1, ..., 1, C*multiplier, F].

    Returns:
        [N, *spatial', F] in the same data format.
    """
    x, depthwise = _prepare("separable_conv", inputs, depthwise_kernel, data_format)
    y = _depthwise("separable_conv", x, depthwise, strides, padding, dilation_rate)
    y, pointwise = _prepare("separable_conv", y, pointwise_kernel, "channels_last")
    return from_channels_last(_convolve("separable_conv", y, pointwise, 1, 1, "valid", 1), data_format)


@function
def conv_transpose(
    inputs,
    kernel,
    strides=1,
    padding="valid",
    output_padding=None,
    data_format="channels_last",
    dilation_rate=1,
):
    """Transposed convolution: the gradient of a convolution with respect to its input.

    Args:
        inputs: [N, *spatial, C], or [N, C, *spatial] with `data_format="channels_first"`.
        kernel: [*window, F, C]: outputs before inputs.
        strides, dilation_rate: an integer, or one per spatial axis.
        padding: "valid", "same", or pairs (low, high) by which the result is cropped.
        output_padding: None, an integer or one per spatial axis, less than the stride: makes the end longer.

    Returns:
        [N, *spatial', F]. With k the dilated window, per axis: "valid" gives (n-1)*stride + max(k, stride), or
        (n-1)*stride + k + output_padding; "same" gives n*stride, or (n-1)*stride + k%2 + output_padding; pairs
        give (n-1)*stride + k - low - high + output_padding.

    Raises:
        ValueError: shapes or attributes do not fit.
    """
    x, w = _prepare("conv_transpose", inputs, kernel, data_format)
    rank = x.ndim - 2
    if w.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"conv_transpose: kernel: got shape {w.shape}, wanted kernel.shape[-1] to be the {x.shape[-1]} channels"
        )
    strides = per_axis(strides, rank, "conv_transpose", "strides")
    dilation = per_axis(dilation_rate, rank, "conv_transpose", "dilation_rate")
    pads = (padding,) * rank if isinstance(padding, str) else tuple(padding)
    extras = output_padding if isinstance(output_padding, list | tuple) else (output_padding,) * rank
    if len(pads) != rank or len(extras) != rank:
        raise ValueError(
            f"conv_transpose: padding and output_padding: got {padding} and {output_padding}, "
            f"wanted {rank} entries, one per spatial axis"
        )
    axes = [
        transposed_extent(n, span(k, d), s, pad, extra)
        for n, k, d, s, pad, extra in zip(x.shape[1:-1], w.shape[:-2], dilation, strides, pads, extras, strict=True)
    ]
    spatial, forward_padding = zip(*axes, strict=True)
    y = ConvolutionInputGradient(strides, forward_padding, dilation, 1, spatial)(x, w)
    return from_channels_last(y, data_format)


def transposed_extent(n: int, k: int, stride: int, padding, extra: int | None) -> tuple[int, tuple[int, int]]:
    """Result extent of a transposed convolution along one axis, and the padding of the forward one it transposes.

    n: input extent; k: dilated window; padding: "valid", "same" or (low, high); extra: output padding or None.
    """
    if extra is not None and not 0 <= extra < stride:
        raise ValueError(f"conv_transpose: output_padding: got {extra}, wanted from 0 to stride - 1 = {stride - 1}")
    match padding.lower() if isinstance(padding, str) else padding:
        case "valid":
            extent = (n - 1) * stride + (max(k, stride) if extra is None else k + extra)
            low = 0
        case "same":
            extent = n * stride if extra is None else (n - 1) * stride + k % 2 + extra
            # Total padding of the zero-stuffed input in a stride-1 convolution; its larger half comes first.
            total = extent - (n - 1) * stride + k - 2
            low = k - 1 - min(total - total // 2, k - 1)
        case [int(low), int(high)]:
            extent = (n - 1) * stride + k - low - high + (extra or 0)
        case _:
            raise ValueError(f"conv_transpose: padding: got {padding!r}, wanted 'valid', 'same' or pairs (low, high)")
    return extent, (low, max((n - 1) * stride + k - extent - low, 0))
