"""Memory plans: nothing overlaps, variables are written in place where that is right, and only there."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.passes import run_passes
from magmadnn_py.passes.memory import Buffer, assign_offsets, plan_memory, protect_updates
from magmadnn_py.runtime.program import Program
from passes.check_plan import check_plan
from passes.random_graph import RandomGraph

COMPUTING = ops.tanh  # a node that cannot be a view


def numbers(*shape):
    return (np.arange(np.prod(shape), dtype="float32").reshape(shape) + 1) / 8


def run(graph, *arrays, runs=2):
    """Runs a graph, compares outputs and variables with the references each time, returns the program."""
    program = Program(graph)
    check_plan(program.graph, program.plan)
    for _ in range(runs):
        outputs, updates = interpret(graph, arrays)
        outputs = [np.array(array) for array in outputs]
        before = {variable: variable.numpy() for variable, _ in graph.updates}
        for variable, array in {variable: np.array(array) for variable, array in updates.items()}.items():
            variable.assign(array)
        wanted = {variable: variable.numpy() for variable in before}
        for variable, array in before.items():
            variable.assign(array)
        for found, array in zip(program.run(*arrays), outputs, strict=True):
            np.testing.assert_allclose(found, array, rtol=2e-6)
        for variable, array in wanted.items():
            np.testing.assert_allclose(variable.numpy(), array, rtol=2e-6, err_msg=repr(variable))
    return program


# ---- offsets


@pytest.mark.parametrize("seed", range(30))
def test_buffers_that_live_at_one_time_lie_apart(seed):
    rng = np.random.default_rng(seed)
    buffers = []
    for _ in range(rng.integers(0, 60)):
        first = int(rng.integers(0, 50))
        buffers.append(Buffer(int(rng.integers(1, 1000)), first=first, last=first + int(rng.integers(0, 20))))
    total = assign_offsets(buffers)
    for i, a in enumerate(buffers):
        assert a.offset % 64 == 0 and a.offset + a.size <= total
        for b in buffers[:i]:
            if a.first <= b.last and b.first <= a.last:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_buffers_of_other_times_share():
    buffers = [Buffer(100, first=i, last=i) for i in range(5)]
    assert assign_offsets(buffers) == 128


def test_no_buffers():
    assert assign_offsets([]) == 0


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("reuse", [True, False])
def test_random_plans(seed, reuse):
    for graph in (RandomGraph(seed, nodes=50).graph, run_passes(RandomGraph(seed, nodes=50).graph)):
        graph = protect_updates(graph)
        check_plan(graph, plan_memory(graph, reuse))


def test_a_chain_needs_memory_for_two_values():
    with Trace() as trace:
        y = trace.input((32, 32))
        for _ in range(10):
            y = ops.matmul(y, y)
        plan = plan_memory(trace.graph([y]))
    assert plan.arena_bytes == 2 * 4096


def test_an_elementwise_chain_runs_in_place():
    with Trace() as trace:
        y = ops.transpose(trace.input((32, 32)))
        for _ in range(5):
            y = ops.tanh(y)
        graph = trace.graph([y])
    plan = plan_memory(graph)
    assert plan.arena_bytes == 2 * 4096
    assert len({plan.places[node.outputs[0]][0] for node in graph.order[1:]}) == 1


def test_a_value_is_not_overwritten_where_a_part_of_it_is_broadcast():
    """The row must stay until the last row has read it, also where several threads write."""
    with Trace() as trace:
        y = ops.transpose(trace.input((300, 400)))
        graph = trace.graph([y - y[:1]])
    plan = run(graph, numbers(300, 400)).plan
    (value,) = graph.outputs
    assert plan.places[value][0] is not plan.places[value.node.inputs[0]][0]


def test_views_of_views_take_no_memory():
    with Trace() as trace:
        y = ops.transpose(trace.input((6, 8)))
        part = ops.reshape(y[2:6], (2, 2, 6))[1]
        graph = trace.graph([ops.stop_gradient(part[1:]), COMPUTING(part), ops.transpose(ops.reshape(part, (1, 12)))])
    plan = run(graph, numbers(6, 8)).plan
    source = plan.places[y][0]
    assert plan.places[part] == (source, 4 * 6 * 4)


def test_views_keep_their_source_alive():
    with Trace() as trace:
        y = COMPUTING(trace.input((64,)))
        view = ops.reshape(y, (8, 8))[4:]
        z = trace.input((64,))
        for _ in range(4):
            z = COMPUTING(ops.reshape(ops.transpose(ops.reshape(z, (8, 8))), (64,)))
        graph = trace.graph([z[:32] + ops.reshape(view, (32,))])
    run(graph, numbers(64), numbers(64))


def test_values_without_elements():
    v = Variable(np.zeros((0, 3)))
    with Trace() as trace:
        x = trace.input((4, 3))
        nothing = x[2:2]
        v.assign(COMPUTING(nothing) + trace.read(v))
        graph = trace.graph([nothing, ops.concatenate([nothing, x, COMPUTING(nothing)]), ops.sum(nothing, 0), v * 2.0])
    run(graph, numbers(4, 3))


def test_inputs_that_are_outputs():
    with Trace() as trace:
        x, y = trace.input((3,)), trace.input((3,))
        graph = trace.graph([x, x, ops.reshape(x, (3, 1)), y, x + y])
    run(graph, numbers(3), -numbers(3))


def test_an_input_that_is_not_used():
    with Trace() as trace:
        trace.input((5,))
        graph = trace.graph([COMPUTING(trace.input((3,)))])
    run(graph, numbers(5), numbers(3))


def test_constants_survive_runs():
    with Trace() as trace:
        constant = ops.convert(numbers(2000))
        graph = trace.graph([ops.tanh(constant * trace.input((2000,))), constant])
    run(graph, numbers(2000), runs=3)


# ---- concatenations


def test_parts_are_computed_in_place():
    with Trace() as trace:
        x = trace.input((4, 8))
        parts = [ops.transpose(ops.matmul(ops.transpose(x), x)), ops.matmul(x, ops.transpose(x))[:, :0]]
        whole = ops.concatenate([ops.reshape(parts[0], (-1,)), ops.sum(x, 1), ops.sum(x, 0)])
        graph = trace.graph([COMPUTING(whole) + 1.0])
    program = run(graph, numbers(4, 8))
    assert not any("concatenate" in label for label in program._native.labels)


def test_a_part_that_is_used_elsewhere():
    with Trace() as trace:
        x = trace.input((2, 4))
        part = ops.exp(x)
        whole = ops.concatenate([part, COMPUTING(part)])
        graph = trace.graph([part * 2.0, COMPUTING(whole), part])
    run(graph, numbers(2, 4))


def test_the_same_part_twice():
    with Trace() as trace:
        part = ops.exp(trace.input((2, 4)))
        graph = trace.graph([COMPUTING(ops.concatenate([part, part, ops.reshape(part, (2, 4)), part[:1]]))])
    run(graph, numbers(2, 4))


def test_a_part_of_two_concatenations():
    with Trace() as trace:
        x = trace.input((2, 4))
        part, other = ops.exp(x), ops.sin(x)
        one, two = ops.concatenate([part, other]), ops.concatenate([other, part])
        graph = trace.graph([COMPUTING(one), COMPUTING(two), one * two])
    run(graph, numbers(2, 4))


def test_nested_concatenations():
    with Trace() as trace:
        x = trace.input((2, 4))
        inner = ops.concatenate([ops.exp(x), ops.sin(x)])
        outer = ops.concatenate([ops.cos(x), ops.reshape(inner, (4, 4)), inner])
        graph = trace.graph([COMPUTING(outer), ops.sum(inner)])
    run(graph, numbers(2, 4))


def test_parts_that_are_inputs_constants_variables_and_outputs():
    v = Variable(numbers(1, 4))
    with Trace() as trace:
        x = trace.input((2, 4))
        part = ops.exp(x)
        whole = ops.concatenate([x, ops.convert(numbers(1, 4)), trace.read(v), part])
        v.assign(whole[3:4] * 2.0)
        graph = trace.graph([part, whole])
    run(graph, numbers(2, 4))


def test_a_concatenation_along_another_axis_is_computed():
    with Trace() as trace:
        x = trace.input((2, 4))
        graph = trace.graph([ops.concatenate([ops.exp(x), x, ops.exp(x)], 1)])
    run(graph, numbers(2, 4))


def test_a_concatenation_is_not_overwritten_while_a_part_is_read():
    with Trace() as trace:
        x = trace.input((2, 4))
        part = ops.exp(x)
        whole = ops.concatenate([part, ops.sin(x)])
        graph = trace.graph([ops.matmul(COMPUTING(whole), ops.transpose(part))])
    run(graph, numbers(2, 4))


# ---- variables


def in_place(program):
    return program.plan.copies == []


def test_an_update_is_written_over_the_old_value():
    v = Variable(numbers(8))
    with Trace() as trace:
        v.assign(trace.read(v) * 2.0 - trace.input((8,)))
        graph = trace.graph([])
    assert in_place(run(graph, numbers(8)))


def test_two_updates_of_one_program_in_place():
    v, w = Variable(numbers(1000)), Variable(numbers(1000))
    with Trace() as trace:
        w.assign(trace.read(w) * 0.9 + trace.input((1000,)))
        v.assign(trace.read(v) - trace.read(w))
        graph = trace.graph([])
    program = run(graph, numbers(1000))
    assert in_place(program) and len(program.algorithms) == 1 and program.arena_bytes == 4032


def test_two_variables_that_change_places():
    v, w = Variable(numbers(4)), Variable(-numbers(4))
    with Trace() as trace:
        a, b = trace.read(v), trace.read(w)
        v.assign(b)
        w.assign(a)
        graph = trace.graph([])
    run(graph)


def test_two_variables_that_cross_by_arithmetic():
    v, w = Variable(numbers(4)), Variable(-numbers(4))
    with Trace() as trace:
        a, b = trace.read(v), trace.read(w)
        v.assign(COMPUTING(b))
        w.assign(ops.exp(a))
        graph = trace.graph([])
    run(graph)


def test_three_variables_in_a_circle_of_parts():
    u, v, w = (Variable(numbers(4) * i) for i in (1, 2, 3))
    with Trace() as trace:
        a, b, c = (trace.read(x) for x in (u, v, w))
        u.assign(ops.concatenate([b[2:], b[:2]]))
        v.assign(ops.reshape(ops.reshape(c, (2, 2)), (4,)))
        w.assign(ops.transpose(ops.reshape(a, (1, 4)))[:, 0])
        graph = trace.graph([])
    run(graph)


def test_an_output_that_is_the_old_value():
    v = Variable(numbers(4))
    with Trace() as trace:
        old = trace.read(v)
        v.assign(old * 2.0)
        graph = trace.graph([old, ops.reshape(old, (2, 2))[1], trace.read(v)])
    run(graph)


def test_a_variable_that_is_read_after_its_writer(monkeypatch):
    monkeypatch.setenv("MAGMADNN_PASSES", "-order,-fuse")
    v = Variable(numbers(4))
    with Trace() as trace:
        old = trace.read(v)
        new = old * 2.0
        v.assign(new)
        graph = trace.graph([ops.exp(new), COMPUTING(old), COMPUTING(old[1:])])
    assert not in_place(run(graph))


def test_a_writer_that_reads_the_variable_in_another_order():
    v = Variable(numbers(3, 3))
    with Trace() as trace:
        old = trace.read(v)
        v.assign(old + ops.transpose(old) + old[0:1] + ops.reshape(old[1], (3, 1)))
        graph = trace.graph([])
    run(graph)


def test_a_product_is_not_written_over_its_factor():
    v = Variable(numbers(3, 3))
    with Trace() as trace:
        old = trace.read(v)
        v.assign(ops.matmul(old, old) * 0.1)
        graph = trace.graph([])
    run(graph)
    v = Variable(numbers(3, 3))
    with Trace() as trace:
        v.assign(ops.matmul(trace.read(v), trace.input((3, 3))))
        graph = trace.graph([])
    assert not in_place(run(graph, numbers(3, 3)))


def test_one_value_for_two_variables_and_an_output():
    v, w = Variable(numbers(4)), Variable(numbers(2, 2))
    with Trace() as trace:
        new = ops.exp(trace.input((4,))) + trace.read(v)
        v.assign(new)
        w.assign(ops.reshape(new, (2, 2)))
        graph = trace.graph([new, COMPUTING(new)])
    run(graph, numbers(4))


def test_a_variable_assigned_to_itself():
    v = Variable(numbers(4))
    with Trace() as trace:
        v.assign(trace.read(v))
        graph = trace.graph([ops.exp(trace.read(v))])
    assert in_place(run(graph))


def test_a_variable_that_gets_an_input_a_constant_or_part_of_an_output():
    u, v, w = (Variable(numbers(4) * i) for i in (1, 2, 3))
    with Trace() as trace:
        x = trace.input((4,))
        y = COMPUTING(ops.concatenate([x, x]))
        u.assign(x)
        v.assign(ops.convert(numbers(4)))
        w.assign(y[4:])
        graph = trace.graph([y])
    run(graph, numbers(4))


def test_the_last_assignment_counts():
    v = Variable(numbers(4))
    with Trace() as trace:
        v.assign(trace.read(v) + 1.0)
        v.assign(trace.read(v) * 2.0)
        graph = trace.graph([trace.read(v)])
    np.testing.assert_array_equal(Program(graph).run()[0], (numbers(4) + 1) * 2)
    assert len(graph.updates) == 1


# ---- variables that are part of a flat one


def flat_and_parts():
    flat = Variable(numbers(10), name="flat")
    parts = [Variable(numbers(2, 2)), Variable(numbers(4)), Variable(numbers(2))]
    for part, offset in zip(parts, (0, 4, 8), strict=True):
        part.move_into(flat, offset)
    return flat, *parts


def test_parts_are_updated_by_the_flat_variable():
    flat, a, b, c = flat_and_parts()
    with Trace() as trace:
        y = ops.matmul(trace.read(a), trace.read(a)) + trace.read(c)
        flat.assign(trace.read(flat) - ops.concatenate([ops.reshape(y, (4,)), trace.read(b), y[0]]))
        graph = trace.graph([ops.sum(y), b * 2.0])
    assert in_place(run(graph))


def test_a_part_sees_what_the_whole_is_assigned():
    flat, a, b, _ = flat_and_parts()
    old = flat.numpy()
    with Trace() as trace:
        flat.assign(trace.read(flat) * 2.0)
        graph = trace.graph([trace.read(b), trace.initial(b)])
    new, first = Program(graph).run()
    np.testing.assert_array_equal(new, old[4:8] * 2)
    np.testing.assert_array_equal(first, old[4:8])


def test_the_whole_and_then_a_part():
    flat, a, b, _ = flat_and_parts()
    with Trace() as trace:
        flat.assign(trace.read(flat) * 2.0)
        b.assign(trace.read(b) + 1.0)
        graph = trace.graph([graph_value for _, graph_value in trace._updates.items()])
    run(graph)


def test_a_part_and_then_the_whole():
    flat, a, b, _ = flat_and_parts()
    old = flat.numpy()
    with Trace() as trace:
        b.assign(trace.read(b) + 1.0)
        flat.assign(trace.initial(flat) * 2.0)
        graph = trace.graph([])
    run(graph, runs=1)
    np.testing.assert_array_equal(flat.numpy(), old * 2)


def test_a_part_that_keeps_its_value_while_the_whole_changes():
    flat, a, b, _ = flat_and_parts()
    with Trace() as trace:
        kept = trace.read(b)
        flat.assign(trace.read(flat) * 2.0)
        b.assign(kept)
        graph = trace.graph([])
    run(graph)


def test_parts_that_change_places():
    flat, a, b, _ = flat_and_parts()
    with Trace() as trace:
        one, two = trace.read(a), trace.read(b)
        a.assign(ops.reshape(two, (2, 2)))
        b.assign(ops.reshape(one, (4,)))
        graph = trace.graph([trace.initial(flat)])
    run(graph)


def test_parts_that_overlap():
    flat = Variable(numbers(4))
    low, high = Variable(numbers(3)), Variable(numbers(3))
    low.move_into(flat, 0)
    high.move_into(flat, 1)
    with Trace() as trace:
        low.assign(trace.read(high))
        graph = trace.graph([])
    run(graph, runs=1)


def test_a_part_read_outside_a_trace_while_the_whole_is_written():
    flat, a, b, _ = flat_and_parts()
    outside = ops.convert(b)
    with Trace() as trace:
        flat.assign(trace.read(flat) * ops.concatenate([outside, outside, outside[:2]]))
        graph = trace.graph([COMPUTING(outside)])
    run(graph)
