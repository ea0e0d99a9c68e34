"""How many steps run in one native call."""

from __future__ import annotations

#: Seconds of training between two returns to Python, where nothing asks for more.
_PACE = 0.1


class Pace:
    """How many steps to run before coming back to Python: a fixed number, or about `_PACE` seconds' worth."""

    def __init__(self, fixed: int | None):
        self.fixed = fixed
        self.steps = fixed or 1

    def update(self, steps: int, seconds: float) -> None:
        if self.fixed is None:
            wanted = int(steps * _PACE / max(seconds, 1e-9))
            self.steps = max(1, min(wanted, self.steps * 8))


def runs(rows: int, batch_size: int, steps_limit: int | None):
    """(first row, batch, number of steps): the whole batches, then the smaller last one."""
    whole, rest = divmod(rows, batch_size)
    if steps_limit is not None and steps_limit <= whole:
        whole, rest = steps_limit, 0
    if whole:
        yield 0, batch_size, whole
    if rest:
        yield whole * batch_size, rest, 1
