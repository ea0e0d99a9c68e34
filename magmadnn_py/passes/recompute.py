"""Trades time for memory: values that would wait long for their next reader are dropped and computed a second time.

Works on a scheduled graph. At the point of greatest memory use, each value that nobody reads there is a candidate: just
before its next reader its node, and those of its inputs that are gone by then, run once more. Candidates are taken in
the order of time per byte saved, until the arena fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..graph.graph import Graph
from ..graph.node import Node, Value
from .memory import MemoryPlan, plan_memory
from .views import source_of, storage_readers, view_offset

# Only the order of candidates depends on these: the pace of a plain processor.
_FLOPS_PER_SECOND = 1e11
_BYTES_PER_SECOND = 1e10

#: Where it gives up: nodes of the graph, as a multiple of those at first.
_LONGEST_GRAPH = 3
#: Nodes that one recomputation may run again.
_LONGEST_CHAIN = 32


def recompute(graph: Graph, limit: int) -> Graph:
    """The graph with some of its nodes repeated, so that its arena takes `limit` bytes or less.

    Where that cannot be reached, the graph with the smallest arena that was found.
    """
    most_nodes = _LONGEST_GRAPH * len(graph.order)
    best, least = graph, None
    while True:
        plan = plan_memory(graph)
        if least is None or plan.arena_bytes < least:
            best, least = graph, plan.arena_bytes
        chosen = _choose(_Candidates(graph, plan).found(), plan.arena_bytes - limit) if least > limit else []
        if not chosen or len(graph.order) > most_nodes:
            return best
        graph = _repeat(graph, chosen)


@dataclass
class _Candidate:
    """A value whose memory can be free at the peak if `nodes`, in schedule order, run again just before `reader`."""

    value: Value
    nodes: list[Node]
    needed: set[Value]  # what the nodes read: it has to be there when they run again
    kept: set[Value]  # what of that would be gone at the peak, and has to be kept for them
    reader: Node
    seconds: float


def _choose(candidates: list[_Candidate], excess: int) -> list[_Candidate]:
    """The cheapest per byte that do not depend on one another, until their bytes make up the excess."""
    users = Counter(value for candidate in candidates for value in candidate.kept)

    def saved(candidate: _Candidate) -> float:
        """Bytes, less the candidate's share of what is kept for it and others."""
        return candidate.value.type.nbytes - sum(value.type.nbytes / users[value] for value in candidate.kept)

    chosen: list[_Candidate] = []
    repeated: set[Node] = set()
    dropped: set[Value] = set()
    needed: set[Value] = set()
    worthwhile = [candidate for candidate in candidates if saved(candidate) > 0]
    for candidate in sorted(worthwhile, key=lambda c: c.seconds / saved(c)):
        independent = repeated.isdisjoint(candidate.nodes) and dropped.isdisjoint(candidate.needed)
        if not independent or candidate.value in needed:
            continue
        chosen.append(candidate)
        repeated.update(candidate.nodes)
        dropped.add(candidate.value)
        needed |= candidate.needed
        excess -= saved(candidate)
        if excess <= 0:
            break
    return chosen


class _Candidates:
    """The candidates at the point where most memory is in use."""

    def __init__(self, graph: Graph, plan: MemoryPlan):
        self.graph = graph
        self.places = plan.places
        self.consumers = graph.consumers()
        self.position = {node: i for i, node in enumerate(graph.order)}
        self.results = {source_of(value)[0] for value in graph.results}
        self.peak = self._peak()

    def _peak(self) -> int:
        change = np.zeros(len(self.graph.order) + 1, np.int64)
        for buffer in {buffer for buffer, _ in self.places.values() if buffer.kind == "arena"}:
            change[max(buffer.first, 0)] += buffer.size
            change[min(buffer.last + 1, len(change) - 1)] -= buffer.size
        return int(np.cumsum(change[:-1]).argmax())

    def found(self) -> list[_Candidate]:
        values = (value for node in self.graph.order[: self.peak] for value in node.outputs)
        return [candidate for value in values if (candidate := self._candidate(value)) is not None]

    def _candidate(self, value: Value) -> _Candidate | None:
        if value.node.op.is_leaf or not self._is_in_arena(value) or view_offset(value.node) is not None:
            return None
        later = [p for p in self._reads(value) if p >= self.peak]
        if not later or later[0] == self.peak or (chain := self._chain(value, later[0])) is None:
            return None
        nodes, needed, kept = chain
        seconds = sum(_seconds(node) for node in nodes)
        return _Candidate(value, nodes, needed, kept, self.graph.order[later[0]], seconds)

    def _is_in_arena(self, value: Value) -> bool:
        return value in self.places and self.places[value][0].kind == "arena"

    def _reads(self, value: Value) -> list[int]:
        return sorted(self.position[node] for node in storage_readers(value, self.consumers))

    def _last_read(self, value: Value) -> int:
        return len(self.graph.order) if value in self.results else max(self._reads(value), default=-1)

    def _chain(self, value: Value, when: int) -> tuple[list[Node], set[Value], set[Value]] | None:
        """The nodes that make `value` anew at a position, what they read, and what of that is gone at the peak."""
        nodes: set[Node] = set()
        needed: set[Value] = set()
        kept: set[Value] = set()
        stack = [value.node]
        while stack:
            node = stack.pop()
            if node in nodes:
                continue
            if len(nodes) == _LONGEST_CHAIN:
                return None
            nodes.add(node)
            for source in node.inputs:
                origin, _ = source_of(source)
                if not self._is_in_arena(origin):
                    continue
                gone = self._last_read(origin) < self.peak
                if gone and not origin.node.op.is_leaf and _is_light(origin.node):
                    stack.append(origin.node)
                    continue
                needed.add(origin)
                if gone:
                    kept.add(origin)
        views = (n for node in nodes for output in node.outputs for n in storage_readers(output, self.consumers))
        nodes.update([n for n in views if view_offset(n) is not None])
        return sorted(nodes, key=self.position.get), needed, kept


def _seconds(node: Node) -> float:
    cost = node.op.cost([v.type for v in node.inputs], [v.type for v in node.outputs])
    return max(cost.flops / _FLOPS_PER_SECOND, cost.bytes / _BYTES_PER_SECOND)


def _is_light(node: Node) -> bool:
    """Whether it moves memory rather than computes: worth running again sooner than keeping its result."""
    cost = node.op.cost([v.type for v in node.inputs], [v.type for v in node.outputs])
    return cost.flops / _FLOPS_PER_SECOND <= cost.bytes / _BYTES_PER_SECOND


def _repeat(graph: Graph, chosen: list[_Candidate]) -> Graph:
    """The graph in which the candidates' nodes run again; all later readers read the second results."""
    starting: dict[Node, list[_Candidate]] = {}
    for candidate in chosen:
        starting.setdefault(candidate.reader, []).append(candidate)
    new: dict[Value, Value] = {value: value for value in graph.inputs}
    order: list[Node] = []

    def emit(node: Node, again: bool) -> None:
        inputs = tuple(new[value] for value in node.inputs)
        if again or inputs != node.inputs:
            node, outputs = Node(node.op, inputs, node.scope), node.outputs
            new.update(zip(outputs, node.outputs, strict=True))
        else:
            new.update(zip(node.outputs, node.outputs, strict=True))
        order.append(node)

    done: set[Node] = set()
    for node in graph.order:
        for candidate in starting.get(node, ()):
            for repeated in candidate.nodes:
                if repeated in done:  # a view of a value, made further down
                    emit(repeated, again=True)
        emit(node, again=False)
        done.add(node)
    outputs = tuple(new[value] for value in graph.outputs)
    updates = tuple((variable, new[value]) for variable, value in graph.updates)
    return Graph(graph.inputs, outputs, updates, tuple(order))
