"""The harness, by a clock that only the contenders move."""

import pytest

from magmadnn_py.benchmarks import timing
from magmadnn_py.benchmarks.timing import Timing, alternate


class FakeMachine:
    """A clock, and contenders that take a known time per call and note that they ran."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.log.append(("sleep", seconds))

    def contender(self, name, *durations):
        """The durations in turn, the last one for ever."""
        left = list(durations)

        def run(repeats):
            self.log.append((name, repeats))
            for _ in range(repeats):
                self.now += left.pop(0) if len(left) > 1 else left[0]

        return run

    def alternate(self, seconds=0.0, **contenders):
        return alternate(contenders, seconds, self.clock, self.sleep)


@pytest.fixture
def machine():
    return FakeMachine()


def test_median_quartiles_and_spread():
    timing = Timing((5.0, 1.0, 2.0, 4.0, 3.0))
    assert timing.median == 3.0
    assert timing.quartiles == (2.0, 4.0)
    assert timing.spread == pytest.approx(2 / 3)


def test_one_sample_has_no_spread():
    assert Timing((2.0,)).quartiles == (2.0, 2.0)
    assert Timing((2.0,)).spread == 0.0


def test_the_first_calls_are_not_counted(machine):
    (found,) = machine.alternate(a=machine.contender("a", 100.0, 50.0, 1.0)).values()
    assert set(found.samples) == {1.0}
    assert found.median == 1.0


def test_at_least_a_few_rounds_however_long_they_take(machine):
    found = machine.alternate(0.0, a=machine.contender("a", 10.0), b=machine.contender("b", 20.0))
    assert len(found["a"].samples) == len(found["b"].samples) == timing.LEAST_SAMPLES
    assert (found["a"].median, found["b"].median) == (10.0, 20.0)


def test_rounds_until_the_time_is_used(machine):
    (found,) = machine.alternate(100.0, a=machine.contender("a", 1.0)).values()
    assert len(found.samples) == 98  # two calls came before


def test_contenders_take_turns_and_each_round_starts_with_another(machine):
    machine.alternate(0.0, a=machine.contender("a", 1.0), b=machine.contender("b", 1.0))
    turns = [name for name, _ in machine.log if name != "sleep"]
    assert turns == ["a", "a", "b", "b"] + ["a", "b"] + ["b", "a"] + ["a", "b"]


def test_threads_of_the_one_before_may_settle(machine):
    machine.alternate(0.0, a=machine.contender("a", 1.0), b=machine.contender("b", 1.0))
    assert machine.log.count(("sleep", timing.SETTLE_SECONDS)) == 2 * timing.LEAST_SAMPLES


def test_a_single_contender_does_not_wait(machine):
    machine.alternate(0.0, a=machine.contender("a", 1.0))
    assert not [entry for entry in machine.log if entry[0] == "sleep"]


def test_short_calls_are_repeated_behind_one_that_is_not_timed(machine):
    call = timing.SAMPLE_SECONDS / 8
    (found,) = machine.alternate(a=machine.contender("a", call)).values()
    assert machine.log[2:4] == [("a", 1), ("a", 8)]
    assert found.median == pytest.approx(call)


def test_no_contenders():
    assert alternate({}, 1.0) == {}
