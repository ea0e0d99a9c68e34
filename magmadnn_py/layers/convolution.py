"""Convolution layers: weights and argument checks around `ops.conv` and its relatives.

One class for each kind serves 1, 2 and 3 spatial axes; the public classes only say how many.
"""

from __future__ import annotations

from typing import ClassVar

from .. import activations, constraints, initializers, ops, regularizers
from .arguments import channel_axis, channel_count, check_rank, check_window, one_of, per_axis, positive
from .arguments import data_format as checked_data_format
from .layer import Layer

__all__ = [
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Convolution1D",
    "Convolution1DTranspose", "Convolution2D", "Convolution2DTranspose", "Convolution3D",
    "Convolution3DTranspose", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D",
    "SeparableConvolution1D", "SeparableConvolution2D",
]  # fmt: skip


class ConvolutionLayer(Layer):
    """What all kinds share: the window's arguments, the bias and the activation."""

    rank: ClassVar[int]

    def __init__(
        self, *, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
        bias_regularizer, bias_constraint, **kwargs,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self.kernel_size = per_axis(self, "kernel_size", kernel_size, self.rank)
        self.strides = per_axis(self, "strides", strides, self.rank)
        self.dilation_rate = per_axis(self, "dilation_rate", dilation_rate, self.rank)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            self._fail(
                "strides, dilation_rate", f"{self.strides} and {self.dilation_rate}", "no more than one of them above 1"
            )
        self.padding = one_of(self, "padding", padding, self._paddings())
        self.data_format = checked_data_format(self, data_format)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.bias_initializer = initializers.get(bias_initializer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.bias_constraint = constraints.get(bias_constraint)
        self.bias = None

    def _paddings(self) -> tuple[str, ...]:
        return ("valid", "same")

    def _input_channels(self, input_shape) -> int:
        """Checks the input's rank and window, and returns its channels."""
        check_rank(self, input_shape, self.rank + 2)
        return channel_count(self, input_shape, channel_axis(self.data_format))

    def _check_window(self, input_shape) -> None:
        if self.padding == "valid":
            reach = [(k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation_rate, strict=True)]
            check_window(self, "kernel_size", input_shape, reach, self.data_format)

    def _add_kernel(self, shape, name: str, role: str) -> object:
        """A weight whose initializer, regularizer and constraint are the arguments `<role>_...`."""
        return self.add_weight(
            shape,
            getattr(self, f"{role}_initializer"),
            regularizer=getattr(self, f"{role}_regularizer"),
            constraint=getattr(self, f"{role}_constraint"),
            name=name,
        )

    def _add_bias(self, extent: int) -> None:
        if self.use_bias:
            self.bias = self._add_kernel((extent,), "bias", "bias")

    def _keep(self, role: str, initializer, regularizer, constraint) -> None:
        setattr(self, f"{role}_initializer", initializers.get(initializer))
        setattr(self, f"{role}_regularizer", regularizers.get(regularizer))
        setattr(self, f"{role}_constraint", constraints.get(constraint))

    def _window(self) -> dict:
        return {
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilation_rate": self.dilation_rate,
        }

    def _finish(self, outputs):
        if self.bias is not None:
            first = self.data_format == "channels_first"
            outputs = outputs + (ops.reshape(self.bias, (-1,) + (1,) * self.rank) if first else self.bias)
        return self.activation(outputs)


class Convolution(ConvolutionLayer):
    """Convolution over the spatial axes. Weights: kernel (*kernel_size, channels/groups, filters), bias (filters,).

    Args:
        filters: channels of the result.
        kernel_size, strides, dilation_rate: an integer, or one per spatial axis.
        padding: "valid"; "same" (the odd cell at the end); "causal" with one spatial axis.
        data_format: "channels_last", "channels_first", or None for `config.image_data_format()`.
        groups: channels and filters are cut into so many parts, each convolved on its own.
        activation: a name or function; None for none.

    Raises:
        ValueError: an argument is out of its range; strides and dilation are both above 1; `groups` does not divide
            filters and channels; the input has another rank, or is smaller than the window.
    """

    def __init__(
        self,
        filters,
        kernel_size,
        strides=1,
        padding="valid",
        data_format=None,
        dilation_rate=1,
        groups=1,
        activation=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(
            kernel_size=kernel_size, strides=strides, padding=padding, data_format=data_format,
            dilation_rate=dilation_rate, activation=activation, use_bias=use_bias, bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer, bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer, **kwargs,
        )  # fmt: skip
        self.filters = positive(self, "filters", filters)
        self.groups = positive(self, "groups", groups)
        if self.filters % self.groups:
            self._fail("filters", self.filters, f"a multiple of the {self.groups} groups")
        self._keep("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)

    def _paddings(self):
        return ("valid", "same", "causal") if self.rank == 1 else ("valid", "same")

    def build(self, input_shape):
        channels = self._input_channels(input_shape)
        if channels % self.groups:
            self._fail("groups", self.groups, f"a divisor of the input's {channels} channels")
        self._check_window(input_shape)
        self.kernel = self._add_kernel((*self.kernel_size, channels // self.groups, self.filters), "kernel", "kernel")
        self._add_bias(self.filters)

    def call(self, inputs):
        return self._finish(ops.conv(inputs, self.kernel, **self._window()))


class TransposedConvolution(ConvolutionLayer):
    """The gradient of a convolution: enlarges by the strides. Weights: kernel (*kernel_size, filters, channels), bias.

    Args:
        output_padding: None, an integer or one per spatial axis, less than the stride: cells added at the end.
        All others are those of the convolution.

    Extents, with k the dilated window: "valid" (n-1)*stride + max(k, stride); "same" n*stride; with output_padding p
    "valid" (n-1)*stride + k + p; "same" (n-1)*stride + k%2 + p.
    """

    def __init__(
        self,
        filters,
        kernel_size,
        strides=1,
        padding="valid",
        output_padding=None,
        data_format=None,
        dilation_rate=1,
        activation=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(
            kernel_size=kernel_size, strides=strides, padding=padding, data_format=data_format,
            dilation_rate=dilation_rate, activation=activation, use_bias=use_bias, bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer, bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer, **kwargs,
        )  # fmt: skip
        self.filters = positive(self, "filters", filters)
        self.output_padding = output_padding
        if output_padding is not None:
            self.output_padding = per_axis(self, "output_padding", output_padding, self.rank, least=0)
            if any(extra >= stride for extra, stride in zip(self.output_padding, self.strides, strict=True)):
                self._fail("output_padding", self.output_padding, f"less than the strides {self.strides}")
        self._keep("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)

    def build(self, input_shape):
        channels = self._input_channels(input_shape)
        self.kernel = self._add_kernel((*self.kernel_size, self.filters, channels), "kernel", "kernel")
        self._add_bias(self.filters)

    def call(self, inputs):
        outputs = ops.conv_transpose(inputs, self.kernel, output_padding=self.output_padding, **self._window())
        return self._finish(outputs)


class DepthwiseConvolution(ConvolutionLayer):
    """Convolution of each channel on its own. Weights: kernel (*kernel_size, channels, depth_multiplier), bias.

    Args:
        depth_multiplier: results per channel; channel c*depth_multiplier + m is the m-th of channel c.
        All others are those of the convolution.
    """

    def __init__(
        self,
        kernel_size,
        strides=1,
        padding="valid",
        depth_multiplier=1,
        data_format=None,
        dilation_rate=1,
        activation=None,
        use_bias=True,
        depthwise_initializer="glorot_uniform",
        bias_initializer="zeros",
        depthwise_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        depthwise_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(
            kernel_size=kernel_size, strides=strides, padding=padding, data_format=data_format,
            dilation_rate=dilation_rate, activation=activation, use_bias=use_bias, bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer, bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer, **kwargs,
        )  # fmt: skip
        self.depth_multiplier = positive(self, "depth_multiplier", depth_multiplier)
        self._keep("depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)

    def build(self, input_shape):
        channels = self._input_channels(input_shape)
        self._check_window(input_shape)
        self.kernel = self._add_kernel((*self.kernel_size, channels, self.depth_multiplier), "kernel", "depthwise")
        self._add_bias(channels * self.depth_multiplier)

    def call(self, inputs):
        return self._finish(ops.depthwise_conv(inputs, self.kernel, **self._window()))


class SeparableConvolution(ConvolutionLayer):
    """A depthwise convolution, then one of window 1 that mixes the channels.

    Weights: depthwise_kernel (*kernel_size, channels, depth_multiplier),
    pointwise_kernel (1, ..., channels*depth_multiplier, filters), bias (filters,).
    """

    def __init__(
        self,
        filters,
        kernel_size,
        strides=1,
        padding="valid",
        data_format=None,
        dilation_rate=1,
        depth_multiplier=1,
        activation=None,
        use_bias=True,
        depthwise_initializer="glorot_uniform",
        pointwise_initializer="glorot_uniform",
        bias_initializer="zeros",
        depthwise_regularizer=None,
        pointwise_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        depthwise_constraint=None,
        pointwise_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(
            kernel_size=kernel_size, strides=strides, padding=padding, data_format=data_format,
            dilation_rate=dilation_rate, activation=activation, use_bias=use_bias, bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer, bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer, **kwargs,
        )  # fmt: skip
        self.filters = positive(self, "filters", filters)
        self.depth_multiplier = positive(self, "depth_multiplier", depth_multiplier)
        self._keep("depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        self._keep("pointwise", pointwise_initializer, pointwise_regularizer, pointwise_constraint)

    def build(self, input_shape):
        channels = self._input_channels(input_shape)
        self._check_window(input_shape)
        self.depthwise_kernel = self._add_kernel(
            (*self.kernel_size, channels, self.depth_multiplier), "depthwise_kernel", "depthwise"
        )
        self.pointwise_kernel = self._add_kernel(
            (*(1,) * self.rank, channels * self.depth_multiplier, self.filters), "pointwise_kernel", "pointwise"
        )
        self._add_bias(self.filters)

    def call(self, inputs):
        outputs = ops.separable_conv(inputs, self.depthwise_kernel, self.pointwise_kernel, **self._window())
        return self._finish(outputs)


class Conv1D(Convolution):
    __doc__ = Convolution.__doc__
    rank = 1


class Conv2D(Convolution):
    __doc__ = Convolution.__doc__
    rank = 2


class Conv3D(Convolution):
    __doc__ = Convolution.__doc__
    rank = 3


class Conv1DTranspose(TransposedConvolution):
    __doc__ = TransposedConvolution.__doc__
    rank = 1


class Conv2DTranspose(TransposedConvolution):
    __doc__ = TransposedConvolution.__doc__
    rank = 2


class Conv3DTranspose(TransposedConvolution):
    __doc__ = TransposedConvolution.__doc__
    rank = 3


class DepthwiseConv1D(DepthwiseConvolution):
    __doc__ = DepthwiseConvolution.__doc__
    rank = 1


class DepthwiseConv2D(DepthwiseConvolution):
    __doc__ = DepthwiseConvolution.__doc__
    rank = 2


class SeparableConv1D(SeparableConvolution):
    __doc__ = SeparableConvolution.__doc__
    rank = 1


class SeparableConv2D(SeparableConvolution):
    __doc__ = SeparableConvolution.__doc__
    rank = 2


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution1DTranspose, Convolution2DTranspose, Convolution3DTranspose = (
    Conv1DTranspose,
    Conv2DTranspose,
    Conv3DTranspose,
)
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
