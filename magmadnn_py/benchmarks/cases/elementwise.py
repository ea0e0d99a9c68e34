"""Cases of `elementwise`: every function alone, broadcasting, programs of several instructions, real layers' sizes."""

from __future__ import annotations

import numpy as np

from ...graph.types import TensorType
from ...ops.elementwise import FUNCTIONS, Elementwise
from .case import Case, types

#: Functions of positive numbers.
POSITIVE = ("sqrt", "rsqrt", "log", "power")
#: Functions that are not differentiable everywhere, or have no gradient: kept away from the places where they jump.
STEPS = ("floor_divide", "remainder", "floor", "ceil", "round", "sign", "absolute", "relu", "maximum", "minimum")
#: Functions of floating-point numbers only; all others take every element type.
FLOATING = (
    "divide", "power", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "sigmoid",
    "softplus", "erf",
)  # fmt: skip
#: Functions that NumPy refuses for bool.
NOT_OF_BOOL = ("subtract", "negative", "sign", "floor_divide", "remainder")


def one(function: str, dtype: str = "float32") -> Elementwise:
    arity = FUNCTIONS[function].arity
    return Elementwise((function,), (tuple(range(arity)) + (-1,) * (3 - arity),), (arity,), dtype)


def _positive(rng, types):
    return [rng.uniform(0.3, 3.0, t.shape) for t in types]


def _above_minus_one(rng, types):
    return [rng.uniform(-0.8, 3.0, t.shape) for t in types]


def _away_from_zero(rng, types):
    return [rng.uniform(0.5, 2.0, t.shape) * rng.choice([-1.0, 1.0], t.shape) for t in types]


def _between_steps(rng, types):
    # Quotients and differences of these are never near an integer, nor the arguments near a half.
    return [rng.integers(-3, 4, t.shape) + 0.27 + 0.06 * i for i, t in enumerate(types)]


def _make(function: str):
    if function in POSITIVE:
        return _positive
    if function == "log1p":
        return _above_minus_one
    if function in ("divide", "reciprocal"):
        return _away_from_zero
    return _between_steps if function in STEPS else None


def _shapes(function: str, shape) -> tuple[TensorType, ...]:
    if function == "where":
        return (TensorType(shape, "bool"), *types(shape, shape))
    return types(*[shape] * FUNCTIONS[function].arity)


FUNCTION_CASES = [Case(name, one(name), _shapes(name, (4, 5)), _make(name)) for name in FUNCTIONS]

BROADCASTS = [
    ((), ()),
    ((3,), ()),
    ((), (2, 3)),
    ((1,), (1, 1)),
    ((4, 1), (1, 5)),
    ((2, 1, 3), (4, 1)),
    ((5, 1, 1, 7), (1, 6, 1)),
    ((0, 3), (3,)),
    ((2, 0), (1, 1)),
    ((8, 6, 6, 16), (16,)),
    ((8, 6, 6, 16), (8, 1, 1, 16)),
    ((33, 129), (33, 1)),
]

BROADCAST_CASES = [
    Case(f"{name} {a} {b}", one(name), types(a, b)) for a, b in BROADCASTS for name in ("add", "subtract", "multiply")
] + [Case(f"where {a} {b}", one("where"), (TensorType(b, "bool"), *types(a, ()))) for a, b in BROADCASTS]

# (a * b + c) and its sigmoid; a comparison and a choice; both also as outputs in between.
PROGRAM_CASES = [
    Case(
        "program a*b+c, sigmoid",
        Elementwise(("multiply", "add", "sigmoid"), ((0, 1, -1), (3, 2, -1), (4, -1, -1)), (5,), "float32"),
        types((7, 33), (33,), (7, 1)),
    ),
    Case(
        "program with two outputs",
        Elementwise(("subtract", "square"), ((0, 1, -1), (2, -1, -1)), (2, 3), "float32"),
        types((3, 4, 5), (5,)),
    ),
    Case(
        "program with a bool inside",
        Elementwise(("greater", "where"), ((0, 1, -1), (2, 0, 1)), (2, 3), "float32"),
        types((6, 9), (6, 9)),
    ),
]

MIXED_CASES = [
    Case("uint8 times float32", one("multiply"), (TensorType((5, 7), "uint8"), TensorType((), "float32"))),
    Case("bool plus int32", one("add", "int32"), (TensorType((5, 7), "bool"), TensorType((7,), "int32"))),
    Case("int64 less", one("less", "int64"), types((5, 7), (5, 1), dtype="int64")),
    Case("bool xor", one("logical_xor", "bool"), types((5, 7), (5, 1), dtype="bool")),
]

INTEGER_FUNCTIONS = [name for name in FUNCTIONS if name not in FLOATING]


def integer_case(function: str, dtype: str) -> Case:
    """The function on a few integers, zeros among them."""

    def make(rng, types):
        low = -4 if dtype.startswith("int") else 0
        return [rng.integers(low, 5, t.shape) for t in types]

    inputs = tuple(TensorType(t.shape, dtype if t.dtype != "bool" else "bool") for t in _shapes(function, (6, 11)))
    return Case(f"{function} {dtype}", one(function, dtype), inputs, make)


INTEGER_CASES = [
    integer_case(name, dtype)
    for dtype in ("int32", "int64", "uint8", "bool")
    for name in INTEGER_FUNCTIONS
    if dtype != "bool" or name not in NOT_OF_BOOL
]


def _special(rng, types):
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 90.0])
    grids = np.meshgrid(*[values] * len(types), indexing="ij")
    return [grid.reshape(-1) for grid in grids]


def special_case(function: str) -> Case:
    """The function on zeros, infinities, NaN and large numbers, in all combinations."""
    arity = FUNCTIONS[function].arity
    return Case(f"{function} special", one(function), types(*[(15**arity,)] * arity), _special)


CASES = FUNCTION_CASES + BROADCAST_CASES + PROGRAM_CASES + MIXED_CASES + INTEGER_CASES

#: Activations and sums of known networks, and the update of that many parameters by momentum. For speed only.
SPEED_CASES = [
    Case("relu", one("relu"), types((8, 56, 56, 256))),
    Case("bias", one("add"), types((8, 56, 56, 256), (256,))),
    Case("residual", one("add"), types((8, 56, 56, 256), (8, 56, 56, 256))),
    Case("sigmoid", one("sigmoid"), types((128, 4096))),
    Case("tanh", one("tanh"), types((128, 4096))),
    Case(
        "momentum-update",
        # weight 0, velocity 1, gradient 2, momentum 3, learning rate 4
        Elementwise(
            ("multiply", "multiply", "subtract", "add"),
            ((1, 3, -1), (2, 4, -1), (5, 6, -1), (0, 7, -1)),
            (7, 8),
            "float32",
        ),
        types((8_000_000,), (8_000_000,), (8_000_000,), (), ()),
    ),
]
