"""Plans memory: every value of a scheduled graph gets a place before the first run.

Values that live at the same time lie apart in one arena; all others may share. Views take no memory; an elementwise
node may overwrite an input that nobody reads afterwards; parts of a concatenation are computed where they belong; a
variable's new value is written over the old one once that has been read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..graph.graph import Graph
from ..graph.node import Constant, Input, Node, ReadVariable, Value
from ..graph.types import ITEMSIZE
from ..ops.movement import Concatenate, Copy
from .views import source_of, storage_readers, view_offset

_ALIGNMENT = 64
_FOREVER = 1 << 60


@dataclass(eq=False)
class Buffer:
    """A piece of memory: of the arena, of the block of constants, or a variable's own (`owner`)."""

    size: int
    kind: str = "arena"
    owner: Any = None
    first: int = _FOREVER
    last: int = -1
    offset: int = 0
    shared: bool = False  # several values lie side by side in it

    def use(self, first: int, last: int) -> None:
        self.first = min(self.first, first)
        self.last = max(self.last, last)


@dataclass
class MemoryPlan:
    """`places[value]` = (buffer, byte offset in it). `copies` are the updates that need a copy at the end."""

    places: dict[Value, tuple[Buffer, int]] = field(default_factory=dict)
    copies: list[tuple[Value, Any]] = field(default_factory=list)
    arena_bytes: int = 0
    constant_bytes: int = 0


def protect_updates(graph: Graph) -> Graph:
    """Copies results that are the memory of a variable which the graph overwrites."""
    times = _assignments(graph)

    def protect(value: Value, target=None) -> Value:
        source, offset = source_of(value)
        variable = getattr(source.node.op, "variable", None)
        if variable is None or not times[_storage(variable)]:
            return value
        if target is not None and _address(variable, offset) == _address(target) and times[_storage(target)] == 1:
            return value  # assigned to itself
        return Copy()(value)

    outputs = tuple(protect(value) for value in graph.outputs)
    updates = tuple((variable, protect(value, variable)) for variable, value in graph.updates)
    added = {value.node for value in (*outputs, *(v for _, v in updates))} - set(graph.order)
    if not added:
        return graph
    return Graph(graph.inputs, outputs, updates, graph.order + tuple(sorted(added, key=lambda node: node.id)))


def _storage(variable):
    return variable if variable.base is None else variable.base[0]


def _assignments(graph: Graph) -> Counter:
    """How often each piece of variables' memory is assigned, in whole or in part."""
    return Counter(_storage(variable) for variable, _ in graph.updates)


def _address(variable, offset: int = 0) -> tuple[Any, int]:
    """A place in a variable's memory: whose memory it is, and the byte in it."""
    first = 0 if variable.base is None else variable.base[1] * ITEMSIZE[variable.dtype]
    return _storage(variable), first + offset


def plan_memory(graph: Graph, reuse: bool = True) -> MemoryPlan:
    """The plan for a scheduled graph; `reuse=False` gives every value memory of its own."""
    planner = _Planner(graph, reuse)
    planner.place_concatenations()
    planner.place_updates()
    for position, node in enumerate(graph.order):
        planner.place_node(position, node)
    return planner.finish()


class _Planner:
    def __init__(self, graph: Graph, reuse: bool):
        self.graph = graph
        self.reuse = reuse
        self.position = {node: i for i, node in enumerate(graph.order)}
        self.consumers = graph.consumers()
        self.pinned = set(graph.results)
        self.last_read = self._last_reads()
        self.plan = MemoryPlan()
        self.places = self.plan.places
        self.buffers: list[Buffer] = []
        self.variables: dict[Any, Buffer] = {}
        self.reads: dict[Any, list[Value]] = {}  # by the variable whose memory is read
        for node in graph.order:
            if isinstance(node.op, ReadVariable):
                self.reads.setdefault(_storage(node.op.variable), []).append(node.outputs[0])
        self.result_sources = {source_of(result)[0] for result in graph.results}

    def _last_reads(self) -> dict[Value, int]:
        """The last position at which each value's memory is read, through views of it as well."""
        last: dict[Value, int] = {}
        for position in reversed(range(len(self.graph.order))):
            node = self.graph.order[position]
            for value in node.outputs:
                reads = [self.position[consumer] for consumer in self.consumers.get(value, ())]
                last[value] = max([position, *reads]) if value not in self.pinned else _FOREVER
                for consumer in self.consumers.get(value, ()):
                    if view_offset(consumer) is not None:
                        last[value] = max(last[value], last[consumer.outputs[0]])
        return last

    def new_buffer(self, size: int) -> Buffer:
        self.buffers.append(Buffer(max(size, 1)))
        return self.buffers[-1]

    def put(self, value: Value, buffer: Buffer, offset: int = 0) -> None:
        self.places[value] = (buffer, offset)
        position = self.position.get(value.node, -1)
        first = -1 if isinstance(value.node.op, Input) else position
        buffer.use(first, self.last_read.get(value, _FOREVER) if self.reuse else _FOREVER)
        if not self.reuse:
            buffer.use(-1, _FOREVER)

    def place_concatenations(self) -> None:
        """Outer concatenations first, so that a part which is one itself is built inside the outer one."""
        for node in reversed(self.graph.order):
            if not is_flat_concatenation(node):
                continue
            (output,) = node.outputs
            if output not in self.places:
                self.put(output, self.new_buffer(output.type.nbytes))
            buffer, offset = self.places[output]
            buffer.shared = True
            for value in node.inputs:
                source, _ = source_of(value)
                free = source not in self.places and not source.node.op.is_leaf and source not in self.pinned
                if free and source.type.nbytes == value.type.nbytes:
                    self.put(source, buffer, offset)
                offset += value.type.nbytes

    def place_updates(self) -> None:
        times = _assignments(self.graph)
        for variable, value in self.graph.updates:
            if value in self.places or variable.base is not None:
                continue
            if times[variable] > 1:  # in whole and in part: copying the part would change a result that lives there
                continue
            if not value.node.op.is_leaf and view_offset(value.node) is None and self._may_overwrite(variable, value):
                self.put(value, self.variable_buffer(variable))

    def _may_overwrite(self, variable, value: Value) -> bool:
        """Whether `value` can be written over the variable's old contents: everyone else has read them."""
        writer = value.node
        for read in self.reads.get(variable, ()):
            if read in self.result_sources:
                return False
            for reader in storage_readers(read, self.consumers):
                if reader is writer:
                    aliases = [v for v in writer.inputs if source_of(v)[0] is read]
                    whole = read.node.op.variable is variable
                    if not (writer.op.inplace and whole and all(v is read and v.type == value.type for v in aliases)):
                        return False
                elif self.position[reader] >= self.position[writer]:
                    return False
        return True

    def variable_buffer(self, variable) -> Buffer:
        if variable not in self.variables:
            self.variables[variable] = Buffer(variable.type.nbytes, "variable", variable)
        return self.variables[variable]

    def place_node(self, position: int, node: Node) -> None:
        op = node.op
        taken: set[Buffer] = set()
        for value in node.outputs:
            if value in self.places:
                continue
            if isinstance(op, Constant):
                buffer = Buffer(max(value.type.nbytes, 1), "constant")
                buffer.offset = self.plan.constant_bytes
                self.plan.constant_bytes += _aligned(buffer.size)
                self.places[value] = (buffer, 0)
            elif isinstance(op, ReadVariable):
                self.places[value] = (self.variable_buffer(op.variable), 0)
            elif node.inputs and (offset := view_offset(node)) is not None:
                buffer, start = self.places[node.inputs[0]]
                self.put(value, buffer, start + offset)
            else:
                buffer = self._overwritable(position, node, value, taken)
                if buffer is None:
                    buffer = self.new_buffer(value.type.nbytes)
                taken.add(buffer)
                self.put(value, buffer)

    def _overwritable(self, position: int, node: Node, output: Value, taken: set[Buffer]) -> Buffer | None:
        """The buffer of an input that dies here and has the output's type, if the op works in place."""
        if not self.reuse:
            return None
        for value in node.inputs:
            buffer, offset = self.places[value]
            if (
                value.type == output.type
                and buffer.kind == "arena"
                and not buffer.shared
                and buffer not in taken
                and offset == 0
                and buffer.last <= position
                and buffer.size == output.type.nbytes
                and self._read_alike(node, buffer, output)
            ):
                return buffer
        return None

    def _read_alike(self, node: Node, buffer: Buffer, output: Value) -> bool:
        """Whether the node reads the buffer only as it would write it, and not, say, a row of it that it repeats."""
        inside = [(i, value) for i, value in enumerate(node.inputs) if self.places[value][0] is buffer]
        return all(
            node.op.may_overwrite(output.index, i) and value.type == output.type and self.places[value] == (buffer, 0)
            for i, value in inside
        )

    def finish(self) -> MemoryPlan:
        self.plan.arena_bytes = assign_offsets(self.buffers)
        for variable, value in self.graph.updates:
            buffer, offset = self.places[value]
            if (buffer.owner, offset) != (variable, 0):
                self.plan.copies.append((value, variable))
        return self.plan


def assign_offsets(buffers: list[Buffer]) -> int:
    """Places buffers that live at the same time apart, the largest first, each in the lowest gap; returns the total."""
    buffers = sorted(buffers, key=lambda b: (-b.size, b.first))
    first, last = np.array([(b.first, b.last) for b in buffers], np.int64).reshape(-1, 2).T
    starts, ends = np.zeros((2, len(buffers)), np.int64)
    for i, buffer in enumerate(buffers):
        together = np.flatnonzero((first[:i] <= last[i]) & (first[i] <= last[:i]))
        together = together[np.argsort(starts[together], kind="stable")]
        gaps = np.concatenate([[0], np.maximum.accumulate(ends[together])])
        fits = np.flatnonzero(gaps[:-1] + buffer.size <= starts[together])
        buffer.offset = int(gaps[fits[0] if fits.size else -1])
        starts[i], ends[i] = buffer.offset, _aligned(buffer.offset + buffer.size)
    return int(ends.max(initial=0))


def is_flat_concatenation(node: Node) -> bool:
    """A concatenation whose parts lie one after another in memory."""
    if not isinstance(node.op, Concatenate):
        return False
    return all(extent == 1 for extent in node.outputs[0].shape[: node.op.axis])


def _aligned(size: int) -> int:
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
