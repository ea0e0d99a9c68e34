"""Random graphs give the same numbers however the passes are set: by references, by kernels, in one run and in more."""

import itertools
import time

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable, gradients
from magmadnn_py.passes import GRAPH_PASSES, NAMES, enabled, run_passes
from magmadnn_py.passes.memory import plan_memory, protect_updates
from magmadnn_py.runtime.kernels import no_algorithm
from magmadnn_py.runtime.program import Program
from passes.check_plan import check_plan
from passes.random_graph import RandomGraph

# The passes over whole graphs; those over forward graphs have tests of their own.
SWITCHES = (*GRAPH_PASSES, "plan_memory", "choose_kernels")
COMBINATIONS = [off for count in range(len(SWITCHES) + 1) for off in itertools.combinations(SWITCHES, count)]


def switch_off(monkeypatch, names) -> None:
    monkeypatch.setenv("MAGMADNN_PASSES", ",".join(f"-{name}" for name in names))


def check(case: RandomGraph, expected, runs: int = 2, **arguments) -> None:
    outputs, contents = expected
    case.reset()
    program = Program(case.graph, **arguments)
    check_plan(program.graph, program.plan)
    for _ in range(runs):
        found = program.run(*case.arrays)
    for number, (array, wanted) in enumerate(zip(found, outputs, strict=True)):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted, err_msg=f"output {number}")
    for variable, wanted in zip(case.variables, contents, strict=True):
        np.testing.assert_array_equal(variable.numpy(), wanted, err_msg=repr(variable))


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed, monkeypatch):
    case = RandomGraph(seed, nodes=12 + seed % 25)
    expected = case.expected(2)
    rng = np.random.default_rng(seed)
    for off in [(), SWITCHES, *(COMBINATIONS[i] for i in rng.integers(len(COMBINATIONS), size=3))]:
        switch_off(monkeypatch, off)
        check(case, expected)
    switch_off(monkeypatch, ())
    check(case, expected, choose=no_algorithm)


@pytest.mark.parametrize("off", COMBINATIONS, ids=lambda off: "+".join(off) or "none")
def test_every_combination_of_passes(off, monkeypatch):
    switch_off(monkeypatch, off)
    for seed in (100, 103, 109):
        case = RandomGraph(seed, nodes=30)
        check(case, case.expected(2))


@pytest.mark.parametrize("seed", range(200, 215))
def test_large_random_graphs(seed):
    case = RandomGraph(seed, nodes=150)
    check(case, case.expected(3), runs=3)


def test_an_unknown_pass_is_an_error(monkeypatch):
    monkeypatch.setenv("MAGMADNN_PASSES", "-fusion")
    with pytest.raises(ValueError, match=r"MAGMADNN_PASSES: got '-fusion', wanted -NAME .*fuse"):
        enabled("fuse")


def test_switches(monkeypatch):
    monkeypatch.setenv("MAGMADNN_PASSES", " -fuse, -order ,")
    assert [name for name in NAMES if not enabled(name)] == ["fuse", "order"]


def test_passes_say_what_they_did(monkeypatch, capsys):
    monkeypatch.setenv("MAGMADNN_LOG", "passes,memory")
    monkeypatch.setenv("MAGMADNN_PASSES", "-order")
    with Trace() as trace:
        x = trace.input((4,))
        Program(trace.graph([ops.exp(x) + 1]))
    said = capsys.readouterr().err
    assert "simplify: 4 -> 4 nodes" in said
    assert "fuse: 4 -> 3 nodes" in said
    assert "order: off" in said
    assert "of values in an arena of" in said


def residual_network(blocks: int):
    """A training step of a deep network of many small layers, some 70 nodes a block."""
    width = 4
    sizes = [(width, width), (width,), (width,), (width,)] * blocks
    weights = [Variable(np.full(size, 0.1), name=f"weight{i}") for i, size in enumerate(sizes)]
    flat, velocity = (Variable(np.zeros(sum(w.type.size for w in weights)), name=name) for name in ("flat", "velocity"))
    offset = 0
    for weight in weights:
        weight.move_into(flat, offset)
        offset += weight.type.size
    with Trace() as trace:
        y = trace.input((8, width))
        for i in range(blocks):
            kernel, bias, scale, shift = (trace.read(weight) for weight in weights[4 * i : 4 * i + 4])
            z = ops.matmul(y, kernel) + bias
            mean = ops.mean(z, 0, keepdims=True)
            variance = ops.mean(ops.square(z - mean), 0, keepdims=True)
            moving = Variable(np.zeros((1, width)), name=f"mean{i}")
            moving.assign(moving * 0.9 + mean * 0.1)
            y = y + ops.relu((z - mean) * ops.rsqrt(variance + 1e-3) * scale + shift)
        loss = ops.mean(ops.square(y))
        found = gradients(loss, [trace.initial(weight) for weight in weights])
        step = trace.read(velocity) * 0.9 - ops.concatenate([ops.reshape(g, (-1,)) for g in found]) * 0.1
        velocity.assign(step)
        flat.assign(trace.read(flat) + step)
        return trace.graph([loss])


def test_time_of_the_passes_for_a_deep_network():
    graph = residual_network(48)
    assert len(graph.order) > 3000
    start = time.process_time()
    graph = protect_updates(run_passes(graph))
    plan = plan_memory(graph)
    seconds = time.process_time() - start
    assert seconds < 1.0 * 3  # about 0.3 s; three times the target, because machines differ
    assert plan.copies == []  # every variable is written in place
    check_plan(graph, plan)


def test_a_very_deep_chain():
    """No pass walks the graph by recursion."""
    with Trace() as trace:
        y = trace.input((2, 2))
        for _ in range(1500):
            y = ops.stop_gradient(ops.matmul(y, y) * 0.5)
        graph = trace.graph([y])
    array = np.full((2, 2), 1.0, "float32")
    np.testing.assert_array_equal(Program(graph).run(array)[0], array)
