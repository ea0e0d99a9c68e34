"""A case: one op on inputs of given types. Tests, benchmarks and the oracle's calibration read the same lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from ...graph.node import Op
from ...graph.types import TensorType, is_floating

Make = Callable[[np.random.Generator, tuple[TensorType, ...]], Sequence[np.ndarray]]


@dataclass(frozen=True)
class Case:
    """One application of an op.

    label: the test's name.
    make: the input arrays, where random ones would not do (indices, positive numbers, ...); `types` are those of
        the inputs, perhaps of another floating type than the case's own. The arrays are cast to them.
    differentiable: which inputs a gradient test varies; by default the floating ones.
    tolerance: greatest error of a float32 kernel, relative to the largest element; None: 1e-5.
    """

    label: str
    op: Op
    inputs: tuple[TensorType, ...]
    make: Make | None = None
    differentiable: tuple[bool, ...] | None = None
    tolerance: float | None = None

    def __str__(self) -> str:
        return self.label

    @property
    def outputs(self) -> tuple[TensorType, ...]:
        return self.op.infer(*self.inputs)

    def varied(self) -> tuple[bool, ...]:
        """Which inputs a gradient test varies."""
        return self.differentiable or tuple(is_floating(t.dtype) for t in self.inputs)

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        """The input arrays; the same at every call."""
        rng = np.random.default_rng(seed)
        made = self.make(rng, self.inputs) if self.make else [random_array(rng, t) for t in self.inputs]
        return [np.array(a, t.dtype, order="C").reshape(t.shape) for a, t in zip(made, self.inputs, strict=True)]

    def retyped(self, dtype: str) -> Case:
        """The case with `dtype` in place of every floating type, of inputs and of the op's `dtype`."""
        inputs = tuple(TensorType(t.shape, dtype) if is_floating(t.dtype) else t for t in self.inputs)
        has_dtype = "dtype" in {field.name for field in fields(self.op)}
        op = replace(self.op, dtype=dtype) if has_dtype and is_floating(self.op.dtype) else self.op
        return replace(self, op=op, inputs=inputs)


def random_array(rng: np.random.Generator, type_: TensorType) -> np.ndarray:
    """Normal numbers, small integers or random truth values."""
    match type_.dtype:
        case "bool":
            return rng.random(type_.shape) < 0.5
        case "uint8":
            return rng.integers(0, 10, type_.shape, dtype="uint8")
        case "int32" | "int64":
            return rng.integers(-5, 6, type_.shape, dtype=type_.dtype)
    return rng.standard_normal(type_.shape).astype(type_.dtype)


def types(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[TensorType, ...]:
    """Input types of one element type."""
    return tuple(TensorType(shape, dtype) for shape in shapes)
