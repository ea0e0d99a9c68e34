"""What the library says of its own work: silent unless MAGMADNN_LOG names the topic (passes, kernels, memory; all)."""

from __future__ import annotations

import logging
import os
import sys

_said: set[str] = set()


def wanted(topic: str) -> bool:
    """Whether MAGMADNN_LOG asks for the topic."""
    asked = os.environ.get("MAGMADNN_LOG", "").split(",")
    return topic in asked or "all" in asked


def log(topic: str, message: str) -> None:
    """Prints to standard error if `topic` is asked for."""
    if wanted(topic):
        print(f"magmadnn {topic}: {message}", file=sys.stderr)


def warn_once(message: str) -> None:
    """A warning of the logger "magmadnn_py", each message once per process."""
    if message not in _said:
        _said.add(message)
        logging.getLogger("magmadnn_py").warning(message)
