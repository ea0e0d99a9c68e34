"""Pooling over windows of the spatial axes. Pooling over whole axes is a reduction.

Tensors are channels-last: x[N, *S, C] -> y[N, *S', C], with the window arithmetic of a convolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..graph.node import AxisSplit, Cost, Op, Value, total_bytes
from ..graph.types import TensorType, is_floating
from .elementwise import equal, to_floating, where, zeros_like
from .function import convert, function
from .layout import from_channels_last, to_channels_last
from .movement import pad
from .window import (
    Padding,
    ceil_padding,
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
    window_halo,
)

__all__ = [
    "AveragePool", "AveragePoolGradient", "MaxPool", "MaxPoolGradient", "average_pool", "max_pool",
]  # fmt: skip


@dataclass(frozen=True)
class PoolFamily(Op):
    """What the pooling ops share."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding

    def check_input(self, t: TensorType) -> None:
        if not is_floating(t.dtype):
            self.fail("input", t.dtype, "a floating-point element type")
        if not 3 <= t.rank <= 5:
            self.fail("input", f"shape {t.shape}", "rank 3, 4 or 5")

    def window_counts(self, spatial) -> tuple[int, ...]:
        """Windows per axis. Raises ValueError if there are none, or one has no real cell."""
        counts = output_extents(self.name, spatial, self.window, self.strides, self.padding)
        for n, count, k, s, (low, _) in zip(spatial, counts, self.window, self.strides, self.padding, strict=True):
            if low >= k or (count - 1) * s - low >= n:
                self.fail("padding", f"{self.padding} for spatial extents {tuple(spatial)}",
                          f"real cells in every window {self.window}")  # fmt: skip
        return counts

    def infer_result(self, x: TensorType) -> TensorType:
        self.check_input(x)
        return TensorType((x.shape[0], *self.window_counts(x.shape[1:-1]), x.shape[-1]), x.dtype)

    def infer_gradient(self, dy: TensorType, spatial) -> TensorType:
        self.check_input(dy)
        wanted = self.window_counts(spatial)
        if dy.shape[1:-1] != wanted:
            self.fail("gradient", f"shape {dy.shape}", f"spatial extents {wanted}")
        return TensorType((dy.shape[0], *spatial, dy.shape[-1]), dy.dtype)

    def slices(self, counts):
        """For each cell of the window, in row-major order, where it lies in a padded input."""
        return [cell_slices(cell, counts, self.strides) for cell in cells(self.window)]

    def splits(self, x: TensorType, y: TensorType, halo_rule, inputs: int, outputs: int):
        """Batch, channels and spatial axes; all inputs and outputs are split alike."""

        def split(name, axis, *needs):
            return AxisSplit(name, (axis,) * inputs, (axis,) * outputs, *needs)

        result = [split("batch", 0), split("channel", x.rank - 1)]
        for axis, (k, s, padding) in enumerate(zip(self.window, self.strides, self.padding, strict=True), start=1):
            halo = halo_rule(k, s, padding)
            free = parts_are_independent(x.shape[axis], y.shape[axis], s, padding, halo)
            result.append(split(f"spatial{axis - 1}", axis, "nothing" if free else "halo", halo))
        return tuple(result)


@dataclass(frozen=True)
class MaxPool(PoolFamily):
    """x -> y, positions: the greatest cell of each window, and its index in the window in row-major order.

    Padding is never chosen; of equal cells the first is; a NaN is the greatest. Positions are uint8, or int32 for
    windows of more than 256 cells.
    """

    name = "max_pool"

    def infer(self, x):
        y = self.infer_result(x)
        return y, TensorType(y.shape, self.position_dtype)

    @property
    def position_dtype(self) -> str:
        return "uint8" if math.prod(self.window) <= 256 else "int32"

    def gradient(self, node, gradients):
        g, _ = gradients
        spatial = node.inputs[0].shape[1:-1]
        return (MaxPoolGradient(self.window, self.strides, self.padding, spatial)(g, node.outputs[1]),)

    def cost(self, inputs, outputs):
        return Cost(outputs[0].size * math.prod(self.window), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return self.splits(inputs[0], outputs[0], window_halo, 1, 2)

    def reference(self, xp, x):
        counts = self.window_counts(x.shape[1:-1])
        padded = pad_spatial(xp, x, self.padding, -xp.inf)
        real = pad_spatial(xp, xp.ones((1, *x.shape[1:-1], 1), bool), self.padding, False)
        y = xp.full((x.shape[0], *counts, x.shape[-1]), -xp.inf, x.dtype)
        positions = xp.zeros(y.shape, self.position_dtype)
        empty = xp.ones((1, *counts, 1), bool)  # windows in which no real cell was met yet
        for position, index in enumerate(self.slices(counts)):
            cell = padded[index]
            better = (cell > y) | (xp.isnan(cell) & ~xp.isnan(y)) | empty
            better = better & real[index]
            y = xp.where(better, cell, y)
            positions = xp.where(better, positions.dtype.type(position), positions)
            empty = empty & ~real[index]
        return y, positions


@dataclass(frozen=True)
class MaxPoolGradient(PoolFamily):
    """dy, positions -> dx[N, *spatial, C]: each dy goes to the cell that was the greatest."""

    spatial: tuple[int, ...]

    name = "max_pool_gradient"

    def infer(self, dy, positions):
        if positions.shape != dy.shape or positions.dtype not in ("uint8", "int32"):
            self.fail("positions", positions, f"uint8 or int32 of shape {dy.shape}")
        return (self.infer_gradient(dy, self.spatial),)

    def gradient(self, node, gradients):
        (h,), (dy, positions) = gradients, node.inputs
        padded = pad(h, ((0, 0), *self.padding, (0, 0)))
        picked = zeros_like(dy)
        for position, index in enumerate(self.slices(dy.shape[1:-1])):
            picked = where(equal(positions, position), padded[index], picked)
        return picked, None

    def cost(self, inputs, outputs):
        return Cost(inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return self.splits(outputs[0], inputs[0], scatter_halo, 2, 1)

    def resized(self, outputs) -> MaxPoolGradient:
        return replace(self, spatial=outputs[0].shape[1:-1])

    def reference(self, xp, dy, positions):
        padded = padded_zeros(xp, dy.shape[0], self.spatial, self.padding, dy.shape[-1], dy.dtype)
        for position, index in enumerate(self.slices(dy.shape[1:-1])):
            padded[index] += xp.where(positions == position, dy, 0)
        return crop_spatial(xp, padded, self.spatial, self.padding)


@dataclass(frozen=True)
class AveragePool(PoolFamily):
    """x -> y: the mean of the real cells of each window; with `count_include_padding` padding counts as zeros."""

    count_include_padding: bool = False

    name = "average_pool"

    def infer(self, x):
        return (self.infer_result(x),)

    def gradient(self, node, gradients):
        spatial = node.inputs[0].shape[1:-1]
        op = AveragePoolGradient(self.window, self.strides, self.padding, self.count_include_padding, spatial)
        return (op(gradients[0]),)

    def cost(self, inputs, outputs):
        return Cost(outputs[0].size * (math.prod(self.window) + 1), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return self.splits(inputs[0], outputs[0], window_halo, 1, 1)

    def reference(self, xp, x):
        counts = self.window_counts(x.shape[1:-1])
        padded = pad_spatial(xp, x, self.padding)
        total = xp.zeros((x.shape[0], *counts, x.shape[-1]), x.dtype)
        for index in self.slices(counts):
            total += padded[index]
        return total / divisors(xp, self, x.shape[1:-1], x.dtype)


@dataclass(frozen=True)
class AveragePoolGradient(PoolFamily):
    """dy -> dx[N, *spatial, C]: each dy is shared out evenly over its window."""

    count_include_padding: bool
    spatial: tuple[int, ...]

    name = "average_pool_gradient"

    def infer(self, dy):
        return (self.infer_gradient(dy, self.spatial),)

    def gradient(self, node, gradients):
        return (AveragePool(self.window, self.strides, self.padding, self.count_include_padding)(gradients[0]),)

    def cost(self, inputs, outputs):
        return Cost(inputs[0].size * (math.prod(self.window) + 1), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return self.splits(outputs[0], inputs[0], scatter_halo, 1, 1)

    def resized(self, outputs) -> AveragePoolGradient:
        return replace(self, spatial=outputs[0].shape[1:-1])

    def reference(self, xp, dy):
        share = dy / divisors(xp, self, self.spatial, dy.dtype)
        padded = padded_zeros(xp, dy.shape[0], self.spatial, self.padding, dy.shape[-1], dy.dtype)
        for index in self.slices(dy.shape[1:-1]):
            padded[index] += share
        return crop_spatial(xp, padded, self.spatial, self.padding)


def divisors(xp, op: AveragePool | AveragePoolGradient, spatial, dtype):
    """How many cells each window's sum is divided by: [1, *S', 1]."""
    counts = op.window_counts(spatial)
    if op.count_include_padding:
        return xp.full((1, *(1 for _ in counts), 1), math.prod(op.window), dtype)
    ones = pad_spatial(xp, xp.ones((1, *spatial, 1), dtype), op.padding)
    return sum(ones[index] for index in op.slices(counts))


def _prepare(owner: str, inputs, pool_size, strides, padding, data_format: str):
    """Channels-last inputs, and window, strides and padding per axis."""
    x = to_channels_last(to_floating(convert(inputs)), data_format, owner)
    sizes = x.shape[1:-1]
    window = per_axis(pool_size, len(sizes), owner, "pool_size")
    strides = window if strides is None else per_axis(strides, len(sizes), owner, "strides")
    if padding == "ceil":
        padding = [ceil_padding(n, k, s) for n, k, s in zip(sizes, window, strides, strict=True)]
    return x, window, strides, resolve_padding(padding, sizes, window, strides, (1,) * len(sizes), owner)


@function
def max_pool(inputs, pool_size, strides=None, padding="valid", data_format="channels_last") -> Value:
    """The greatest cell of each window, per channel; padding is never chosen, and NaN stays NaN.

    Args:
        inputs: [N, *spatial, C], or [N, C, *spatial] with `data_format="channels_first"`.
        pool_size: the window, an integer or one per spatial axis.
        strides: likewise; by default the window.
        padding: "valid"; "same" (the odd cell at the end); "ceil" (a last, partly filled window counts too); or
            pairs (low, high).

    Returns:
        [N, *spatial', C] in the same data format.

    Raises:
        ValueError: the window is larger than the padded input, or a window has no real cell.
    """
    x, *attributes = _prepare("max_pool", inputs, pool_size, strides, padding, data_format)
    y, _ = MaxPool(*attributes)(x)
    return from_channels_last(y, data_format)


@function
def average_pool(inputs, pool_size, strides=None, padding="valid", data_format="channels_last") -> Value:
    """The mean of the real cells of each window, per channel; padding is not counted.

    Arguments, result and errors are those of `max_pool`.
    """
    x, *attributes = _prepare("average_pool", inputs, pool_size, strides, padding, data_format)
    return from_channels_last(AveragePool(*attributes)(x), data_format)
