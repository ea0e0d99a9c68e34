"""Cases of `reduce` and `arg_reduce`: every axis, empty tensors, ties, zeros, the sums of real layers."""

from __future__ import annotations

import numpy as np

from ...ops.reduce import ArgReduce, Reduce
from .case import Case, types

# shape, axes
AXES = [
    ((), ()),
    ((6,), (0,)),
    ((1,), (0,)),
    ((4, 6), (0,)),
    ((4, 6), (1,)),
    ((4, 6), (0, 1)),
    ((4, 1, 6), (1,)),
    ((2, 4, 6), (0, 2)),
    ((2, 4, 6), (1,)),
    ((2, 3, 4, 5), (0, 1, 2)),
    ((2, 3, 4, 5), (1, 2)),
    ((0, 4), (1,)),
]
EMPTY_AXES = [((0,), (0,)), ((0, 4), (0,)), ((4, 0), (1,)), ((2, 0, 3), (0, 1))]
FUNCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all")


def _reduce(function: str, shape, axes, keepdims: bool, make=None, note: str = "") -> Case:
    label = f"{function} {shape} axes {axes}" + " kept" * keepdims + note
    return Case(label, Reduce(function, axes, keepdims), types(shape), make)


def _few_values(rng, types):
    """Zeros, for "prod", "any" and "all"; ties."""
    return [rng.integers(-2, 3, t.shape) for t in types]


SMOOTH_CASES = [
    _reduce(function, shape, axes, keepdims)
    for function in ("sum", "mean", "max", "min", "prod")
    for shape, axes in AXES
    for keepdims in (False, True)
] + [_reduce(function, *pair, False) for function in ("sum", "mean", "prod") for pair in EMPTY_AXES]

LOGICAL_CASES = [
    _reduce(function, shape, axes, False, _few_values)
    for function in ("any", "all")
    for shape, axes in AXES + EMPTY_AXES
]


def _with_zeros(zeros: int):
    def make(rng, types):
        array = rng.uniform(0.5, 1.5, types[0].shape)
        array[..., :zeros] = 0
        return [array]

    return make


ZERO_CASES = [_reduce("prod", (3, 7), (1,), False, _with_zeros(n), f", {n} zeros") for n in (1, 2, 7)]

TIE_CASES = [_reduce(function, (5, 9), (1,), False, _few_values, ", ties") for function in ("max", "min")]


def _some_nan(rng, types):
    array = rng.standard_normal(types[0].shape)
    array[1::2, 1] = np.nan
    return [array]


NAN_CASES = [_reduce(function, (4, 19), (1,), False, _some_nan, ", NaN") for function in FUNCTIONS]

# Bias gradients, global pooling, the loss of a batch, batch-norm statistics.
LAYER_CASES = [
    _reduce("sum", (128, 1000), (0,), False),
    _reduce("sum", (8, 28, 28, 64), (0, 1, 2), False),
    _reduce("mean", (8, 7, 7, 512), (1, 2), False),
    _reduce("mean", (128,), (0,), False),
    _reduce("max", (4, 28, 28, 32), (1, 2), False),
    _reduce("sum", (100_003,), (0,), False),
    _reduce("sum", (3, 100_003), (1,), False),
]

#: Bias gradients and global pooling of known networks. For speed only.
SPEED_CASES = [
    _reduce("sum", (128, 500), (0,), False),
    _reduce("sum", (8, 112, 112, 64), (0, 1, 2), False),
    _reduce("mean", (8, 7, 7, 2048), (1, 2), False),
    _reduce("max", (16, 196, 768), (1,), False),
    _reduce("sum", (4_000_000,), (0,), False),
]

ARG_CASES = [
    Case(
        f"{function} {shape} axis {axis}" + " kept" * keepdims, ArgReduce(function, axis, keepdims), types(shape), make
    )
    for function in ("argmax", "argmin")
    for shape, axis, keepdims, make in [
        ((6,), 0, False, None),
        ((1,), 0, True, None),
        ((4, 6), 0, False, _few_values),
        ((4, 6), 1, True, _few_values),
        ((2, 4, 6), 1, False, None),
        ((0, 4), 1, False, None),
        ((4, 19), 1, False, _some_nan),
        ((128, 1000), 1, False, None),
    ]
]

CASES = SMOOTH_CASES + LOGICAL_CASES + ZERO_CASES + TIE_CASES + NAN_CASES + LAYER_CASES + ARG_CASES
