"""A roofline plot of rows."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..utils.files import atomic_write
from .limit import Limit
from .rows import Row


def check_plotting(path: str | os.PathLike) -> None:
    """Raises ImportError without matplotlib, ValueError if it does not know the kind of file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("--plot: matplotlib is missing: pip install 'magmadnn-py[plot]'")
    from matplotlib.figure import Figure

    known = sorted(Figure().canvas.get_supported_filetypes())
    if _kind(path) not in known:
        raise ValueError(f"--plot: got '{path}', wanted a name that ends in one of {', '.join(known)}")


def write_roofline(path: str | os.PathLike, rows: Sequence[Row], limit: Limit) -> None:
    """Rate over intensity (operations per byte), one point per row, one colour per op, below the machine's limit."""
    from matplotlib.figure import Figure

    axes = (figure := Figure((9, 6), layout="constrained")).subplots()
    points = [row for row in rows if row.cost.flops and row.cost.bytes]
    intensities = [row.cost.flops / row.cost.bytes for row in points]
    ridge = limit.flops_per_second / limit.bytes_per_second
    ends = np.array([min([ridge / 8, *intensities]), ridge, max([ridge * 8, *intensities])])
    axes.loglog(ends, np.minimum(ends * limit.bytes_per_second, limit.flops_per_second) / 1e9, "k-", label="limit")
    for op in dict.fromkeys(row.op for row in points):
        shown = [(i, row.flops_per_second / 1e9) for i, row in zip(intensities, points, strict=True) if row.op == op]
        axes.loglog(*zip(*shown, strict=True), "o", markersize=4, label=op)
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize="small")
    axes.grid(True, which="both", alpha=0.2)
    data = io.BytesIO()
    figure.savefig(data, format=_kind(path))
    atomic_write(path, data.getvalue())


def _kind(path: str | os.PathLike) -> str:
    return Path(path).suffix.lstrip(".").lower()
