"""The tuner chooses the algorithm of a node: it times the candidates once per signature and remembers the winner.

`MAGMADNN_TUNE` says how much is timed: "off" (nothing: the kernels' own rule of preference decides), "fast" (the
default: a few runs, in which a candidate that is clearly slower is given up) or "full" (many runs of every candidate).
Timings are kept in the kernel database, so that one signature is timed once on a device; for the same contents of
the database the choices, and so the results, are the same.
"""

from __future__ import annotations

import functools
import itertools
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
from ..graph.types import is_floating
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


EFFORTS = {"fast": Effort(5, 1, 0.2, 1.3), "full": Effort(20, 20, math.inf, math.inf)}
#: A timing takes about that long, so that the clock and a moment's disturbance do not matter.
_TIMING_SECONDS = 1e-3
_MOST_REPEATS = 100
#: Nodes of less work than both are not worth timing.
_TINY = Cost(flops=500_000, bytes=100_000)

_PATTERN = 65521

#: Seconds of a run of an algorithm, given it and how often to run it.
Run = Callable[[str, int], float]
#: By algorithm: seconds, and how many timings they are the median of.
Timings = dict[str, tuple[float, int]]
#: A node, and the algorithms that can run it.
Job = tuple[Node, Sequence[str]]

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
        scratch: from a node, the number of threads and algorithms makes what times them; by default `Scratch`.
    """

    def __init__(self, database: KernelDatabase | None = None, scratch: Callable[..., Run] | None = None):
        self._database = database or KernelDatabase()
        self._scratch = scratch or Scratch
        self._known: dict[str, Timings] = {}
        self._lock = threading.RLock()

    def choose(self, node: Node, threads: int) -> str | None:
        """The algorithm to run this node with; None if it has no kernel here, so that its reference runs."""
        found = algorithms(node, threads) if _is_timed(node) else []
        timings = self._timings([(node, found)], threads) if len(found) > 1 else None
        return min(found, key=lambda name: timings[0][name][0]) if timings else best_algorithm(node, threads)

    def seconds(self, nodes: Sequence[Node], threads: int) -> list[float] | None:
        """How long the fastest algorithm of each node runs, all timed side by side: for choosing between forms of a
        graph. None where nothing is to be timed: a node has no kernel, all are tiny, tuning is off."""
        jobs = [(node, algorithms(node, threads)) for node in nodes]
        if not any(map(_is_timed, nodes)) or not all(found for _, found in jobs):
            return None
        timings = self._timings(jobs, threads)
        return timings and [min(seconds for seconds, _ in known.values()) for known in timings]

    def _timings(self, jobs: Sequence[Job], threads: int) -> list[Timings] | None:
        """Those of each node's algorithms; None where there is no memory to time them in."""
        effort = EFFORTS[mode()]
        with self._lock:
            known = [self._remembered(node, threads) for node, _ in jobs]
            if not all(_suffices(k, found, effort) for k, (_, found) in zip(known, jobs, strict=True)):
                try:
                    known = self._measure(jobs, threads, effort)
                except MemoryError:
                    log("kernels", f"no memory to time {', '.join(node.op.name for node, _ in jobs)} in")
                    return None
        return [{name: k[name] for name in found} for k, (_, found) in zip(known, jobs, strict=True)]

    def _remembered(self, node: Node, threads: int) -> Timings:
        key = _key(node, threads)
        text = canonical(key)
        if text not in self._known:
            rows = self._database.rows(**key)
            self._known[text] = {row["algorithm"]: (row["seconds"], row["samples"]) for row in rows}
        return self._known[text]

    def _measure(self, jobs: Sequence[Job], threads: int, effort: Effort) -> list[Timings]:
        runs = [self._scratch(node, threads, found) for node, found in jobs]
        groups = [[(job, name) for name in found] for job, (_, found) in enumerate(jobs)]
        times = race(lambda which, repeats: runs[which[0]](which[1], repeats), groups, effort)
        measured, rows = [], []
        for (node, _), group in zip(jobs, groups, strict=True):
            timings = {which[1]: (statistics.median(times[which]), len(times[which])) for which in group}
            measured.append(timings)
            rows += _rows(node, threads, timings)
            self._known[canonical(_key(node, threads))] = timings
            said = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, (seconds, _) in timings.items())
            log("kernels", f"timed {node.op.name} -> {node.outputs[0].type}: {said}")
        self._database.add(rows)
        return measured


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


def race(run: Callable[[Any, int], float], groups: Sequence[Sequence[Any]], effort: Effort) -> dict[Any, list[float]]:
    """Seconds of runs of all that the groups name, timed in turn, so that a disturbance meets all alike.

    Those of one group compete. The first run of each warms up and counts only for those that it shows to be hopeless.
    """
    times = {name: [run(name, 1)] for group in groups for name in group}
    spent = sum(sum(taken) for taken in times.values())
    repeats = {name: _repeats(taken[0]) for name, taken in times.items()}
    racing = _not_slower(times, groups, 2 * effort.slower)
    for name in itertools.chain(*racing):
        times[name].clear()
    for _ in range(effort.rounds):
        for name in itertools.chain(*racing):
            times[name].append(run(name, repeats[name]))
            spent += times[name][-1] * repeats[name]
        if spent > effort.seconds:
            break
        racing = _not_slower(times, racing, effort.slower)
    return times


def _repeats(seconds: float) -> int:
    return max(1, min(_MOST_REPEATS, int(_TIMING_SECONDS / max(seconds, 1e-9))))


def _not_slower(times: dict[Any, list[float]], groups: Sequence[Sequence[Any]], factor: float) -> list[list[Any]]:
    best = {name: min(taken) for name, taken in times.items()}
    return [[name for name in group if best[name] <= factor * min(best[other] for other in group)] for group in groups]


class Scratch:
    """Algorithms of one node, each a program of one step, on memory that they share: call it to time one of them.

    Floating-point inputs hold random numbers, positions in windows random ones; all others are 0, a valid index.
    """

    def __init__(self, node: Node, threads: int, names: Sequence[str]):
        values = (*node.inputs, *node.outputs)
        starts = [0]
        for value in values:
            starts.append(starts[-1] + -(-value.type.nbytes // 64) * 64)
        memory = Tensor((max(starts[-1], 64),), "uint8", fill=0)
        for value, start in zip(node.inputs, starts, strict=False):
            positions = math.prod(getattr(node.op, "window", ()))
            _fill(memory.numpy()[start : start + value.type.nbytes].view(value.dtype), positions)
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


def _fill(array: np.ndarray, below: int) -> None:
    """Random contents, of a short pattern because drawing many takes long: floats around 1, integers from 0."""
    rng = np.random.Generator(np.random.Philox(0))
    floating = is_floating(array.dtype.name)
    pattern = rng.uniform(0.5, 1.5, _PATTERN) if floating else rng.integers(0, below, _PATTERN)
    pattern = pattern.astype(array.dtype)
    for start in range(0, array.size, pattern.size):
        array[start : start + pattern.size] = pattern[: array.size - start]


def _is_timed(node: Node) -> bool:
    if mode() == "off":
        return False
    cost = cost_of(node)
    return cost.flops >= _TINY.flops or cost.bytes >= _TINY.bytes


def _suffices(known: Timings, found: Sequence[str], effort: Effort) -> bool:
    return all(name in known and known[name][1] >= effort.samples for name in found)


def _key(node: Node, threads: int) -> dict[str, Any]:
    names = ("op", "attributes", "inputs", "outputs")
    signed = dict(zip(names, signature(node), strict=True))
    return {"device": device(), "version": library_version(), **signed, "threads": threads}


def _rows(node: Node, threads: int, timings: Timings) -> list[dict[str, Any]]:
    """The timings as rows of the database."""
    cost = cost_of(node)
    common = {**_key(node, threads), "flops": int(cost.flops), "bytes": int(cost.bytes)}
    return [
        {**common, "algorithm": name, "seconds": seconds, "samples": samples}
        for name, (seconds, samples) in timings.items()
    ]
