"""Rows as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from .rows import Row

_NUMBERS = ("time", "spread", "GFLOP/s", "GB/s", "of limit", "torch", "ratio")
#: Where the output is no terminal, which would tell its width.
_FILE_WIDTH = 160


def console() -> Console:
    found = Console()
    return found if found.is_terminal else Console(width=_FILE_WIDTH)


def table(title: str, rows: Sequence[Row]) -> Table:
    """One line per row.

    time: median; spread: distance of the quartiles as a share of it; of limit: the roofline's least time as a share
    of it; ratio: the peer's time as a multiple of it.
    """
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("case", "op", "algorithm"):
        result.add_column(heading, overflow="fold")
    for heading in _NUMBERS:
        result.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        op = next(iter(row.attributes.values())) if row.op in ("layer", "model") else row.op
        result.add_row(row.case, op, row.algorithm, *_numbers(row))
    return result


def _numbers(row: Row) -> tuple[str, ...]:
    return (
        duration(row.seconds),
        f"{100 * row.timing.spread:.0f} %",
        f"{row.flops_per_second / 1e9:.1f}",
        f"{row.bytes_per_second / 1e9:.1f}",
        f"{100 * row.share_of_limit:.0f} %",
        duration(row.peer.median) if row.peer else "",
        f"{row.peer_ratio:.2f} x" if row.peer else "",
    )


def duration(seconds: float) -> str:
    """With three digits or more, in microseconds, milliseconds or seconds."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
