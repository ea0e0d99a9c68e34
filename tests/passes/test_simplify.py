"""Every rule of the simplify pass, and what must not be simplified."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Constant, Trace, Variable
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.movement import BroadcastTo, Cast, Reshape, Transpose
from magmadnn_py.ops.reduce import Reduce
from magmadnn_py.passes.simplify import simplify


def simplified(build, *shapes, dtype="float32"):
    """Names of the computing nodes left of `build(*inputs)`, after a check that the numbers are the same."""
    with Trace() as trace:
        inputs = [trace.input(shape, dtype) for shape in shapes]
        outputs = build(*inputs)
        graph = trace.graph(outputs if isinstance(outputs, list) else [outputs])
    after = simplify(graph)
    arrays = [np.random.default_rng(i).normal(size=shape).astype(dtype) for i, shape in enumerate(shapes)]
    for a, b in zip(interpret(graph, arrays)[0], interpret(after, arrays)[0], strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    return [name_of(node) for node in after.order if not node.op.is_leaf]


def name_of(node):
    return "+".join(node.op.functions) if hasattr(node.op, "functions") else node.op.name


def test_equal_nodes_are_merged():
    assert simplified(lambda x: ops.exp(x) * ops.exp(x), (3,)) == ["exp", "multiply"]


def test_merging_goes_on_through_merged_nodes():
    assert simplified(lambda x: ops.sin(ops.exp(x)) - ops.sin(ops.exp(x)), (3,)) == ["exp", "sin", "subtract"]


def test_equal_constants_are_merged():
    assert simplified(lambda x: (x * 3.0) * (x * 3.0), (3,)) == ["multiply", "multiply"]


def test_constants_of_other_types_stay_apart():
    with Trace() as trace:
        graph = trace.graph([ops.convert(np.array([1], dtype)) for dtype in ("int32", "float32", "int64")])
    assert [value.dtype for value in simplify(graph).outputs] == ["int32", "float32", "int64"]


def test_two_inputs_are_never_the_same():
    with Trace() as trace:
        a, b = trace.input((2,)), trace.input((2,))
        graph = trace.graph([ops.exp(a), ops.exp(b)])
    assert len({value.node for value in simplify(graph).outputs}) == 2


def test_reads_of_one_variable_are_merged_and_those_of_others_not():
    v, w = Variable(np.ones(2)), Variable(np.ones(2))
    first, second, other = ops.convert(v), ops.convert(v), ops.convert(w)  # outside a trace: a node each
    with Trace() as trace:
        graph = simplify(trace.graph([first + second, other + first]))
    reads = [node for node in graph.order if node.op.name == "variable"]
    assert [node.op.variable for node in reads] == [v, w]


def test_random_numbers_of_two_streams_stay_apart():
    with Trace() as trace:
        state = trace.input((2,), "int64")
        graph = trace.graph([ops.RandomUniform((4,), 0.0, 1.0, "float32", stream)(state) for stream in (1, 2, 1)])
    a, b, c = simplify(graph).outputs
    assert a is c and a is not b


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + 0.0,
        lambda x: 0.0 + x,
        lambda x: x - 0.0,
        lambda x: x * 1.0,
        lambda x: 1.0 * x,
        lambda x: x / 1.0,
        lambda x: x + np.zeros((1, 1), "float32"),
    ],
)
def test_neutral_constants(build):
    assert simplified(build, (2, 3)) == []


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda x: 0.0 - x, ["subtract"]),
        (lambda x: 1.0 / x, ["divide"]),
        (lambda x: x + np.zeros((4, 1, 1), "float32"), ["add"]),  # it broadcasts x
        (lambda x: x * np.array([1, 2, 1], "float32"), ["multiply"]),
        (lambda x: ops.power(1.0, x), ["power"]),
    ],
)
def test_constants_that_are_not_neutral(build, left):
    assert simplified(build, (2, 3)) == left


def test_no_ops():
    def build(x):
        y = Reshape(x.shape)(x)
        y = Cast(x.dtype)(y)
        y = BroadcastTo(x.shape)(y)
        y = ops.stop_gradient(y)
        return Transpose((0, 1))(y)

    assert simplified(build, (2, 3)) == []


def test_reshapes_in_a_row():
    assert simplified(lambda x: Reshape((6,))(Reshape((3, 2))(x)), (2, 3)) == ["reshape"]
    assert simplified(lambda x: Reshape((2, 3))(Reshape((3, 2))(x)), (2, 3)) == []


def test_transposes_in_a_row():
    assert simplified(lambda x: Transpose((1, 2, 0))(Transpose((1, 2, 0))(x)), (2, 3, 4)) == ["transpose"]
    assert simplified(lambda x: Transpose((2, 0, 1))(Transpose((1, 2, 0))(x)), (2, 3, 4)) == []


@pytest.mark.parametrize("function", ["sum", "mean", "max", "min", "prod"])
def test_reductions_over_single_elements_are_reshapes(function):
    assert simplified(lambda x: Reduce(function, (0, 2), False)(x), (1, 3, 1)) == ["reshape"]
    assert simplified(lambda x: Reduce(function, (0, 2), True)(x), (1, 3, 1)) == []
    assert simplified(lambda x: Reduce(function, (), False)(x), (2, 3)) == []


def test_any_of_a_single_element_is_not_its_value():
    assert simplified(lambda x: Reduce("any", (0,), False)(x), (1, 3)) == ["reduce"]


def test_needless_broadcasts():
    assert simplified(lambda x, y: BroadcastTo((2, 3))(x) + y, (3,), (2, 3)) == ["add"]


def test_a_broadcast_that_gives_the_result_its_shape_stays():
    left = simplified(lambda x: BroadcastTo((2, 3))(x) * BroadcastTo((2, 3))(x), (3,))
    assert left == ["broadcast_to", "multiply"]


def test_constants_are_folded():
    with Trace() as trace:
        constant = ops.exp(ops.convert(np.arange(3.0, dtype="float32"))) * 2 + 1
        graph = simplify(trace.graph([ops.reshape(constant, (3, 1))]))
    (value,) = graph.outputs
    assert isinstance(value.node.op, Constant)
    np.testing.assert_allclose(value.node.op.array, (np.exp(np.arange(3)) * 2 + 1)[:, None], rtol=1e-6)


def test_large_constants_are_not_folded():
    with Trace() as trace:
        graph = simplify(trace.graph([ops.zeros((1000, 1000))]))
    assert not isinstance(graph.outputs[0].node.op, Constant)


def test_inputs_keep_their_places_even_unused_ones():
    with Trace() as trace:
        trace.input((1,))
        b = trace.input((2,))
        trace.input((3,))
        graph = simplify(trace.graph([b + 0.0]))
    assert [value.shape for value in graph.inputs] == [(1,), (2,), (3,)]
    assert graph.outputs == (graph.inputs[1],)


def test_updates_are_kept():
    v = Variable(np.ones(3))
    with Trace() as trace:
        v.assign(trace.read(v) * 1.0 + ops.zeros(()))
        graph = simplify(trace.graph([]))
    ((variable, value),) = graph.updates
    assert variable is v and value.node.op.name == "variable"


def test_a_second_time_changes_nothing():
    with Trace() as trace:
        x = trace.input((4, 4))
        y = ops.transpose(ops.transpose(x)) * 1.0 + ops.exp(x) * ops.exp(x)
        once = simplify(trace.graph([ops.sum(y)]))
    assert simplify(once).order == once.order
