"""The graph: ops applied to values. Nodes are immutable; a rewrite makes new ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from .operators import Operators
from .types import TensorType

_OPS: dict[str, type[Op]] = {}
_ids = itertools.count()


@dataclass(frozen=True)
class Cost:
    """What one application of an op costs: floating-point operations and bytes moved at the least."""

    flops: int
    bytes: int


@dataclass(frozen=True)
class AxisSplit:
    """One way to split an op over ranks.

    `inputs[i]` is the axis of input i that is split (None: every rank holds it whole); `outputs[j]` likewise.
    `needs` says what must be exchanged: "nothing"; "halo", `halo` = (before, after) cells of the split input axis
    from the neighbours; "reduction": every rank holds a partial sum of the outputs; "gather": the split inputs
    are needed whole.
    """

    name: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    needs: str = "nothing"
    halo: tuple[int, int] = (0, 0)


class Op:
    """All the framework knows of an operation. A subclass is a frozen dataclass whose fields are the attributes;
    defining it registers it under `name`, the name its kernels use too."""

    name: ClassVar[str]
    #: Any output may share the buffer of any input of equal shape and dtype.
    inplace: ClassVar[bool] = False
    #: The output is the input's memory under another shape: no kernel runs.
    is_view: ClassVar[bool] = False
    #: Stands for a value from outside (an input, a constant, a variable).
    is_leaf: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            if cls.name in _OPS:
                raise ValueError(f"op '{cls.name}' is defined twice: {_OPS[cls.name]} and {cls}")
            _OPS[cls.name] = cls

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        """Types of the outputs. Raises ValueError naming the op, the argument, what came and what was wanted."""
        raise NotImplementedError(self.name)

    def gradient(self, node: Node, gradients: Sequence[Value | None]) -> Sequence[Value | None]:
        """Gradients of the inputs (None where there is none), from those of the outputs, as graph values."""
        raise NotImplementedError(f"{self.name} has no gradient")

    def cost(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Cost:
        """By default no arithmetic, and every input and output moved once."""
        return Cost(0, total_bytes(inputs, outputs))

    def split(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> tuple[AxisSplit, ...]:
        """The ways this op may be split over ranks; by default none."""
        return ()

    def may_overwrite(self, output: int, input: int) -> bool:
        """Whether that output may share the buffer of that input, if shape and dtype are equal."""
        return self.inplace

    def resized(self, outputs: Sequence[TensorType]) -> Op:
        """The op for a part of the work whose outputs have these types; ops that name extents override it."""
        return self

    def reference(self, xp, *arrays):
        """The op in plain array calls of `xp` (NumPy or CuPy): the executable specification."""
        raise NotImplementedError(self.name)

    def attributes(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, *inputs: Value) -> Value | tuple[Value, ...]:
        """Applies the op to graph values and returns its output, or a tuple where it has several."""
        outputs = Node(self, inputs).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def fail(self, argument: str, got, wanted) -> None:
        raise ValueError(f"{self.name}: {argument}: got {got}, wanted {wanted}")


def total_bytes(inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
    return sum(t.nbytes for t in inputs) + sum(t.nbytes for t in outputs)


def op_class(name: str) -> type[Op]:
    """The op registered under `name`; KeyError if there is none."""
    return _OPS[name]


def op_classes() -> dict[str, type[Op]]:
    return dict(_OPS)


class Node:
    """One application of an op. `scope` is the layer it came from, for printing."""

    __slots__ = ("id", "op", "inputs", "outputs", "scope")

    def __init__(self, op: Op, inputs: Sequence[Value], scope: str | None = None):
        from .trace import current_scope

        for position, value in enumerate(inputs):
            if not isinstance(value, Value):
                raise TypeError(f"{op.name}: input {position}: got {type(value).__name__}, wanted a graph value")
        self.id = next(_ids)
        self.op = op
        self.inputs = tuple(inputs)
        self.scope = current_scope() if scope is None else scope
        types = op.infer(*(value.type for value in self.inputs))
        self.outputs = tuple(Value(self, index, type_) for index, type_ in enumerate(types))

    def __repr__(self) -> str:
        return f"<{self.op.name} #{self.id}>"


class Value(Operators):
    """One output of a node: what other nodes consume. Immutable, and never changed by a gradient."""

    __slots__ = ("node", "index", "type")

    def __init__(self, node: Node, index: int, type_: TensorType):
        self.node = node
        self.index = index
        self.type = type_

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.rank

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a value of rank 0")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError(
            "a graph value has no truth value while the network is traced; use ops.where, or run_eagerly=True"
        )

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "a graph value has no numbers while the network is traced: NumPy functions cannot take it; use ops.*"
        )

    def __repr__(self) -> str:
        return f"<Value {self.type} of {self.node.op.name} #{self.node.id}>"


@dataclass(frozen=True, eq=False)
class Input(Op):
    """A value given at each run. Compared by identity: two inputs are never the same."""

    type: TensorType
    label: str = "input"

    name = "input"
    is_leaf = True

    def infer(self):
        return (self.type,)


@dataclass(frozen=True, eq=False)
class Constant(Op):
    """A NumPy array that is part of the graph. It must not be changed afterwards."""

    array: Any

    name = "constant"
    is_leaf = True

    def infer(self):
        return (TensorType(tuple(self.array.shape), self.array.dtype.name),)


@dataclass(frozen=True)
class ReadVariable(Op):
    """The contents of a variable at the start of a run."""

    variable: Any

    name = "variable"
    is_leaf = True

    def infer(self):
        return (self.variable.type,)
