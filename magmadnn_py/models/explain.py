"""What `model.explain()` tells: each step of a program, how long it takes, how near that is to the machine's peak."""

from __future__ import annotations

import json
import os
import statistics
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ..data import ArrayData
from ..graph import Trace
from ..graph.node import Value
from ..graph.symbolic import leaves, map_structure
from ..graph.types import is_floating
from ..runtime.peaks import peak_bandwidth, peak_flops
from ..runtime.program import Program
from ..runtime.tuner import cost_of
from ..utils.files import atomic_write

KINDS = ("train", "test", "predict")
_RUNS = 5
_FILE_WIDTH = 160  # of lines that go to no terminal


def explain(model, x, y, batch_size: int | None, kind: str, trace) -> list[dict[str, Any]]:
    """Profiles a step of the model, prints it as a table and returns its rows; see `Model.explain`."""
    if kind not in KINDS:
        raise ValueError(f"explain: kind: got {kind!r}, wanted one of {', '.join(KINDS)}")
    if kind != "predict":
        model._require_compiled("explain")
    x = _random_inputs(model, batch_size or 32) if x is None else x
    batch = min(batch_size or 32, len(ArrayData(x)))
    x = map_structure(lambda leaf: leaf[:batch], x)
    if kind == "predict":
        program, rows = _profiled(model, kind, ArrayData(x))
    elif y is not None:
        program, rows = _profiled(model, kind, ArrayData(x, map_structure(lambda leaf: leaf[:batch], y)))
    else:
        # Metrics take their kind from the targets' shapes: what made-up targets gave is forgotten.
        kept, programs = (model._compiled_loss, model._compiled_metrics), set(model._programs)
        try:
            program, rows = _profiled(model, kind, ArrayData(x, _made_up_targets(model, ArrayData(x))))
        finally:
            model._compiled_loss, model._compiled_metrics = kept
            for key in set(model._programs) - programs:
                del model._programs[key]
    peaks = _add_shares(rows, program.threads)
    _print(rows, program, peaks, model.name, f"A {kind} step of {batch} rows")
    if trace is not None:
        _write_trace(trace, rows)
    return rows


def _random_inputs(model, batch: int):
    try:
        structure = model.input
    except (AttributeError, ValueError):
        raise ValueError(f"model '{model.name}': explain: x: got None, wanted arrays: its inputs are unknown") from None
    rng = np.random.default_rng(0)

    def make(symbol):
        shape = (batch, *symbol.shape[1:])
        if None in shape:
            raise ValueError(f"model '{model.name}': explain: x: got None, wanted arrays: an input is {symbol.shape}")
        if is_floating(symbol.dtype):
            return rng.random(shape).astype(symbol.dtype)
        return np.zeros(shape, symbol.dtype)

    return map_structure(make, structure)


def _made_up_targets(model, data: ArrayData) -> list[np.ndarray]:
    """Targets that the losses can take: class 0 where they want labels, else zeros like the output."""
    model._ensure_built(data, len(data))
    with Trace() as trace:
        x, _, _ = model._placeholders(trace, data, len(data))
        y_pred = model._forward(x, training=False)
        model._compile_for_outputs(y_pred)

    def make(loss, value: Value) -> np.ndarray:
        if getattr(loss, "integer_targets", False):
            return np.zeros(value.shape[:-1], "int64")
        return np.zeros(value.shape, value.dtype)

    return [make(*pair) for pair in zip(model._compiled_loss.losses, leaves(y_pred), strict=True)]


def _profiled(model, kind: str, data: ArrayData) -> tuple[Program, list[dict[str, Any]]]:
    """The program of the step and a row for each of its calls, without their shares; variables stay as they are."""
    program = model._program(kind, data, len(data))
    model._check_targets(data)
    tensors = data.tensors()
    with program.memory.lock:
        contents = [(variable, variable.value.copy()) for variable in program.variables]
        try:
            runs = [program.run_batches(tensors, 0, len(data), 1, timed=True) for _ in range(1 + _RUNS)][1:]
        finally:
            for variable, before in contents:
                variable.value.copy_from(before)
    rows = []
    for step, timings in zip(program.steps, zip(*runs, strict=True), strict=True):
        cost = cost_of(step.node)
        rows.append(
            {
                "layer": step.node.scope,
                "op": step.node.op.name,
                "algorithm": step.algorithm,
                "type": ", ".join(str(value.type) for value in step.node.outputs),
                "seconds": statistics.median(seconds for _, seconds in timings),
                "flops": int(cost.flops),
                "bytes": int(cost.bytes),
            }
        )
    return program, rows


def _add_shares(rows: list[dict[str, Any]], threads: int) -> dict[str, float]:
    """Adds to each row what part of its time the machine would need at its peak; returns the peaks."""
    peaks = {"float32": peak_flops("float32", threads), "bytes": peak_bandwidth(threads)}
    if any(row["type"].startswith("float64") and row["flops"] for row in rows):
        peaks["float64"] = peak_flops("float64", threads)
    for row in rows:
        arithmetic = row["flops"] / peaks["float64" if row["type"].startswith("float64") else "float32"]
        memory = row["bytes"] / peaks["bytes"]
        row["limit"] = "arithmetic" if arithmetic > memory else "memory"
        row["share"] = max(arithmetic, memory) / max(row["seconds"], 1e-9)
    return peaks


def _print(rows: list[dict[str, Any]], program: Program, peaks: dict[str, float], model: str, what: str) -> None:
    total = sum(row["seconds"] for row in rows)
    table = Table(title=f'{what} of "{model}"', title_justify="left", box=box.ROUNDED)
    for heading in ("Layer", "Op", "Algorithm", "Result"):
        table.add_column(heading, overflow="fold")
    for heading in ("ms", "of step", "Rate", "of peak"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        time, part = f"{row['seconds'] * 1e3:.3f}", f"{row['seconds'] / max(total, 1e-9):.1%}"
        names = (row["layer"].removeprefix(f"{model}/"), row["op"], row["algorithm"], row["type"])
        table.add_row(*names, time, part, _rate(row), f"{row['share']:.0%}")
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    console.print(table)
    variables = sum(variable.type.nbytes for variable in program.variables)
    sizes = {"arena": program.arena_bytes, "workspace": program.workspace_bytes, "variables": variables}
    reached = [f"{value / 1e9:.1f} {'GB/s' if name == 'bytes' else f'GFLOP/s {name}'}" for name, value in peaks.items()]
    for line in (
        f" Total: {total * 1e3:.3f} ms in {len(rows)} calls, {program.threads} threads",
        f" Memory: {', '.join(f'{name} {size / 1e6:.2f} MB' for name, size in sizes.items())}",
        f" Peak (a large matrix product, a large copy): {', '.join(reached)}",
    ):
        console.print(line, highlight=False)


def _rate(row: dict[str, Any]) -> str:
    """Operations a second for what is bound by arithmetic, else bytes a second."""
    work, unit = (row["flops"], "GFLOP/s") if row["limit"] == "arithmetic" else (row["bytes"], "GB/s")
    return f"{work / max(row['seconds'], 1e-9) / 1e9:.1f} {unit}"


def _write_trace(path: str | os.PathLike, rows: list[dict[str, Any]]) -> None:
    """The step as complete events of Chrome's trace format (times in microseconds), one after another."""
    events, start = [], 0.0
    for row in rows:
        duration = row["seconds"] * 1e6
        arguments = {name: value for name, value in row.items() if name != "seconds"}
        event = {"name": row["op"], "cat": row["layer"] or "model", "ph": "X", "pid": 0, "tid": 0, "args": arguments}
        events.append({**event, "ts": start, "dur": duration})
        start += duration
    atomic_write(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode())
