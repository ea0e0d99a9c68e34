"""A convolution and the max-pooling behind it as one, forward and backward.

Forward, the larger result in between never reaches memory (the `fuse` pass). Backward, most of the dense gradient in
between is zero, and never made (the `sparse` pass). Both passes put these ops where a kernel can run them; they equal
the plain ops one after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..graph.node import AxisSplit, Cost, total_bytes
from ..graph.types import TensorType
from .conv import Convolution, ConvolutionFamily, ConvolutionInputGradient, ConvolutionWeightGradient
from .matmul import EPILOGUE_ACTIVATIONS
from .pool import MaxPool, MaxPoolGradient

__all__ = ["ConvolutionMaxPool", "PooledConvolutionInputGradient", "PooledConvolutionWeightGradient"]


@dataclass(frozen=True)
class ConvolutionMaxPool(ConvolutionFamily):
    """x[N, *S, C], w[*K, C/groups, F] -> y[N, *P, F], positions[N, *P, F]: the maxima of a convolution over windows
    that lie side by side, and their places in the window as `max_pool` gives them.

    With `bias`, an input of shape [F] is added to the maxima, and `activation` is applied to them last. Without
    `positions` there is no second output.
    """

    window: tuple[int, ...]
    positions: bool = True
    bias: bool = False
    activation: str = "linear"

    name = "convolution_max_pool"

    def convolution(self) -> Convolution:
        return Convolution(*self.family())

    def pooling(self) -> MaxPool:
        return MaxPool(self.window, self.window, ((0, 0),) * len(self.window))

    def infer(self, x, w, *bias):
        (unpooled,) = self.convolution().infer(x, w)
        filters = TensorType(w.shape[-1:], x.dtype)
        if self.bias and bias[0] != filters:
            self.fail("bias", bias[0], filters)
        if self.activation not in EPILOGUE_ACTIVATIONS:
            self.fail("activation", self.activation, f"one of {', '.join(EPILOGUE_ACTIVATIONS)}")
        outputs = self.pooling().infer(unpooled)
        return outputs if self.positions else outputs[:1]

    def gradient(self, node, gradients):
        raise NotImplementedError(f"gradient of {self.name}: differentiate before fusing")

    def cost(self, inputs, outputs):
        """Only what a window reads is computed."""
        cells = outputs[0].size * math.prod(self.window)
        epilogue = outputs[0].size * (self.bias + (self.activation != "linear"))
        products = 2 * cells * math.prod(inputs[1].shape[:-1])
        return Cost(products + cells + epilogue, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        channel = inputs[0].rank - 1
        splits = [AxisSplit("batch", (0, None, *(None,) * self.bias), (0,) * len(outputs))]
        if self.groups == 1:
            splits.append(AxisSplit("filter", (None, channel, *(0,) * self.bias), (channel,) * len(outputs)))
        return tuple(splits)

    def reference(self, xp, x, w, *bias):
        y, positions = self.pooling().reference(xp, self.convolution().reference(xp, x, w))
        for term in bias:
            y = y + term
        y = xp.maximum(y, 0) if self.activation == "relu" else y
        return (y, positions) if self.positions else y


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
