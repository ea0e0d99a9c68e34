"""The base class of metrics: variables that batches update, and a result computed from them."""

from __future__ import annotations

import numpy as np

from ..graph.trace import current_trace
from ..graph.types import standardize_dtype
from ..graph.variable import Variable
from ..utils.naming import auto_name

#: Sums are kept in float64, in which counts stay exact to 2^53.
STATE_DTYPE = "float64"


def contents(variable: Variable):
    """The variable where a network is traced; else its tensor, so that the same program serves every call."""
    return variable if current_trace() is not None else variable.value


class Metric:
    """Base class. A subclass makes variables by `add_variable` and writes `update_state` and `result` with ops.

    Args:
        dtype: element type of results; float32 by default.
        name: by default the class's in snake case, with a number if it is used already.
    """

    #: "up" if more is better, "down" if less is; None where that is not known.
    direction: str | None = None

    def __init__(self, dtype=None, name: str | None = None):
        self.name = name or auto_name(type(self).__name__)
        self.dtype = standardize_dtype(dtype or "float32")

    def __setattr__(self, name, value):
        if isinstance(value, Metric):
            self._parts().append(value)
        object.__setattr__(self, name, value)

    def _own(self) -> list[Variable]:
        return self.__dict__.setdefault("_own_variables", [])

    def _parts(self) -> list[Metric]:
        return self.__dict__.setdefault("_own_metrics", [])

    def add_variable(self, shape=(), initializer="zeros", dtype=None, aggregation=None, name=None) -> Variable:
        """A new variable that is part of the state.

        Args:
            initializer: name, object or function of (shape, dtype).
            dtype: float64 by default, so that long sums stay exact.
            aggregation: taken for compatibility with Keras; over several processes states are added.
        """
        from .. import initializers

        dtype = standardize_dtype(dtype or STATE_DTYPE)
        value = initializers.get(initializer)(tuple(shape), dtype)
        variable = Variable(np.asarray(value), dtype, trainable=False, name=name or "variable")
        variable.path = f"{self.name}/{variable.name}"
        self._own().append(variable)
        return variable

    def add_weight(self, shape=(), initializer="zeros", dtype=None, name=None) -> Variable:
        """Keras's other name of `add_variable`."""
        return self.add_variable(shape, initializer, dtype, name=name)

    @property
    def variables(self) -> list[Variable]:
        """The state: this metric's variables, then those of metrics that are its attributes."""
        return self._own() + [variable for part in self._parts() for variable in part.variables]

    def update_state(self, *args, **kwargs) -> None:
        """Takes a batch into account."""
        raise NotImplementedError(f"{type(self).__name__}.update_state")

    def result(self):
        """The metric of all batches since `reset_state`."""
        raise NotImplementedError(f"{type(self).__name__}.result")

    def reset_state(self) -> None:
        """Forgets all batches: every variable becomes 0."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def __call__(self, *args, **kwargs):
        """`update_state`, then `result`."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict:
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict) -> Metric:
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"
