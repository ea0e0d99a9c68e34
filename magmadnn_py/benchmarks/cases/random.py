"""Cases of the random ops: counts around the four numbers of a block, several streams and states."""

from __future__ import annotations

import numpy as np

from ...graph.types import TensorType
from ...ops.random import Dropout, RandomNormal, RandomUniform
from .case import Case

STATE = TensorType((2,), "int64")
SHAPES = [(), (0,), (1,), (2,), (3,), (4,), (5,), (3, 7), (2, 3, 5, 7), (1001,)]


def _state(seed: int, step: int):
    def make(rng, types):
        return [rng.standard_normal(t.shape) for t in types[:-1]] + [np.array([seed, step])]

    return make


SEEDED = _state(0x123456789ABCDEF, 0x500000007)

UNIFORM_CASES = [
    Case(f"uniform {shape}", RandomUniform(shape, -1.5, 2.5, "float32", 3), (STATE,), SEEDED) for shape in SHAPES
] + [Case("uniform, state 0", RandomUniform((9,), 0.0, 1.0, "float32", 0), (STATE,), _state(0, 0))]

NORMAL_CASES = [
    Case(f"normal {shape}", RandomNormal(shape, 1.0, 0.5, "float32", 4), (STATE,), SEEDED) for shape in SHAPES
]

DROPOUT_CASES = [
    Case(f"dropout {shape} rate {rate}", Dropout(rate, 5), (TensorType(shape), STATE), SEEDED, (True, False))
    for shape in SHAPES
    for rate in (0.0, 0.25, 0.5, 1.0)
] + [Case("dropout layer", Dropout(0.5, 1), (TensorType((128, 4096)), STATE), SEEDED, (True, False))]

#: Dropout behind AlexNet's dense layers, and the initial weights of one of them. For speed only.
SPEED_CASES = [
    Case("dropout-dense", Dropout(0.5, 1), (TensorType((128, 4096)), STATE), SEEDED),
    Case("normal-weights", RandomNormal((4096, 4096), 0.0, 0.05, "float32", 1), (STATE,), SEEDED),
    Case("uniform-weights", RandomUniform((4096, 4096), -0.05, 0.05, "float32", 1), (STATE,), SEEDED),
]

CASES = UNIFORM_CASES + NORMAL_CASES + DROPOUT_CASES
