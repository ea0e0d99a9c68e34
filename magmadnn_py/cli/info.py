"""`magmadnn info`: what this installation is and what it runs on."""

from __future__ import annotations

import platform

import typer


def info() -> None:
    """Version, processor, instruction set, threads and kernels."""
    from .. import __version__, _core
    from ..runtime.kernels import instruction_set

    chosen = instruction_set()
    lines = {
        "magmadnn_py": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "instruction set": f"{chosen} (this processor can run: {', '.join(_core.instruction_sets())})",
        "threads": _core.get_threads(),
        "kernels": len(_core.kernels()),
        "devices": "cpu",
    }
    for name, value in lines.items():
        typer.echo(f"{name:16} {value}")
