"""Timing of contenders in turn: warm-up, alternation, medians and quartiles."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..runtime.program import Program

#: Runs a number of times.
Contender = Callable[[int], object]

#: A sample is at least about this long: a short call is repeated inside of it.
SAMPLE_SECONDS = 2e-3
#: Threads that wait actively (OpenMP's do) are given this time to fall asleep before another contender's turn.
SETTLE_SECONDS = 4e-3
LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, once per sample, in the order they were taken."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile, by linear interpolation between samples."""
        if len(self.samples) == 1:
            return self.samples[0], self.samples[0]
        lower, _, upper = statistics.quantiles(self.samples, n=4, method="inclusive")
        return lower, upper

    @property
    def spread(self) -> float:
        """The distance of the quartiles as a share of the median."""
        lower, upper = self.quartiles
        return (upper - lower) / self.median if self.median else 0.0


def alternate(
    contenders: Mapping[str, Contender],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Timing]:
    """Times all contenders in turn, one sample each per round, until `seconds` are used by all of them together.

    The first two calls of each are not counted: one to warm up, one to see how many make a sample. Each round starts
    with another contender; there are at least LEAST_SAMPLES rounds.
    """
    start = clock()
    repeats = {name: _repeats(run, clock) for name, run in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    rounds = 0
    while names and (rounds < LEAST_SAMPLES or clock() - start < seconds):
        first = rounds % len(names)
        for name in names[first:] + names[:first]:
            if len(names) > 1:
                sleep(SETTLE_SECONDS)
            samples[name].append(_sample(contenders[name], repeats[name], clock))
        rounds += 1
    return {name: Timing(tuple(taken)) for name, taken in samples.items()}


def _repeats(run: Contender, clock: Callable[[], float]) -> int:
    run(1)
    begin = clock()
    run(1)
    taken = clock() - begin
    return max(1, math.ceil(SAMPLE_SECONDS / max(taken, 1e-7)))


def _sample(run: Contender, repeats: int, clock: Callable[[], float]) -> float:
    if repeats > 1:
        run(1)  # a short call would pay for the caches that another contender filled
    begin = clock()
    run(repeats)
    return (clock() - begin) / repeats


def contender(program: Program) -> Contender:
    """Runs of a program without inputs, in one native call."""
    return lambda repeats: program.run_batches([], 0, 1, repeats)
