"""Cases of `matmul`: vectors, tiny, tall, wide and empty matrices, batches that broadcast, dense layers."""

from __future__ import annotations

from ...graph.types import TensorType
from ...ops.matmul import MatMul
from .case import Case, types

# m, k, n
SIZES = [
    (1, 1, 1),
    (1, 7, 1),
    (3, 1, 5),
    (2, 3, 4),
    (17, 13, 19),
    (64, 64, 64),
    (5, 300, 7),
    (1, 129, 33),
    (100, 2, 1),
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
]

# Dense layers of the usual networks (batch, in, out).
LAYERS = [(128, 784, 128), (32, 1600, 10), (64, 400, 120), (16, 2048, 1000)]


def _case(m: int, k: int, n: int, transpose_a=False, transpose_b=False, bias=False, activation="linear") -> Case:
    label = f"{m}x{k}x{n}" + " Ta" * transpose_a + " Tb" * transpose_b + " bias" * bias
    label += f" {activation}" * (activation != "linear")
    inputs = types((k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), *[(n,)] * bias)
    return Case(label, MatMul(transpose_a, transpose_b, bias, activation), inputs)


MATRIX_CASES = [_case(*size, ta, tb) for size in SIZES for ta in (False, True) for tb in (False, True)]

BATCH_CASES = [
    Case(f"batch {a} {b}", MatMul(), types(a, b))
    for a, b in [
        ((2, 3, 4), (4, 5)),
        ((3, 4), (6, 4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((1, 3, 4), (6, 4, 5)),
        ((0, 3, 4), (4, 5)),
    ]
] + [Case("batch transposed", MatMul(True, True), types((3, 4, 2), (1, 5, 4)))]

EPILOGUE_CASES = [
    _case(8, 6, 10, bias=True),
    _case(8, 6, 10, bias=True, activation="relu"),
    _case(33, 65, 17, bias=True, activation="relu"),
    _case(8, 6, 10, activation="relu"),
    _case(6, 8, 10, True, True, True, "relu"),
    _case(3, 0, 4, bias=True),
    Case("batch bias", MatMul(bias=True), types((2, 3, 4), (4, 6), (6,))),
]

INTEGER_CASES = [
    Case(f"{dtype} 5x6x7", MatMul(), (TensorType((5, 6), dtype), TensorType((6, 7), dtype)))
    for dtype in ("int32", "int64", "uint8")
]

LAYER_CASES = [_case(*size, bias=True, activation="relu") for size in LAYERS]

#: Dense layers, forward and the products of their gradients, and a square product. For speed only.
SPEED_CASES = [
    *(_case(*size, bias=True) for size in ((128, 800, 500), (16, 9216, 4096), (4, 25088, 4096))),
    _case(16, 4096, 9216, transpose_b=True),
    _case(9216, 16, 4096, transpose_a=True),
    _case(1024, 1024, 1024),
    Case("attention", MatMul(transpose_b=True), types((16, 12, 196, 64), (16, 12, 196, 64))),
]

CASES = MATRIX_CASES + BATCH_CASES + EPILOGUE_CASES + INTEGER_CASES + LAYER_CASES
