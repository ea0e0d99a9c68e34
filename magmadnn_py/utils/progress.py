"""A progress line in plain text."""

from __future__ import annotations

import sys
import time

import numpy as np


class Progbar:
    """Prints "steps/total bar time time-per-step rate - name: value ...".

    Args:
        target: number of steps; None where it is not known.
        width: of the bar, in characters.
        verbose: 0 prints nothing, 1 a bar that moves, 2 one line at the end.
        interval: seconds that pass at least between two lines of a bar that moves.
        stateful_metrics: names of values to show as they are; others are averaged over the steps.
        unit_name: what a step is called.
        samples: number of samples in all steps; given it, samples per second are shown.

    On anything but a terminal only the last line is printed.
    """

    def __init__(
        self, target, width=20, verbose=1, interval=0.05, stateful_metrics=None, unit_name="step", samples=None
    ):
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.stateful_metrics = set(stateful_metrics or ())
        self.unit_name = unit_name
        self.samples = samples
        self._sums: dict[str, tuple[float, float]] = {}
        self._seen = 0
        self._start = time.perf_counter()
        self._last_print = float("-inf")
        self._last_length = 0

    def update(self, current: int, values=None, finalize: bool | None = None) -> None:
        """Shows that `current` steps are done.

        Args:
            values: (name, value) pairs.
            finalize: whether this is the last line; by default when `current` is the target.
        """
        for name, value in values or ():
            self._take(name, float(np.mean(value)), current - self._seen)
        self._seen = current
        finalize = current == self.target if finalize is None else finalize
        if self.verbose == 0 or (self.verbose == 2 and not finalize):
            return
        now = time.perf_counter()
        if not finalize and (now - self._last_print < self.interval or not sys.stdout.isatty()):
            return
        self._last_print = now
        self._print(self.line(now - self._start, finalize), finalize)

    def add(self, n: int, values=None) -> None:
        """Shows that `n` more steps are done."""
        self.update(self._seen + n, values)

    def values(self) -> dict[str, float]:
        """The values as shown."""
        return {name: total / max(weight, 1e-12) for name, (total, weight) in self._sums.items()}

    def line(self, elapsed: float, finalize: bool) -> str:
        """The text for what has been seen, `elapsed` seconds after the start."""
        parts = [self._progress(), self._timing(elapsed, finalize)]
        parts += [f"- {name}: {_number(value)}" for name, value in self.values().items()]
        return " ".join(part for part in parts if part)

    def _take(self, name: str, value: float, steps: int) -> None:
        if name in self.stateful_metrics:
            self._sums[name] = (value, 1.0)
        else:
            total, weight = self._sums.get(name, (0.0, 0.0))
            steps = max(steps, 1)
            self._sums[name] = (total + value * steps, weight + steps)

    def _progress(self) -> str:
        if self.target is None:
            return f"{self._seen}/Unknown"
        count = f"{self._seen:{len(str(self.target))}d}/{self.target}"
        if self.verbose == 2:
            return count
        done = round(self.width * min(self._seen / max(self.target, 1), 1))
        return f"{count} {'━' * done}{'─' * (self.width - done)}"

    def _timing(self, elapsed: float, finalize: bool) -> str:
        steps = max(self._seen, 1)
        per_step = elapsed / steps
        parts = [_duration(elapsed)]
        if not finalize and self.target:
            parts = [f"{_duration(per_step * (self.target - self._seen))} left"]
        parts.append(f"{_short(per_step)}/{self.unit_name}")
        if self.samples and self.target and elapsed > 0:
            parts.append(f"{self.samples * self._seen / self.target / elapsed:.0f} samples/s")
        return " ".join(parts)

    def _print(self, line: str, finalize: bool) -> None:
        moving = self.verbose == 1 and sys.stdout.isatty()
        # Spaces wipe what is left of a longer line before.
        text = ("\r" + line.ljust(self._last_length)) if moving else line
        self._last_length = len(line)
        try:
            sys.stdout.write(text + ("\n" if finalize or not moving else ""))
        except UnicodeEncodeError:
            sys.stdout.write(text.replace("━", "=").replace("─", ".") + ("\n" if finalize or not moving else ""))
        sys.stdout.flush()


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) > 1e-3 or value == 0 else f"{value:.4e}"


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}" if whole >= 60 else f"{whole}s"


def _short(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"
