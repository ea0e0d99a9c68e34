"""Schedules the nodes: at each point, of those that can run, the one that frees the most memory.

A node that overwrites a variable is placed after the variable's other readers, so that the memory planner can let it
write in place.
"""

from __future__ import annotations

from ..graph.graph import Graph
from ..graph.node import Node, ReadVariable, Value
from .views import storage_readers, view_offset


def order(graph: Graph) -> Graph:
    consumers = graph.consumers()
    free_of_charge = {node for node in graph.order if node.op.is_leaf or view_offset(node) is not None}
    pinned = set(graph.results)
    late = _writers_after_readers(graph, consumers)
    waiting = {node: len({value.node for value in node.inputs}) for node in graph.order}
    uses = {value: len(set(nodes)) for value, nodes in consumers.items()}
    place = {node: i for i, node in enumerate(graph.order)}
    followers: dict[Node, set[Node]] = {}
    for node in graph.order:
        for value in node.inputs:
            followers.setdefault(value.node, set()).add(node)
    ready = {node for node, count in waiting.items() if count == 0}
    done: list[Node] = []
    finished: set[Node] = set()

    def growth(node: Node) -> int:
        made = sum(value.type.nbytes for value in node.outputs)
        if node in free_of_charge:
            made = 0
        freed = sum(
            value.type.nbytes
            for value in set(node.inputs)
            if uses[value] == 1 and value not in pinned and not isinstance(value.node.op, ReadVariable)
        )
        return made - freed

    while ready:
        free = [node for node in ready if late.get(node, set()) <= finished] or list(ready)
        node = min(free, key=lambda node: (growth(node), place[node]))
        ready.remove(node)
        finished.add(node)
        done.append(node)
        for value in set(node.inputs):
            uses[value] -= 1
        for follower in followers.get(node, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.add(follower)
    return Graph(graph.inputs, graph.outputs, graph.updates, tuple(done))


def _writers_after_readers(graph: Graph, consumers: dict[Value, list[Node]]) -> dict[Node, set[Node]]:
    """For each node that makes a variable's new value: the other readers of the variable's old one."""
    reads = {node.op.variable: node.outputs[0] for node in graph.order if isinstance(node.op, ReadVariable)}
    result: dict[Node, set[Node]] = {}
    for variable, value in graph.updates:
        if variable in reads and not value.node.op.is_leaf:
            readers = storage_readers(reads[variable], consumers) - {value.node}
            result.setdefault(value.node, set()).update(readers)
    return result
