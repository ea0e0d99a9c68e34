"""Cases of the movement ops, with empty and one-element tensors and axes of extent 1."""

from __future__ import annotations

from ...graph.types import DTYPES, TensorType
from ...ops.movement import (
    BroadcastTo,
    Cast,
    Concatenate,
    Copy,
    Gather,
    OneHot,
    Pad,
    Reshape,
    ScatterAdd,
    Slice,
    StopGradient,
    Transpose,
)
from .case import Case, types

SHAPES = [(), (1,), (5,), (0,), (2, 3), (1, 4), (3, 0, 2), (2, 3, 4), (2, 3, 4, 5)]

COPY_CASES = [Case(f"copy {shape}", Copy(), types(shape)) for shape in SHAPES]

RESHAPE_CASES = [
    Case(f"reshape {a} {b}", Reshape(b), types(a))
    for a, b in [
        ((), (1, 1)),
        ((6,), (2, 3)),
        ((4, 3, 3, 2), (4, 18)),
        ((4, 6), (4, 2, 3)),
        ((4, 6), (2, 2, 6)),
        ((4, 1, 6), (4, 6)),
        ((0, 3), (3, 0)),
        ((2, 4, 6), (8, 6)),
    ]
]

TRANSPOSE_CASES = [
    Case(f"transpose {shape} {axes}", Transpose(axes), types(shape))
    for shape, axes in [
        ((5,), (0,)),
        ((3, 5), (1, 0)),
        ((1, 5), (1, 0)),
        ((0, 4), (1, 0)),
        ((2, 3, 4), (0, 2, 1)),
        ((2, 3, 4), (2, 1, 0)),
        ((4, 6, 6, 3), (0, 3, 1, 2)),
        ((4, 3, 6, 6), (0, 2, 3, 1)),
        ((2, 3, 1, 2, 3), (4, 0, 2, 3, 1)),
        ((70, 65), (1, 0)),
    ]
]

BROADCAST_CASES = [
    Case(f"broadcast {a} {b}", BroadcastTo(b), types(a))
    for a, b in [
        ((), (4,)),
        ((), (2, 0, 3)),
        ((1,), (6,)),
        ((4,), (2, 4)),
        ((4, 1), (4, 6)),
        ((2, 1, 4), (6, 2, 2, 4)),
        ((1, 1, 8), (4, 6, 8)),
        ((0, 1), (0, 5)),
    ]
]

CONCATENATE_CASES = [
    Case(f"concatenate {shapes} axis {axis}", Concatenate(axis), types(*shapes))
    for axis, shapes in [
        (0, [(3,)]),
        (0, [(2,), (0,), (3,)]),
        (0, [(2, 4), (1, 4)]),
        (1, [(2, 4), (2, 1), (2, 3)]),
        (3, [(2, 4, 4, 3), (2, 4, 4, 5)]),
        (1, [(0, 2), (0, 3)]),
        (2, [(4, 2, 1, 2)] * 5),
    ]
]

SLICE_CASES = [
    Case(f"slice {shape} {starts}:{stops}:{steps}", Slice(starts, stops, steps), types(shape))
    for shape, starts, stops, steps in [
        ((8,), (0,), (8,), (1,)),
        ((8,), (2,), (7,), (1,)),
        ((8,), (1,), (8,), (3,)),
        ((8,), (7,), (-1,), (-1,)),
        ((8,), (6,), (0,), (-2,)),
        ((8,), (0,), (0,), (1,)),
        ((0,), (0,), (0,), (1,)),
        ((4, 6), (1, 0), (3, 6), (1, 1)),
        ((4, 6), (0, 2), (4, 6), (1, 2)),
        ((4, 6), (3, 5), (-1, -1), (-1, -2)),
        ((4, 6, 2), (0, 2, 0), (4, 5, 2), (1, 1, 1)),
        ((2, 5, 5, 4), (0, 1, 1, 0), (2, 4, 4, 4), (1, 1, 1, 1)),
    ]
]

PAD_CASES = [
    Case(f"pad {shape} {low} {high} {interior} {value}", Pad(low, high, interior, value), types(shape))
    for shape, low, high, interior, value in [
        ((4,), (1,), (2,), (0,), 0.0),
        ((4,), (1,), (2,), (2,), 3.0),
        ((0,), (1,), (2,), (2,), 1.0),
        ((1,), (0,), (0,), (3,), 1.0),
        ((2, 4, 4, 3), (0, 1, 1, 0), (0, 1, 2, 0), (0, 0, 0, 0), 0.0),
        ((2, 4, 4, 2), (0, 1, 0, 0), (0, 0, 2, 0), (0, 1, 2, 0), 0.0),
        ((4, 6), (0, 0), (0, 0), (0, 0), 5.0),
    ]
]


def _indexed(rng, types):
    """Indices from both ends, several of them equal; then (or before) normal numbers."""
    return [rng.integers(-3, 3, t.shape) if t.dtype.startswith("int") else rng.standard_normal(t.shape) for t in types]


GATHER_CASES = [
    Case(
        f"gather {shape} {indices} axis {axis}", Gather(axis), (TensorType(shape), TensorType(indices, dtype)), _indexed
    )
    for shape, indices, axis, dtype in [
        ((3,), (), 0, "int32"),
        ((3,), (7,), 0, "int64"),
        ((3, 4), (2, 6), 0, "int32"),
        ((4, 3), (2, 6), 1, "int32"),
        ((2, 5, 4), (8,), 1, "int64"),
        ((3, 4), (0,), 0, "int32"),
        ((0, 4), (2,), 1, "int32"),
    ]
]

SCATTER_CASES = [
    Case(
        f"scatter {indices} {updates} axis {axis}",
        ScatterAdd(axis, size),
        (TensorType(indices, "int32"), TensorType(updates)),
        _indexed,
    )
    for indices, updates, axis, size in [
        ((), (), 0, 3),
        ((8,), (8,), 0, 3),
        ((2, 6), (2, 6, 4), 0, 4),
        ((2, 6), (4, 2, 6), 1, 5),
        ((8,), (2, 8, 4), 1, 3),
        ((0,), (0, 4), 0, 3),
    ]
]

ONE_HOT_CASES = [
    Case(f"one_hot {shape} {depth}", OneHot(depth), (TensorType(shape, "int32"),))
    for shape, depth in [((), 3), ((8,), 4), ((4, 6), 1), ((0,), 3), ((4,), 0)]
]

CAST_CASES = [
    Case(f"cast {a} {b}", Cast(b), types((4, 6), dtype=a)) for a in DTYPES for b in DTYPES
]  # fmt: skip

STOP_GRADIENT_CASES = [Case("stop_gradient", StopGradient(), types((4, 6)), differentiable=(False,))]

#: Cases for every element type.
TYPED_CASES = (
    COPY_CASES + RESHAPE_CASES + TRANSPOSE_CASES + BROADCAST_CASES + CONCATENATE_CASES + SLICE_CASES + PAD_CASES
)
INDEX_CASES = GATHER_CASES + SCATTER_CASES + ONE_HOT_CASES
CASES = TYPED_CASES + INDEX_CASES + CAST_CASES + STOP_GRADIENT_CASES

#: Between channels-last and channels-first, and transposed dense weights. For speed only.
SPEED_CASES = [
    Case("images-to-channels-first", Transpose((0, 3, 1, 2)), types((16, 224, 224, 3))),
    Case("features-to-channels-first", Transpose((0, 3, 1, 2)), types((8, 56, 56, 256))),
    Case("features-to-channels-last", Transpose((0, 2, 3, 1)), types((8, 256, 56, 56))),
    Case("dense-weights", Transpose((1, 0)), types((4096, 4096))),
    Case("copy", Copy(), types((16, 56, 56, 64))),
]
