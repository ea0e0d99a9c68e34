"""Tracing: while a Trace is active, ops make nodes and variables are read from and assigned to the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager

from .graph import Graph
from .node import Input, ReadVariable, Value
from .types import TensorType

_state = threading.local()


def _stack() -> list[Trace]:
    if not hasattr(_state, "traces"):
        _state.traces = []
    return _state.traces


def current_trace() -> Trace | None:
    return _stack()[-1] if _stack() else None


def current_scope() -> str:
    return "/".join(filter(None, getattr(_state, "scopes", ())))


@contextmanager
def scope(name: str):
    """Nodes made inside carry `name` (nested: joined by '/')."""
    if not hasattr(_state, "scopes"):
        _state.scopes = []
    _state.scopes.append(name)
    try:
        yield
    finally:
        _state.scopes.pop()


class Trace:
    """Collects one graph: its inputs, and what it assigns to variables.

    >>> with Trace() as trace:
    ...     x = trace.input((2, 3))
    ...     y = ops.exp(x)
    >>> graph = trace.graph([y])
    """

    def __init__(self):
        self.inputs: list[Value] = []
        #: Scalars that layers add to the training loss.
        self.losses: list[Value] = []
        self._reads: dict = {}
        self._updates: dict = {}
        self._streams = 0

    def __enter__(self) -> Trace:
        _stack().append(self)
        return self

    def __exit__(self, *_):
        _stack().pop()

    def input(self, shape, dtype: str = "float32", label: str = "input") -> Value:
        """A new graph input of a fixed shape."""
        value = Input(TensorType(tuple(int(extent) for extent in shape), dtype), label)()
        self.inputs.append(value)
        return value

    def read(self, variable) -> Value:
        """The variable's value here: what was last assigned in this trace, else its contents at the start."""
        if variable in self._updates:
            return self._updates[variable]
        if variable.base is not None and variable.base[0] in self._updates:
            flat, offset = variable.base
            return flat_slice(self._updates[flat], offset, variable.type.shape)
        return self.initial(variable)

    def initial(self, variable) -> Value:
        """The variable's contents at the start of a run; one node per variable."""
        if variable not in self._reads:
            if variable.base is None:
                value = ReadVariable(variable)()
            else:
                flat, offset = variable.base
                value = flat_slice(self.initial(flat), offset, variable.type.shape)
            self._reads[variable] = value
        return self._reads[variable]

    def assign(self, variable, value: Value) -> None:
        if value.type != variable.type:
            raise ValueError(f"variable '{variable.name}': assigned {value.type}, wanted {variable.type}")
        # The last assignment is made last, and one of a whole flat variable takes the place of those of its parts.
        for other in [v for v in self._updates if v is variable or (v.base is not None and v.base[0] is variable)]:
            del self._updates[other]
        self._updates[variable] = value

    def random_stream(self) -> int:
        """A number that no other random op of this trace has."""
        self._streams += 1
        return self._streams

    def rewrite(self, change: Callable[[Graph], Graph], values: Sequence[Value]) -> tuple[Value, ...]:
        """Replaces all that was recorded so far by `change` of it; returns what now stands for `values`."""
        graph = change(self.graph([*values, *self.losses]))
        self._updates = dict(graph.updates)
        self.losses = list(graph.outputs[len(values) :])
        return graph.outputs[: len(values)]

    def graph(self, outputs) -> Graph:
        return Graph(tuple(self.inputs), tuple(outputs), tuple(self._updates.items()))


def flat_slice(flat: Value, offset: int, shape: tuple[int, ...]) -> Value:
    """A tensor of `shape` that starts at element `offset` of a flat one."""
    from .. import ops

    size = TensorType(shape).size
    return ops.reshape(flat[offset : offset + size], shape)
