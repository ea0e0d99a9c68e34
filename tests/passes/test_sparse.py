"""Compressed gradients behind max-pooling, where the tuner says that they are faster."""

import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.passes.sparse import sparse
from magmadnn_py.runtime.tuner import Tuner


class Times:
    """In place of a tuner: seconds by op, or None."""

    def __init__(self, **seconds):
        self.by_op = seconds

    def seconds(self, nodes, threads):
        return [self.by_op[node.op.name] for node in nodes] if self.by_op else None


@pytest.fixture
def given(monkeypatch):
    def give(**seconds):
        monkeypatch.setattr("magmadnn_py.runtime.tuner.default_tuner", lambda: Times(**seconds))

    return give


def names(keep_dense: bool = False) -> set[str]:
    """The ops of the gradients of a convolution before a pooling, after the pass; perhaps with the dense gradient."""
    with Trace() as trace:
        x, w = trace.input((2, 10, 10, 8)), trace.input((3, 3, 8, 16))
        y = ops.conv(x, w)
        wanted = [x, w, y] if keep_dense else [x, w]
        graph = trace.graph(gradients(ops.max_pool(y, 2), wanted))
    found = {node.op.name for node in sparse(graph).order}
    return {name for name in found if name.endswith("_gradient")}


WEIGHT, INPUT = "convolution_weight_gradient", "convolution_input_gradient"
POOLED_WEIGHT, POOLED_INPUT, POOL = f"pooled_{WEIGHT}", f"pooled_{INPUT}", "max_pool_gradient"


def seconds(pool, weight, input_, pooled_weight, pooled_input) -> dict[str, float]:
    return {POOL: pool, WEIGHT: weight, INPUT: input_, POOLED_WEIGHT: pooled_weight, POOLED_INPUT: pooled_input}


def test_without_timing_all_are_compressed(given):
    given()
    assert names() == {POOLED_WEIGHT, POOLED_INPUT}


def test_the_faster_form_is_taken(given):
    given(**seconds(1, 4, 4, 2, 2))
    assert names() == {POOLED_WEIGHT, POOLED_INPUT}
    given(**seconds(1, 4, 4, 9, 9))
    assert names() == {POOL, WEIGHT, INPUT}
    given(**seconds(1, 4, 4, 9, 1))
    assert names() == {POOL, WEIGHT, POOLED_INPUT}


def test_making_the_dense_gradient_counts(given):
    given(**seconds(5, 1, 1, 3, 3))  # 6 seconds against 5 + 2
    assert names() == {POOLED_WEIGHT, POOLED_INPUT}


def test_but_not_where_it_is_needed_in_any_case(given):
    given(**seconds(5, 1, 1, 3, 3))
    assert names(keep_dense=True) == {POOL, WEIGHT, INPUT}
    given(**seconds(5, 4, 1, 3, 3))
    assert names(keep_dense=True) == {POOL, POOLED_WEIGHT, INPUT}


def test_the_tests_do_not_time():
    assert Tuner().seconds([], 1) is None
    assert names() == {POOLED_WEIGHT, POOLED_INPUT}
