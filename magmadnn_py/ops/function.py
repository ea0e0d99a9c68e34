"""How a public function of `ops` treats what it is given.

Its body is written for graph values. Called on symbols it is recorded, called on graph values (or while a network is
traced) it makes nodes, called on arrays or tensors it runs at once, as a small program that is kept for the next call
with the same types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..graph.node import Constant, Value
from ..graph.symbolic import Symbol, leaves, record
from ..graph.trace import current_trace
from ..graph.types import is_floating, promote, standardize_dtype
from ..graph.variable import Variable


def function(body: Callable) -> Callable:
    """Decorator for a public op function; see the module's text."""

    @functools.wraps(body)
    def call(*args, **kwargs):
        given = leaves((args, kwargs))
        if any(isinstance(leaf, Symbol) for leaf in given):
            return record(call, args, kwargs, body.__name__)
        if current_trace() is not None or any(isinstance(leaf, Value) for leaf in given):
            return body(*args, **kwargs)
        from ..runtime.eager import run_now

        return run_now(body, args, kwargs)

    return call


def convert(value, like: str | None = None) -> Value:
    """A graph value for a value, variable, tensor, array or number.

    A Python number has no element type of its own: it takes `like` (an integer only an integer's place or a float's;
    a float next to an integer type becomes float32).
    """
    if isinstance(value, Value):
        return value
    if isinstance(value, Variable):
        trace = current_trace()
        return trace.read(value) if trace is not None else value.leaf
    if isinstance(value, bool | int | float):
        return Constant(np.array(value, _scalar_dtype(value, like)))()
    if isinstance(value, Symbol):
        raise TypeError(f"symbol '{value.name}' was used inside a traced function; pass it as an argument")
    array = np.asarray(value)
    if array.dtype == np.float64 and not hasattr(value, "dtype"):  # a list of Python floats
        array = array.astype(like if like and is_floating(like) else np.float32)
    elif array.dtype == np.int64 and not hasattr(value, "dtype"):
        array = array.astype(like or np.int32)
    dtype = standardize_dtype(array.dtype)
    return Constant(np.array(array, dtype, order="C"))()


def _scalar_dtype(value, like: str | None) -> str:
    if isinstance(value, bool):
        return like or "bool"
    if isinstance(value, int):
        return "int32" if like in (None, "bool") else like
    return like if like and is_floating(like) else "float32"


def convert_all(*values) -> tuple[Value, ...]:
    """Graph values of one common element type, by the rules of promotion."""
    from .movement import cast

    typed = [standardize_dtype(v.dtype) for v in values if hasattr(v, "dtype")]
    like = promote(*typed) if typed else None
    converted = [convert(value, like) for value in values]
    dtype = promote(*(value.dtype for value in converted))
    return tuple(cast(value, dtype) for value in converted)
