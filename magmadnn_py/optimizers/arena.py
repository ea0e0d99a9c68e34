"""Variables laid one after another in one flat variable, so that an update is one loop over all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from .. import ops
from ..graph.node import Value
from ..graph.variable import Variable

_moves = 0


def layout_version() -> int:
    """Grows whenever variables move to another arena: programs traced before then use their old memory."""
    return _moves


class Arena:
    """Variables of one element type, their flat memory, and flat variables of the same length beside it.

    Args:
        variables: in order; where they already are the whole of one arena in this order, that one is used,
            else they move to a new one.
    """

    def __init__(self, variables: Sequence[Variable]):
        self.variables = list(variables)
        self.dtype = self.variables[0].dtype
        sizes = [variable.type.size for variable in self.variables]
        self.offsets = [0, *itertools.accumulate(sizes)]
        self.slots: dict[str, Variable] = {}
        self.flat = self._common_flat()
        if self.flat is None:
            self._move()

    @property
    def size(self) -> int:
        return self.offsets[-1]

    def _common_flat(self) -> Variable | None:
        """The flat variable that the variables are the whole of, if there is one."""
        bases = [variable.base for variable in self.variables]
        flat = bases[0][0] if bases[0] is not None else None
        whole = flat is not None and flat.shape == (self.size,)
        placed = zip(bases, self.offsets, strict=False)
        return flat if whole and all(base == (flat, offset) for base, offset in placed) else None

    def _move(self) -> None:
        global _moves
        _moves += 1
        self.flat = Variable(np.zeros(self.size, self.dtype), self.dtype, name="weights")
        for variable, offset in zip(self.variables, self.offsets, strict=False):
            variable.move_into(self.flat, offset)

    def ensure(self) -> None:
        """Takes the variables back if another arena took them since."""
        if self._common_flat() is not self.flat:
            self.flat = self._common_flat()
            if self.flat is None:
                self._move()

    def add_slot(self, name: str, initial: float, owner: str) -> list[Variable]:
        """A flat variable of the arena's length, and for each variable its part of it, as a variable too."""
        flat = Variable(np.full(self.size, initial, self.dtype), self.dtype, trainable=False, name=name)
        self.slots[name] = flat
        views = []
        for variable, offset in zip(self.variables, self.offsets, strict=False):
            view = Variable.part_of(flat, offset, variable.shape, f"{variable.name}_{name}")
            view.path = f"{owner}/{variable.path.replace('/', '_')}_{name}"
            views.append(view)
        return views

    def join(self, pieces: Sequence[Value]) -> Value:
        """One flat value of one value per variable."""
        return ops.concatenate([ops.reshape(piece, (-1,)) for piece in pieces], axis=0)

    def split(self, flat: Value) -> list[Value]:
        """The parts of a flat value, one per variable, each still flat."""
        return [flat[start:stop] for start, stop in itertools.pairwise(self.offsets)]
