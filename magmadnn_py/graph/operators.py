"""Python's operators for everything that stands for a tensor: graph values, symbols, variables, tensors.

The functions live in `ops`, which builds on this package; they are looked up when an operator is used.
"""

from __future__ import annotations


def _function(name: str):
    from .. import ops

    return getattr(ops, name)


class Operators:
    """Mixin: `a + b` is `ops.add(a, b)`, and so on."""

    __slots__ = ()
    __array_priority__ = 100  # so that `numpy_array + value` comes here
    __array_ufunc__ = None
    __hash__ = object.__hash__  # comparison below would otherwise unset it; identity is what a graph needs

    def __add__(self, other):
        return _function("add")(self, other)

    def __radd__(self, other):
        return _function("add")(other, self)

    def __sub__(self, other):
        return _function("subtract")(self, other)

    def __rsub__(self, other):
        return _function("subtract")(other, self)

    def __mul__(self, other):
        return _function("multiply")(self, other)

    def __rmul__(self, other):
        return _function("multiply")(other, self)

    def __truediv__(self, other):
        return _function("divide")(self, other)

    def __rtruediv__(self, other):
        return _function("divide")(other, self)

    def __floordiv__(self, other):
        return _function("floor_divide")(self, other)

    def __mod__(self, other):
        return _function("mod")(self, other)

    def __pow__(self, other):
        return _function("power")(self, other)

    def __rpow__(self, other):
        return _function("power")(other, self)

    def __matmul__(self, other):
        return _function("matmul")(self, other)

    def __neg__(self):
        return _function("negative")(self)

    def __abs__(self):
        return _function("absolute")(self)

    def __lt__(self, other):
        return _function("less")(self, other)

    def __le__(self, other):
        return _function("less_equal")(self, other)

    def __gt__(self, other):
        return _function("greater")(self, other)

    def __ge__(self, other):
        return _function("greater_equal")(self, other)

    def __getitem__(self, key):
        return _function("getitem")(self, key)

    def __iter__(self):
        for index in range(len(self)):
            yield self[index]
