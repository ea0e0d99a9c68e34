"""Symbols: shapes with unknown extents, recorded calls, and what is refused."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Symbol, Trace
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.graph.symbolic import calls_between, replay


def image():
    return Symbol((None, 8, 8, 3), "float32", "image")


@pytest.mark.parametrize(
    "function,wanted",
    [
        (lambda x: x * 2.0 + 1.0, (None, 8, 8, 3)),
        (lambda x: ops.reshape(x, (-1, 192)), (None, 192)),
        (lambda x: ops.reshape(x, (ops.shape(x)[0], 192)), (None, 192)),
        (lambda x: ops.reshape(x, (-1, 3)), (None, 3)),
        (lambda x: ops.reshape(x, (-1,)), (None,)),
        (lambda x: ops.transpose(x, (3, 1, 2, 0)), (3, 8, 8, None)),
        (lambda x: ops.mean(x, (1, 2)), (None, 3)),
        (lambda x: ops.mean(x, (0, 1, 2)), (3,)),
        (lambda x: ops.sum(x), ()),
        (lambda x: ops.matmul(x, np.ones((3, 5), "float32")), (None, 8, 8, 5)),
        (lambda x: ops.concatenate([x, x], 0), (None, 8, 8, 6 // 2)),
        (lambda x: ops.concatenate([x, x], 3), (None, 8, 8, 6)),
        (lambda x: ops.pad(x, ((0, 0), (1, 2), (1, 2), (0, 0))), (None, 11, 11, 3)),
        (lambda x: x[:, ::2, 1:-1], (None, 4, 6, 3)),
        (lambda x: x[:, 0, 0], (None, 3)),
        (lambda x: x[0], (8, 8, 3)),
        (lambda x: ops.argmax(x, -1), (None, 8, 8)),
        (lambda x: ops.one_hot(ops.argmax(x, -1), 5), (None, 8, 8, 5)),
        (lambda x: ops.expand_dims(x, 0), (1, None, 8, 8, 3)),
    ],
)
def test_shapes(function, wanted):
    assert function(image()).shape == wanted


def test_arithmetic_on_unknown_extents_as_in_a_convolution():
    # Extents (s + 2) // 2 of s cells, by padding and slicing with step 2: unknown stays unknown, known is computed.
    x = Symbol((None, None, 9, 3))
    y = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))[:, ::2, ::2]
    assert y.shape == (None, None, 6, 3)
    assert ops.reshape(y, (-1, 18)).shape == (None, 18)


def test_types_and_structures():
    x = image()
    assert ops.argmax(x, 1).dtype == "int32" and (x > 0.0).dtype == "bool"
    parts = ops.split(x, 2, 1)
    assert [part.shape for part in parts] == [(None, 4, 8, 3)] * 2 and isinstance(parts, list)


def test_replay_on_values():
    x = image()
    a, b = ops.split(ops.exp(x), 2, axis=1)
    y = ops.mean(a - b, (1, 2)) * 2.0
    calls = calls_between([x], [y])
    array = np.random.default_rng(0).standard_normal((5, 8, 8, 3)).astype("float32")
    with Trace() as trace:
        values = {x: trace.input(array.shape)}
        replay(calls, values)
    (got,), _ = interpret(trace.graph([values[y]]), [array])
    e = np.exp(array)
    np.testing.assert_allclose(got, 2 * (e[:, :4] - e[:, 4:]).mean((1, 2)), rtol=1e-5)


def test_only_what_leads_to_the_outputs_is_replayed():
    x = image()
    y = ops.exp(x)
    ops.sin(y)
    assert [call.function.__name__ for call in calls_between([x], [ops.sum(y)])] == ["exp", "sum"]
    assert calls_between([y], [y]) == []


def test_an_output_of_another_input_is_named():
    x, other = image(), Symbol((None, 1), name="other")
    with pytest.raises(ValueError, match="depend on 'other', which is not among the inputs"):
        calls_between([x], [ops.sum(x) + other])


@pytest.mark.parametrize(
    "misuse,message",
    [
        (lambda x: bool(x > 0), "has no truth value"),
        (lambda x: np.exp(x), "no numbers|ufunc"),
        (lambda x: np.asarray(x), "no numbers"),
        (lambda x: len(x), "not known yet"),
        (lambda x: list(x), "not known yet"),
    ],
)
def test_misuse_is_explained(misuse, message):
    with pytest.raises(TypeError, match=message):
        misuse(image())


def test_shape_errors_come_when_the_network_is_described():
    with pytest.raises(ValueError, match="matmul: inputs"):
        ops.matmul(image(), np.ones((4, 5), "float32"))
    with pytest.raises(ValueError, match="reshape: newshape"):
        ops.reshape(image(), (-1, 7))
    with pytest.raises(ValueError, match="add: inputs"):
        image() + Symbol((None, 8, 8, 4))
