"""Activation functions by name. All but those below are in `ops`, from which they are taken."""

from __future__ import annotations

import inspect

from . import ops
from .ops import (
    celu,
    elu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    tanh,
    tanh_shrink,
    threshold,
)
from .saving import registry

#: A ReLU's own threshold argument has the name of the function above.
_threshold = threshold


def linear(x):
    """x itself."""
    return x


def exponential(x):
    """e to the power x."""
    return ops.exp(x)


def gelu(x, approximate=False):
    """x times the normal distribution function of x, or its approximation by tanh."""
    return ops.gelu(x, approximate=approximate)


def relu(x, negative_slope=0.0, max_value=None, threshold=0.0):
    """max(x, 0) with the default arguments.

    Args:
        negative_slope: below the threshold the result is negative_slope * (x - threshold).
        max_value: upper limit of the result, None for none.
        threshold: the result is x only above it.
    """
    if negative_slope == 0 and threshold == 0:
        result = ops.relu(x)
    else:
        below = (x - threshold) * negative_slope if negative_slope else 0.0
        result = ops.where(ops.less_equal(x, threshold), below, x)  # NaN stays NaN
    return result if max_value is None else ops.minimum(result, max_value)


swish, hard_swish = silu, hard_silu

_FUNCTIONS = (
    celu, elu, exponential, gelu, glu, hard_shrink, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, linear,
    log_sigmoid, log_softmax, mish, relu, relu6, selu, sigmoid, silu, soft_shrink, softmax, softplus, softsign,
    sparse_plus, sparse_sigmoid, squareplus, tanh, tanh_shrink, _threshold,
)  # fmt: skip
_NAMES = {function.__name__: function for function in _FUNCTIONS}
_ALIASES = {"swish": silu, "hard_swish": hard_silu}


def get(identifier):
    """The activation function of a name ("relu"), a config or a function; None is `linear`.

    Raises:
        ValueError: there is no activation of that name.
    """
    if identifier is None:
        return linear
    if isinstance(identifier, dict) and isinstance(identifier.get("config"), str):
        identifier = identifier["config"]
    return registry.lookup("activation", identifier, _NAMES | _ALIASES)


def serialize(activation):
    """The name of an activation function of this module, else a config as `saving.serialize` makes it."""
    if inspect.isfunction(activation) and _NAMES.get(activation.__name__) is activation:
        return activation.__name__
    return registry.serialize(activation)


def deserialize(config, custom_objects=None):
    with registry.custom_object_scope(custom_objects or {}):
        return get(config)
