"""Conditions on weights, restored after each update. A constraint is called with a weight and returns the new one."""

from __future__ import annotations

from . import ops
from .config import epsilon
from .saving import registry


class Constraint:
    """Base class: `constraint(weight)` returns the weight that is to take its place, of the same shape."""

    def __call__(self, w):
        return w

    def get_config(self) -> dict:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict) -> Constraint:
        return cls(**config)


class MaxNorm(Constraint):
    """Norms along `axis` (one or several) are at most `max_value`."""

    def __init__(self, max_value=2, axis=0):
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w):
        norms = _norms(w, self.axis)
        return w * (ops.clip(norms, 0, self.max_value) / (norms + epsilon()))


class NonNeg(Constraint):
    """No negative weights."""

    def __call__(self, w):
        return ops.maximum(w, 0)


class UnitNorm(Constraint):
    """Norms along `axis` (one or several) are 1."""

    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        return w / (_norms(w, self.axis) + epsilon())


class MinMaxNorm(Constraint):
    """Norms along `axis` (one or several) move by the share `rate` towards [min_value, max_value]."""

    def __init__(self, min_value=0.0, max_value=1.0, rate=1.0, axis=0):
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w):
        norms = _norms(w, self.axis)
        wanted = ops.clip(norms, self.min_value, self.max_value) * self.rate + norms * (1 - self.rate)
        return w * (wanted / (norms + epsilon()))


def _norms(w, axis):
    return ops.sqrt(ops.sum(ops.square(w), axis=axis, keepdims=True))


# Keras's other names.
max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm

_NAMES = {"max_norm": MaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm}


def get(identifier):
    """A constraint from a name ("max_norm"), a config, a class or a function; None stays None.

    Raises:
        ValueError: there is no constraint of that name.
    """
    return registry.lookup("constraint", identifier, _NAMES)


def serialize(constraint):
    return registry.serialize(constraint)


def deserialize(config, custom_objects=None):
    return registry.deserialize(config, custom_objects, module="keras.constraints")
