"""Names for layers and models that were given none."""

from __future__ import annotations

import re
from collections import Counter

_used: Counter[str] = Counter()


def to_snake_case(name: str) -> str:
    """Keras's rule: "Conv2DTranspose" -> "conv2d_transpose", "ReLU" -> "re_lu"."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def auto_name(prefix: str) -> str:
    """The snake-case prefix, then the same with _1, _2, ... at later calls."""
    name = to_snake_case(prefix)
    _used[name] += 1
    return name if _used[name] == 1 else f"{name}_{_used[name] - 1}"


def clear_session() -> None:
    """Names begin anew."""
    _used.clear()
