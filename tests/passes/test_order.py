"""Schedules: complete, inputs first, little memory, a variable's writer after its readers."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Graph, Trace, Variable
from magmadnn_py.passes.memory import plan_memory
from magmadnn_py.passes.order import order
from magmadnn_py.runtime.program import Program
from passes.random_graph import RandomGraph


@pytest.mark.parametrize("seed", range(40))
def test_every_node_once_and_after_its_inputs(seed):
    graph = RandomGraph(seed, nodes=40).graph
    after = order(graph)
    assert sorted(node.id for node in after.order) == [node.id for node in graph.order]
    place = {node: i for i, node in enumerate(after.order)}
    assert all(place[value.node] < place[node] for node in after.order for value in node.inputs)
    assert (after.inputs, after.outputs, after.updates) == (graph.inputs, graph.outputs, graph.updates)


def test_a_schedule_is_repeatable():
    graph = RandomGraph(3, nodes=60).graph
    assert order(graph).order == order(graph).order


def test_what_frees_memory_comes_first():
    """All large values made before any of them is reduced would need ten times the memory."""
    with Trace() as trace:
        x = trace.input((1,))
        large = [ops.broadcast_to(x + float(i), (1000,)) for i in range(10)]
        small = [ops.sum(value) for value in large]
        graph = trace.graph(small)
    assert plan_memory(order(graph)).arena_bytes < 2.5 * 4000
    assert plan_memory(graph).arena_bytes > 10 * 4000


def test_a_variable_is_written_after_its_other_readers():
    v = Variable(np.array([1.0, 2.0]))
    with Trace() as trace:
        old = trace.read(v)
        v.assign(old * 2.0)
        graph = trace.graph([ops.sum(ops.exp(old[0:1])), ops.reshape(old, (2, 1)) @ ops.reshape(old, (1, 2))])
    after = order(graph)
    assert after.order[-1] is graph.updates[0][1].node
    assert plan_memory(after).copies == []


def test_a_reader_that_needs_the_new_value_does_not_block():
    v = Variable(np.array([1.0, 2.0]))
    with Trace() as trace:
        old = trace.read(v)
        new = old * 2.0
        v.assign(new)
        graph = trace.graph([ops.sum(old * new)])
    assert len(order(graph).order) == len(graph.order)
    assert Program(graph).run()[0] == 10
    assert v.numpy().tolist() == [2, 4]


def test_writers_that_wait_for_each_other():
    v, w = Variable(np.array([1.0])), Variable(np.array([2.0]))
    with Trace() as trace:
        a, b = trace.read(v), trace.read(w)
        v.assign(ops.concatenate([b[0:0], ops.sin(b)]) + a)
        w.assign(ops.concatenate([a[0:0], ops.sin(a)]) + b)
        graph = trace.graph([])
    assert len(order(graph).order) == len(graph.order)


def test_an_empty_graph():
    assert order(Graph((), ())).order == ()
