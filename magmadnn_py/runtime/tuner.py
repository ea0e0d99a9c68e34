"""The tuner chooses the algorithm of a node: it times the candidates once per signature and remembers the winner.

`MAGMADNN_TUNE` says how much is timed: "off" (nothing: the kernels' own rule of preference decides), "fast" (the
default: a few runs, in which a candidate that is clearly slower is given up) or "full" (many runs of every candidate).
Timings are kept in the kernel database, so that one signature is timed once on a device; for the same contents of
the database the choices, and so the results, are the same.
"""

from __future__ import annotations

import functools
import math
import os
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..graph.node import Cost, Node
from ..graph.types import TensorType, is_floating
from .database import KernelDatabase, canonical
from .kernels import algorithms, best_algorithm, device, library_version, signature
from .log import log
from .tensor import Tensor

MODES = ("off", "fast", "full")


@dataclass(frozen=True)
class Effort:
    """How long candidates are timed.

    rounds: timings of every candidate, at most. samples: how many a remembered timing must have to be believed.
    seconds: no further round after that much time. slower: a candidate whose best timing is that many times the best
    one's is given up.
    """

    rounds: int
    samples: int
    seconds: float
    slower: float


EFFORTS = {"fast": Effort(5, 1, 0.3, 1.3), "full": Effort(20, 20, math.inf, math.inf)}
#: A timing takes about that long, so that the clock and a moment's disturbance do not matter.
_TIMING_SECONDS = 1e-3
_MOST_REPEATS = 100
#: Nodes of less work than both are not worth timing.
_TINY = Cost(flops=500_000, bytes=100_000)

#: Seconds of a run of an algorithm, given it and how often to run it.
Run = Callable[[str, int], float]

_mode: ContextVar[str | None] = ContextVar("tuning", default=None)


def mode() -> str:
    """How much is timed now: "off", "fast" or "full".

    Raises:
        ValueError: MAGMADNN_TUNE is none of these.
    """
    chosen = _mode.get() or os.environ.get("MAGMADNN_TUNE") or "fast"
    if chosen not in MODES:
        raise ValueError(f"MAGMADNN_TUNE: got '{chosen}', wanted one of {', '.join(MODES)}")
    return chosen


@contextmanager
def tuning(mode: str) -> Iterator[None]:
    """`with tuning("off"):` holds in place of MAGMADNN_TUNE, in this thread."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


class Tuner:
    """Chooses algorithms by timings that it makes or finds in a database.

    Args:
        database: where timings are kept; by default that of the user's cache folder.
        scratch: makes the function that times a node's algorithms; by default on memory of its own.
    """

    def __init__(self, database: KernelDatabase | None = None, scratch: Callable[..., Run] | None = None):
        self._database = database or KernelDatabase()
        self._scratch = scratch or Scratch
        self._known: dict[str, dict[str, tuple[float, int]]] = {}  # signature: algorithm: seconds, samples
        self._lock = threading.RLock()

    def choose(self, node: Node, threads: int) -> str | None:
        """The algorithm to run this node with; None if it has no kernel here, so that its reference runs."""
        found = algorithms(node, threads) if _is_timed(node) else []
        timings = self._timings(node, threads, found) if len(found) > 1 else {}
        return min(found, key=timings.get) if timings else best_algorithm(node, threads)

    def seconds(self, node: Node, threads: int) -> float | None:
        """How long the node's fastest algorithm runs; None where it has none, or nothing is to be timed."""
        found = algorithms(node, threads) if _is_timed(node) else []
        return min(self._timings(node, threads, found).values(), default=None)

    def _timings(self, node: Node, threads: int, found: Sequence[str]) -> dict[str, float]:
        """Seconds of each algorithm in `found`; empty where there is no memory to time them in."""
        if not found:
            return {}
        effort = EFFORTS[mode()]
        key = _key(node, threads)
        text = canonical(key)
        with self._lock:
            if not _suffices(self._known.get(text, {}), found, effort):
                rows = self._database.rows(**key)
                self._known[text] = {row["algorithm"]: (row["seconds"], row["samples"]) for row in rows}
            if not _suffices(self._known[text], found, effort):
                try:
                    self._known[text] = self._measure(node, threads, found, effort)
                except MemoryError:
                    log("kernels", f"{node.scope}: {node.op.name}: no memory to time its algorithms in")
                    return {}
            return {name: self._known[text][name][0] for name in found}

    def _measure(self, node: Node, threads: int, found: Sequence[str], effort: Effort) -> dict[str, tuple[float, int]]:
        """Times the algorithms and keeps the medians, with the numbers of timings."""
        times = race(self._scratch(node, threads, found), found, effort)
        medians = {name: (statistics.median(taken), len(taken)) for name, taken in times.items()}
        key, cost = _key(node, threads), cost_of(node)
        work = {"flops": int(cost.flops), "bytes": int(cost.bytes)}
        self._database.add(
            {**key, "algorithm": name, "seconds": seconds, "samples": samples, **work}
            for name, (seconds, samples) in medians.items()
        )
        said = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, (seconds, _) in medians.items())
        log("kernels", f"timed {node.scope}: {node.op.name} -> {node.outputs[0].type}: {said}")
        return medians


@functools.cache
def default_tuner() -> Tuner:
    """The process's own, with the database of the user's cache folder."""
    return Tuner()


def tuned_algorithm(node: Node, threads: int) -> str | None:
    """The algorithm to run this node with, by timing where that is on; None if it has no kernel here."""
    return default_tuner().choose(node, threads)


def cost_of(node: Node) -> Cost:
    """Operations and bytes of one run of the node."""
    return node.op.cost([value.type for value in node.inputs], [value.type for value in node.outputs])


def race(run: Run, names: Sequence[str], effort: Effort) -> dict[str, list[float]]:
    """Seconds of runs of each algorithm, timed in turn, so that a disturbance meets all alike.

    The first run of each warms up and counts only for those that it shows to be hopeless.
    """
    times = {name: [run(name, 1)] for name in names}
    spent = sum(sum(taken) for taken in times.values())
    repeats = {name: _repeats(taken[0]) for name, taken in times.items()}
    racing = _not_slower(times, names, 2 * effort.slower)
    for name in racing:
        times[name].clear()
    for _ in range(effort.rounds):
        for name in racing:
            times[name].append(run(name, repeats[name]))
            spent += times[name][-1] * repeats[name]
        racing = _not_slower(times, racing, effort.slower)
        if spent > effort.seconds or len(racing) == 1 < len(names):
            break
    return times


def _repeats(seconds: float) -> int:
    return max(1, min(_MOST_REPEATS, int(_TIMING_SECONDS / max(seconds, 1e-9))))


def _not_slower(times: dict[str, list[float]], names: Sequence[str], factor: float) -> list[str]:
    best = {name: min(times[name]) for name in names}
    return [name for name in names if best[name] <= factor * min(best.values())]


class Scratch:
    """Algorithms of one node, each a program of one step, on memory that they share: call it to time one of them.

    Floating-point inputs hold random numbers; all others zeros, which are valid indices, labels and positions.
    """

    def __init__(self, node: Node, threads: int, names: Sequence[str]):
        values = (*node.inputs, *node.outputs)
        starts = [0]
        for value in values:
            starts.append(starts[-1] + -(-value.type.nbytes // 64) * 64)
        memory = Tensor((max(starts[-1], 64),), "uint8", fill=0)
        for value, start in zip(node.inputs, starts, strict=False):
            _fill(memory.numpy()[start : start + value.type.nbytes], value.type)
        places = [(1, start) for start in starts[:-1]]
        inputs, outputs = places[: len(node.inputs)], places[len(node.inputs) :]
        self._programs = {}
        for name in names:
            program = self._programs[name] = _core.Program(2, threads)
            program.add_kernel(node.op.name, *signature(node), name, inputs, outputs)
        size = max(program.workspace_bytes for program in self._programs.values())
        workspace = Tensor((max(size, 64),), "uint8")
        for program in self._programs.values():
            program.bind(0, workspace)
            program.bind(1, memory)

    def __call__(self, name: str, repeats: int) -> float:
        """Seconds of one run, the mean of `repeats`."""
        return self._programs[name].run_batches([], [], 0, 0, repeats, None, True)[0] / repeats


def _fill(memory: np.ndarray, type_: TensorType) -> None:
    if is_floating(type_.dtype):
        pattern = np.random.Generator(np.random.Philox(0)).uniform(0.5, 1.5, 65521).astype(type_.dtype)
        array = memory.view(type_.dtype)
        for start in range(0, array.size, pattern.size):
            array[start : start + pattern.size] = pattern[: array.size - start]


def _is_timed(node: Node) -> bool:
    if mode() == "off":
        return False
    cost = cost_of(node)
    return cost.flops >= _TINY.flops or cost.bytes >= _TINY.bytes


def _suffices(known: dict[str, tuple[float, int]], found: Sequence[str], effort: Effort) -> bool:
    return all(name in known and known[name][1] >= effort.samples for name in found)


def _key(node: Node, threads: int) -> dict[str, Any]:
    names = ("op", "attributes", "inputs", "outputs")
    signed = dict(zip(names, signature(node), strict=True))
    return {"device": device(), "version": library_version(), **signed, "threads": threads}
