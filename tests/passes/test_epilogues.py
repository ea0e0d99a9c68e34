"""Residual and ReLU into convolutions and normalisations, the ReLU's gradient into that of a normalisation."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable, gradients
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.ops.conv import Convolution
from magmadnn_py.ops.elementwise import Elementwise
from magmadnn_py.ops.norm import Normalize, NormalizeGradient
from magmadnn_py.passes.epilogues import fuse_epilogues
from magmadnn_py.passes.simplify import simplify

X, W, V = (2, 5, 4, 3), (3, 3, 3, 3), (1, 1, 1, 3)


def fused(build, *shapes):
    """The computing nodes of `build(*inputs)` after the pass, after a check that the numbers are the same."""
    with Trace() as trace:
        inputs = [trace.input(shape) for shape in shapes]
        outputs = build(*inputs)
        graph = simplify(trace.graph(outputs if isinstance(outputs, list) else [outputs]))
    return after_check(graph, shapes)


def after_check(graph, shapes):
    after = fuse_epilogues(graph)
    place = {node: i for i, node in enumerate(after.order)}
    assert all(place[value.node] < place[node] for node in after.order for value in node.inputs)
    arrays = [np.random.default_rng(i).normal(size=shape).astype("float32") for i, shape in enumerate(shapes)]
    for before, now in zip(interpret(graph, arrays), interpret(after, arrays), strict=True):
        for a, b in zip(before, now, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return [node for node in after.order if not node.op.is_leaf]


def epilogues(nodes, kind):
    return [(node.op.residual, node.op.activation) for node in nodes if isinstance(node.op, kind)]


def convolution(x, kernel):
    return Convolution((1, 1), ((1, 1), (1, 1)), (1, 1), 1)(x, kernel)


def normalized(x, scale, offset):
    return ops.normalize_over(x, (0, 1, 2), 1e-3, scale, offset)[0]


def count(nodes, kind):
    return sum(isinstance(node.op, kind) for node in nodes)


# ---- convolutions


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_a_residual_becomes_part_of_a_convolution(activation):
    act = ops.relu if activation == "relu" else lambda x: x
    for build in (
        lambda x, w, b, r: act(convolution(x, w) + b + r),
        lambda x, w, b, r: act(r + (convolution(x, w) + b)),
        lambda x, w, b, r: act((convolution(x, w) + r) + b),
    ):
        (node,) = fused(build, X, W, (3,), X)
        assert (node.op.bias, node.op.residual, node.op.activation) == (True, True, activation)


def test_only_one_residual():
    nodes = fused(lambda x, w, r, s: convolution(x, w) + r + s, X, W, X, X)
    assert [type(node.op) for node in nodes] == [Convolution, Elementwise]


def test_one_of_two_convolutions_takes_the_other_as_its_residual():
    nodes = fused(lambda x, w, v: ops.relu(convolution(x, w) + convolution(x, v)), X, W, W)
    assert sorted(epilogues(nodes, Convolution)) == [(False, "linear"), (True, "relu")]
    assert len(nodes) == 2


def test_a_convolution_that_is_used_elsewhere_is_left_alone():
    def build(x, w, r):
        y = convolution(x, w)
        return [y + r, y]

    assert epilogues(fused(build, X, W, X), Convolution) == [(False, "linear")]


def test_a_residual_that_broadcasts_stays_outside():
    nodes = fused(lambda x, w, r: convolution(x, w) + r, X, W, (1, 5, 4, 3))
    assert epilogues(nodes, Convolution) == [(False, "linear")]


# ---- normalisations


def test_relu_and_residual_become_part_of_a_normalization():
    (node,) = fused(lambda x, a, b: ops.relu(normalized(x, a, b)), X, V, V)
    assert (node.op.residual, node.op.activation) == (False, "relu")
    for build in (
        lambda x, a, b, r: ops.relu(normalized(x, a, b) + r),
        lambda x, a, b, r: ops.relu(r + normalized(x, a, b)),
    ):
        (node,) = fused(build, X, V, V, X)
        assert (node.op.residual, node.op.activation) == (True, "relu")
    (node,) = fused(lambda x, a, b, r: normalized(x, a, b) + r, X, V, V, X)
    assert (node.op.residual, node.op.activation) == (True, "linear")


def test_two_normalizations_that_are_added():
    nodes = fused(lambda x, z, a, b: ops.relu(normalized(x, a, b) + normalized(z, b, a)), X, X, V, V)
    assert sorted(epilogues(nodes, Normalize)) == [(False, "linear"), (True, "relu")]
    assert len(nodes) == 2


def test_a_normalization_that_is_used_elsewhere_is_left_alone():
    def build(x, a, b):
        y = normalized(x, a, b)
        return [ops.relu(y), y]

    assert epilogues(fused(build, X, V, V), Normalize) == [(False, "linear")]
    assert epilogues(fused(lambda x, a, b: ops.relu(normalized(x, a, b) * 2.0), X, V, V), Normalize) == [
        (False, "linear")
    ]


def test_a_sum_that_is_used_elsewhere_keeps_the_relu_outside():
    def build(x, a, b, r):
        y = normalized(x, a, b) + r
        return [ops.relu(y), y]

    assert epilogues(fused(build, X, V, V, X), Normalize) == [(True, "linear")]


def test_statistics_are_read_from_the_fused_node():
    """The moving mean is assigned before the addition is made."""
    moving = Variable(np.ones((1, 1, 1, 3), "float32"))
    with Trace() as trace:
        x, scale, residual = trace.input(X), trace.input(V), trace.input(X)
        y, mean, _ = ops.normalize_over(x, (0, 1, 2), 1e-3, scale)
        moving.assign(trace.read(moving) * 0.9 + mean * 0.1)
        graph = trace.graph([ops.relu(y + ops.exp(residual))])
    nodes = after_check(graph, (X, V, X))
    assert epilogues(nodes, Normalize) == [(True, "relu")]


def test_statistics_that_the_residual_needs_keep_the_addition_outside():
    def build(x, a, b):
        y, mean, _ = ops.normalize_over(x, (0, 1, 2), 1e-3, a, b)
        return ops.relu(y + x * mean)

    assert epilogues(fused(build, X, V, V), Normalize) == [(False, "linear")]


def test_statistics_that_are_results_are_computed_once():
    def build(x, a, b):
        y, mean, variance = ops.normalize_over(x, (0, 1, 2), 1e-3, a, b)
        return [ops.relu(y), mean, variance]

    assert len([node for node in fused(build, X, V, V) if isinstance(node.op, Normalize)]) == 1


# ---- gradients of normalisations


def test_the_relu_is_part_of_the_gradient():
    def build(x, a, b, g):
        return gradients([ops.relu(normalized(x, a, b))], [x, a, b], [g])

    nodes = fused(build, X, V, V, X)
    assert epilogues(nodes, NormalizeGradient) == [(False, "relu")]
    assert len(nodes) == 2


def test_the_gradient_of_a_residual_comes_with_it():
    def build(x, a, b, r, g):
        return gradients([ops.relu(normalized(x, a, b) + ops.exp(r))], [x, a, b, r], [g])

    nodes = fused(build, X, V, V, X, X)
    assert epilogues(nodes, NormalizeGradient) == [(True, "relu")]
    assert not any("where" in node.op.functions for node in nodes if isinstance(node.op, Elementwise))


def test_two_normalizations_share_the_zeros():
    def build(x, z, a, b, g):
        return gradients([ops.relu(normalized(x, a, b) + normalized(z, b, a))], [x, z, a, b], [g])

    nodes = fused(build, X, X, V, V, X)
    assert sorted(epilogues(nodes, NormalizeGradient)) == [(False, "linear"), (True, "relu")]
    assert not count([n for n in nodes if getattr(n.op, "functions", ()) == ("where",)], Elementwise)


def masked_gradient(x, scale, g, positive=lambda y: ops.greater(y, 0.0), zero=0.0, x_of_gradient=None):
    """The zeros put into g, and the gradient of relu(normalised x) made of that."""
    y, mean, variance = ops.normalize_over(x, (0, 1, 2), 1e-3, scale)
    masked = ops.where(positive(ops.relu(y)), g, zero)
    op = NormalizeGradient((0, 1, 2), 1e-3)
    return masked, list(op(masked, x if x_of_gradient is None else x_of_gradient, scale, mean, variance))


def test_masked_gradient():
    nodes = fused(lambda x, a, g: masked_gradient(x, a, g)[1], X, V, X)
    assert epilogues(nodes, NormalizeGradient) == [(False, "relu")]


def test_zeros_that_are_read_elsewhere_stay_outside():
    def build(x, a, g):
        masked, found = masked_gradient(x, a, g)
        return [*found, ops.exp(masked)]

    assert epilogues(fused(build, X, V, X), NormalizeGradient) == [(False, "linear")]


def test_zeros_that_are_a_result_stay_outside():
    def build(x, a, g):
        masked, found = masked_gradient(x, a, g)
        return [*found, masked]

    assert epilogues(fused(build, X, V, X), NormalizeGradient) == [(False, "linear")]


@pytest.mark.parametrize(
    "change",
    [
        {"positive": lambda y: ops.greater(y, 1.0)},
        {"positive": lambda y: ops.greater_equal(y, 0.0)},
        {"positive": lambda y: ops.greater(y * 2.0 - 1.0, 0.0)},
        {"zero": 0.5},
    ],
)
def test_other_masks_stay_outside(change):
    nodes = fused(lambda x, a, g: masked_gradient(x, a, g, **change)[1], X, V, X)
    assert epilogues(nodes, NormalizeGradient) == [(False, "linear")]


def test_the_mask_of_another_normalization_stays_outside():
    nodes = fused(lambda x, a, g: masked_gradient(x, a, g, x_of_gradient=g)[1], X, V, X)
    assert epilogues(nodes, NormalizeGradient) == [(False, "linear")]


def residual_network(x, blocks, weights):
    """Blocks of a residual network: convolution, normalisation, ReLU, and the sum with the block's input."""
    moving = [Variable(np.zeros(V, "float32")) for _ in range(2 * blocks)]
    for block in range(blocks):
        y = x
        for half in range(2):
            kernel, scale = weights[2 * block + half]
            y, mean, _ = ops.normalize_over(convolution(y, kernel), (0, 1, 2), 1e-3, scale)
            moving[2 * block + half].assign(moving[2 * block + half] * 0.9 + mean * 0.1)
            y = ops.relu(y) if half == 0 else y
        x = ops.relu(x + y)
    return x


def test_a_residual_network_has_no_elementwise_passes_left_but_sums_of_gradients():
    blocks = 3
    shapes = (X, *(W, V) * 2 * blocks)
    with Trace() as trace:
        x, *flat = [trace.input(shape) for shape in shapes]
        weights = list(zip(flat[::2], flat[1::2], strict=True))
        y = residual_network(x, blocks, weights)
        graph = simplify(trace.graph(gradients(ops.mean(y * y), [x, *flat])))
    nodes = after_check(graph, shapes)
    assert epilogues(nodes, Normalize) == [(False, "relu"), (True, "relu")] * blocks
    assert sorted(epilogues(nodes, NormalizeGradient)) == sorted([(False, "relu"), (True, "relu")] * blocks)
    large = [node for node in nodes if isinstance(node.op, Elementwise) and node.outputs[0].shape == X]
    assert {node.op.functions for node in large} <= {("add",), ("multiply",)}
