"""Checks a memory plan by acting it out, knowing nothing of how it was made.

Every byte of memory holds the number of what was last written there; a node may run only if its inputs hold what their
makers wrote.
"""

from __future__ import annotations

import itertools

import numpy as np

from magmadnn_py.graph import Constant, Graph, Input, ReadVariable, Value
from magmadnn_py.passes.memory import MemoryPlan, is_flat_concatenation
from magmadnn_py.passes.views import view_offset


class Replay:
    def __init__(self, graph: Graph, plan: MemoryPlan):
        self.graph = graph
        self.plan = plan
        self.numbers = itertools.count(1)
        self.memory: dict[object, np.ndarray] = {
            "arena": np.zeros(plan.arena_bytes, np.int64),
            "constant": np.zeros(plan.constant_bytes, np.int64),
        }
        self.contents: dict[Value, np.ndarray] = {}

    def run(self) -> None:
        for value in self.graph.inputs:
            if value in self.plan.places:
                self._write(value, self._fresh(value.type.nbytes))
        for node in self.graph.order:  # constants are there from the start
            if isinstance(node.op, Constant):
                self._write(node.outputs[0], self._fresh(node.outputs[0].type.nbytes))
        for node in self.graph.order:
            for value in node.inputs:
                self._check(value, f"input of {node}")
            if isinstance(node.op, ReadVariable):
                self.contents[node.outputs[0]] = self._variable(node.op.variable).copy()
            elif isinstance(node.op, Input | Constant):
                continue
            elif (offset := view_offset(node)) is not None:
                (output,) = node.outputs
                self.contents[output] = self.contents[node.inputs[0]][offset : offset + output.type.nbytes]
                self._check(output, f"view {node}")
            elif is_flat_concatenation(node):
                self._concatenate(node)
            else:
                self._compute(node)
        for value, variable in self.plan.copies:
            self._check(value, f"update of {variable}")
            self._variable(variable)[...] = self.contents[value].reshape(-1)
        for value in self.graph.outputs:
            self._check(value, "output")
        self._check_updates()

    def _check_updates(self) -> None:
        """In turn, as the graph lists them: a later one may overwrite a part of an earlier one."""
        wanted: dict[object, np.ndarray] = {}
        for variable, value in self.graph.updates:
            storage, first = (variable, 0) if variable.base is None else variable.base
            whole = wanted.setdefault(storage, self._variable(storage).copy())
            first *= np.dtype(variable.dtype).itemsize
            whole[first : first + variable.type.nbytes] = self.contents[value]
        for storage, contents in wanted.items():
            assert np.array_equal(self._variable(storage), contents), f"{storage} does not hold what was assigned"

    def _fresh(self, count: int) -> np.ndarray:
        return np.array([next(self.numbers) for _ in range(count)], np.int64)

    def _variable(self, variable) -> np.ndarray:
        storage, first = (variable, 0) if variable.base is None else variable.base
        if storage not in self.memory:
            self.memory[storage] = self._fresh(storage.type.nbytes)
        first *= np.dtype(variable.dtype).itemsize
        return self.memory[storage][first : first + variable.type.nbytes]

    def _at(self, value: Value) -> np.ndarray:
        buffer, offset = self.plan.places[value]
        if buffer.kind == "variable":
            return self._variable(buffer.owner)[offset : offset + value.type.nbytes]
        first = buffer.offset + offset
        assert first + value.type.nbytes <= len(self.memory[buffer.kind]), f"{value} ends outside the {buffer.kind}"
        return self.memory[buffer.kind][first : first + value.type.nbytes]

    def _write(self, value: Value, contents: np.ndarray) -> None:
        self.contents[value] = contents
        self._at(value)[...] = contents

    def _check(self, value: Value, what: str) -> None:
        assert np.array_equal(self._at(value), self.contents[value]), f"{what}: {value} was overwritten"

    def _concatenate(self, node) -> None:
        (output,) = node.outputs
        memory, offset = self._at(output), 0
        for value in node.inputs:
            self._check(value, f"part of {node}")
            memory[offset : offset + value.type.nbytes] = self._at(value).copy()
            offset += value.type.nbytes
        self.contents[output] = np.concatenate([self.contents[value] for value in node.inputs])
        self._check(output, f"concatenation {node}")

    def _compute(self, node) -> None:
        for value in node.outputs:
            memory = self._at(value)
            for other in node.outputs:
                assert other is value or not np.shares_memory(memory, self._at(other)), f"{node}: outputs overlap"
            for number, source in enumerate(node.inputs):
                if np.shares_memory(memory, self._at(source)):
                    same = source.type == value.type and memory.ctypes.data == self._at(source).ctypes.data
                    allowed = node.op.may_overwrite(value.index, number)
                    assert allowed and same, f"{node}: writes over its input {source}"
        for value in node.outputs:
            self._write(value, self._fresh(value.type.nbytes))


def check_plan(graph: Graph, plan: MemoryPlan) -> None:
    """AssertionError if some value of the scheduled graph would be lost before its last reader, or written askew."""
    Replay(graph, plan).run()
