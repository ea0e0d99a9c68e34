"""Expressions by hand: values that are never stale, text, listings."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Graph, Trace, Variable, evaluate, gradients, scope, show, text
from magmadnn_py.graph import expression as module


def two():
    return Variable(3.0, name="x"), Variable(1.0, name="c")


# ---- values


def test_a_value_follows_its_variables():
    x, c = two()
    y = (x.leaf**2 + c) ** 2
    assert evaluate(y).item() == 100
    x.assign(0.0)
    assert evaluate(y).item() == 1
    c.assign_add(1.0)
    assert evaluate(y).item() == 4
    assert evaluate(y).item() == 4


def test_several_values_together():
    x, c = two()
    assert [value.item() for value in evaluate([x.leaf * 2, x.leaf + c, x.leaf])] == [6, 4, 3]
    assert evaluate(()) == []


def test_gradients_follow_their_variables():
    x, c = two()
    y = x.leaf**2 + c.leaf * x
    slopes = gradients(y, [x.leaf, c.leaf])
    assert [value.item() for value in evaluate(slopes)] == [7, 3]
    x.assign(5.0)
    assert [value.item() for value in evaluate(slopes)] == [11, 5]


def test_a_variable_that_is_used_often():
    """MagmaDNN gave no gradient where a node has three consumers or more."""
    x, c = two()
    y = x.leaf * x + x.leaf * c + ops.exp(x.leaf - 3) - x.leaf
    assert evaluate(gradients(y, [x.leaf])[0]).item() == 2 * 3 + 1 + 1 - 1


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (lambda a, b: a - b, (1, -1)),
        (lambda a, b: 3 * a + b, (3, 1)),
        (lambda a, b: (a + b) + a**2, (7, 1)),
        (lambda a, b: a + a + a, (3, None)),
    ],
)
def test_gradients_do_not_share_memory(build, wanted):
    a, b = two()
    slopes = gradients(build(a.leaf, b.leaf), [a.leaf, b.leaf])
    assert tuple(None if slope is None else evaluate(slope).item() for slope in slopes) == wanted


def test_gradient_descent_on_a_nested_power():
    x = Variable(1.0)
    (slope,) = gradients((x.leaf**2) ** 2, [x.leaf])
    wanted = 1.0
    for _ in range(100):
        x.assign_sub(0.05 * evaluate(slope))
        wanted -= 0.05 * 4 * wanted**3
    np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-5)


def test_one_leaf_for_each_variable():
    x, c = two()
    assert x.leaf is x.leaf and x.leaf is not c.leaf
    assert (x.leaf + x).node.inputs == (x.leaf, x.leaf)


def test_graph_inputs():
    with Trace() as trace:
        x = trace.input((2,), label="image")
        y = ops.sum(x * 2)
    assert evaluate(y, {x: [1, 2]}).item() == 6
    assert evaluate(y, {x: np.array([3, 4])}).item() == 14
    with pytest.raises(ValueError, match=r"evaluate: inputs: got no array for 'image' float32\[2\]"):
        evaluate(y)
    with pytest.raises(ValueError, match="input 'image': got shape"):
        evaluate(y, {x: [1, 2, 3]})


@pytest.mark.parametrize("wrong", [None, 1.0, Variable(1.0)])
def test_what_is_no_expression(wrong):
    for values in (wrong, [wrong]):
        with pytest.raises(TypeError, match=f"evaluate: values: got {type(wrong).__name__}, wanted graph values"):
            evaluate(values)


def test_programs_are_kept_and_limited(monkeypatch):
    monkeypatch.setattr(module, "_CACHE_SIZE", 2)
    x, _ = two()
    y = x.leaf * 2
    evaluate(y)
    program = module._programs[next(reversed(module._programs))]
    evaluate(y)
    assert module._programs[next(reversed(module._programs))] is program
    for i in range(5):
        evaluate(x.leaf + i)
    assert len(module._programs) == 2


# ---- text


@pytest.mark.parametrize(
    ("build", "written"),
    [
        (lambda x, c: x**2 + c, "((x ** 2) + c)"),
        (lambda x, c: (x**2) ** 2, "((x ** 2) ** 2)"),
        (lambda x, c: -x / (c - 0.5), "((-x) / (c - 0.5))"),
        (lambda x, c: x // c % 2, "((x // c) % 2)"),
        (lambda x, c: ops.exp(x) * ops.maximum(c, 0.0), "(exp(x) * maximum(c, 0))"),
        (lambda x, c: ops.where(x >= c, x, c), "where((x >= c), x, c)"),
        (lambda x, c: ops.reshape(x, (1, 1)), "reshape(x, shape=(1, 1))"),
        (lambda x, c: ops.cast(x, "int32"), "cast(x, dtype=int32)"),
        (lambda x, c: x, "x"),
    ],
)
def test_text(build, written):
    x, c = two()
    assert text(build(x.leaf, c.leaf)) == written


def test_text_of_matrices():
    a, b = Variable(np.ones((2, 3)), name="A"), Variable(np.ones((2, 3)), name="B")
    y = ops.matmul(a.leaf, ops.transpose(b.leaf))
    assert text(y) == "(A @ transpose(B, permutation=(1, 0)))"
    assert text(gradients(y, [a.leaf])[0]).endswith(" @ transpose(B, permutation=(1, 0)).T)")
    assert (
        text(ops.sum(a.leaf + np.ones(3, "float32"), 0)) == "sum((A + constant float32[3]), axes=(0,), keepdims=False)"
    )


def test_text_of_one_of_several_results():
    x = Variable(np.ones((1, 4, 4, 1)), name="x")
    y = ops.max_pool(x.leaf, 2)
    assert text(y).startswith("max_pool(x, ") and text(y).endswith(")[0]")


def test_text_of_a_deep_expression():
    x, _ = two()
    y = x.leaf
    for _ in range(3000):
        y = -y
    assert text(y).count("-") == 3000


# ---- listings


def test_a_listing_of_values():
    x, c = two()
    with scope("layer"):
        y = x.leaf**2
    assert show(y + y * c).splitlines() == [
        "%1: float32[] = (x ** 2)  # layer",
        "%2: float32[] = (%1 * c)",
        "%3: float32[] = (%1 + %2)",
        "return %3",
    ]
    assert show([y, x.leaf]).splitlines()[-1] == "return %1, x"


def test_a_listing_of_a_graph():
    v = Variable(np.ones(2), name="total")
    with Trace() as trace:
        x = trace.input((2,), label="image")
        v.assign(trace.read(v) + x)
        graph = trace.graph([ops.sum(x)])
    assert show(graph).splitlines() == [
        "%1: float32[2] = image",
        "%2: float32[2] = (total + %1)",
        "%3: float32[] = sum(%1, axes=(0,), keepdims=False)",
        "return %3",
        "total <- %2",
    ]
    assert show(Graph((), ())) == ""
