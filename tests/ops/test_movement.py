"""Movement: NumPy's results for shapes, slices and indices, gradients, and no nodes where nothing moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases import movement as cases
from magmadnn_py.graph import Trace
from magmadnn_py.graph.symbolic import Symbol
from magmadnn_py.graph.types import DTYPES

from .checks import (
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    evaluate,
    op_names,
    parametrize,
    sum_gradients,
)

GRADIENT_CASES = [case for case in cases.CASES if case not in cases.ONE_HOT_CASES + cases.CAST_CASES]
GRADIENT_CASES += [case for case in cases.CAST_CASES if case.label in ("cast float32 float32", "cast float64 float32")]


@parametrize(cases.CASES)
def test_reference_has_the_inferred_types(case):
    check_reference(case)


@parametrize(cases.CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize([case for case in GRADIENT_CASES if case not in cases.STOP_GRADIENT_CASES])
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(cases.TYPED_CASES, DTYPES)
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@parametrize(cases.INDEX_CASES + cases.STOP_GRADIENT_CASES, ["float32", "float64", "int32", "int64"])
def test_kernel_of_indices(case, dtype):
    check_kernel(case, dtype)


@parametrize(cases.CAST_CASES)
def test_kernel_of_cast(case):
    check_kernel(case, "float32")
    check_kernel(case, "float64")


# --------------------------------------------------------------------------- shapes


def factorizations(size: int):
    """All shapes of up to four extents with `size` elements, as a strategy."""

    def build(draws):
        shape, rest = [], size
        for draw in draws:
            divisors = [d for d in range(1, rest + 1) if rest % d == 0]
            shape.append(divisors[draw % len(divisors)])
            rest //= shape[-1]
        return (*shape, rest)

    return st.lists(st.integers(0, 20), max_size=3).map(build)


@given(factorizations(24), factorizations(24), st.integers(-1, 3))
def test_reshape(a, b, unknown):
    x = np.arange(24.0).reshape(a)
    wanted = tuple(-1 if place == unknown else extent for place, extent in enumerate(b))
    np.testing.assert_array_equal(evaluate(lambda v: ops.reshape(v, wanted), x), x.reshape(b))


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (7, -1), (-2, -3), (2.5, 2)])
def test_reshape_names_a_wrong_shape(shape):
    with pytest.raises((ValueError, TypeError), match="reshape|integer"):
        evaluate(lambda x: ops.reshape(x, shape), np.zeros((2, 3)))


def test_reshape_of_an_empty_tensor():
    x = np.zeros((0, 3))
    assert evaluate(lambda v: ops.reshape(v, (-1, 6)), x).shape == (0, 6)
    with pytest.raises(ValueError, match="reshape: newshape"):
        evaluate(lambda v: ops.reshape(v, (-1, 0)), x)


@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), st.randoms(use_true_random=False))
def test_axes_move_as_in_numpy(shape, random):
    x = np.arange(np.prod(shape)).reshape(shape)
    axes = random.sample(range(len(shape)), len(shape))
    i, j = random.choice(axes), random.choice(axes)
    for function, numpy_function, args in [
        (ops.transpose, np.transpose, (axes,)),
        (ops.transpose, np.transpose, ()),
        (ops.swapaxes, np.swapaxes, (i, j)),
        (ops.moveaxis, np.moveaxis, (i, j)),
        (ops.moveaxis, np.moveaxis, (axes, tuple(range(len(shape))))),
        (ops.expand_dims, np.expand_dims, (i,)),
        (ops.flip, np.flip, (i,)),
        (ops.flip, np.flip, ()),
        (ops.roll, np.roll, (j + 1, i)),
        (ops.roll, np.roll, (-2,)),
        (ops.repeat, np.repeat, (3, i)),
        (ops.repeat, np.repeat, (2,)),
        (ops.tile, np.tile, ((2, 1, 3),)),
    ]:
        np.testing.assert_array_equal(evaluate(lambda v, f=function, a=args: f(v, *a), x), numpy_function(x, *args))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2)])
def test_transpose_names_wrong_axes(axes):
    with pytest.raises(ValueError, match="transpose: axes"):
        evaluate(lambda x: ops.transpose(x, axes), np.zeros((2, 3)))


def test_squeeze_and_expand():
    x = np.zeros((1, 3, 1))
    assert evaluate(ops.squeeze, x).shape == (3,)
    assert evaluate(lambda v: ops.squeeze(v, -1), x).shape == (1, 3)
    assert evaluate(lambda v: ops.expand_dims(v, (0, -1)), x).shape == (1, 1, 3, 1, 1)
    with pytest.raises(ValueError, match="squeeze: axis: got 1"):
        evaluate(lambda v: ops.squeeze(v, 1), x)


def test_repeat_with_a_count_for_each():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(lambda v: ops.repeat(v, [2, 0, 1], 1), x), np.repeat(x, [2, 0, 1], 1))
    with pytest.raises(ValueError, match="repeat: repeats: got 2 counts"):
        evaluate(lambda v: ops.repeat(v, [2, 1], 1), x)


def test_broadcast_to_names_a_wrong_shape():
    for shape in [(3, 2), (6,), ()]:
        with pytest.raises(ValueError, match="broadcast_to: shape"):
            evaluate(lambda x, s=shape: ops.broadcast_to(x, s), np.zeros((2, 3)))


# --------------------------------------------------------------------------- joining and cutting


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 2))
def test_concatenate(extents, axis):
    parts = [np.full([e if i == axis else 2 for i in range(3)], n, "float32") for n, e in enumerate(extents)]
    got = evaluate(lambda *values: ops.concatenate(values, axis), *parts)
    np.testing.assert_array_equal(got, np.concatenate(parts, axis))


def test_concatenate_promotes_and_names_wrong_inputs():
    got = evaluate(lambda a, b: ops.concatenate([a, b]), np.ones(2, "uint8"), np.ones(3, "float32"))
    assert got.dtype == np.float32 and got.shape == (5,)
    with pytest.raises(ValueError, match="concatenate: xs: got .* and "):
        evaluate(lambda a, b: ops.concatenate([a, b]), np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="concatenate: xs: got no tensors"):
        evaluate(lambda a: ops.concatenate([]), np.ones(2))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_and_unstack(axis):
    x, y = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    got = evaluate(lambda a, b: ops.stack([a, b], axis), x, y)
    np.testing.assert_array_equal(got, np.stack([x, y], axis))
    for part, wanted in zip(evaluate(lambda v: ops.unstack(v, axis=axis), got), (x, y), strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("cuts", [1, 2, 4, [1], [1, 3], [0, 2, 2], [3, 1], [-1], [9]])
def test_split(cuts):
    x = np.arange(8.0).reshape(4, 2)
    for got, wanted in zip(evaluate(lambda v: ops.split(v, cuts), x), np.split(x, cuts), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_split_names_a_number_of_parts_that_does_not_divide():
    with pytest.raises(ValueError, match="split: indices_or_sections: got 3, wanted a divisor of the extent 4"):
        evaluate(lambda x: ops.split(x, 3), np.zeros((4, 2)))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [0, 1, (1, 2), ((1, 0), (0, 2)), ((2, 2), (0, 0))])
def test_pad(mode, width):
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(evaluate(lambda v: ops.pad(v, width, mode), x), np.pad(x, width, mode))
    check_gradient(lambda v: ops.pad(v, width, mode), x)


def test_pad_with_a_value():
    x = np.ones((2, 3), "int32")
    got = evaluate(lambda v: ops.pad(v, 1, constant_values=7), x)
    np.testing.assert_array_equal(got, np.pad(x, 1, constant_values=7))
    with pytest.raises(ValueError, match="pad: pad_width"):
        evaluate(lambda v: ops.pad(v, -1), x)
    with pytest.raises(NotImplementedError, match="pad: mode: got 'empty'"):
        evaluate(lambda v: ops.pad(v, 1, "empty"), x)


# --------------------------------------------------------------------------- indexing


@given(st.data())
def test_getitem_is_numpys(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    x = np.arange(float(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(evaluate(lambda v: ops.getitem(v, key), x), x[key])
    np.testing.assert_array_equal(evaluate(lambda v: v[key], x), x[key])


@given(st.data())
def test_gradient_of_getitem(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    check_gradient(lambda v: v[key], np.arange(float(np.prod(shape))).reshape(shape))


@pytest.mark.parametrize(
    "key",
    [np.array([0, 2, -1]), (slice(None), [1, 0]), (Ellipsis, np.array([[0, 1], [2, 3]])), (0, [1, 2]), ([1, 2], 0),
     (slice(0, 2), 1, np.array([3, 0]), slice(None, None, -1)), (None, [0, 0]), np.array([], "int32"), np.int64(2)],
    ids=str,
)  # fmt: skip
def test_getitem_with_an_array(key):
    x = np.arange(240.0).reshape(3, 4, 4, 5)
    np.testing.assert_array_equal(evaluate(lambda v: v[key], x), x[key])
    check_gradient(lambda v: v[key], x)


def test_getitem_with_a_tensor_of_indices():
    x, indices = np.arange(12.0).reshape(4, 3), np.array([3, -4])
    np.testing.assert_array_equal(evaluate(lambda v, i: v[i], x, indices), x[indices])
    np.testing.assert_array_equal(evaluate(lambda v, i: v[i], x, np.int32(-1)), x[-1])


@pytest.mark.parametrize(
    "key,error",
    [(3, IndexError), ((0, 0, 0), IndexError), ((Ellipsis, Ellipsis), IndexError), (1.5, ValueError),
     (np.array([True, False]), NotImplementedError), (True, NotImplementedError), ("a", (ValueError, TypeError)),
     (([0, 1], [0, 1]), NotImplementedError), ((0, None, [0, 1]), NotImplementedError)],
    ids=str,
)  # fmt: skip
def test_getitem_refuses(key, error):
    with pytest.raises(error):
        evaluate(lambda x: x[key], np.zeros((2, 2)))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [0, [1, -1], [[0, 0, 1], [1, 0, 1]], []])
def test_take(axis, indices):
    x = np.arange(6.0).reshape(2, 3)
    indices = np.array(indices, "int32")
    got = evaluate(lambda v, i: ops.take(v, i, axis), x, indices)
    np.testing.assert_array_equal(got, np.take(x, indices, axis))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_along_axis(axis):
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    order = np.argsort(x, axis)
    np.testing.assert_array_equal(
        evaluate(lambda v, i: ops.take_along_axis(v, i, axis), x, order), np.take_along_axis(x, order, axis)
    )
    check_gradient(lambda v: ops.take_along_axis(v, order, axis), x)


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_out_of_range_is_named(index):
    with pytest.raises(IndexError, match=f"gather: indices: got {index}, wanted -3 to 2"):
        evaluate(lambda x: ops.take(x, [0, index], 0), np.zeros((3, 2)))


def test_indices_must_be_integers():
    with pytest.raises(ValueError, match="take: indices: got float32, wanted integers"):
        evaluate(lambda x: ops.take(x, [0.0], 0), np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis, dtype):
    labels = np.array([[0, 2, 1], [1, 1, 5]], dtype)
    wanted = np.moveaxis((labels[..., None] == np.arange(4)).astype("float32"), -1, axis)
    got = evaluate(lambda v: ops.one_hot(v, 4, axis), labels)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, wanted)


# --------------------------------------------------------------------------- types and new tensors


def test_cast_as_c():
    x = np.array([-1.7, -0.5, 0.0, 0.5, 2.9])
    assert evaluate(lambda v: ops.cast(v, "int32"), x).tolist() == [-1, 0, 0, 0, 2]
    assert evaluate(lambda v: ops.cast(v, "bool"), x).tolist() == [True, True, False, True, True]
    with pytest.raises(TypeError, match="dtype: got 'float16'"):
        evaluate(lambda v: ops.cast(v, "float16"), x)


def test_gradient_does_not_pass_integers():
    x = np.array([1.2, 2.7])
    assert sum_gradients(lambda v: v * ops.cast(ops.cast(v, "int32"), v.dtype), x) == [[1, 2]]
    assert sum_gradients(lambda v: v * ops.stop_gradient(v), x) == [[1.2, 2.7]]


def test_new_tensors():
    with Trace() as trace:
        values = [
            ops.zeros((2, 3)), ops.ones(4, "int32"), ops.full((2,), 1.5), ops.full((2, 2), np.array([1, 2]), "float64"),
            ops.eye(3), ops.eye(2, 3, 1), ops.identity(2, "int32"), ops.arange(4), ops.arange(1, 2, 0.25),
            ops.arange(5, 0, -2, "float32"), ops.zeros(()), ops.zeros((0, 2)),
        ]  # fmt: skip
    wanted = [
        np.zeros((2, 3), "float32"), np.ones(4, "int32"), np.full((2,), 1.5, "float32"), np.array([[1.0, 2], [1, 2]]),
        np.eye(3, dtype="float32"), np.eye(2, 3, 1, dtype="float32"), np.eye(2, dtype="int32"),
        np.arange(4, dtype="int32"), np.arange(1, 2, 0.25, dtype="float32"), np.array([5, 3, 1], "float32"),
        np.zeros((), "float32"), np.zeros((0, 2), "float32"),
    ]  # fmt: skip
    from magmadnn_py.graph.interpret import interpret

    for got, expected in zip(interpret(trace.graph(values), [])[0], wanted, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_full_is_a_broadcast_number():
    with Trace() as trace:
        graph = trace.graph([ops.full((1000, 1000), 2)])
    assert [node.outputs[0].shape for node in graph.order] == [(), (1000, 1000)]


def test_shape():
    assert ops.shape(np.zeros((2, 3))) == (2, 3)
    assert ops.shape([[1, 2, 3]]) == (1, 3)
    assert ops.shape(Symbol((None, 4))) == (None, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.reshape(x, (2, 3, 1)),
        lambda x: ops.reshape(x, (-1, 3, 1)),
        lambda x: ops.transpose(x, (0, 1, 2)),
        lambda x: ops.swapaxes(x, 1, 1),
        lambda x: ops.broadcast_to(x, (2, 3, 1)),
        lambda x: ops.concatenate([x], 1),
        lambda x: x[:],
        lambda x: x[0:2, ..., 0:1],
        lambda x: x[:, :, ::-1],
        lambda x: ops.pad(x, 0),
        lambda x: ops.cast(x, x.dtype),
        lambda x: ops.flip(x, 2),
        lambda x: ops.roll(x, 3, 1),
        lambda x: ops.split(x, 1)[0],
    ],
)
def test_no_node_where_nothing_moves(function):
    assert op_names(function, np.zeros((2, 3, 1))) == []


def test_runs_at_once_on_arrays():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(ops.transpose(x)), x.T)
    np.testing.assert_array_equal(np.asarray(ops.getitem(x, (0, slice(None, None, -1)))), x[0, ::-1])
    np.testing.assert_array_equal(np.asarray(ops.zeros((2, 2))), np.zeros((2, 2)))


def test_extents_and_axes_may_be_numpy_integers():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(ops.reshape(x, (np.int64(3), 2))), x.reshape(3, 2))
    np.testing.assert_array_equal(np.asarray(ops.sum(x, axis=np.int64(1))), x.sum(1))


def test_an_index_out_of_range_in_a_kernel():
    with pytest.raises(IndexError, match="gather"):
        np.asarray(ops.take(np.zeros((3, 2), "float32"), np.array([5]), 0))
