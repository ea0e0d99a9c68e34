"""Joins operations so that intermediate results never reach memory.

First pooling, bias, residual and activation become part of the node before them (fuse_pooling.py, epilogues.py); then
neighbouring elementwise nodes of one shape become one program, with several outputs where several results are needed.
"""

from __future__ import annotations

from ..graph.graph import Graph, rewrite
from ..graph.node import Node, Value
from ..graph.types import DTYPES
from ..ops.elementwise import Elementwise
from ..ops.movement import Cast
from .epilogues import fuse_epilogues
from .fuse_pooling import fuse_pooling

#: Longest fused program: its tiles of intermediate results have to stay in the L1 cache.
_MAX_INSTRUCTIONS = 24
_MAX_INPUTS = 12


def fuse(graph: Graph) -> Graph:
    graph = fuse_epilogues(fuse_pooling(graph))
    graph = _drop_casts(graph)
    return _fuse_elementwise(graph)


def _drop_casts(graph: Graph) -> Graph:
    """An elementwise program converts what it loads: a widening cast before it is not needed."""

    def rule(node: Node, inputs: tuple[Value, ...]):
        if not isinstance(node.op, Elementwise):
            return None
        sources = tuple(_uncast(value, node.op.dtype) for value in inputs)
        return None if sources == inputs else Node(node.op, sources, node.scope).outputs

    return rewrite(graph, rule)[0]


def _uncast(value: Value, dtype: str) -> Value:
    op = value.node.op
    if isinstance(op, Cast) and op.dtype == dtype:
        source = value.node.inputs[0]
        if DTYPES.index(source.dtype) < DTYPES.index(dtype):
            return source
    return value


def _fuse_elementwise(graph: Graph) -> Graph:
    groups = _Groups()
    for node in graph.order:
        groups.add(node)
        if isinstance(node.op, Elementwise):
            for value in node.inputs:
                producer = value.node.op
                alike = isinstance(producer, Elementwise) and producer.dtype == node.op.dtype
                if alike and value.shape == node.outputs[0].shape:
                    groups.join(value.node, node)
    return _rebuild(graph, groups)


class _Groups:
    """Which nodes run as one. Joining must not close a cycle: no node outside may lie between two members.

    Nodes are added in order, so that at each join only those before matter. A group is named by its first member's
    position; sets of nodes are bit masks over positions.
    """

    def __init__(self):
        self.position: dict[Node, int] = {}
        self.members: dict[int, list[Node]] = {}
        self.leader: list[int] = []
        self.bits: dict[int, int] = {}  # the members
        self.before: dict[int, int] = {}  # all nodes that the group depends on
        self.sources: dict[int, set[Node]] = {}  # producers of the members' inputs
        self.readers: dict[int, list[Node]] = {}

    def of(self, node: Node) -> int:
        return self.leader[self.position[node]]

    def add(self, node: Node) -> None:
        position = len(self.leader)
        self.position[node] = position
        self.leader.append(position)
        self.members[position] = [node]
        self.bits[position] = 1 << position
        self.sources[position] = {value.node for value in node.inputs}
        self.readers[position] = []
        self.before[position] = 0
        for source in self.sources[position]:
            group = self.of(source)
            self.before[position] |= self.before[group] | self.bits[group]
            self.readers[group].append(node)

    def join(self, first: Node, second: Node) -> None:
        """Makes the groups of both nodes one, where that is legal and not too long."""
        a, b = self.of(first), self.of(second)
        if a == b or self._detour(a, b) or self._detour(b, a):
            return
        members = self.members[a] + self.members[b]
        produced = {value for node in members for value in node.outputs}
        outside = {value for node in members for value in node.inputs} - produced
        if sum(len(node.op.functions) for node in members) > _MAX_INSTRUCTIONS or len(outside) > _MAX_INPUTS:
            return
        for node in self.members.pop(b):
            self.leader[self.position[node]] = a
        self.members[a] = members
        self.bits[a] |= self.bits.pop(b)
        self.before[a] = (self.before[a] | self.before.pop(b)) & ~self.bits[a]
        self.sources[a] |= self.sources.pop(b)
        self.readers[a] += self.readers.pop(b)
        self._pass_on(a)

    def _detour(self, a: int, b: int) -> bool:
        """Whether a path leads from group a to group b through another one."""
        others = {self.of(source) for source in self.sources[b]} - {a, b}
        return any(self.before[group] & self.bits[a] for group in others)

    def _pass_on(self, group: int) -> None:
        """Tells the readers what they depend on now; those that know it already have told theirs."""
        stack = [group]
        while stack:
            current = stack.pop()
            known = self.before[current] | self.bits[current]
            for reader in {self.of(node) for node in self.readers[current]} - {current}:
                if known & ~self.before[reader]:
                    self.before[reader] |= known
                    stack.append(reader)


def _rebuild(graph: Graph, groups: _Groups) -> Graph:
    """The graph with one node per group."""
    needed = set(graph.results)
    for node in graph.order:
        needed.update(value for value in node.inputs if groups.of(value.node) != groups.of(node))
    new: dict[Value, Value] = {}
    done: set[int] = set()

    def build(group: int) -> None:
        # Depth first over groups; an explicit stack, because networks are deep.
        stack = [group]
        while stack:
            current = stack[-1]
            members = sorted(groups.members[current], key=groups.position.get)
            waiting = {
                groups.of(value.node) for node in members for value in node.inputs if groups.of(value.node) != current
            } - done
            if waiting:
                stack.extend(sorted(waiting, reverse=True))
                continue
            stack.pop()
            if current not in done:
                done.add(current)
                _emit(members, new, needed)

    for node in graph.order:
        if groups.of(node) not in done:
            build(groups.of(node))
    for value in graph.inputs:
        new.setdefault(value, value)
    return Graph(
        tuple(new[value] for value in graph.inputs),
        tuple(new[value] for value in graph.outputs),
        tuple((variable, new[value]) for variable, value in graph.updates),
    )


def _emit(members: list[Node], new: dict[Value, Value], needed: set[Value]) -> None:
    if len(members) == 1:
        (node,) = members
        inputs = tuple(new[value] for value in node.inputs)
        outputs = node.outputs if inputs == node.inputs else Node(node.op, inputs, node.scope).outputs
        new.update(zip(node.outputs, outputs, strict=True))
        return
    produced = {value for node in members for value in node.outputs}
    inputs: list[Value] = []
    for node in members:
        inputs.extend(new[value] for value in node.inputs if value not in produced and new[value] not in inputs)
    register = {value: i for i, value in enumerate(inputs)}
    functions, operands, results, outputs = [], [], [], []
    for node in members:
        start = len(inputs) + len(functions)
        local = [register[value if value in produced else new[value]] for value in node.inputs]
        for name, registers in zip(node.op.functions, node.op.operands, strict=True):
            moved = [-1 if r < 0 else local[r] if r < len(local) else start + r - len(local) for r in registers]
            functions.append(name)
            operands.append(tuple(moved))
        for value, result in zip(node.outputs, node.op.results, strict=True):
            register[value] = start + result - len(local)
            if value in needed:
                results.append(register[value])
                outputs.append(value)
    op = Elementwise(tuple(functions), tuple(operands), tuple(results), members[0].op.dtype)
    fused = Node(op, inputs, members[-1].scope)
    new.update(zip(outputs, fused.outputs, strict=True))
