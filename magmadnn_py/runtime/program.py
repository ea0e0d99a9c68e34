"""A Program: a graph after all passes, as a list of kernel calls over planned memory, ready to run."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .. import _core
from ..graph.graph import Graph
from ..graph.node import Constant, Node, Value
from ..graph.types import TensorType
from ..graph.variable import Variable
from ..ops.movement import Copy
from ..passes import enabled, run_passes
from ..passes.memory import Buffer, is_flat_concatenation, plan_memory, protect_updates
from ..passes.recompute import recompute
from ..passes.views import view_offset
from .kernels import no_algorithm, signature
from .log import log, wanted
from .tensor import Tensor
from .tuner import tuned_algorithm

Choice = Callable[[Node, int], str | None]
Location = tuple[int, int]  # a slot of memory, and an offset in bytes

_WORKSPACE, _ARENA, _CONSTANTS, _FIRST_VARIABLE = range(4)


class Step(NamedTuple):
    """A call of the native program: `label` is for messages, `algorithm` "reference" where no kernel runs."""

    label: str
    node: Node
    algorithm: str


class SharedMemory:
    """Arena and workspace that several programs use in turn: as large as the largest needs."""

    def __init__(self):
        self.lock = threading.RLock()
        self.blocks: dict[int, Tensor] = {}

    def block(self, slot: int, size: int) -> Tensor:
        if slot not in self.blocks or self.blocks[slot].nbytes < size:
            self.blocks[slot] = Tensor((max(size, 64),), "uint8")
        return self.blocks[slot]


class Program:
    """Builds and holds the native program of a graph.

    Args:
        graph: as traced; the passes run here.
        memory: shared with other programs that never run at the same time; by default its own.
        choose: what runs a node, given it and the number of threads: an algorithm, or None for its NumPy reference.
        memory_limit: bytes that all of the program may take (`memory_bytes`); values are computed twice rather than
            kept where that is needed.

    `run` is for whole arrays, `run_batches` for many steps over datasets without coming back to Python.

    Raises:
        MemoryError: it cannot be kept within `memory_limit`.
    """

    def __init__(
        self,
        graph: Graph,
        memory: SharedMemory | None = None,
        choose: Choice = tuned_algorithm,
        memory_limit: int | None = None,
    ):
        self.graph = protect_updates(run_passes(graph))
        self.memory = memory or SharedMemory()
        self.threads = _core.get_threads()
        self._choose = choose if enabled("choose_kernels") else no_algorithm
        self._build()
        if memory_limit is not None and self.memory_bytes > memory_limit:
            self._shrink(memory_limit)
        if wanted("memory"):
            log("memory", self._describe_memory())
        if wanted("kernels"):
            log("kernels", self.describe())

    def _build(self) -> None:
        """Plans the memory, and makes the native program."""
        self.plan = plan_memory(self.graph, reuse=enabled("plan_memory"))
        self.algorithms: dict[Node, str] = {}
        self.steps: list[Step] = []
        self._variables = self._bound_variables()
        self._native = _core.Program(_FIRST_VARIABLE + len(self._variables), self.threads)
        for node in self.graph.order:
            self._lower(node)
        for value, variable in self.plan.copies:
            self._copy(value, (self._slot(variable), 0), f"assign {variable.name}")
        self._constants = self._make_constants()
        self._bound: dict[int, Tensor] = {}

    def _shrink(self, limit: int) -> None:
        before = self.arena_bytes
        self.graph = recompute(self.graph, limit - (self.memory_bytes - self.arena_bytes))
        self._build()
        log("passes", f"recompute: arena {before / 1e6:.2f} -> {self.arena_bytes / 1e6:.2f} MB")
        if self.memory_bytes > limit:
            raise MemoryError(
                f"memory_limit: got {limit / 1e6:.2f} MB, wanted at least {self.memory_bytes / 1e6:.2f} MB, "
                f"the least that recomputation reached ({self._describe_memory()})"
            )

    # What it is

    @property
    def arena_bytes(self) -> int:
        """Memory of activations and gradients: the peak, known before the first run."""
        return self.plan.arena_bytes

    @property
    def workspace_bytes(self) -> int:
        return self._native.workspace_bytes

    @property
    def variables(self) -> list[Variable]:
        """The variables that a run reads or changes; of those inside a flat one, that one."""
        return list(self._variables)

    @property
    def variable_bytes(self) -> int:
        """Memory of the variables that the program reads or assigns: weights, optimizer state, metrics."""
        return sum(variable.type.nbytes for variable in {v if v.base is None else v.base[0] for v in self._variables})

    @property
    def memory_bytes(self) -> int:
        """All memory that a run needs."""
        return self.arena_bytes + self.workspace_bytes + self.plan.constant_bytes + self.variable_bytes

    def _describe_memory(self) -> str:
        values = sum(v.type.nbytes for node in self.graph.order if not node.op.is_leaf for v in node.outputs)
        parts = {
            "variables": self.variable_bytes,
            "constants": self.plan.constant_bytes,
            "workspace": self.workspace_bytes,
        }
        listed = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in parts.items())
        return f"{values / 1e6:.2f} MB of values in an arena of {self.arena_bytes / 1e6:.2f} MB; {listed}"

    @property
    def references(self) -> list[str]:
        """Ops that have no kernel for their types, so that their NumPy reference runs."""
        found = {node.op.name: node.inputs for node, name in self.algorithms.items() if name == "reference"}
        return [f"{name}({', '.join(value.dtype for value in inputs)})" for name, inputs in found.items()]

    def describe(self) -> str:
        """One line per step: layer, op, result, algorithm."""
        lines = [f"program of {len(self.algorithms)} steps, arena {self.arena_bytes / 1e6:.2f} MB"]
        for node, algorithm in self.algorithms.items():
            types = ", ".join(str(value.type) for value in node.outputs)
            lines.append(f"  {node.scope:32} {node.op.name:28} {types:36} {algorithm}")
        return "\n".join(lines)

    # Building

    def _bound_variables(self) -> list:
        variables = {buffer.owner for buffer, _ in self.plan.places.values() if buffer.kind == "variable"}
        variables.update(variable for _, variable in self.plan.copies)
        return sorted(variables, key=id)

    def _slot(self, variable) -> int:
        return _FIRST_VARIABLE + self._variables.index(variable)

    def _place(self, value: Value) -> Location:
        buffer, offset = self.plan.places[value]
        return self._slot_of(buffer), buffer.offset + offset

    def _slot_of(self, buffer: Buffer) -> int:
        if buffer.kind == "variable":
            return self._slot(buffer.owner)
        return _CONSTANTS if buffer.kind == "constant" else _ARENA

    def _lower(self, node: Node) -> None:
        if node.op.is_leaf or view_offset(node) is not None:
            return
        if is_flat_concatenation(node):
            self._lower_concatenation(node)
            return
        label = f"{node.scope}: {node.op.name}" if node.scope else node.op.name
        inputs = [self._place(value) for value in node.inputs]
        outputs = [self._place(value) for value in node.outputs]
        self.algorithms[node] = self._add_step(node, label, inputs, outputs)

    def _add_step(self, node: Node, label: str, inputs: list[Location], outputs: list[Location]) -> str:
        """Appends the node to the native program; returns its algorithm."""
        algorithm = self._choose(node, self.threads)
        if algorithm:
            self._native.add_kernel(label, *signature(node), algorithm, inputs, outputs)
        else:
            algorithm = "reference"
            self._native.add_callback(label, _reference_step(node), inputs, outputs)
        self.steps.append(Step(label, node, algorithm))
        return algorithm

    def _lower_concatenation(self, node: Node) -> None:
        """Copies the parts that were not computed in their place already."""
        slot, offset = self._place(node.outputs[0])
        for value in node.inputs:
            if self._place(value) != (slot, offset) and value.type.size:
                self._copy(value, (slot, offset), f"{node.scope}: concatenate")
            offset += value.type.nbytes
        self.algorithms[node] = "in place"

    def _copy(self, value: Value, destination: Location, label: str) -> None:
        self._add_step(Node(Copy(), [value]), label, [self._place(value)], [destination])

    def _make_constants(self) -> Tensor:
        block = Tensor((max(self.plan.constant_bytes, 64),), "uint8")
        memory = block.numpy()
        for value, (buffer, _) in self.plan.places.items():
            if buffer.kind == "constant" and isinstance(value.node.op, Constant):
                data = np.ascontiguousarray(value.node.op.array).tobytes()
                memory[buffer.offset : buffer.offset + len(data)] = np.frombuffer(data, np.uint8)
        return block

    # Running

    def _bind(self) -> None:
        """Gives the native program the memory it runs on, where that changed since the last run."""
        wanted = {
            _WORKSPACE: self.memory.block(_WORKSPACE, self.workspace_bytes),
            _ARENA: self.memory.block(_ARENA, self.arena_bytes),
            _CONSTANTS: self._constants,
        }
        for index, variable in enumerate(self._variables):
            wanted[_FIRST_VARIABLE + index] = variable.value
        for slot, tensor in wanted.items():
            if self._bound.get(slot) is not tensor:
                self._native.bind(slot, tensor)
                self._bound[slot] = tensor

    def _arena_array(self, value: Value) -> np.ndarray:
        slot, offset = self._place(value)
        memory = self._bound[slot].numpy().reshape(-1).view(np.uint8)
        return memory[offset : offset + value.type.nbytes].view(value.dtype).reshape(value.shape)

    def run(self, *arrays) -> list[np.ndarray]:
        """One run. `arrays` are the graph's inputs; returns copies of its outputs and updates the variables.

        Raises:
            ValueError: the number or shape of the arrays is not what the graph wants.
        """
        with self.memory.lock:
            self._load(arrays)
            self._native.run()
            return [self._arena_array(value).copy() for value in self.graph.outputs]

    def profile(self, *arrays) -> list[tuple[str, float]]:
        """One run as above; returns (label, seconds) for every step of the program."""
        with self.memory.lock:
            self._load(arrays)
            seconds = self._native.run_batches([], [], 0, 0, 1, None, True)
        return list(zip(self._native.labels, seconds, strict=True))

    def _load(self, arrays) -> None:
        """Binds the memory and puts the arrays where the inputs are."""
        if len(arrays) != len(self.graph.inputs):
            raise ValueError(f"program: got {len(arrays)} arrays, wanted {len(self.graph.inputs)}")
        self._bind()
        for value, array in zip(self.graph.inputs, arrays, strict=True):
            array = np.asarray(array)
            if array.shape != value.shape:
                label = value.node.op.label
                raise ValueError(f"input '{label}': got shape {array.shape}, wanted {value.shape}")
            if value in self.plan.places:
                self._arena_array(value)[...] = array

    def run_batches(
        self,
        sources: Sequence[Tensor],
        first: int,
        batch: int,
        steps: int,
        order: Tensor | None = None,
        destinations: Sequence[Tensor] = (),
        timed: bool = False,
    ) -> list[tuple[str, float]] | None:
        """Runs `steps` batches without coming back to Python.

        Step s takes rows first + s*batch ... of every source (one per graph input, rows along its first axis), or the
        rows that `order` (int64) names there, and writes the outputs to the same rows of `destinations`, if given.
        With `timed`, returns (label, seconds of all runs) for every step of the program.

        Raises:
            ValueError, IndexError: sources that do not fit the inputs, or rows that do not exist.
        """
        self._check_batches(sources, destinations, batch)
        with self.memory.lock:
            self._bind()
            feeds = [
                _core.Feed(self._place(value), value.dtype, source)
                for value, source in zip(self.graph.inputs, sources, strict=True)
                if value in self.plan.places
            ]
            drains = [
                _core.Drain(self._place(value), destination)
                for value, destination in zip(self.graph.outputs, destinations, strict=False)
            ]
            seconds = self._native.run_batches(feeds, drains, first, batch, steps, order, timed)
        return list(zip(self._native.labels, seconds, strict=True)) if timed else None

    def _check_batches(self, sources: Sequence[Tensor], destinations: Sequence[Tensor], batch: int) -> None:
        inputs, outputs = self.graph.inputs, self.graph.outputs
        if len(sources) != len(inputs):
            raise ValueError(f"program: got {len(sources)} sources, wanted {len(inputs)}")
        if len(destinations) > len(outputs):
            raise ValueError(f"program: got {len(destinations)} destinations, wanted at most {len(outputs)}")
        for value, source in zip(inputs, sources, strict=True):
            if source.ndim == 0 or (batch, *source.shape[1:]) != value.shape:
                got = f"batches of {batch} rows of a source of shape {source.shape}"
                raise ValueError(f"input '{value.node.op.label}': got {got}, wanted {value.shape}")
        for number, (value, destination) in enumerate(zip(outputs, destinations, strict=False)):
            same = destination.ndim > 0 and (batch, *destination.shape[1:]) == value.shape
            if not same or destination.dtype != value.dtype:
                got = f"batches of {batch} rows of {destination.dtype}{list(destination.shape)}"
                raise ValueError(f"output {number}: destinations: got {got}, wanted {value.type}")


def _reference_step(node: Node) -> Callable[[list[int], list[int]], None]:
    """The op's reference as a step of a native program, which gives it addresses."""
    op, scope = node.op, node.scope
    input_types = [value.type for value in node.inputs]
    output_types = [value.type for value in node.outputs]

    def run(inputs: list[int], outputs: list[int]) -> None:
        arrays = [_array_at(address, t) for address, t in zip(inputs, input_types, strict=True)]
        try:
            results = op.reference(np, *arrays)
        except Exception as error:
            error.args = (f"{scope}: {op.name}: {error}" if scope else f"{op.name}: {error}",)
            raise
        results = results if isinstance(results, tuple) else (results,)
        for address, type_, result in zip(outputs, output_types, results, strict=True):
            _array_at(address, type_)[...] = result

    return run


def _array_at(address: int, type_: TensorType) -> np.ndarray:
    memory = (ctypes.c_uint8 * type_.nbytes).from_address(address)
    return np.frombuffer(memory, type_.dtype, type_.size).reshape(type_.shape)
