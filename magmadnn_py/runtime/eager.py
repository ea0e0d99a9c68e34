"""Runs functions of graph values on arrays at once: traced, made a program, run; programs of plain ops are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from .. import _core
from ..graph.node import Value
from ..graph.symbolic import leaves, map_structure
from ..graph.trace import Trace
from ..graph.types import standardize_dtype
from ..graph.variable import Variable
from .program import Program, SharedMemory
from .tensor import Tensor

#: Programs of recent calls, by function, argument types and static arguments.
_CACHE_SIZE = 512
_programs: OrderedDict[tuple, tuple] = OrderedDict()
_memory = SharedMemory()


class _Slot:
    """Stands for an array among the arguments of a cached call."""


def run_now(body: Callable, args: tuple, kwargs: dict, cache: bool = True):
    """Calls `body` on graph values for the arrays among the arguments, runs the graph, returns tensors.

    The results have the nesting that `body` returns; variables it assigns are changed.
    """
    arrays: list[np.ndarray] = []

    def take(leaf):
        if isinstance(leaf, np.integer | np.bool_):  # a setting: an axis, an extent
            return leaf.item()
        if _is_array(leaf):
            arrays.append(_prepare(leaf))
            return _Slot
        return leaf

    static_args, static_kwargs = map_structure(take, (args, kwargs))
    with _memory.lock:
        program, result = _program(body, static_args, static_kwargs, arrays, cache)
        outputs = iter(program.run(*arrays) if program else ())
    return map_structure(lambda leaf: Tensor.from_array(next(outputs)) if leaf is _Slot else leaf, result)


def _is_array(leaf) -> bool:
    if isinstance(leaf, Variable | str | bytes | type) or leaf is None:
        return False
    return isinstance(leaf, np.ndarray | np.generic | Tensor) or hasattr(leaf, "__array__")


def _prepare(leaf) -> np.ndarray:
    array = np.asarray(leaf)
    try:
        standardize_dtype(array.dtype)
    except TypeError:
        return Tensor.from_array(array).numpy()
    return array


def _program(body, args, kwargs, arrays, cache: bool):
    types = tuple((array.shape, array.dtype.name) for array in arrays)
    key = _key(body, args, kwargs, types) if cache else None
    if key in _programs:
        _programs.move_to_end(key)
        return _programs[key]
    with Trace() as trace:
        inputs = iter([trace.input(shape, dtype) for shape, dtype in types])
        values = map_structure(lambda leaf: next(inputs) if leaf is _Slot else leaf, (args, kwargs))
        result = body(*values[0], **values[1])
    outputs = [leaf for leaf in leaves(result) if isinstance(leaf, Value)]
    graph = trace.graph(outputs)
    entry = (
        Program(graph, _memory) if graph.results else None,
        map_structure(lambda leaf: _Slot if isinstance(leaf, Value) else leaf, result),
    )
    if key is not None:
        _programs[key] = entry
        while len(_programs) > _CACHE_SIZE:
            _programs.popitem(last=False)
    return entry


def _key(body, args, kwargs, types):
    """None where an argument cannot be part of a key, or is a variable (its program would keep it alive)."""
    static = leaves((args, kwargs))
    if any(isinstance(leaf, Variable) for leaf in static):
        return None
    # 1, 1.0 and True are equal but give different types.
    key = (body, repr((args, kwargs)), tuple((type(leaf), leaf) for leaf in static), types, _core.get_threads())
    try:
        hash(key)
    except TypeError:
        return None
    return key
