"""From the traced graph to the one that runs. Each pass has its own file, can be switched off
(`MAGMADNN_PASSES=-fuse,-order`) and says what it did under `MAGMADNN_LOG=passes`."""

from __future__ import annotations

import os

from ..graph.graph import Graph
from ..runtime.log import log
from .fuse import fuse
from .order import order
from .simplify import simplify

#: Graph -> Graph passes in the order they run. Memory planning and kernel choice follow when a program is built.
GRAPH_PASSES = {"simplify": simplify, "fuse": fuse, "order": order}
NAMES = (*GRAPH_PASSES, "plan_memory", "choose_kernels")


def enabled(name: str) -> bool:
    """Whether the pass is on: all are, but for those named with a minus in MAGMADNN_PASSES.

    Raises:
        ValueError: the variable names a pass that does not exist.
    """
    given = [item.strip() for item in os.environ.get("MAGMADNN_PASSES", "").split(",") if item.strip()]
    for item in given:
        if item.lstrip("+-") not in NAMES:
            raise ValueError(f"MAGMADNN_PASSES: got '{item}', wanted -NAME with NAME one of {', '.join(NAMES)}")
    return f"-{name}" not in given


def run_passes(graph: Graph) -> Graph:
    """The graph after all enabled passes."""
    for name, pass_ in GRAPH_PASSES.items():
        if not enabled(name):
            log("passes", f"{name}: off")
            continue
        before = len(graph.order)
        graph = pass_(graph)
        log("passes", f"{name}: {before} -> {len(graph.order)} nodes")
    return graph
