"""The table that `model.summary()` prints."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table

from ..graph.symbolic import leaves
from ..graph.types import ITEMSIZE


def summary(model, line_length=None, print_fn=None, expand_nested=False, show_trainable=False) -> None:
    """Prints layers, output shapes and parameter counts; `print_fn` takes each line instead of the terminal."""
    table = Table(title=f'Model: "{model.name}"', title_justify="left", box=box.ROUNDED)
    for heading in ("Layer (type)", "Output Shape"):
        table.add_column(heading, overflow="fold")
    table.add_column("Param #", justify="right")
    if show_trainable:
        table.add_column("Trainable")
    _add_rows(table, model, expand_nested, show_trainable, 0)
    if print_fn is None:
        console = Console(width=line_length)
    else:
        console = Console(width=line_length or 88, file=_Lines(print_fn))
    console.print(table)
    for line in totals(model):
        console.print(line, highlight=False)


class _Lines:
    """A file that hands on whole lines."""

    def __init__(self, function):
        self.function = function
        self.pending = ""

    def write(self, text: str) -> None:
        *lines, self.pending = (self.pending + text).split("\n")
        for line in lines:
            self.function(line)

    def flush(self) -> None:
        pass


def _add_rows(table: Table, model, expand_nested: bool, show_trainable: bool, depth: int) -> None:
    shapes = _output_shapes(model)
    for layer in model.layers:
        row = [
            "  " * depth + f"{layer.name} ({type(layer).__name__})",
            shapes.get(layer, "?"),
            f"{layer.count_params():,}" if layer.built else "0 (unbuilt)",
        ]
        if show_trainable:
            row.append("Y" if layer.trainable else "N")
        table.add_row(*row)
        if expand_nested and hasattr(layer, "layers"):
            _add_rows(table, layer, expand_nested, show_trainable, depth + 1)


def _output_shapes(model) -> dict:
    shapes: dict = {}
    try:
        calls = model.calls
    except (AttributeError, ValueError):
        return shapes
    for symbol in model.inputs:
        if hasattr(symbol, "input_layer"):
            shapes[symbol.input_layer] = str(tuple(symbol.shape))
    for call in calls:
        found = [str(tuple(symbol.shape)) for symbol in leaves(call.outputs)]
        shapes.setdefault(call.function, found[0] if len(found) == 1 else ", ".join(found))
    return shapes


def totals(model) -> list[str]:
    """The lines below the table: parameters and their memory."""

    def line(label: str, variables) -> str:
        count = sum(math.prod(v.shape) for v in variables)
        size = sum(math.prod(v.shape) * ITEMSIZE[v.dtype] for v in variables)
        return f" {label} params: {count:,} ({_size(size)})"

    lines = [
        line("Total", model.weights),
        line("Trainable", model.trainable_weights),
        line("Non-trainable", model.non_trainable_weights),
    ]
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and getattr(optimizer, "built", False):
        lines.append(line("Optimizer", optimizer.variables))
    slow = sorted({name for program in model._programs.values() for name in program.references})
    if slow:
        lines.append(f" Without a kernel, run by their NumPy reference: {', '.join(slow)}")
    return lines


def _size(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            return f"{size:.2f} {unit}"
        size /= 1024
