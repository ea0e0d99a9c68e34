"""Layers, with Keras's names: one file per family."""
# ruff: noqa: F403

from ..saving.registry import deserialize, serialize  # noqa: F401
from .activation import *
from .convolution import *
from .core import *
from .layer import *
from .merging import *
from .normalization import *
from .pooling import *
from .preprocessing import *
from .regularization import *
from .reshaping import *


def __getattr__(name: str):
    # Models are made of layers; only these two names go the other way.
    if name in ("Input", "InputLayer"):
        from ..models import input as entrance

        return getattr(entrance, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
