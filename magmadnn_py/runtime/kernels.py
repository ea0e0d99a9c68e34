"""Loads the kernel library for this processor and says which kernel an op would use."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from pathlib import Path

from .. import _core
from ..graph.node import Node
from .log import warn_once


@functools.cache
def instruction_set() -> str:
    """Loads the best kernel library once and returns its name: "avx512", "avx2" or "generic".

    MAGMADNN_ISA asks for another one that the processor can run.

    Raises:
        ValueError: MAGMADNN_ISA names none of those.
        ImportError: the library is missing from the installation.
    """
    available = _core.instruction_sets()
    chosen = os.environ.get("MAGMADNN_ISA") or available[0]
    if chosen not in available:
        raise ValueError(f"MAGMADNN_ISA: got '{chosen}', wanted one of {', '.join(available)}")
    path = _library(chosen)
    if not path.exists():
        raise ImportError(f"the kernel library {path.name} is missing; build or install the package again")
    _core.load_kernels(str(path))
    return chosen


def _library(name: str) -> Path:
    return Path(_core.__file__).parent / f"libmagmadnn_cpu_{name}.so"


@functools.cache
def library_version() -> str:
    """A digest of the kernel library in use: timings of another one do not hold for it."""
    return hashlib.sha256(_library(instruction_set()).read_bytes()).hexdigest()[:16]


@functools.cache
def device() -> str:
    """The processor's model and the instruction set in use: what timings hold for."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {instruction_set()}"


def signature(node: Node) -> tuple:
    """A node as the kernel registry sees it: op, attributes, input and output types."""
    inputs = [(value.dtype, list(value.shape)) for value in node.inputs]
    outputs = [(value.dtype, list(value.shape)) for value in node.outputs]
    return node.op.name, node.op.attributes(), inputs, outputs


def algorithms(node: Node, threads: int) -> list[str]:
    """The algorithms that can run this node here, the preferred one first; empty if it has no kernel."""
    instruction_set()
    return _core.algorithms(*signature(node), threads)


def best_algorithm(node: Node, threads: int) -> str | None:
    """The algorithm to run this node with; None if it has no kernel here, so that its reference runs."""
    found = algorithms(node, threads)
    if not found:
        types = ", ".join(value.dtype for value in node.inputs)
        warn_once(f"{node.op.name}({types}) has no kernel here: its NumPy reference runs, slowly")
        return None
    return found[0]


def no_algorithm(node: Node, threads: int) -> None:
    """In place of `best_algorithm`: every op runs its NumPy reference."""
