"""Elementwise arithmetic with broadcasting: one op that runs a short straight-line program per element.

A call such as `ops.add(a, b)` makes a program of one instruction; the fuse pass joins neighbours into longer ones, so
that a chain of them costs one pass over memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..graph.node import AxisSplit, Cost, Node, Op, Value, total_bytes
from ..graph.types import TensorType, broadcast_shapes, is_floating, standardize_dtype
from .function import convert, convert_all, function

__all__ = [
    "Elementwise", "abs", "absolute", "add", "ceil", "clip", "cos", "divide", "equal", "erf", "exp",
    "expm1", "floor", "floor_divide", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less",
    "less_equal", "log", "log1p", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "mod", "multiply", "negative", "not_equal", "ones_like", "power", "reciprocal", "relu",
    "round", "rsqrt", "sigmoid", "sign", "sin", "softplus", "sqrt", "square", "subtract", "tanh",
    "true_divide", "where", "zeros_like",
]  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A scalar function: its NumPy form, its gradient and its cost.

    `gradient(g, y, *inputs)` gives one value (or None) per input, still in the shape of the output.
    """

    arity: int
    numpy: Callable
    gradient: Callable | None = None
    boolean: bool = False
    flops: int = 1


def _zero_gradient(g, y, *inputs):
    return [None] * len(inputs)


def _numpy_erf(xp, x):
    if xp is np:
        return np.vectorize(math.erf, otypes=[x.dtype])(x)
    from cupyx.scipy.special import erf

    return erf(x)


def _power_gradient(g, y, a, b):
    # d(a^b)/da = b a^(b-1), also where a or b is 0; d(a^b)/db = y log a, taken as 0 where a <= 0.
    log = ops_log(where(greater(a, 0.0), a, ones_like(a)))
    slope = where(equal(b, 0.0), 0.0, b * power(a, b - 1.0))
    return g * slope, g * y * log


def _extreme_gradient(picks: Callable) -> Callable:
    # Where both are equal each gets half.
    def gradient(g, y, a, b):
        share = where(equal(a, b), g * 0.5, g)
        zero = zeros_like(share)
        return where(picks(b, a), zero, share), where(picks(a, b), zero, share)

    return gradient


def _safe_divide(xp, a, b, quotient):
    # Integer division by zero gives 0 on every device.
    if a.dtype.kind == "f":
        return quotient(a, b)
    return xp.where(b == 0, 0, quotient(a, xp.where(b == 0, 1, b))).astype(a.dtype)


def _compare(numpy: Callable) -> Function:
    return Function(2, numpy, _zero_gradient, boolean=True)


def _test(numpy: Callable) -> Function:
    return Function(1, numpy, _zero_gradient, boolean=True)


FUNCTIONS: dict[str, Function] = {
    "add": Function(2, lambda xp, a, b: a + b, lambda g, y, a, b: (g, g)),
    "subtract": Function(2, lambda xp, a, b: a - b, lambda g, y, a, b: (g, -g)),
    "multiply": Function(2, lambda xp, a, b: a * b, lambda g, y, a, b: (g * b, g * a)),
    "divide": Function(2, lambda xp, a, b: a / b, lambda g, y, a, b: (g / b, -g * y / b)),
    "floor_divide": Function(2, lambda xp, a, b: _safe_divide(xp, a, b, xp.floor_divide), _zero_gradient, flops=2),
    "remainder": Function(
        2,
        lambda xp, a, b: (
            _safe_divide(xp, a, b, xp.remainder)
            if a.dtype.kind == "f"
            else xp.where(b == 0, 0, xp.remainder(a, xp.where(b == 0, 1, b))).astype(a.dtype)
        ),
        lambda g, y, a, b: (g, -g * floor(a / b)),
        flops=3,
    ),
    "power": Function(2, lambda xp, a, b: xp.power(a, b), _power_gradient, flops=20),
    "maximum": Function(2, lambda xp, a, b: xp.maximum(a, b), _extreme_gradient(lambda a, b: greater(a, b))),
    "minimum": Function(2, lambda xp, a, b: xp.minimum(a, b), _extreme_gradient(lambda a, b: less(a, b))),
    "equal": _compare(lambda xp, a, b: a == b),
    "not_equal": _compare(lambda xp, a, b: a != b),
    "less": _compare(lambda xp, a, b: a < b),
    "less_equal": _compare(lambda xp, a, b: a <= b),
    "greater": _compare(lambda xp, a, b: a > b),
    "greater_equal": _compare(lambda xp, a, b: a >= b),
    "logical_and": _compare(lambda xp, a, b: xp.logical_and(a, b)),
    "logical_or": _compare(lambda xp, a, b: xp.logical_or(a, b)),
    "logical_xor": _compare(lambda xp, a, b: xp.logical_xor(a, b)),
    "logical_not": _test(lambda xp, x: xp.logical_not(x)),
    "isnan": _test(lambda xp, x: xp.isnan(x)),
    "isinf": _test(lambda xp, x: xp.isinf(x)),
    "isfinite": _test(lambda xp, x: xp.isfinite(x)),
    "negative": Function(1, lambda xp, x: -x, lambda g, y, x: (-g,)),
    "absolute": Function(1, lambda xp, x: xp.absolute(x), lambda g, y, x: (g * sign(x),)),
    "sign": Function(1, lambda xp, x: xp.sign(x), _zero_gradient),
    "square": Function(1, lambda xp, x: x * x, lambda g, y, x: (g * x * 2.0,)),
    "sqrt": Function(1, lambda xp, x: xp.sqrt(x), lambda g, y, x: (g * 0.5 / y,), flops=4),
    "rsqrt": Function(1, lambda xp, x: 1 / xp.sqrt(x), lambda g, y, x: (g * -0.5 * y / x,), flops=5),
    "reciprocal": Function(1, lambda xp, x: 1 / x, lambda g, y, x: (-g * y * y,), flops=4),
    "exp": Function(1, lambda xp, x: xp.exp(x), lambda g, y, x: (g * y,), flops=10),
    "expm1": Function(1, lambda xp, x: xp.expm1(x), lambda g, y, x: (g * (y + 1.0),), flops=12),
    "log": Function(1, lambda xp, x: xp.log(x), lambda g, y, x: (g / x,), flops=10),
    "log1p": Function(1, lambda xp, x: xp.log1p(x), lambda g, y, x: (g / (x + 1.0),), flops=12),
    "sin": Function(1, lambda xp, x: xp.sin(x), lambda g, y, x: (g * cos(x),), flops=12),
    "cos": Function(1, lambda xp, x: xp.cos(x), lambda g, y, x: (-g * sin(x),), flops=12),
    "tanh": Function(1, lambda xp, x: xp.tanh(x), lambda g, y, x: (g * (1.0 - y * y),), flops=14),
    "sigmoid": Function(
        1,
        lambda xp, x: xp.where(x >= 0, 1 / (1 + xp.exp(-xp.abs(x))), 1 - 1 / (1 + xp.exp(-xp.abs(x)))),
        lambda g, y, x: (g * y * (1.0 - y),),
        flops=14,
    ),
    "softplus": Function(
        1, lambda xp, x: xp.logaddexp(x, xp.zeros_like(x)), lambda g, y, x: (g * sigmoid(x),), flops=24
    ),
    # From the output, so that the input need not be kept (and the ReLU can be part of a convolution).
    "relu": Function(1, lambda xp, x: xp.maximum(x, 0), lambda g, y, x: (where(greater(y, 0.0), g, 0.0),)),
    "erf": Function(1, _numpy_erf, lambda g, y, x: (g * exp(-square(x)) * (2 / math.sqrt(math.pi)),), flops=20),
    "floor": Function(1, lambda xp, x: xp.floor(x), _zero_gradient),
    "ceil": Function(1, lambda xp, x: xp.ceil(x), _zero_gradient),
    "round": Function(1, lambda xp, x: xp.round(x), _zero_gradient),
    "where": Function(
        3,
        lambda xp, c, a, b: xp.where(c != 0, a, b),
        lambda g, y, c, a, b: (None, where(c, g, zeros_like(g)), where(c, zeros_like(g), g)),
    ),
}


@dataclass(frozen=True)
class Elementwise(Op):
    """A straight-line program on the elements of its broadcast inputs.

    Registers 0, 1, ... are the inputs; the next ones the results of the instructions in turn. `operands` names each
    instruction's registers (three, unused ones -1); `results` the registers that become outputs. All arithmetic is in
    `dtype`; results of comparisons are stored as bool.
    """

    functions: tuple[str, ...]
    operands: tuple[tuple[int, int, int], ...]
    results: tuple[int, ...]
    dtype: str

    name = "elementwise"
    inplace = True

    def infer(self, *inputs):
        try:
            shape = broadcast_shapes(*(t.shape for t in inputs))
        except ValueError:
            shapes = ", ".join(str(t.shape) for t in inputs)
            raise ValueError(
                f"{'+'.join(self.functions)}: inputs: got shapes {shapes}, wanted shapes that broadcast"
            ) from None
        return tuple(TensorType(shape, self._result_dtype(r, len(inputs))) for r in self.results)

    def _result_dtype(self, register: int, inputs: int) -> str:
        return "bool" if FUNCTIONS[self.functions[register - inputs]].boolean else self.dtype

    def gradient(self, node: Node, gradients):
        if len(self.functions) != 1:
            raise NotImplementedError("gradient of a fused program: differentiate before fusing")
        (g,), (y,) = gradients, node.outputs
        rule = FUNCTIONS[self.functions[0]].gradient
        return [
            None if part is None else unbroadcast(part, value.shape) if is_floating(value.dtype) else None
            for part, value in zip(rule(g, y, *node.inputs), node.inputs, strict=True)
        ]

    def cost(self, inputs, outputs):
        flops = sum(FUNCTIONS[name].flops for name in self.functions) * outputs[0].size
        return Cost(flops, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        rank = outputs[0].rank

        def axis_of(t: TensorType, axis: int):
            own = axis - (rank - t.rank)
            return own if own >= 0 and t.shape[own] == outputs[0].shape[axis] else None

        return tuple(
            AxisSplit(f"axis{axis}", tuple(axis_of(t, axis) for t in inputs), (axis,) * len(outputs))
            for axis in range(rank)
        )

    def reference(self, xp, *arrays):
        shape = broadcast_shapes(*(a.shape for a in arrays))
        registers = [a.astype(self.dtype) for a in arrays]
        with np.errstate(all="ignore"):
            for name, operands in zip(self.functions, self.operands, strict=True):
                entry = FUNCTIONS[name]
                result = entry.numpy(xp, *(registers[r] for r in operands[: entry.arity]))
                registers.append(xp.asarray(result).astype(self.dtype))
        return tuple(
            xp.array(xp.broadcast_to(registers[r], shape), dtype=self._result_dtype(r, len(arrays)))
            for r in self.results
        )


def elementwise(name: str, *values: Value, dtype: str | None = None) -> Value:
    """One instruction. `dtype` is the arithmetic's; by default that of the last input."""
    arity = len(values)
    operands = tuple(range(arity)) + (-1,) * (3 - arity)
    return Elementwise((name,), (operands,), (arity,), dtype or values[-1].dtype)(*values)


def unbroadcast(value: Value, shape: tuple[int, ...]) -> Value:
    """Sums a value of a broadcast shape back to `shape`: the gradient of broadcasting."""
    from .movement import reshape
    from .reduce import sum as reduce_sum

    if value.shape == shape:
        return value
    lead = value.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, extent in enumerate(shape) if extent == 1 and value.shape[lead + i] != 1
    )
    return reshape(reduce_sum(value, axis=axes), shape)


def _binary(name: str, doc: str) -> Callable:
    def body(x1, x2):
        return elementwise(name, *convert_all(x1, x2))

    return _public(body, name, doc)


def _unary(name: str, doc: str, floating: bool = False) -> Callable:
    def body(x):
        x = convert(x)
        return elementwise(name, to_floating(x) if floating else x)

    return _public(body, name, doc)


def _public(body: Callable, name: str, doc: str) -> Callable:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return function(body)


def to_floating(x: Value) -> Value:
    """The value itself if its elements are floating-point, else as float32."""
    from .movement import cast

    return x if is_floating(x.dtype) else cast(x, "float32")


add = _binary("add", "x1 + x2, elementwise with broadcasting.")
subtract = _binary("subtract", "x1 - x2, elementwise with broadcasting.")
multiply = _binary("multiply", "x1 * x2, elementwise with broadcasting.")
floor_divide = _binary("floor_divide", "floor(x1 / x2); integers divided by zero give 0.")
power = _binary("power", "x1 to the power x2, elementwise with broadcasting.")
maximum = _binary("maximum", "The larger of both; NaN if either is NaN.")
minimum = _binary("minimum", "The smaller of both; NaN if either is NaN.")
mod = _binary("remainder", "The remainder of x1 / x2, with the sign of x2; 0 for integers if x2 is 0.")
equal = _binary("equal", "x1 == x2 as bool.")
not_equal = _binary("not_equal", "x1 != x2 as bool.")
less = _binary("less", "x1 < x2 as bool.")
less_equal = _binary("less_equal", "x1 <= x2 as bool.")
greater = _binary("greater", "x1 > x2 as bool.")
greater_equal = _binary("greater_equal", "x1 >= x2 as bool.")
logical_and = _binary("logical_and", "Whether both are non-zero, as bool.")
logical_or = _binary("logical_or", "Whether either is non-zero, as bool.")
logical_xor = _binary("logical_xor", "Whether exactly one is non-zero, as bool.")
logical_not = _unary("logical_not", "Whether x is zero, as bool.")
isnan = _unary("isnan", "Whether x is NaN, as bool.")
isinf = _unary("isinf", "Whether x is infinite, as bool.")
isfinite = _unary("isfinite", "Whether x is neither infinite nor NaN, as bool.")
negative = _unary("negative", "-x.")
absolute = _unary("absolute", "The absolute value of x.")
abs = absolute
sign = _unary("sign", "-1, 0 or 1; NaN for NaN.")
square = _unary("square", "x * x.")
sqrt = _unary("sqrt", "The square root of x.", floating=True)
rsqrt = _unary("rsqrt", "1 / sqrt(x).", floating=True)
reciprocal = _unary("reciprocal", "1 / x.", floating=True)
exp = _unary("exp", "e to the power x.", floating=True)
expm1 = _unary("expm1", "exp(x) - 1, exact near 0.", floating=True)
log = ops_log = _unary("log", "The natural logarithm of x.", floating=True)
log1p = _unary("log1p", "log(1 + x), exact near 0.", floating=True)
sin = _unary("sin", "The sine of x, in radians.", floating=True)
cos = _unary("cos", "The cosine of x, in radians.", floating=True)
tanh = _unary("tanh", "The hyperbolic tangent of x.", floating=True)
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).", floating=True)
softplus = _unary("softplus", "log(1 + exp(x)), without overflow.", floating=True)
relu = _unary("relu", "max(x, 0); NaN stays NaN.")
erf = _unary("erf", "The error function of x.", floating=True)
floor = _unary("floor", "The largest integer not above x.")
ceil = _unary("ceil", "The smallest integer not below x.")
round = _unary("round", "x rounded to the nearest integer, halves to the even one.")


@function
def divide(x1, x2):
    """x1 / x2, elementwise with broadcasting; integers are divided as float32."""
    a, b = convert_all(x1, x2)
    return elementwise("divide", to_floating(a), to_floating(b))


true_divide = divide


@function
def where(condition, x1, x2):
    """x1 where `condition` is non-zero, else x2; all three broadcast."""
    from .movement import cast

    a, b = convert_all(x1, x2)
    return elementwise("where", cast(convert(condition), "bool"), a, b, dtype=a.dtype)


@function
def clip(x, x_min, x_max):
    """x limited to [x_min, x_max]; NaN stays NaN."""
    return minimum(maximum(x, x_min), x_max)


@function
def ones_like(x, dtype=None):
    """Ones in the shape of x, by default of its element type."""
    from .movement import filled

    x = convert(x)
    return filled(x.shape, 1, standardize_dtype(dtype or x.dtype))


@function
def zeros_like(x, dtype=None):
    """Zeros in the shape of x, by default of its element type."""
    from .movement import filled

    x = convert(x)
    return filled(x.shape, 0, standardize_dtype(dtype or x.dtype))
