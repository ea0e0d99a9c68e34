"""What this machine can do at most: the roofline that measured rates are compared with."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.node import Cost
from ..runtime.peaks import peak_bandwidth, peak_flops


@dataclass(frozen=True)
class Limit:
    """The roofline: greatest rate of float32 arithmetic (operations/s) and of memory traffic (bytes/s)."""

    flops_per_second: float
    bytes_per_second: float

    def least_seconds(self, cost: Cost) -> float:
        return max(cost.flops / self.flops_per_second, cost.bytes / self.bytes_per_second)

    def __str__(self) -> str:
        return (
            f"limit of this machine: {self.flops_per_second / 1e9:.1f} GFLOP/s "
            f"(the library's own product of large float32 matrices), "
            f"{self.bytes_per_second / 1e9:.1f} GB/s (a large copy: read and written)"
        )


def measure_limit(threads: int) -> Limit:
    """The limit with that many threads: from the kernel database, or measured now and kept there."""
    return Limit(peak_flops("float32", threads), peak_bandwidth(threads))
