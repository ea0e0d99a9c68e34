"""Dense, Activation, Embedding, Lambda and layers around other layers."""

from __future__ import annotations

import inspect

from .. import activations, constraints, initializers, ops, regularizers
from ..saving import registry
from .arguments import channel_count, positive
from .layer import Layer

__all__ = ["Activation", "Dense", "Embedding", "Identity", "Lambda", "TimeDistributed", "Wrapper"]


class Dense(Layer):
    """activation(inputs @ kernel + bias), on the last axis of inputs of any rank of 2 or more.

    Weights: kernel (inputs, units), bias (units,).

    Args:
        units: the extent of the result's last axis.
        activation: a name or function; None for none.
        use_bias: whether there is a bias.

    Raises:
        ValueError: `units` is not a positive integer; the inputs' last extent is unknown.
    """

    def __init__(
        self,
        units,
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
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = positive(self, "units", units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.bias = None

    def build(self, input_shape):
        if len(input_shape) < 2:
            self._fail("input", f"shape {input_shape}", "rank 2 or more")
        self.kernel = self.add_weight(
            (channel_count(self, input_shape), self.units),
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        if self.use_bias:
            self.bias = self.add_weight(
                (self.units,),
                self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="bias",
            )

    def call(self, inputs):
        outputs = ops.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)


class Activation(Layer):
    """Applies an activation function, given as name or function."""

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        return self.activation(inputs)


class Identity(Layer):
    """The inputs themselves."""

    def call(self, inputs):
        return inputs


class Embedding(Layer):
    """Rows of a table: integers [...] -> [..., output_dim]. Weights: embeddings (input_dim, output_dim).

    Raises:
        ValueError: an extent that is not a positive integer; `mask_zero`, since masks are not supported.
        IndexError, out_of_range: at run time, for an index outside of the table.
    """

    def __init__(
        self,
        input_dim,
        output_dim,
        embeddings_initializer="uniform",
        embeddings_regularizer=None,
        embeddings_constraint=None,
        mask_zero=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.input_dim = positive(self, "input_dim", input_dim)
        self.output_dim = positive(self, "output_dim", output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        if mask_zero:
            self._fail("mask_zero", mask_zero, "False: masks are not supported")
        self.mask_zero = mask_zero

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim),
            self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            name="embeddings",
        )

    def call(self, inputs):
        return ops.take(self.embeddings, ops.cast(inputs, "int32"), axis=0)


class Lambda(Layer):
    """Any function of tensors, written with `ops`, as a layer.

    It can be saved only if the function is one of `ops` or `activations`, or has been given to
    `register_keras_serializable`.

    Args:
        function: called with the inputs (and `training`, if it has such an argument).
        output_shape: accepted for Keras's sake; shapes are found by tracing.
        arguments: further keyword arguments of the function.
    """

    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        if not callable(function):
            self._fail("function", repr(function), "a function")
        self.function = function
        self.arguments = dict(arguments or {})

    def call(self, inputs, training=False):
        named = dict(self.arguments)
        if "training" in inspect.signature(self.function).parameters:
            named["training"] = training
        return self.function(inputs, **named)

    def get_config(self):
        return {**super().get_config(), "function": registry.serialize(self.function)}


class Wrapper(Layer):
    """Base of layers around another layer."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(layer, Layer):
            self._fail("layer", repr(layer), "a layer")
        self.layer = layer

    def build(self, input_shape=None):
        if not self.layer.built:
            self.layer.build(input_shape)


class TimeDistributed(Wrapper):
    """Applies a layer to every slice along axis 1: [N, T, ...] -> [N, T, ...]."""

    def build(self, input_shape):
        if len(input_shape) < 3:
            self._fail("input", f"shape {input_shape}", "rank 3 or more")
        super().build((input_shape[0], *input_shape[2:]))

    def call(self, inputs):
        batch, steps, *sample = inputs.shape
        outputs = self.layer(ops.reshape(inputs, (batch * steps, *sample)))
        return ops.reshape(outputs, (batch, steps, *outputs.shape[1:]))
