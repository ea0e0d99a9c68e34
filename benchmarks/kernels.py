"""Speed of single kernels on the case lists of the tests: the layers of well-known networks.

    python benchmarks/kernels.py [conv pool norm loss ...] [--threads N] [--filter TEXT]

Prints for every case the median time, GFLOP/s and GB/s by the op's own cost, and the algorithm that ran.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from magmadnn_py import _core  # noqa: E402
from magmadnn_py.graph import Trace  # noqa: E402
from magmadnn_py.runtime.program import Program  # noqa: E402


def measure(case, seconds: float = 0.3) -> tuple[float, str]:
    """(median seconds of a run, algorithm)."""
    with Trace() as trace:
        values = [trace.input(t.shape, t.dtype) for t in case.inputs]
        result = case.op(*values)
        program = Program(trace.graph(result if isinstance(result, tuple) else (result,)))
    arrays = case.arrays()
    program.run(*arrays)
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 5:
        timed = program.profile(*arrays)
        times.append(sum(taken for label, taken in timed if label.endswith(case.op.name)))
    (algorithm,) = {a for node, a in program.algorithms.items() if node.op.name == case.op.name}
    return statistics.median(times), algorithm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["conv", "pool", "norm", "loss"])
    parser.add_argument("--threads", type=int, default=_core.get_threads())
    parser.add_argument("--filter", default="", help="only cases whose label holds this text")
    arguments = parser.parse_args()
    _core.set_threads(arguments.threads)
    for family in arguments.families:
        cases = getattr(importlib.import_module(f"cases.{family}"), "SPEED_CASES", [])
        for case in (case for case in cases if arguments.filter in case.label):
            seconds, algorithm = measure(case)
            cost = case.op.cost(case.inputs, case.outputs)
            print(
                f"{case.label:44} {case.op.name:28} {algorithm:14} {seconds * 1e6:10.1f} us "
                f"{cost.flops / seconds / 1e9:8.1f} GFLOP/s {cost.bytes / seconds / 1e9:7.1f} GB/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
