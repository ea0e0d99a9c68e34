"""A Graph: inputs, outputs, and the assignments to variables that happen at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .node import Node, Value


@dataclass(frozen=True)
class Graph:
    """`order` is a schedule of all nodes; by default the order in which they were made, inputs first."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    updates: tuple[tuple[Any, Value], ...] = ()
    order: tuple[Node, ...] = field(default=())

    def __post_init__(self):
        if not self.order:
            object.__setattr__(self, "order", tuple(reachable(self.results)))

    @property
    def results(self) -> tuple[Value, ...]:
        """Everything that must be computed: outputs, then the values assigned to variables."""
        return self.outputs + tuple(value for _, value in self.updates)

    def consumers(self) -> dict[Value, list[Node]]:
        """For each value the nodes that read it, in order, each as often as it reads."""
        result: dict[Value, list[Node]] = {}
        for node in self.order:
            for value in node.inputs:
                result.setdefault(value, []).append(node)
        return result


def reachable(values: Sequence[Value]) -> list[Node]:
    """All nodes that `values` depend on, in the order they were made (an input is always made first)."""
    seen: set[Node] = set()
    stack = [value.node for value in values]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(value.node for value in node.inputs)
    return sorted(seen, key=lambda node: node.id)


Rule = Callable[[Node, tuple[Value, ...]], Sequence[Value] | None]


def rewrite(graph: Graph, rule: Rule) -> tuple[Graph, dict[Value, Value]]:
    """Rebuilds the graph, giving each node to `rule` with its inputs already rewritten.

    The rule returns the values that stand for the node's outputs, or None to keep the node as it is (with the new
    inputs). Leaves are given to the rule too; graph inputs should be kept. Returns the graph and old -> new values.
    """
    new: dict[Value, Value] = {}
    for node in graph.order:
        inputs = tuple(new[value] for value in node.inputs)
        values = rule(node, inputs)
        if values is None:
            kept = inputs == node.inputs
            values = node.outputs if kept else Node(node.op, inputs, node.scope).outputs
        new.update(zip(node.outputs, values, strict=True))
    updates = tuple((variable, new[value]) for variable, value in graph.updates)
    for value in graph.inputs:  # an input nothing depends on still has its place
        new.setdefault(value, value)
    result = Graph(tuple(new[value] for value in graph.inputs), tuple(new[value] for value in graph.outputs), updates)
    return result, new
