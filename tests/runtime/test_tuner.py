"""The tuner's decisions, from made-up timings; one real run, of which no time is looked at."""

import math
from collections import Counter

import numpy as np
import pytest

from magmadnn_py import initializers, layers, ops, optimizers
from magmadnn_py.graph import Trace
from magmadnn_py.graph.node import Input, Node
from magmadnn_py.graph.types import TensorType
from magmadnn_py.models import Input as ModelInput
from magmadnn_py.models import Sequential
from magmadnn_py.ops.matmul import MatMul
from magmadnn_py.runtime import tuner as tuner_module
from magmadnn_py.runtime.database import KernelDatabase
from magmadnn_py.runtime.kernels import best_algorithm
from magmadnn_py.runtime.program import Program
from magmadnn_py.runtime.tuner import Effort, Scratch, Tuner, default_tuner, mode, race, tuned_algorithm, tuning

FULL = Effort(rounds=20, samples=20, seconds=math.inf, slower=math.inf)


class Clock:
    """Runs that take the given seconds each; counts them."""

    def __init__(self, seconds: dict, first: float = 0.0):
        self.seconds = seconds
        self.first = first  # more, at the first run
        self.runs = Counter()

    def __call__(self, name, repeats: int) -> float:
        self.runs[name] += 1
        return self.seconds[name] + (self.first if self.runs[name] == 1 else 0)


def product(rows: int = 256, dtype: str = "float32") -> Node:
    a, b = (Input(TensorType(shape, dtype))() for shape in ((rows, 128), (128, 64)))
    return Node(MatMul(), (a, b))


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setenv("MAGMADNN_TUNE", "fast")


@pytest.fixture
def three(monkeypatch):
    """Every node has the algorithms a, b and c, a being the preferred one."""
    monkeypatch.setattr(tuner_module, "algorithms", lambda node, threads: ["a", "b", "c"])
    monkeypatch.setattr(tuner_module, "best_algorithm", lambda node, threads: "a")


def tuner_with(tmp_path, seconds: dict) -> tuple[Tuner, list[Clock]]:
    """A tuner on a database in `tmp_path` for which algorithms take that long, and the clocks it made."""
    clocks = []

    def scratch(node, threads, names):
        clocks.append(Clock({name: seconds[name] * node.outputs[0].type.size for name in names}))
        return clocks[-1]

    return Tuner(KernelDatabase(tmp_path / "kernels.sqlite"), scratch), clocks


# The race


def test_candidates_run_in_turn_and_the_first_run_does_not_count():
    clock = Clock({"a": 1.0, "b": 1.1}, first=5.0)
    times = race(clock, [["a", "b"]], FULL)
    assert times == {"a": [1.0] * 20, "b": [1.1] * 20}


def test_one_that_is_clearly_slower_is_given_up():
    clock = Clock({"a": 1.0, "b": 1.2, "c": 1.5, "d": 3.0})
    times = race(clock, [["a", "b", "c", "d"]], Effort(5, 1, math.inf, 1.3))
    assert {name: len(taken) for name, taken in times.items()} == {"a": 5, "b": 5, "c": 1, "d": 1}
    assert clock.runs == {"a": 6, "b": 6, "c": 2, "d": 1}  # d was hopeless at its first run


def test_only_those_of_one_group_compete():
    times = race(Clock({"a": 1.0, "b": 50.0}), [["a"], ["b"]], Effort(5, 1, math.inf, 1.3))
    assert {name: len(taken) for name, taken in times.items()} == {"a": 5, "b": 5}


def test_the_budget_ends_the_rounds():
    times = race(Clock({"a": 1.0, "b": 1.0}), [["a", "b"]], Effort(5, 1, 6.0, 1.3))
    assert {name: len(taken) for name, taken in times.items()} == {"a": 3, "b": 3}


# Choices


def test_the_fastest_is_chosen_and_remembered(tmp_path, three, fast):
    tuner, clocks = tuner_with(tmp_path, {"a": 3e-6, "b": 1e-6, "c": 2e-6})
    assert tuner.choose(product(), 2) == "b"
    assert tuner.choose(product(), 2) == "b"
    assert len(clocks) == 1
    rows = {row["algorithm"]: row for row in KernelDatabase(tmp_path / "kernels.sqlite").rows()}
    assert set(rows) == {"a", "b", "c"}
    assert rows["b"]["seconds"] == pytest.approx(1e-6 * 256 * 64)
    assert rows["b"]["flops"] == 2 * 256 * 128 * 64 and rows["b"]["threads"] == 2 and rows["b"]["op"] == "matmul"

    later, none = tuner_with(tmp_path, {})  # another process
    assert later.choose(product(), 2) == "b"
    assert none == []


def test_another_signature_is_timed_anew(tmp_path, three, fast):
    tuner, clocks = tuner_with(tmp_path, {"a": 1e-6, "b": 2e-6, "c": 3e-6})
    for node, threads in ((product(), 1), (product(), 2), (product(255), 1), (product(dtype="float64"), 1)):
        assert tuner.choose(node, threads) == "a"
    assert len(clocks) == 4


def test_another_kernel_library_is_timed_anew(tmp_path, three, fast, monkeypatch):
    tuner_with(tmp_path, {"a": 1e-6, "b": 2e-6, "c": 3e-6})[0].choose(product(), 1)
    monkeypatch.setattr(tuner_module, "library_version", lambda: "rebuilt")
    tuner, clocks = tuner_with(tmp_path, {"a": 2e-6, "b": 1e-6, "c": 3e-6})
    assert tuner.choose(product(), 1) == "b"
    assert len(clocks) == 1


def test_a_candidate_without_a_timing_is_timed_with_the_others(tmp_path, three, fast, monkeypatch):
    tuner, _ = tuner_with(tmp_path, {"a": 1e-6, "b": 2e-6, "c": 3e-6})
    tuner.choose(product(), 1)
    monkeypatch.setattr(tuner_module, "algorithms", lambda node, threads: ["a", "d"])
    tuner, clocks = tuner_with(tmp_path, {"a": 2e-6, "d": 1e-6})
    assert tuner.choose(product(), 1) == "d"
    assert len(clocks) == 1


def test_full_times_more_than_fast_and_believes_only_that(tmp_path, three, fast):
    seconds = {"a": 1e-9, "b": 1.1e-9, "c": 9e-9}
    tuner, clocks = tuner_with(tmp_path, seconds)
    tuner.choose(product(), 1)
    with tuning("full"):
        tuner.choose(product(), 1)
        tuner.choose(product(), 1)
    assert [sum(clock.runs.values()) for clock in clocks] == [2 * 6 + 1, 3 * 21]


def test_off_times_nothing(tmp_path, three):
    tuner, clocks = tuner_with(tmp_path, {})
    assert mode() == "off"  # the tests' setting
    assert tuner.choose(product(), 1) == "a"
    assert tuner.seconds([product()], 1) is None
    assert clocks == [] and not (tmp_path / "kernels.sqlite").exists()


def test_tiny_nodes_are_not_timed(tmp_path, three, fast):
    tuner, clocks = tuner_with(tmp_path, {})
    x = Input(TensorType((4, 4)))()
    assert tuner.choose(Node(MatMul(), (x, x)), 1) == "a"
    assert tuner.seconds([Node(MatMul(), (x, x))], 1) is None
    assert clocks == []


def test_one_candidate_is_not_timed_for_a_choice(tmp_path, fast, monkeypatch):
    monkeypatch.setattr(tuner_module, "algorithms", lambda node, threads: ["gemm"])
    tuner, clocks = tuner_with(tmp_path, {"gemm": 1e-6})
    assert tuner.choose(product(), 1) == "gemm"
    assert clocks == []
    assert tuner.seconds([product()], 1) == [pytest.approx(1e-6 * 256 * 64)]
    assert len(clocks) == 1


def test_seconds_are_those_of_the_fastest(tmp_path, three, fast):
    tuner, _ = tuner_with(tmp_path, {"a": 3e-6, "b": 1e-6, "c": 2e-6})
    wanted = [1e-6 * 256 * 64, 1e-6 * 512 * 64]
    assert tuner.seconds([product(), product(512)], 1) == pytest.approx(wanted)


def test_without_memory_the_preferred_one_runs(tmp_path, three, fast):
    def scratch(node, threads, names):
        raise MemoryError

    tuner = Tuner(KernelDatabase(tmp_path / "kernels.sqlite"), scratch)
    assert tuner.choose(product(), 1) == "a"
    assert tuner.seconds([product()], 1) is None


def test_modes(monkeypatch):
    monkeypatch.delenv("MAGMADNN_TUNE")
    assert mode() == "fast"
    with tuning("off"):
        assert mode() == "off"
    monkeypatch.setenv("MAGMADNN_TUNE", "always")
    with pytest.raises(ValueError, match="MAGMADNN_TUNE: got 'always', wanted one of off, fast, full"):
        tuned_algorithm(product(1), 1)


# Real kernels


def test_scratch_runs_every_algorithm():
    from magmadnn_py import _core
    from magmadnn_py.runtime.kernels import algorithms

    with Trace() as trace:
        x = trace.input((2, 9, 9, 3))
        pooled, positions = ops.conv(x, np.ones((3, 3, 3, 4), "float32")), trace.input((0, 2), "int32")
        nodes = [pooled.node, ops.max_pool(x, 2).node, ops.take(x, positions, 1).node, ops.mean(x, 0).node]
    for node in nodes:
        threads = _core.get_threads()
        names = algorithms(node, threads)
        run = Scratch(node, threads, names)
        assert names and all(run(name, 2) >= 0 for name in names)


def test_a_model_is_tuned_once(tmp_path, monkeypatch):
    """A choice is made, stored and used again, and with the same timings the results are the same bits."""
    monkeypatch.setenv("MAGMADNN_TUNE", "fast")
    monkeypatch.setenv("MAGMADNN_CACHE", str(tmp_path))
    x = np.random.default_rng(0).random((16, 16, 16, 8), dtype=np.float32)

    def trained():
        default_tuner.cache_clear()  # as another process would be
        start = initializers.Constant(0.01)
        model = Sequential(
            [
                ModelInput((16, 16, 8)),
                layers.Conv2D(16, 3, kernel_initializer=start),
                layers.MaxPooling2D(2),
                layers.Conv2D(16, 3, kernel_initializer=start),
                layers.Flatten(),
                layers.Dense(1, kernel_initializer=start),
            ]
        )
        model.compile(optimizers.SGD(1e-4), "mse")
        losses = [model.train_on_batch(x, np.zeros((16, 1))) for _ in range(3)]
        return losses, [weight.tobytes() for weight in model.get_weights()]

    try:
        first = trained()
        rows = KernelDatabase().rows()
        assert rows and {row["op"] for row in rows} >= {"convolution_input_gradient"}
        monkeypatch.setattr(tuner_module, "Scratch", None)  # no timing any more
        assert trained() == first
        assert KernelDatabase().rows() == rows
    finally:
        default_tuner.cache_clear()


def test_a_deterministic_model_is_not_timed(tmp_path, monkeypatch):
    monkeypatch.setenv("MAGMADNN_TUNE", "fast")
    monkeypatch.setattr(tuner_module, "Scratch", None)
    model = Sequential([ModelInput((16, 16, 8)), layers.Conv2D(16, 3), layers.Conv2D(16, 3), layers.Flatten()])
    model.compile("sgd", "mse", deterministic=True)
    model.train_on_batch(np.zeros((8, 16, 16, 8)), np.zeros((8, 12 * 12 * 16)))
    assert "deterministic" not in model.get_compile_config()


def test_the_default_choice_is_the_preferred_one_when_off():
    with Trace() as trace:
        y = ops.matmul(trace.input((64, 64)), trace.input((64, 64)))
        graph = trace.graph([y])
    (tuned,), (preferred,) = (
        list(Program(graph, choose=c).algorithms.values()) for c in (tuned_algorithm, best_algorithm)
    )
    assert tuned == preferred
