"""A row: one algorithm on one case, its time, the machine's limit for it, and the peer's time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..graph.graph import Graph
from ..graph.node import Cost
from ..graph.types import TensorType
from ..runtime.kernels import device, library_version
from ..utils.files import atomic_write
from .limit import Limit
from .timing import Timing


@dataclass(frozen=True)
class Row:
    """What was measured.

    case: the case's label.
    op, attributes: of a kernel's op; "layer" or "model" where a whole program was timed.
    cost: operations and bytes as the op counts them, whatever the algorithm does.
    peer: PyTorch on the same shapes; None where it has no such op or is not installed.
    """

    case: str
    op: str
    attributes: dict[str, Any]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    threads: int
    algorithm: str
    timing: Timing
    cost: Cost
    limit: Limit = field(repr=False)
    peer: Timing | None = None

    @property
    def seconds(self) -> float:
        return self.timing.median

    @property
    def flops_per_second(self) -> float:
        return self.cost.flops / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.cost.bytes / self.seconds

    @property
    def share_of_limit(self) -> float:
        """The least time the machine could take, by the roofline, as a share of the time taken."""
        return self.limit.least_seconds(self.cost) / self.seconds

    @property
    def peer_ratio(self) -> float | None:
        """The peer's time as a multiple of this one."""
        return self.peer.median / self.seconds if self.peer else None

    def record(self) -> dict[str, Any]:
        """The row as the kernel database has it, with the peer's fields."""
        return {
            "device": device(),
            "version": library_version(),
            "op": self.op,
            "attributes": self.attributes,
            "inputs": [[t.dtype, list(t.shape)] for t in self.inputs],
            "outputs": [[t.dtype, list(t.shape)] for t in self.outputs],
            "threads": self.threads,
            "algorithm": self.algorithm,
            "seconds": self.seconds,
            "samples": len(self.timing.samples),
            "flops": self.cost.flops,
            "bytes": self.cost.bytes,
            "case": self.case,
            "spread": self.timing.spread,
            "share_of_limit": self.share_of_limit,
            "peer": "torch" if self.peer else None,
            "peer_seconds": self.peer.median if self.peer else None,
            "peer_spread": self.peer.spread if self.peer else None,
        }


def graph_cost(graph: Graph) -> Cost:
    """The sum of what the nodes of a graph cost."""
    costs = [
        node.op.cost([value.type for value in node.inputs], [value.type for value in node.outputs])
        for node in graph.order
        if not node.op.is_leaf and not node.op.is_view
    ]
    return Cost(sum(cost.flops for cost in costs), sum(cost.bytes for cost in costs))


def write_json(path: str | os.PathLike, rows: Iterable[Row]) -> None:
    """Writes the rows' records as a JSON list; the file appears whole or not at all."""
    atomic_write(path, json.dumps([row.record() for row in rows], indent=1).encode())
