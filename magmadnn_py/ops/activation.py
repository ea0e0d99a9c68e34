"""Activation functions that are compositions of elementwise ones; the fuse pass makes each one pass over memory."""

from __future__ import annotations

import math

from .elementwise import (
    absolute,
    clip,
    divide,
    erf,
    expm1,
    greater,
    less_equal,
    negative,
    relu,
    sigmoid,
    sign,
    softplus,
    sqrt,
    square,
    tanh,
    to_floating,
    where,
    zeros_like,
)
from .function import convert, function
from .movement import split

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "leaky_relu", "log_sigmoid", "mish", "relu6", "selu", "silu", "soft_shrink", "softsign", "sparse_plus",
    "sparse_sigmoid", "squareplus", "swish", "tanh_shrink", "threshold",
]  # fmt: skip

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772


def _expm1_below_zero(x):
    """exp(x) - 1 where x <= 0, else 0: the branch not taken must not overflow, its gradient would be NaN."""
    return expm1(where(greater(x, 0.0), zeros_like(x), x))


@function
def leaky_relu(x, negative_slope=0.2):
    """x where x > 0, else negative_slope * x."""
    x = to_floating(convert(x))
    return where(greater(x, 0.0), x, x * negative_slope)


@function
def relu6(x):
    """x limited to [0, 6]."""
    return clip(x, 0, 6)


@function
def elu(x, alpha=1.0):
    """x where x > 0, else alpha * (exp(x) - 1)."""
    x = to_floating(convert(x))
    return where(greater(x, 0.0), x, _expm1_below_zero(x) * alpha)


@function
def selu(x):
    """1.0507 * elu(x, 1.67326): keeps mean 0 and variance 1 through deep networks."""
    return elu(x, SELU_ALPHA) * SELU_SCALE


@function
def celu(x, alpha=1.0):
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    x = to_floating(convert(x))
    return where(greater(x, 0.0), x, _expm1_below_zero(x / alpha) * alpha)


@function
def silu(x):
    """x * sigmoid(x)."""
    x = to_floating(convert(x))
    return x * sigmoid(x)


swish = silu


@function
def gelu(x, approximate=True):
    """x times the normal distribution function of x, or its approximation by tanh."""
    x = to_floating(convert(x))
    if approximate:
        inner = (x + x * square(x) * 0.044715) * math.sqrt(2 / math.pi)
        return x * (tanh(inner) + 1.0) * 0.5
    return x * (erf(x * math.sqrt(0.5)) + 1.0) * 0.5


@function
def hard_sigmoid(x):
    """x / 6 + 0.5 limited to [0, 1]."""
    x = to_floating(convert(x))
    return clip(x * (1 / 6) + 0.5, 0.0, 1.0)


@function
def hard_silu(x):
    """x * hard_sigmoid(x)."""
    x = to_floating(convert(x))
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@function
def hard_tanh(x):
    """x limited to [-1, 1]."""
    return clip(x, -1, 1)


@function
def mish(x):
    """x * tanh(softplus(x))."""
    x = to_floating(convert(x))
    return x * tanh(softplus(x))


@function
def softsign(x):
    """x / (1 + |x|)."""
    x = to_floating(convert(x))
    return divide(x, absolute(x) + 1.0)


@function
def log_sigmoid(x):
    """The logarithm of sigmoid(x), without overflow."""
    return negative(softplus(negative(to_floating(convert(x)))))


@function
def squareplus(x, b=4):
    """(x + sqrt(x * x + b)) / 2."""
    x = to_floating(convert(x))
    return (x + sqrt(square(x) + float(b))) * 0.5


@function
def sparse_plus(x):
    """0 up to -1, x from 1 on, and (x + 1)**2 / 4 between."""
    x = to_floating(convert(x))
    return where(greater(x, 1.0), x, square(clip(x, -1.0, 1.0) + 1.0) * 0.25)


@function
def sparse_sigmoid(x):
    """(x + 1) / 2 limited to [0, 1]."""
    x = to_floating(convert(x))
    return clip(x * 0.5 + 0.5, 0.0, 1.0)


@function
def tanh_shrink(x):
    """x - tanh(x)."""
    x = to_floating(convert(x))
    return x - tanh(x)


@function
def hard_shrink(x, threshold=0.5):
    """0 where |x| <= threshold, else x."""
    x = convert(x)
    return where(less_equal(absolute(x), threshold), zeros_like(x), x)


@function
def soft_shrink(x, threshold=0.5):
    """x moved by `threshold` towards 0; 0 where it would pass it."""
    x = to_floating(convert(x))
    return sign(x) * relu(absolute(x) - threshold)


@function
def threshold(x, threshold, default_value):
    """x where x > threshold, else default_value; NaN stays NaN."""
    x = convert(x)
    return where(less_equal(x, threshold), default_value, x)


@function
def glu(x, axis=-1):
    """The first half of x along `axis` times the sigmoid of the second."""
    x = to_floating(convert(x))
    a, b = split(x, 2, axis)
    return a * sigmoid(b)
