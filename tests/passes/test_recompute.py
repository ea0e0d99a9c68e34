"""Less memory by computing twice: the same numbers, and an arena within the limit."""

import numpy as np
import pytest

import magmadnn_py as mdnn
from magmadnn_py import layers, ops
from magmadnn_py.graph import Trace, Variable, gradients
from magmadnn_py.passes.memory import plan_memory
from magmadnn_py.passes.order import order
from magmadnn_py.passes.recompute import recompute
from magmadnn_py.runtime.program import Program
from passes.random_graph import RandomGraph


def chain(length: int = 12, rows: int = 1000):
    """tanh(tanh(... x)) and its gradient: the backward pass reads every intermediate result, the last one first."""
    with Trace() as trace:
        x = trace.input((rows,))
        y = x
        for _ in range(length):
            y = ops.tanh(y)
        return trace.graph([ops.sum(y), *gradients(ops.sum(y), [x])])


def repeated(before, after) -> int:
    return len(after.order) - len(before.order)


def test_within_the_limit_nothing_changes():
    graph = order(chain())
    assert recompute(graph, plan_memory(graph).arena_bytes) is graph


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
def test_a_chain_fits_into_less(share):
    graph = order(chain())
    limit = int(share * plan_memory(graph).arena_bytes)
    after = recompute(graph, limit)
    assert plan_memory(after).arena_bytes <= limit
    assert 0 < repeated(graph, after) < 2 * len(graph.order)


def test_the_smallest_arena_where_the_limit_is_out_of_reach():
    graph = order(chain())
    after = recompute(graph, 0)
    assert 4000 < plan_memory(after).arena_bytes < plan_memory(graph).arena_bytes / 2


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_keep_their_numbers(seed):
    case = RandomGraph(seed, nodes=30)
    outputs, contents = case.expected(2)
    case.reset()
    free = Program(case.graph)
    limit = free.memory_bytes - free.arena_bytes // 3
    try:
        program = Program(case.graph, memory_limit=limit)
    except MemoryError:
        program = Program(case.graph)
        program.graph = recompute(program.graph, 0)
        program._build()
    for _ in range(2):
        found = program.run(*case.arrays)
    for array, wanted in zip(found, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)
    for variable, wanted in zip(case.variables, contents, strict=True):
        np.testing.assert_array_equal(variable.numpy(), wanted)


def test_what_is_cheap_is_repeated_first():
    with Trace() as trace:
        x, w = trace.input((64, 64)), trace.input((64, 64))
        costly = ops.matmul(x, ops.matmul(w, ops.matmul(w, w)))
        cheap = ops.exp(x)
        barrier = ops.matmul(ops.concatenate([x, x, x, x]), w)
        graph = trace.graph([ops.sum(barrier), ops.sum(ops.tanh(cheap) + ops.tanh(costly) + x + ops.sum(barrier))])
    after = recompute(graph, plan_memory(graph).arena_bytes - 1)
    names = [node.op.name for node in after.order]
    assert names.count("matmul") == [node.op.name for node in graph.order].count("matmul")
    assert repeated(graph, after) > 0


def test_a_repeated_dropout_gives_the_same_numbers():
    seed = Variable(np.array([3, 0], "int64"))

    def build():
        from magmadnn_py.ops.random import Dropout

        with Trace() as trace:
            x = trace.input((500,))
            y = x
            for stream in range(6):
                y = ops.tanh(Dropout(0.5, stream)(y, trace.initial(seed)))
            return trace.graph([ops.sum(y), *gradients(ops.sum(y), [x])])

    x = np.random.default_rng(0).normal(size=500).astype("float32")
    free = Program(build())
    tight = Program(build(), memory_limit=free.memory_bytes - free.arena_bytes // 3)
    assert tight.arena_bytes < free.arena_bytes
    for a, b in zip(free.run(x), tight.run(x), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- compile(memory_limit=...)


def network(memory_limit=None):
    mdnn.utils.set_random_seed(0)
    stack = [mdnn.Input((16, 16, 3))]
    for _ in range(4):
        stack += [layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.2)]
    model = mdnn.Sequential([*stack, layers.GlobalAveragePooling2D(), layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", memory_limit=memory_limit)
    return model


def trained(model) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 16, 16, 3)).astype("float32"), rng.integers(0, 4, 32)
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    return model.get_weights()


def train_program(model) -> Program:
    return next(program for key, program in model._programs.items() if key[0] == "train")


def test_a_model_trains_to_the_same_weights_in_less_memory():
    free, tight = network(), None
    wanted = trained(free)
    program = train_program(free)
    limit = int(program.memory_bytes - 0.3 * program.arena_bytes)
    tight = network(limit)
    for a, b in zip(trained(tight), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert train_program(tight).memory_bytes <= limit


def test_a_limit_that_cannot_be_met_names_what_can():
    with pytest.raises(MemoryError, match=r"memory_limit: got 0.01 MB, wanted at least \d+\.\d+ MB"):
        trained(network(10_000))


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(ValueError, match="memory_limit: got"):
        network(limit)


def test_the_limit_belongs_to_the_machine_and_is_not_saved():
    assert "memory_limit" not in network(1 << 30).get_compile_config()
