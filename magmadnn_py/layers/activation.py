"""Activation functions with parameters, as layers."""

from __future__ import annotations

from .. import activations, constraints, initializers, ops, regularizers
from .arguments import channel_count
from .layer import Layer

__all__ = ["ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax"]


class ReLU(Layer):
    """x above `threshold`, below it negative_slope * (x - threshold); at most `max_value`, None for no limit.

    Raises:
        ValueError: `max_value`, `negative_slope` or `threshold` is negative.
    """

    def __init__(self, max_value=None, negative_slope=0.0, threshold=0.0, **kwargs):
        super().__init__(**kwargs)
        self.max_value = max_value
        self.negative_slope = negative_slope
        self.threshold = threshold
        for argument in ("max_value", "negative_slope", "threshold"):
            value = getattr(self, argument)
            if not (argument == "max_value" and value is None) and (
                not isinstance(value, int | float) or not value >= 0
            ):
                self._fail(argument, repr(value), "a number of 0 or more")

    def call(self, inputs):
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    """x where it is positive, else negative_slope * x (0.3 by default; `activations.leaky_relu` has 0.2)."""

    def __init__(self, negative_slope=0.3, **kwargs):
        if "alpha" in kwargs:  # its former name
            negative_slope = kwargs.pop("alpha")
        super().__init__(**kwargs)
        if not isinstance(negative_slope, int | float) or not negative_slope >= 0:
            self._fail("negative_slope", repr(negative_slope), "a number of 0 or more")
        self.negative_slope = negative_slope

    def call(self, inputs):
        return activations.leaky_relu(inputs, self.negative_slope)


class ELU(Layer):
    """x where it is positive, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(alpha, int | float):
            self._fail("alpha", repr(alpha), "a number")
        self.alpha = alpha

    def call(self, inputs):
        return activations.elu(inputs, self.alpha)


class PReLU(Layer):
    """x where it is positive, else alpha * x with trained alpha. Weights: alpha, of the shape of a sample.

    Args:
        shared_axes: axes (the batch is 0) along which alpha is the same, so of extent 1.
    """

    def __init__(
        self, alpha_initializer="zeros", alpha_regularizer=None, alpha_constraint=None, shared_axes=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.alpha_initializer = initializers.get(alpha_initializer)
        self.alpha_regularizer = regularizers.get(alpha_regularizer)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes and list(shared_axes)

    def build(self, input_shape):
        shared = {axis % len(input_shape) for axis in self.shared_axes or ()}
        shape = tuple(
            1 if axis in shared else channel_count(self, input_shape, axis) for axis in range(1, len(input_shape))
        )
        self.alpha = self.add_weight(
            shape,
            self.alpha_initializer,
            regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
            name="alpha",
        )

    def call(self, inputs):
        return ops.relu(inputs) - ops.relu(-inputs) * self.alpha


class Softmax(Layer):
    """softmax along `axis` (one or several)."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        if isinstance(self.axis, int):
            return activations.softmax(inputs, axis=self.axis)
        return ops.exp(inputs - ops.logsumexp(inputs, axis=tuple(self.axis), keepdims=True))
