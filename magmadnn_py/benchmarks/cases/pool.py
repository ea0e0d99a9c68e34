"""Cases of the pooling family."""

from __future__ import annotations

import numpy as np

from ...graph.types import TensorType
from ...ops.pool import AveragePool, AveragePoolGradient, MaxPool, MaxPoolGradient
from ...ops.window import resolve_padding
from .case import Case, random_array, types


def _distinct(rng, types_):
    """No two cells are near each other, so that a small step never changes which one is the greatest."""
    (t,) = types_
    return [rng.permutation(t.size).reshape(t.shape) * 0.1 - t.size * 0.05]


def _with_positions(x: TensorType, op: MaxPool):
    def make(rng, types_):
        _, positions = op.reference(np, random_array(rng, x))
        return [random_array(rng, types_[0]), positions]

    return make


def family(label, x, window, strides=None, padding="valid") -> list[Case]:
    """Both kinds of pooling and their gradients for x[N, *S, C]."""
    strides = strides or window
    attributes = (window, strides, resolve_padding(padding, x[1:-1], window, strides, (1,) * len(window), label))
    spatial = tuple(x[1:-1])
    maximum = MaxPool(*attributes)
    (x_type,) = types(x)
    result = [
        Case(f"{label}-max", maximum, (x_type,), _distinct),
        Case(
            f"{label}-max-gradient",
            MaxPoolGradient(*attributes, spatial),
            maximum.infer(x_type),
            _with_positions(x_type, maximum),
        ),
    ]
    for counted in (False, True):
        name = f"{label}-average" + ("-counted" if counted else "")
        average = AveragePool(*attributes, counted)
        gradient = AveragePoolGradient(*attributes, counted, spatial)
        result.append(Case(name, average, (x_type,)))
        result.append(Case(f"{name}-gradient", gradient, average.infer(x_type)))
    return result


def extreme_cases() -> list[Case]:
    """Max-pooling of equal cells, of NaN and of infinities."""

    def made(label, function):
        op = MaxPool((3, 2), (2, 1), ((1, 1), (0, 1)))
        return Case(label, op, types((2, 5, 4, 3)), lambda rng, types_: [function(rng, types_[0].shape)])

    def with_nan(rng, shape):
        return np.where(rng.random(shape) < 0.2, np.nan, rng.standard_normal(shape))

    def with_infinities(rng, shape):
        return rng.choice([-np.inf, np.inf, 0.0], shape)

    return [
        made("equal-cells", lambda rng, shape: np.zeros(shape)),
        made("few-values", lambda rng, shape: rng.integers(-2, 3, shape)),
        made("all-negative", lambda rng, shape: -1.0 - rng.random(shape)),
        made("nan", with_nan),
        made("infinities", with_infinities),
        made("minus-infinity", lambda rng, shape: np.full(shape, -np.inf)),
    ]


CASES = [
    *family("2x2", (2, 6, 4, 3), (2, 2)),
    *family("2x2-odd", (2, 7, 5, 3), (2, 2)),
    *family("2x2-odd-same", (1, 7, 5, 2), (2, 2), None, "same"),
    *family("3x3-stride2", (2, 7, 8, 5), (3, 3), (2, 2)),
    *family("3x3-stride2-same", (1, 8, 7, 4), (3, 3), (2, 2), "same"),
    *family("3x3-stride1-same", (1, 4, 5, 17), (3, 3), (1, 1), "same"),
    *family("2x2-stride1-same", (1, 4, 4, 2), (2, 2), (1, 1), "same"),
    *family("stride-above-window", (1, 7, 10, 2), (2, 1), (3, 4)),
    *family("mixed-axes", (1, 6, 9, 2), (3, 2), (1, 3), ((2, 0), (0, 1))),
    *family("1d", (2, 9, 3), (3,), (2,), "same"),
    *family("3d", (1, 4, 5, 6, 2), (2, 2, 2)),
    *family("3d-same", (1, 3, 5, 4, 2), (3, 2, 3), (2, 2, 2), "same"),
    *family("whole-input", (2, 4, 3, 2), (4, 3)),
    *family("window-257-cells", (1, 300, 2), (257,), (20,)),
    *family("one-cell", (1, 1, 1, 1), (1, 1)),
    *family("empty-batch", (0, 4, 4, 2), (2, 2)),
]

#: Of these only the values are compared: they have no derivative.
EXTREME_CASES = extreme_cases()

#: Layers of well-known networks, for speed only: too large for the references.
SPEED_CASES = [
    *family("mnist-convnet-pool1", (128, 26, 26, 32), (2, 2)),
    *family("lenet-pool1", (64, 28, 28, 6), (2, 2)),
    *family("alexnet-pool1", (16, 55, 55, 96), (3, 3), (2, 2)),
    *family("vgg-pool1", (4, 224, 224, 64), (2, 2)),
    *family("resnet-pool1", (8, 112, 112, 64), (3, 3), (2, 2), "same"),
    *family("cosmoflow-pool1", (1, 128, 128, 128, 16), (2, 2, 2)),
]
