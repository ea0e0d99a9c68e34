"""Variables: tensors that keep their contents between runs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .node import ReadVariable, Value
from .operators import Operators
from .trace import current_trace
from .types import TensorType, standardize_dtype


class Variable(Operators):
    """A tensor with a name that graphs read and assign.

    Args:
        value: the first contents, anything NumPy takes.
        dtype: element type; by default that of `value`, float64 input becoming float32.
        trainable: whether `fit` may change it by gradients.
        name: for messages, printing and files.
        regularizer, constraint: applied by the training step.
    """

    def __init__(self, value, dtype=None, trainable=True, name="variable", regularizer=None, constraint=None):
        from ..runtime.tensor import Tensor

        array = np.asarray(value)
        if dtype is None:
            dtype = "float32" if array.dtype == np.float64 else array.dtype
        self.type = TensorType(tuple(array.shape), standardize_dtype(dtype))
        self._set(trainable, name, regularizer, constraint)
        self.value = Tensor.from_array(array, dtype=self.type.dtype, copy=True)

    def _set(self, trainable, name, regularizer=None, constraint=None) -> None:
        self.trainable = trainable
        self.name = name
        self.path = name
        self.regularizer = regularizer
        self.constraint = constraint
        #: (flat variable, first element) where this variable's memory is part of a flat one.
        self.base: tuple[Variable, int] | None = None

    @classmethod
    def part_of(cls, flat: Variable, offset: int, shape: tuple[int, ...], name: str) -> Variable:
        """A variable that is not trained and whose memory is `flat`'s from element `offset`, contents and all."""
        part = cls.__new__(cls)
        part.type = TensorType(tuple(shape), flat.dtype)
        part._set(False, name)
        part._lie_in(flat, offset)
        return part

    def _lie_in(self, flat: Variable, offset: int) -> None:
        self.value = flat.value[offset : offset + self.type.size].reshape(self.shape)
        self.base = (flat, offset)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.rank

    @cached_property
    def leaf(self) -> Value:
        """The contents as a leaf of expressions written outside of a trace; see `graph.expression`."""
        return ReadVariable(self)()

    def numpy(self) -> np.ndarray:
        """A copy of the contents."""
        return self.value.numpy().copy()

    def __array__(self, dtype=None, copy=None):
        return self.value.numpy().astype(dtype) if dtype else self.numpy()

    def __float__(self) -> float:
        return float(self.value.numpy())

    def __int__(self) -> int:
        return int(self.value.numpy())

    def assign(self, value):
        """Sets the contents: at once, or, while a network is traced, at the end of each run.

        Raises:
            ValueError: the shape is not the variable's.
        """
        trace = current_trace()
        if trace is not None:
            from ..ops import cast, convert

            trace.assign(self, cast(convert(value), self.dtype))
            return self
        array = np.asarray(value)
        if tuple(array.shape) != self.shape:
            raise ValueError(f"variable '{self.name}': assigned shape {array.shape}, wanted {self.shape}")
        self.value.numpy()[...] = array
        return self

    def assign_add(self, value):
        return self.assign(self + value)

    def assign_sub(self, value):
        return self.assign(self - value)

    def move_into(self, flat: Variable, offset: int) -> None:
        """From now on this variable's memory is `flat`'s, from element `offset`; the contents go along."""
        contents = self.value.numpy()
        self._lie_in(flat, offset)
        self.value.numpy()[...] = contents

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Variable '{self.name}' {self.type}>"
