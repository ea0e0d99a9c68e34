"""Random numbers, as `keras.random` has them. Counter-based: the same on every device and thread count."""

from .ops.random import *  # noqa: F403
from .ops.random import __all__ as __all__
