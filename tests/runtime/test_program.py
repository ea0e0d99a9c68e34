"""Programs: runs, batches, errors, threads, and that a step costs neither allocations nor Python."""

import sys
import threading
import time

import numpy as np
import pytest

from magmadnn_py import _core, ops
from magmadnn_py.graph import Trace, Variable
from magmadnn_py.runtime.kernels import best_algorithm, no_algorithm
from magmadnn_py.runtime.program import Program, SharedMemory
from magmadnn_py.runtime.tensor import Tensor

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")


@pytest.fixture
def threads():
    """Sets the number of threads back afterwards."""
    before = _core.get_threads()
    yield before
    _core.set_threads(before)


def tensor(array) -> Tensor:
    return Tensor.from_array(np.array(array))


def program_of(build, *types, **arguments) -> Program:
    with Trace() as trace:
        inputs = [trace.input(shape, dtype, f"x{i}") for i, (shape, dtype) in enumerate(types)]
        outputs = build(*inputs)
        graph = trace.graph(outputs if isinstance(outputs, list) else [outputs])
    return Program(graph, **arguments)


# ---- run


def test_outputs_are_copies():
    program = program_of(lambda x: ops.tanh(x), ((3,), "float32"))
    first = program.run(np.ones(3, "float32"))[0]
    kept = first.copy()
    program.run(np.zeros(3, "float32"))
    np.testing.assert_array_equal(first, kept)


def test_arrays_are_converted():
    program = program_of(lambda x: x * 2, ((3,), "float32"))
    for array in ([1, 2, 3], np.array([1, 2, 3], "uint8"), np.array([1.0, 2, 3]), Tensor.from_array([1, 2, 3])):
        np.testing.assert_array_equal(program.run(array)[0], np.array([2, 4, 6], "float32"), strict=True)


def test_a_wrong_number_of_arrays():
    program = program_of(lambda x: x * 2, ((3,), "float32"))
    with pytest.raises(ValueError, match="program: got 2 arrays, wanted 1"):
        program.run(np.ones(3), np.ones(3))


def test_a_wrong_shape_names_the_input():
    program = program_of(lambda x, y: x * y, ((3,), "float32"), ((3,), "float32"))
    with pytest.raises(ValueError, match=r"input 'x1': got shape \(1, 3\), wanted \(3,\)"):
        program.run(np.ones(3), np.ones((1, 3)))


def test_variables_are_read_at_each_run():
    v = Variable(np.zeros(2))
    program = program_of(lambda x: x + v, ((2,), "float32"))
    for value in (1.0, 2.0):
        v.assign(np.full(2, value))
        np.testing.assert_array_equal(program.run(np.zeros(2))[0], [value, value])


def test_a_variable_that_moves_after_the_program_was_built():
    v, flat = Variable(np.array([1.0, 2.0])), Variable(np.zeros(5))
    with Trace() as trace:
        v.assign(trace.read(v) * 2.0)
        program = Program(trace.graph([]))
    program.run()
    v.move_into(flat, 3)
    program.run()
    np.testing.assert_array_equal(flat.numpy(), [0, 0, 0, 4, 8])


def test_an_empty_program():
    assert Program(Trace().graph([])).run() == []


# ---- run_batches


def rows(count, *shape, dtype="float32"):
    return np.arange(count * int(np.prod(shape))).reshape(count, *shape).astype(dtype)


def test_batches_follow_each_other():
    data = rows(12, 2)
    result = Tensor((12, 2), "float32", fill=-1)
    program = program_of(lambda x: x * 10, ((3, 2), "float32"))
    program.run_batches([tensor(data)], 3, 3, 2, None, [result])
    np.testing.assert_array_equal(result.numpy()[3:9], data[3:9] * 10)
    assert (result.numpy()[:3] == -1).all() and (result.numpy()[9:] == -1).all()


def test_rows_in_a_given_order():
    data, order = rows(10, 2, 2), np.array([9, 0, 3, 3, 7, 1, 2, 5], "int64")
    result = Tensor((8, 2, 2), "float32")
    program = program_of(lambda x: x + 1, ((4, 2, 2), "float32"))
    program.run_batches([tensor(data)], 0, 4, 2, tensor(order), [result])
    np.testing.assert_array_equal(result.numpy(), data[order] + 1)


def test_the_order_may_start_in_its_middle():
    data, order = rows(6), np.array([5, 4, 3, 2, 1, 0], "int64")
    result = Tensor((6,), "float32", fill=0)
    program = program_of(lambda x: x * 1.5, ((2,), "float32"))
    program.run_batches([tensor(data)], 2, 2, 2, tensor(order), [result])
    np.testing.assert_array_equal(result.numpy(), [0, 0, 4.5, 3, 1.5, 0])


@pytest.mark.parametrize("wanted", DTYPES)
@pytest.mark.parametrize("given", DTYPES)
def test_rows_are_converted(given, wanted):
    data = np.array([[0, 1, 2], [3, 0, 250], [7, 1, 0], [0, 0, 1]]).astype(given)
    result = Tensor((4, 3), wanted)
    program = program_of(lambda x: ops.copy(x), ((2, 3), wanted))
    program.run_batches([tensor(data)], 0, 2, 2, None, [result])
    np.testing.assert_array_equal(result.numpy(), data.astype(wanted), strict=True)


def test_rows_without_elements_and_single_numbers():
    result, nothing = Tensor((4,), "float32"), Tensor((4, 0), "float32")
    program = program_of(lambda x, y: [x * 2, y], ((2,), "float32"), ((2, 0), "float32"))
    program.run_batches([tensor(rows(4)), tensor(np.zeros((4, 0), "float32"))], 0, 2, 2, None, [result, nothing])
    np.testing.assert_array_equal(result.numpy(), [0, 2, 4, 6])


def test_many_rows_by_several_threads():
    data = rows(5000, 7, dtype="uint8")
    order = np.random.default_rng(0).permutation(5000)
    result = Tensor((5000, 7), "float32")
    program_of(lambda x: x / 2, ((2500, 7), "float32")).run_batches([tensor(data)], 0, 2500, 2, tensor(order), [result])
    np.testing.assert_array_equal(result.numpy(), data[order].astype("float32") / 2)


def test_a_source_with_strides():
    data = tensor(rows(6, 4))
    result = Tensor((3, 4), "float32")
    program = program_of(lambda x: x + 0.5, ((3, 4), "float32"))
    program.run_batches([data[::2]], 0, 3, 1, None, [result])
    np.testing.assert_array_equal(result.numpy(), rows(6, 4)[::2] + 0.5)


def test_variables_change_from_step_to_step():
    total = Variable(np.zeros(()))
    with Trace() as trace:
        x = trace.input((2,))
        total.assign(trace.read(total) * 2.0 + ops.sum(x))
        program = Program(trace.graph([]))
    program.run_batches([tensor(np.array([1, 0, 0, 3, 5, 0], "float32"))], 0, 2, 3)
    assert total.numpy() == (1 * 2 + 3) * 2 + 5


def test_no_steps():
    result = Tensor((4,), "float32", fill=7)
    program = program_of(lambda x: x * 2, ((2,), "float32"))
    program.run_batches([tensor(rows(4))], 0, 2, 0, None, [result])
    assert result.numpy().tolist() == [7, 7, 7, 7]


def test_fewer_destinations_than_outputs():
    result = Tensor((4,), "float32")
    program_of(lambda x: [x * 2, x * 3], ((2,), "float32")).run_batches([tensor(rows(4))], 0, 2, 2, None, [result])
    np.testing.assert_array_equal(result.numpy(), rows(4) * 2)


def test_a_source_of_an_unused_input():
    result = Tensor((4,), "float32")
    program = program_of(lambda x, y: x * 2, ((2,), "float32"), ((2, 9), "float32"))
    program.run_batches([tensor(rows(4)), tensor(rows(4, 9))], 0, 2, 2, None, [result])
    np.testing.assert_array_equal(result.numpy(), rows(4) * 2)


def test_seconds_of_every_step():
    program = program_of(lambda x: ops.matmul(ops.exp(x), x), ((8, 8), "float32"))
    found = program.run_batches([tensor(rows(16, 8) / 100)], 0, 8, 2, timed=True)
    assert [label for label, _ in found] == ["elementwise", "matmul"]
    assert all(0 < seconds < 10 for _, seconds in found)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(first=2), IndexError, "more rows than the source has"),
        (dict(steps=3), IndexError, "more rows than the source has"),
        (dict(first=-1), ValueError, "batches: a negative number"),
        (dict(steps=-1), ValueError, "batches: a negative number"),
        (dict(order=[0, 1, 2, 4]), IndexError, "batches: row 4 of a source of 4 rows"),
        (dict(order=[0, -1, 2, 3]), IndexError, "batches: row -1 of a source of 4 rows"),
        (dict(order=[0, 1, 2]), IndexError, "more rows than the order has"),
        (dict(sources=[rows(4, 3)]), ValueError, r"input 'x0': got batches of 2 rows .*\(4, 3\), wanted \(2, 2\)"),
        (dict(batch=4, steps=1), ValueError, "input 'x0': got batches of 4 rows"),
        (dict(sources=[np.float32(1)]), ValueError, r"input 'x0': got .* of a source of shape \(\)"),
        (dict(sources=[]), ValueError, "program: got 0 sources, wanted 1"),
        (dict(results=[rows(3, 2)]), IndexError, "more rows than the destination has"),
        (dict(results=[rows(4, 2, dtype="float64")]), ValueError, r"output 0: destinations: .*float64.*wanted float32"),
        (dict(results=[rows(4, 3)]), ValueError, "output 0: destinations: got batches of 2 rows"),
        (dict(results=[rows(4, 2)] * 2), ValueError, "got 2 destinations, wanted at most 1"),
    ],
)  # fmt: skip
def test_batches_that_do_not_fit(arguments, error, message):
    given = dict(sources=[rows(4, 2)], first=0, batch=2, steps=2, order=None, results=[]) | arguments
    order = None if given["order"] is None else tensor(np.array(given["order"], "int64"))
    sources, results = ([tensor(array) for array in given[name]] for name in ("sources", "results"))
    program = program_of(lambda x: x * 2, ((2, 2), "float32"))
    with pytest.raises(error, match=message):
        program.run_batches(sources, given["first"], given["batch"], given["steps"], order, results)


def test_an_order_of_another_type():
    program = program_of(lambda x: x * 2, ((2,), "float32"))
    with pytest.raises(ValueError, match="order: wanted contiguous int64 of rank 1"):
        program.run_batches([tensor(rows(4))], 0, 2, 2, tensor(np.zeros(4, "int32")))


# ---- errors of kernels


@pytest.mark.parametrize("choose", [best_algorithm, no_algorithm])
def test_an_error_names_layer_and_op(choose):
    from magmadnn_py.graph import scope

    with Trace() as trace:
        x, indices = trace.input((3,)), trace.input((2,), "int32")
        with scope("embedding"):
            y = ops.take(x, indices, 0)
        program = Program(trace.graph([y]), choose=choose)
    with pytest.raises(IndexError, match=r"embedding: gather: .*7"):
        program.run(np.ones(3), np.array([1, 7]))
    np.testing.assert_array_equal(program.run(rows(3), np.array([1, -1]))[0], [1, 2])  # it can be used again


@pytest.mark.parametrize("choose", [best_algorithm, no_algorithm])
def test_an_error_without_a_layer_names_the_op(choose):
    program = program_of(lambda x, i: ops.take(x, i, 0), ((3,), "float32"), ((1,), "int32"), choose=choose)
    with pytest.raises(IndexError, match=r"^gather: "):
        program.run(np.ones(3), np.array([3]))


def test_an_error_in_a_batch_stops_the_run():
    count = Variable(np.zeros((), "int32"))
    with Trace() as trace:
        indices = trace.input((1,), "int32")
        y = ops.take(ops.convert(rows(3)), indices, 0)
        count.assign(trace.read(count) + ops.cast(y[0] * 0, "int32") + 1)
        program = Program(trace.graph([y]))
    with pytest.raises(IndexError, match="gather"):
        program.run_batches([tensor(np.array([0, 1, 5, 0], "int32"))], 0, 1, 4)
    assert count.numpy() == 2


def test_an_op_without_a_kernel_runs_its_reference(monkeypatch, capsys):
    monkeypatch.setenv("MAGMADNN_LOG", "kernels")
    program = program_of(lambda x: ops.softmax(x, axis=0), ((3, 2), "int32"), choose=no_algorithm)
    assert "reference" in program.describe()
    assert "softmax" in capsys.readouterr().err


def test_all_by_reference_equals_kernels():
    def build(x):
        return [ops.softmax(ops.matmul(x, ops.transpose(x)) + 1), ops.concatenate([ops.sum(x, 0), ops.mean(x, 1)])]

    array = rows(4, 4) / 16
    both = [program_of(build, ((4, 4), "float32"), choose=c).run(array) for c in (best_algorithm, no_algorithm)]
    for a, b in zip(*both, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


# ---- shared memory


def test_programs_share_an_arena_of_the_larger():
    memory = SharedMemory()
    small = program_of(lambda x: ops.exp(ops.transpose(x)), ((2, 3), "float32"), memory=memory)
    first = small.run(np.zeros((2, 3)))[0]
    large = program_of(lambda x: ops.exp(ops.transpose(x)), ((200, 300), "float32"), memory=memory)
    large.run(np.ones((200, 300)))
    np.testing.assert_array_equal(small.run(np.zeros((2, 3)))[0], first)
    np.testing.assert_array_equal(large.run(np.zeros((200, 300)))[0], 1)
    assert len({tensor.nbytes for tensor in memory.blocks.values()}) >= 1
    assert small._bound[1] is large._bound[1]


# ---- threads


def network(size=96):
    def build(x):
        for _ in range(4):
            x = ops.tanh(ops.matmul(x, x) * 0.1)
        return ops.sum(x, 0)

    return build, ((size, size), "float32")


def test_programs_of_several_python_threads_at_once():
    build, type_ = network()
    arrays = [np.random.default_rng(i).normal(size=type_[0]).astype("float32") for i in range(4)]
    wanted = [program_of(build, type_).run(array)[0] for array in arrays]
    failures = []

    def work(number):
        try:
            program = program_of(build, type_)
            for _ in range(30):
                np.testing.assert_array_equal(program.run(arrays[number])[0], wanted[number])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_one_program_used_by_several_python_threads():
    build, type_ = network(48)
    program = program_of(build, type_)
    arrays = [np.random.default_rng(i).normal(size=type_[0]).astype("float32") for i in range(4)]
    wanted = [program.run(array)[0] for array in arrays]
    failures = []

    def work(number):
        for _ in range(30):
            if not np.array_equal(program.run(arrays[number])[0], wanted[number]):
                failures.append(number)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_other_python_threads_run_meanwhile():
    build, type_ = network(256)
    program = program_of(build, type_)
    source = tensor(np.random.default_rng(0).normal(size=(256, 256)).astype("float32"))
    order = tensor(np.tile(np.arange(256), 100))
    program.run_batches([source], 0, 256, 1)
    running, ticks = threading.Event(), []

    def tick():
        running.wait()
        while running.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    start = time.perf_counter()
    running.set()
    program.run_batches([source], 0, 256, 100, order)
    end = time.perf_counter()
    running.clear()
    other.join()
    during = [t for t in ticks if start < t < end]
    assert end - start < 0.02 or len(during) >= 5


def test_another_number_of_threads_needs_another_program(threads):
    _core.set_threads(1)
    program = program_of(lambda x: x * 2, ((3,), "float32"))
    _core.set_threads(2)
    with pytest.raises(RuntimeError, match="program: built for 1 threads, now there are 2"):
        program.run(np.ones(3))
    _core.set_threads(1)
    np.testing.assert_array_equal(program.run(np.ones(3))[0], [2, 2, 2])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_number_of_threads_does_not_matter_to_the_result(threads, count):
    build, type_ = network(64)
    array = np.random.default_rng(0).normal(size=type_[0]).astype("float32")
    wanted = program_of(build, type_, choose=no_algorithm).run(array)[0]
    _core.set_threads(count)
    np.testing.assert_allclose(program_of(build, type_).run(array)[0], wanted, rtol=1e-4, atol=1e-5)


# ---- what a step costs


def training_step():
    weight, moment = Variable(np.full((8, 8), 0.1)), Variable(np.zeros((8, 8)))
    with Trace() as trace:
        x = trace.input((4, 8))
        y = ops.relu(ops.matmul(x, trace.read(weight)))
        gradient = ops.matmul(ops.transpose(x), y)
        moment.assign(trace.read(moment) * 0.9 + gradient)
        weight.assign(trace.read(weight) - trace.read(moment) * 1e-6)
        return Program(trace.graph([ops.sum(y)]))


def test_steps_do_not_allocate():
    program, data = training_step(), tensor(rows(4000, 8, dtype="uint8"))
    program.run_batches([data], 0, 4, 1)
    counts = []
    for steps in (10, 1000):
        before = _core.allocation_count()
        program.run_batches([data], 0, 4, steps)
        counts.append(_core.allocation_count() - before)
    assert counts[0] == counts[1]


def test_steps_do_not_run_python():
    program, data = training_step(), tensor(rows(4000, 8))
    program.run_batches([data], 0, 4, 1)
    counts = []
    for steps in (10, 1000):
        events = []
        sys.setprofile(lambda *event, events=events: events.append(event))
        try:
            program.run_batches([data], 0, 4, steps)
        finally:
            sys.setprofile(None)
        counts.append(len(events))
    assert counts[0] == counts[1]


def test_description():
    text = training_step().describe()
    assert text.startswith("program of ") and "arena" in text.splitlines()[0]
    assert "matmul" in text and "elementwise" in text
