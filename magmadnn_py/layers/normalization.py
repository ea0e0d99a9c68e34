"""Normalisation layers, all around one op that normalises over some axes and scales and shifts the result."""

from __future__ import annotations

from .. import constraints, initializers, ops, regularizers
from ..graph.types import normalize_axes
from .arguments import channel_count, is_integer
from .layer import Layer

__all__ = [
    "BatchNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization", "UnitNormalization",
]  # fmt: skip


class ScaleAndOffset(Layer):
    """What the kinds share: a scale gamma and an offset beta, each of which may be left out."""

    def __init__(
        self, *, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer,
        beta_constraint, gamma_constraint, **kwargs,
    ):  # fmt: skip
        super().__init__(**kwargs)
        if not isinstance(epsilon, int | float) or epsilon < 0:
            self._fail("epsilon", repr(epsilon), "a number of 0 or more")
        self.epsilon = epsilon
        self.center = bool(center)
        self.scale = bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)
        self.gamma = self.beta = None

    def _add_scale_and_offset(self, shape: tuple[int, ...]) -> None:
        if self.scale:
            self.gamma = self.add_weight(
                shape,
                self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
                name="gamma",
            )
        if self.center:
            self.beta = self.add_weight(
                shape,
                self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
                name="beta",
            )


class BatchNormalization(ScaleAndOffset):
    """Normalises each channel: in training by the batch's own mean and (biased) variance, else by moving ones.

    Weights, each (channels,): gamma, beta, and not trained moving_mean, moving_variance, which each training step
    moves by the share 1 - momentum towards the batch's. With `trainable = False` the layer uses the moving ones
    always.

    Args:
        axis: the axis of the channels.
        momentum: the share of the moving statistics that a step keeps.
        epsilon: added to the variance.
        center, scale: whether there is a beta, a gamma.
        synchronized: accepted; the statistics are always those of the whole batch.

    Raises:
        ValueError: an argument is out of its range; the channels' extent is unknown.
    """

    def __init__(
        self,
        axis=-1,
        momentum=0.99,
        epsilon=1e-3,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        moving_mean_initializer="zeros",
        moving_variance_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        beta_constraint=None,
        gamma_constraint=None,
        synchronized=False,
        **kwargs,
    ):
        super().__init__(
            epsilon=epsilon, center=center, scale=scale, beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer, beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer, beta_constraint=beta_constraint, gamma_constraint=gamma_constraint,
            **kwargs,
        )  # fmt: skip
        axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
        if not is_integer(axis):
            self._fail("axis", repr(axis), "an integer")
        if not isinstance(momentum, int | float) or not 0 <= momentum <= 1:
            self._fail("momentum", repr(momentum), "a number from 0 to 1")
        self.axis = int(axis)
        self.momentum = momentum
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.synchronized = bool(synchronized)

    def build(self, input_shape):
        (axis,) = normalize_axes(self.axis, len(input_shape), f"layer '{self.name}'")
        shape = (channel_count(self, input_shape, axis),)
        self._add_scale_and_offset(shape)
        self.moving_mean = self.add_weight(shape, self.moving_mean_initializer, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(
            shape, self.moving_variance_initializer, trainable=False, name="moving_variance"
        )

    def call(self, inputs, training=False):
        axis = self.axis % inputs.ndim
        if not (training and self.trainable):
            return ops.batch_normalization(
                inputs, self.moving_mean, self.moving_variance, axis, self.beta, self.gamma, self.epsilon
            )
        last = inputs.ndim - 1
        x = ops.moveaxis(inputs, axis, last) if axis != last else inputs
        shape = (1,) * last + (-1,)
        scale, offset = (None if part is None else ops.reshape(part, shape) for part in (self.gamma, self.beta))
        y, mean, variance = ops.normalize_over(x, tuple(range(last)), self.epsilon, scale, offset)
        self._move(self.moving_mean, mean)
        self._move(self.moving_variance, variance)
        return ops.moveaxis(y, last, axis) if axis != last else y

    def _move(self, moving, batch) -> None:
        batch = ops.reshape(batch, moving.shape)
        moving.assign(moving * self.momentum + batch * (1 - self.momentum))


class LayerNormalization(ScaleAndOffset):
    """Normalises each sample over `axis` (one or several). Weights of the shape of those axes: gamma, beta."""

    def __init__(
        self,
        axis=-1,
        epsilon=1e-3,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        beta_constraint=None,
        gamma_constraint=None,
        **kwargs,
    ):
        super().__init__(
            epsilon=epsilon, center=center, scale=scale, beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer, beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer, beta_constraint=beta_constraint, gamma_constraint=gamma_constraint,
            **kwargs,
        )  # fmt: skip
        if not is_integer(axis) and not (isinstance(axis, list | tuple) and all(map(is_integer, axis))):
            self._fail("axis", repr(axis), "an integer or several")
        self.axis = [axis] if is_integer(axis) else list(axis)

    def build(self, input_shape):
        axes = normalize_axes(self.axis, len(input_shape), f"layer '{self.name}'")
        self._add_scale_and_offset(tuple(channel_count(self, input_shape, axis) for axis in axes))

    def call(self, inputs):
        return ops.layer_normalization(inputs, self.gamma, self.beta, self.axis, self.epsilon)


class GroupNormalization(ScaleAndOffset):
    """Normalises each sample and group of channels over all places. Weights, each (channels,): gamma, beta.

    Args:
        groups: a divisor of the channels; -1 for as many as there are channels (instance normalisation).
        axis: the axis of the channels.
    """

    def __init__(
        self,
        groups=32,
        axis=-1,
        epsilon=1e-3,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        beta_constraint=None,
        gamma_constraint=None,
        **kwargs,
    ):
        super().__init__(
            epsilon=epsilon, center=center, scale=scale, beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer, beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer, beta_constraint=beta_constraint, gamma_constraint=gamma_constraint,
            **kwargs,
        )  # fmt: skip
        if not is_integer(groups) or (groups < 1 and groups != -1):
            self._fail("groups", repr(groups), "a positive integer, or -1 for one group per channel")
        if not is_integer(axis):
            self._fail("axis", repr(axis), "an integer")
        self.groups = int(groups)
        self.axis = int(axis)

    def build(self, input_shape):
        (axis,) = normalize_axes(self.axis, len(input_shape), f"layer '{self.name}'")
        channels = channel_count(self, input_shape, axis)
        if self.groups > channels or channels % self.groups:
            self._fail("groups", self.groups, f"a divisor of the input's {channels} channels")
        self._add_scale_and_offset((channels,))

    def call(self, inputs):
        axis, last = self.axis % inputs.ndim, inputs.ndim - 1
        x = ops.moveaxis(inputs, axis, last) if axis != last else inputs
        channels = x.shape[-1]
        groups = channels if self.groups == -1 else self.groups
        shape = (1, 1, groups, channels // groups)
        scale, offset = (None if part is None else ops.reshape(part, shape) for part in (self.gamma, self.beta))
        grouped = ops.reshape(x, (x.shape[0], -1, *shape[2:]))
        y = ops.reshape(ops.normalize_over(grouped, (1, 3), self.epsilon, scale, offset)[0], x.shape)
        return ops.moveaxis(y, last, axis) if axis != last else y


class RMSNormalization(Layer):
    """x / sqrt(mean(x * x) + epsilon) * scale over `axis`. Weights of the shape of those axes: scale."""

    def __init__(self, axis=-1, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.axis = [axis] if is_integer(axis) else list(axis)
        self.epsilon = epsilon

    def build(self, input_shape):
        axes = normalize_axes(self.axis, len(input_shape), f"layer '{self.name}'")
        self.scale = self.add_weight(
            tuple(channel_count(self, input_shape, axis) for axis in axes), "ones", name="scale"
        )

    def call(self, inputs):
        return ops.rms_normalization(inputs, self.scale, self.axis, self.epsilon)


class UnitNormalization(Layer):
    """x divided by its Euclidean norm over `axis` (one or several)."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        squares = ops.sum(ops.square(inputs), axis=axis, keepdims=True)
        return inputs * ops.rsqrt(ops.maximum(squares, 1e-12))
