"""From the traced graph to the one that runs. Each pass has its own file, can be switched off
(`MAGMADNN_PASSES=-fuse,-order`) and says what it did under `MAGMADNN_LOG=passes`."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..graph.graph import Graph
from ..runtime.log import log
from .absorb_padding import absorb_padding
from .fold import fold
from .fuse import fuse
from .order import order
from .pool_first import pool_first
from .simplify import simplify
from .sparse import sparse

#: Passes over the forward graph of a network, before it is differentiated, in this order.
FORWARD_PASSES = {"absorb_padding": absorb_padding, "pool_first": pool_first}
#: Passes over the whole graph, in this order. Memory planning and kernel choice follow when a program is built.
GRAPH_PASSES = {"simplify": simplify, "fold": fold, "sparse": sparse, "fuse": fuse, "order": order}
NAMES = (*FORWARD_PASSES, *GRAPH_PASSES, "plan_memory", "choose_kernels")


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


def run_passes(graph: Graph, passes: dict[str, Callable[[Graph], Graph]] = GRAPH_PASSES) -> Graph:
    """The graph after all enabled passes."""
    for name, pass_ in passes.items():
        if not enabled(name):
            log("passes", f"{name}: off")
            continue
        before = len(graph.order)
        graph = pass_(graph)
        log("passes", f"{name}: {before} -> {len(graph.order)} nodes")
    return graph
