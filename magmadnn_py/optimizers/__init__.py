"""Optimizers: update rules on flat memory, and schedules of the learning rate."""

from __future__ import annotations

import difflib

from ..saving import registry as _registry
from . import schedules
from .adagrad import Adadelta, Adagrad
from .adam import Adam, Adamax, AdamW, Lamb, Nadam
from .arena import layout_version
from .ftrl import Ftrl
from .lion import Lion
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

_CLASSES = (SGD, Adam, AdamW, Adamax, Nadam, Lamb, RMSprop, Adagrad, Adadelta, Lion, Ftrl)
_NAMES = {cls.__name__: cls for cls in _CLASSES}
_BY_LOWER_NAME = {name.lower(): cls for name, cls in _NAMES.items()}

__all__ = [
    "Optimizer", "deserialize", "get", "layout_version", "schedules", "serialize", *_NAMES,
]  # fmt: skip


def get(identifier) -> Optimizer:
    """An optimizer from a name (in any case), a config, a class or an object.

    Raises:
        ValueError: there is no optimizer of that name, or it is something else.
    """
    if isinstance(identifier, dict):
        identifier = deserialize(identifier)
    elif isinstance(identifier, str):
        found = _BY_LOWER_NAME.get(identifier.lower()) or _registry.get_registered_object(identifier)
        if found is None:
            close = difflib.get_close_matches(identifier.lower(), _BY_LOWER_NAME, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise ValueError(f"optimizer: got {identifier!r}, wanted one of {', '.join(_BY_LOWER_NAME)}{hint}")
        identifier = found
    optimizer = identifier() if isinstance(identifier, type) else identifier
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"optimizer: got {identifier!r}, wanted a name, a config or an optimizer")
    return optimizer


def serialize(optimizer) -> dict:
    """The config of an optimizer."""
    return _registry.serialize(optimizer)


def deserialize(config, custom_objects=None) -> Optimizer:
    """The optimizer of a config."""
    return _registry.deserialize(config, custom_objects, module="keras.optimizers")
