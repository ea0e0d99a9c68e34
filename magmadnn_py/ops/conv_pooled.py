"""Gradients of a convolution straight from the gradient behind a max-pooling.

Most of the dense gradient in between is zero: these ops never make it. The `sparse` pass puts them where a kernel can
run them; they equal the plain gradient of the convolution applied to that of the pooling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..graph.node import AxisSplit, Cost, total_bytes
from ..graph.types import TensorType
from .conv import ConvolutionInputGradient, ConvolutionWeightGradient
from .pool import MaxPoolGradient

__all__ = ["PooledConvolutionInputGradient", "PooledConvolutionWeightGradient"]


class _Pooled:
    """What both ops share: the pooling between, whose windows lie side by side without padding."""

    def pooling(self) -> MaxPoolGradient:
        return MaxPoolGradient(self.window, self.window, ((0, 0),) * len(self.window), self.unpooled)

    def dense(self, pooled: TensorType, positions: TensorType) -> TensorType:
        """Type of the gradient that is never made."""
        return self.pooling().infer(pooled, positions)[0]

    def gradient(self, node, gradients):
        raise NotImplementedError(f"gradient of {self.name}: differentiate before the sparse pass")


@dataclass(frozen=True)
class PooledConvolutionWeightGradient(_Pooled, ConvolutionWeightGradient):
    """x[N, *S, C], dy[N, *P, F], positions[N, *P, F] -> dw. `unpooled` are the extents before the pooling."""

    window: tuple[int, ...]
    unpooled: tuple[int, ...]

    name = "pooled_convolution_weight_gradient"

    def infer(self, x, dy, positions):
        return ConvolutionWeightGradient.infer(self, x, self.dense(dy, positions))

    def cost(self, inputs, outputs):
        x, dy, positions = inputs
        dense = ConvolutionWeightGradient.cost(self, (x, self.dense(dy, positions)), outputs)
        return Cost(dense.flops // math.prod(self.window), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        channel, filters = inputs[0].rank - 1, outputs[0].rank - 1
        splits = [AxisSplit("batch", (0, 0, 0), (None,), "reduction")]
        if self.groups == 1:
            splits.append(AxisSplit("filter", (None, channel, channel), (filters,)))
            splits.append(AxisSplit("channel", (channel, None, None), (filters - 1,)))
        return tuple(splits)

    def reference(self, xp, x, dy, positions):
        return ConvolutionWeightGradient.reference(self, xp, x, self.pooling().reference(xp, dy, positions))


@dataclass(frozen=True)
class PooledConvolutionInputGradient(_Pooled, ConvolutionInputGradient):
    """dy[N, *P, F], positions[N, *P, F], w -> dx[N, *spatial, C]. `unpooled` are the extents before the pooling."""

    window: tuple[int, ...]
    unpooled: tuple[int, ...]

    name = "pooled_convolution_input_gradient"

    def infer(self, dy, positions, w):
        return ConvolutionInputGradient.infer(self, self.dense(dy, positions), w)

    def cost(self, inputs, outputs):
        dy, positions, w = inputs
        dense = ConvolutionInputGradient.cost(self, (self.dense(dy, positions), w), outputs)
        return Cost(dense.flops // math.prod(self.window), total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        channel = inputs[0].rank - 1
        splits = [AxisSplit("batch", (0, 0, None), (0,))]
        if self.groups == 1:
            splits.append(AxisSplit("filter", (channel, channel, channel), (None,), "reduction"))
            splits.append(AxisSplit("channel", (None, None, channel - 1), (channel,)))
        return tuple(splits)

    def reference(self, xp, dy, positions, w):
        return ConvolutionInputGradient.reference(self, xp, self.pooling().reference(xp, dy, positions), w)
