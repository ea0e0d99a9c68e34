"""Symbols: stand-ins for tensors of a network that is being described, where the batch size is still open.

A call on symbols (of a layer or of an `ops` function) is recorded; it is replayed on graph values, of fixed
shape, when a program is built. Shapes of results are found by tracing the call with two different values for every
unknown extent: an extent that changes between the two is unknown as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from .node import Value
from .operators import Operators
from .trace import Trace

_PROBES = (83, 89)
_ids = itertools.count()


class Call:
    """One recorded call: `function(*args, **kwargs)`, with symbols anywhere inside the arguments."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict):
        self.id = next(_ids)
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.outputs: Any = None

    @property
    def inputs(self) -> list[Symbol]:
        return [leaf for leaf in leaves((self.args, self.kwargs)) if isinstance(leaf, Symbol)]


class Symbol(Operators):
    """A tensor of a described network. Unknown extents of `shape` are None."""

    def __init__(self, shape: tuple[int | None, ...], dtype: str = "float32", name: str = "symbol"):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.name = name
        self.call: Call | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape or self.shape[0] is None:
            raise TypeError(f"len() of symbol '{self.name}': its first extent is not known yet")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError(f"symbol '{self.name}' has no truth value: the network is only being described")

    def __array__(self, *args, **kwargs):
        raise TypeError(f"symbol '{self.name}' has no numbers: NumPy functions cannot take it; use ops.*")

    def __repr__(self) -> str:
        return f"<Symbol '{self.name}' {self.dtype}{list(self.shape)}>"


def map_structure(function: Callable, structure):
    """The same nesting of tuples, lists and dicts with `function` applied to every leaf."""
    if isinstance(structure, dict):
        return {key: map_structure(function, item) for key, item in structure.items()}
    if isinstance(structure, list | tuple) and not hasattr(structure, "_fields"):
        return type(structure)(map_structure(function, item) for item in structure)
    return function(structure)


def leaves(structure) -> list:
    """All leaves of a nesting of tuples, lists and dicts, in order."""
    result: list = []
    map_structure(result.append, structure)
    return result


def contains_symbol(structure) -> bool:
    return any(isinstance(leaf, Symbol) for leaf in leaves(structure))


class Spec(NamedTuple):
    """Shape (None where unknown) and element type of a result."""

    shape: tuple[int | None, ...]
    dtype: str


def probe(function: Callable, args: tuple, kwargs: dict):
    """The result of a call on symbols, with a Spec for every value in it."""

    def run(extent: int):
        with Trace() as trace:

            def stand_in(leaf):
                if not isinstance(leaf, Symbol):
                    return leaf
                return trace.input([extent if e is None else e for e in leaf.shape], leaf.dtype)

            real_args, real_kwargs = map_structure(stand_in, (args, kwargs))
            return function(*real_args, **real_kwargs)

    first, second = (run(extent) for extent in _PROBES)
    others = iter(leaves(second))

    def compare(value):
        other = next(others)
        if not isinstance(value, Value):
            return value
        pairs = zip(value.shape, other.shape, strict=True)
        return Spec(tuple(i if i == j else None for i, j in pairs), value.dtype)

    return map_structure(compare, first)


def record(function: Callable, args: tuple, kwargs: dict, name: str):
    """Records `function(*args, **kwargs)` on symbols and returns symbols for its results."""
    call = Call(function, args, kwargs)

    def symbol(spec):
        if not isinstance(spec, Spec):
            return spec
        output = Symbol(spec.shape, spec.dtype, name)
        output.call = call
        return output

    call.outputs = map_structure(symbol, probe(function, args, kwargs))
    return call.outputs


def calls_between(inputs: list[Symbol], outputs: list[Symbol]) -> list[Call]:
    """The recorded calls that lead from `inputs` to `outputs`, in the order they were made.

    Raises:
        ValueError: an output depends on a symbol that is none of the inputs.
    """
    given = set(inputs)
    found: set[Call] = set()
    stack = list(outputs)
    while stack:
        symbol = stack.pop()
        if symbol in given:
            continue
        if symbol.call is None:
            raise ValueError(f"inputs: the outputs depend on '{symbol.name}', which is not among the inputs")
        if symbol.call not in found:
            found.add(symbol.call)
            stack.extend(symbol.call.inputs)
    return sorted(found, key=lambda call: call.id)


def replay(calls: list[Call], values: dict[Symbol, Any], invoke: Callable | None = None) -> None:
    """Runs recorded calls on real values; `values` maps the inputs and receives every result.

    `invoke(call, args, kwargs)` makes the call; by default the recorded function itself.
    """
    for call in calls:
        args, kwargs = map_structure(
            lambda leaf: values[leaf] if isinstance(leaf, Symbol) else leaf, (call.args, call.kwargs)
        )
        result = invoke(call, args, kwargs) if invoke else call.function(*args, **kwargs)
        for symbol, value in zip(leaves(call.outputs), leaves(result), strict=True):
            if isinstance(symbol, Symbol):
                values[symbol] = value
