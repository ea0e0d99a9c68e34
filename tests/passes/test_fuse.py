"""The fuse pass: bias and ReLU into products, neighbours into one program, and what must stay apart."""

import importlib

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.conv import Convolution
from magmadnn_py.ops.elementwise import Elementwise
from magmadnn_py.ops.matmul import MatMul
from magmadnn_py.passes.fuse import fuse
from passes.random_graph import RandomGraph

MODULE = importlib.import_module("magmadnn_py.passes.fuse")  # the package's `fuse` is the function


def fused(build, *shapes):
    """The computing nodes of `build(*inputs)` after fusing, after a check that the numbers are the same."""
    with Trace() as trace:
        inputs = [trace.input(shape) for shape in shapes]
        outputs = build(*inputs)
        graph = trace.graph(outputs if isinstance(outputs, list) else [outputs])
    after = fuse(graph)
    arrays = [np.random.default_rng(i).normal(size=shape).astype("float32") for i, shape in enumerate(shapes)]
    for a, b in zip(interpret(graph, arrays)[0], interpret(after, arrays)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
        assert a.dtype == b.dtype
    return [node for node in after.order if not node.op.is_leaf]


def functions(nodes):
    return [sorted(node.op.functions) for node in nodes if isinstance(node.op, Elementwise)]


# ---- products


def convolution(x, kernel):
    return Convolution((1, 1), ((0, 0), (0, 0)), (1, 1), 1)(x, kernel)


@pytest.mark.parametrize(
    ("product", "shapes"), [(ops.matmul, ((4, 3), (3, 5), (5,))), (convolution, ((1, 4, 4, 3), (2, 2, 3, 5), (5,)))]
)
def test_bias_and_relu_become_part_of_a_product(product, shapes):
    for build in (
        lambda x, w, b: ops.relu(product(x, w) + b),
        lambda x, w, b: ops.relu(b + product(x, w)),
        lambda x, w, b: ops.relu(product(x, w) + ops.reshape(b, (1, 5))),
    ):
        (node,) = [node for node in fused(build, *shapes) if node.op.name != "reshape"]
        assert node.op.bias and node.op.activation == "relu"


def test_relu_without_bias():
    (node,) = fused(lambda x, w: ops.relu(ops.matmul(x, w)), (2, 3), (3, 4))
    assert not node.op.bias and node.op.activation == "relu"


def test_only_one_bias():
    nodes = fused(lambda x, w, b, c: ops.matmul(x, w) + b + c, (2, 3), (3, 4), (4,), (4,))
    assert [type(node.op) for node in nodes] == [MatMul, Elementwise]


def test_a_bias_after_the_relu_stays_outside():
    nodes = fused(lambda x, w, b: ops.relu(ops.matmul(x, w)) + b, (2, 3), (3, 4), (4,))
    assert [type(node.op) for node in nodes] == [MatMul, Elementwise]
    assert not nodes[0].op.bias


@pytest.mark.parametrize("shape", [(2, 4), (2, 1), (1, 1), (), (1,)])
def test_an_addend_that_is_no_bias_stays_outside(shape):
    nodes = fused(lambda x, w, b: ops.matmul(x, w) + b, (2, 3), (3, 4), shape)
    assert [type(node.op) for node in nodes] == [MatMul, Elementwise]


def test_a_bias_that_broadcasts_the_product_up_stays_outside():
    nodes = fused(lambda x, w, b: ops.matmul(x, w) + b, (2, 3), (3, 4), (5, 2, 4))
    assert not nodes[0].op.bias


def test_a_product_that_is_used_elsewhere_is_left_alone():
    def twice(x, w, b):
        y = ops.matmul(x, w)
        return [y + b, y]

    assert not fused(twice, (2, 3), (3, 4), (4,))[0].op.bias

    def biased_twice(x, w, b):
        y = ops.matmul(x, w) + b
        return [ops.relu(y), ops.exp(y)]

    product = fused(biased_twice, (2, 3), (3, 4), (4,))[0]
    assert product.op.bias and product.op.activation == "linear"

    def with_itself(x, w):
        y = ops.matmul(x, w)
        return y + y

    assert not fused(with_itself, (2, 4), (4, 4))[0].op.bias


def test_a_product_that_a_variable_gets_is_left_alone():
    v = Variable(np.zeros((2, 4)))
    with Trace() as trace:
        y = ops.matmul(trace.input((2, 3)), trace.input((3, 4)))
        v.assign(y)
        graph = fuse(trace.graph([ops.relu(y)]))
    assert [node.op.activation for node in graph.order if isinstance(node.op, MatMul)] == ["linear"]


# ---- elementwise


def test_a_chain_is_one_program():
    nodes = fused(lambda x: ops.exp(ops.sin(x) * 2.0) + x, (3, 4))
    assert functions(nodes) == [["add", "exp", "multiply", "sin"]]


def test_several_results():
    def build(x):
        y = ops.exp(x)
        z = ops.sin(y)
        return [y, z, z + y]

    (node,) = fused(build, (5,))
    assert len(node.outputs) == 3


def test_comparisons_stay_bool():
    def build(x, y):
        larger = ops.greater(x, y)
        return [larger, ops.where(larger, x, y)]

    (node,) = fused(build, (5,), (5,))
    assert [value.dtype for value in node.outputs] == ["bool", "float32"]


def test_other_shapes_stay_apart():
    nodes = fused(lambda x, y: ops.exp(x) + y, (3,), (2, 3))
    assert functions(nodes) == [["exp"], ["add"]]


def test_other_arithmetic_stays_apart():
    nodes = fused(lambda x: ops.cast(ops.exp(x), "float64") * 2.0, (3,))
    assert functions(nodes) == [["exp"], ["multiply"]]


def test_no_cycle_is_closed():
    """exp and add may not be one: the sum over exp lies between them."""

    def build(x):
        y = ops.exp(x)
        return y - ops.sum(y, keepdims=True)

    assert [node.op.name for node in fused(build, (3, 4))] == ["elementwise", "reduce", "elementwise"]


def test_no_cycle_is_closed_through_groups():
    """Each pair could join, all four could not: a -> sum -> d, and b between a and d."""

    def build(x):
        a = ops.exp(x)
        b = ops.sin(a)
        total = ops.sum(a, keepdims=True)
        c = ops.cos(x) * total
        d = c + b
        return [d, ops.sum(b, keepdims=True) * a]

    fused(build, (3, 4))


def test_two_independent_chains_that_read_each_other():
    def build(x, y):
        a, b = ops.exp(x), ops.exp(y)
        return [ops.sum(a, keepdims=True) + b, ops.sum(b, keepdims=True) + a]

    fused(build, (3, 4), (3, 4))


def test_widening_casts_are_loaded_by_the_program():
    (node,) = fused(lambda x: ops.cast(ops.equal(x, 0.0), "float32") * x, (4,))
    assert functions([node]) == [["equal", "multiply"]]


def test_narrowing_casts_stay():
    def build(x):
        return ops.cast(ops.cast(x, "int32"), "float32") * x

    assert [node.op.name for node in fused(build, (4,))] == ["cast", "elementwise"]


def test_limit_of_instructions(monkeypatch):
    monkeypatch.setattr(MODULE, "_MAX_INSTRUCTIONS", 4)

    def build(x):
        for _ in range(10):
            x = ops.sin(x)
        return x

    assert [len(f) for f in functions(fused(build, (3,)))] == [4, 4, 2]


def test_limit_of_inputs(monkeypatch):
    monkeypatch.setattr(MODULE, "_MAX_INPUTS", 3)
    nodes = fused(lambda *xs: sum(xs[1:], xs[0]), *[(3,)] * 8)
    assert max(len(node.inputs) for node in nodes) <= 3


def test_an_input_of_several_members_is_read_once():
    (node,) = fused(lambda x: ops.sin(x) * ops.cos(x) + x, (3,))
    assert len(node.inputs) == 1


def test_updates_from_one_program():
    v, w = Variable(np.ones(3)), Variable(np.zeros(3))
    with Trace() as trace:
        x = trace.input((3,))
        w.assign(trace.read(w) * 0.9 + x)
        v.assign(trace.read(v) - trace.read(w) * 0.1)
        graph = fuse(trace.graph([]))
    assert len({value.node for _, value in graph.updates}) == 1


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_stay_acyclic_and_within_limits(seed):
    case = RandomGraph(seed, nodes=60)
    graph = fuse(case.graph)
    place = {node: i for i, node in enumerate(graph.order)}
    for node in graph.order:
        assert all(place[value.node] < place[node] for value in node.inputs)
        if isinstance(node.op, Elementwise):
            assert len(node.op.functions) <= 24 and len(node.inputs) <= 12
    for a, b in zip(interpret(case.graph, case.arrays)[0], interpret(graph, case.arrays)[0], strict=True):
        np.testing.assert_array_equal(a, b)
