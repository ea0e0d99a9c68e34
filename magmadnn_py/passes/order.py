"""Schedules the nodes: at each point, of those that can run, the one that frees the most memory.

A node that overwrites a variable is placed after the variable's other readers, so that the memory planner can let it
write in place. Leaves and views take no memory and are placed as soon as they can be.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from ..graph.graph import Graph
from ..graph.node import Node, ReadVariable, Value
from .views import storage_readers, view_offset

_FIRST = -(1 << 60)


def order(graph: Graph) -> Graph:
    return Graph(graph.inputs, graph.outputs, graph.updates, tuple(_Scheduler(graph).run()))


class _Scheduler:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.consumers = graph.consumers()
        self.pinned = set(graph.results)
        self.place = {node: i for i, node in enumerate(graph.order)}
        self.waiting = {node: len(set(node.inputs)) for node in graph.order}  # values that are not there yet
        self.uses = {value: len(set(nodes)) for value, nodes in self.consumers.items()}
        self.late = self._writers_of_readers()
        self.readers_left = Counter(writer for writers in self.late.values() for writer in writers)
        self.finished: dict[Node, None] = {}
        # Nodes that can run, by growth and place. A node is put in again when its growth falls.
        self.heap: list[tuple[int, int]] = []
        self.postponed: set[Node] = set()  # they could run, but readers of what they overwrite are left

    def run(self) -> list[Node]:
        for node in self.graph.order:
            if not node.inputs:
                self._make_ready(node)
        while self.heap or self.postponed:
            if not self.heap:  # the readers that are left need the writer's result
                node = min(self.postponed, key=lambda node: (self._growth(node), self.place[node]))
                self._finish(node)
                continue
            node = self.graph.order[heappop(self.heap)[1]]
            if node not in self.finished:
                self._finish(node)
        return list(self.finished)

    def _growth(self, node: Node) -> int:
        """Bytes that running the node adds to what is alive; leaves and views come first."""
        if node.op.is_leaf or view_offset(node) is not None:
            return _FIRST
        freed = sum(
            value.type.nbytes
            for value in set(node.inputs)
            if self.uses[value] == 1 and value not in self.pinned and not isinstance(value.node.op, ReadVariable)
        )
        return sum(value.type.nbytes for value in node.outputs) - freed

    def _make_ready(self, node: Node) -> None:
        if self.readers_left[node]:
            self.postponed.add(node)
        else:
            heappush(self.heap, (self._growth(node), self.place[node]))

    def _finish(self, node: Node) -> None:
        self.finished[node] = None
        self.postponed.discard(node)
        for value in set(node.inputs):
            self.uses[value] -= 1
            if self.uses[value] == 1:
                self._hurry(value)
        for writer in self.late.get(node, ()):
            self.readers_left[writer] -= 1
            if not self.readers_left[writer] and writer in self.postponed:
                self.postponed.discard(writer)
                self._make_ready(writer)
        for value in node.outputs:
            for follower in dict.fromkeys(self.consumers.get(value, ())):
                self.waiting[follower] -= 1
                if self.waiting[follower] == 0:
                    self._make_ready(follower)

    def _hurry(self, value: Value) -> None:
        """The last reader of a value frees it: that counts from now on."""
        for node in self.consumers[value]:
            if node not in self.finished and not self.waiting[node] and node not in self.postponed:
                heappush(self.heap, (self._growth(node), self.place[node]))

    def _writers_of_readers(self) -> dict[Node, set[Node]]:
        """For each reader of a variable's old value: the node that makes its new one."""
        reads = {n.op.variable: n.outputs[0] for n in self.graph.order if isinstance(n.op, ReadVariable)}
        result: dict[Node, set[Node]] = {}
        for variable, value in self.graph.updates:
            if variable in reads and not value.node.op.is_leaf and view_offset(value.node) is None:
                for reader in storage_readers(reads[variable], self.consumers) - {value.node}:
                    result.setdefault(reader, set()).add(value.node)
        return result
