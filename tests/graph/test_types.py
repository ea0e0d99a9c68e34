"""Element types, shapes and axes."""

import numpy as np
import pytest

from magmadnn_py.graph.types import (
    DTYPES,
    TensorType,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
    promote,
    standardize_dtype,
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_type_by_any_name(dtype):
    for name in (dtype, np.dtype(dtype), np.dtype(dtype).type, np.dtype(dtype).newbyteorder(">")):
        assert standardize_dtype(name) == dtype


def test_python_types():
    assert [standardize_dtype(t) for t in (bool, int, float)] == ["bool", "int32", "float32"]


@pytest.mark.parametrize("dtype", ["float16", "complex64", "nonsense", np.uint16, object])
def test_other_types_are_named(dtype):
    with pytest.raises(TypeError, match="wanted one of bool, uint8"):
        standardize_dtype(dtype)


def test_promotion():
    assert promote("bool") == "bool"
    assert promote("int64", "float32") == "float32"
    assert promote("uint8", "int32", "bool") == "int32"
    assert promote("float32", "float64") == "float64"


def test_tensor_type():
    t = TensorType((2, 3, 4), "int64")
    assert (t.rank, t.size, t.nbytes, str(t)) == (3, 24, 192, "int64[2, 3, 4]")
    assert TensorType(()).size == 1 and TensorType((0, 3)).nbytes == 0
    assert t == TensorType((2, 3, 4), "int64") and hash(t) == hash(TensorType((2, 3, 4), "int64"))


def test_broadcast_shapes():
    assert broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(ValueError):
        broadcast_shapes((2,), (3,))


def test_axes():
    assert normalize_axis(-1, 3, "op") == 2
    assert normalize_axes(None, 2, "op") == (0, 1)
    assert normalize_axes(np.int64(-1), 2, "op") == (1,)
    assert normalize_axes((2, -3), 3, "op") == (0, 2)
    assert normalize_axes((), 3, "op") == ()
    with pytest.raises(ValueError, match="op: axes: got 3, wanted an axis of a tensor of rank 3"):
        normalize_axes((0, 3), 3, "op", "axes")
    with pytest.raises(ValueError, match="op: axis: got .* wanted no axis twice"):
        normalize_axes((0, -3), 3, "op")
