"""What the library says of its own work: silent unless MAGMADNN_LOG names the topic (passes, kernels, memory; all)."""

from __future__ import annotations

import os
import sys

_said: set[str] = set()


def log(topic: str, message: str) -> None:
    """Prints to standard error if `topic` is asked for."""
    wanted = os.environ.get("MAGMADNN_LOG", "").split(",")
    if topic in wanted or "all" in wanted:
        print(f"magmadnn {topic}: {message}", file=sys.stderr)


def log_once(topic: str, message: str) -> None:
    """As `log`, each message once per process."""
    if message not in _said:
        _said.add(message)
        log(topic, message)
