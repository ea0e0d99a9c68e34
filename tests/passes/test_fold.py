"""The fold pass: factors per channel into the weights before them."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.conv import Convolution
from magmadnn_py.ops.elementwise import Elementwise
from magmadnn_py.ops.matmul import MatMul
from magmadnn_py.passes import run_passes
from magmadnn_py.passes.fold import fold
from magmadnn_py.runtime.program import Program

X, W, V = (2, 9, 8, 3), (3, 3, 3, 4), (4,)


def convolution(x, kernel, groups=1):
    return Convolution((1, 1), ((1, 1), (1, 1)), (1, 1), groups)(x, kernel)


def folded(build, *shapes, pass_=fold):
    """The computing nodes of `build(*inputs)` after the pass, after a check that the numbers are the same."""
    with Trace() as trace:
        outputs = build(*(trace.input(shape) for shape in shapes))
        graph = trace.graph(outputs if isinstance(outputs, list) else [outputs])
    after = pass_(graph)
    arrays = [np.random.default_rng(i).uniform(0.5, 2, size=shape).astype("float32") for i, shape in enumerate(shapes)]
    for a, b in zip(interpret(graph, arrays)[0], interpret(after, arrays)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    return [node for node in after.order if not node.op.is_leaf]


def large_elementwise(nodes):
    return [
        node.op.functions
        for node in nodes
        if isinstance(node.op, Elementwise) and node.outputs[0].type.size > X[0] * X[1] * X[2]
    ]


def normalized(x, mean, variance, offset, scale):
    return ops.batch_normalization(x, mean, variance, -1, offset, scale, 1e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_batch_normalization_becomes_weights_and_bias(bias):
    def build(x, w, b, *statistics):
        y = convolution(x, w)
        return ops.relu(normalized(y + b if bias else y, *statistics))

    nodes = folded(build, X, W, V, V, V, V, V, pass_=run_passes)
    (node,) = [node for node in nodes if isinstance(node.op, Convolution)]
    assert node.op.bias and node.op.activation == "relu"
    assert not large_elementwise(nodes)


def test_with_a_residual():
    def build(x, w, r, *statistics):
        return ops.relu(normalized(convolution(x, w), *statistics) + r)

    nodes = folded(build, X, W, (*X[:3], 4), V, V, V, V, pass_=run_passes)
    (node,) = [node for node in nodes if isinstance(node.op, Convolution)]
    assert (node.op.bias, node.op.residual, node.op.activation) == (True, True, "relu")


def test_depthwise():
    nodes = folded(lambda x, w, a: convolution(x, w, 3) * a, X, (3, 3, 1, 3), (3,))
    assert not large_elementwise(nodes)


def test_dense():
    nodes = folded(lambda x, w, b, a: (ops.matmul(x, w) + b) * a, (50, 3), (3, 4), V, V)
    assert [node.op.name for node in nodes if node.outputs[0].type.size == 200] == ["matmul", "elementwise"]


def test_two_in_a_row():
    def build(x, w, *statistics):
        return normalized(normalized(convolution(x, w), *statistics), *statistics)

    assert large_elementwise(folded(build, X, W, V, V, V, V)) == [("add",)]


def test_several_readers_stay_outside():
    def build(x, w, a):
        y = convolution(x, w)
        return [y * a, y]

    assert large_elementwise(folded(build, X, W, V)) == [("multiply",)]

    def biased_twice(x, w, b, a):
        y = convolution(x, w) + b
        return [y * a, y]

    assert ("multiply",) in large_elementwise(folded(biased_twice, X, W, V, V))

    def bare_twice(x, w, b, a):
        y = convolution(x, w)
        return [(y + b) * a, y]

    assert ("multiply",) in large_elementwise(folded(bare_twice, X, W, V, V))


@pytest.mark.parametrize("shape", [(8, 4), (1,), (), (2, 9, 8, 4), (2, 1, 1, 4)])
def test_factors_that_are_not_per_channel_stay_outside(shape):
    assert large_elementwise(folded(lambda x, w, a: convolution(x, w) * a, X, W, shape)) == [("multiply",)]


def test_many_weights_and_few_results_stay_as_they_are():
    nodes = folded(lambda x, w, a: ops.matmul(x, w) * a, (2, 9), (9, 4), V)
    assert [type(node.op) for node in nodes] == [MatMul, Elementwise]


def test_an_activation_between_stays():
    assert ("multiply",) in large_elementwise(folded(lambda x, w, a: ops.relu(convolution(x, w)) * a, X, W, V))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_program_gives_what_the_unfolded_one_gives(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    shapes = [W, V, (3, 3, 4, 4), V]
    variables = [Variable(rng.uniform(0.5, 2, shape), dtype) for shape in shapes]
    x = rng.standard_normal(X).astype(dtype)
    found = []
    for off in ("", "-fold", "-fold,-fuse,-choose_kernels"):
        monkeypatch.setenv("MAGMADNN_PASSES", off)
        with Trace() as trace:
            y = trace.input(X, dtype)
            for w, v in zip(variables[::2], variables[1::2], strict=True):
                y = ops.relu(normalized(convolution(y, trace.read(w)), v, v, v, v))
            found.append(Program(trace.graph([y])).run(x)[0].copy())
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for array in found[:2]:
        np.testing.assert_allclose(array, found[2], rtol=tolerance, atol=tolerance)
