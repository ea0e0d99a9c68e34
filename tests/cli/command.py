"""The command line, run as a user runs it."""

import os
import subprocess
import sys


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "magmadnn_py.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
