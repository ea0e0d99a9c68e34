"""What this machine can do at most, by two short measurements with the library's own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..graph import Trace
from ..graph.node import Cost, Op
from ..graph.variable import Variable
from ..ops import Copy, MatMul
from ..runtime.kernels import best_algorithm
from ..runtime.program import Choice, Program, SharedMemory
from .timing import Contender, alternate

#: Of the square matrices whose product shows the arithmetic limit.
MATRIX_EXTENT = 1024
#: Of the tensor whose copy shows the memory limit: larger than the caches.
COPY_BYTES = 1 << 26


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
            f"(product of float32 matrices of {MATRIX_EXTENT} x {MATRIX_EXTENT}), "
            f"{self.bytes_per_second / 1e9:.1f} GB/s (copy of {COPY_BYTES >> 20} MiB: read and written)"
        )


def op_program(
    op: Op, variables: Sequence[Variable], choose: Choice = best_algorithm, memory: SharedMemory | None = None
) -> Program:
    """A program of one op on variables: nothing is loaded at a run, and no result overwrites an input."""
    with Trace() as trace:
        result = op(*(trace.read(variable) for variable in variables))
    return Program(trace.graph(result if isinstance(result, tuple) else (result,)), memory, choose)


def contender(program: Program) -> Contender:
    """Runs of a program without inputs, in one native call."""
    return lambda repeats: program.run_batches([], 0, 1, repeats)


def measure_limit(seconds: float = 0.4) -> Limit:
    """The greatest rates seen within `seconds`, with the current number of threads."""
    matrix = Variable(np.full((MATRIX_EXTENT, MATRIX_EXTENT), 0.5, np.float32))
    block = Variable(np.ones(COPY_BYTES // 4, np.float32))
    product, copy = op_program(MatMul(), [matrix, matrix]), op_program(Copy(), [block])
    timings = alternate({"product": contender(product), "copy": contender(copy)}, seconds)
    return Limit(
        2 * MATRIX_EXTENT**3 / min(timings["product"].samples),
        2 * COPY_BYTES / min(timings["copy"].samples),
    )
