"""Settings shared by all tests. (That this file is here puts `tests/` on the path: `from ops import checks`.)

The installed package is tested, not the sources beside the tests, which have no compiled core: the sources' folder is
taken off the path, and the tests run in another folder, so that the processes they start do not find it either.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

_SOURCES = Path(__file__).resolve().parent.parent

if not list((_SOURCES / "magmadnn_py").glob("_core*")):
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _SOURCES]
if "PYTHONPATH" in os.environ:
    entries = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in entries)

# Repeatable, and with no time limit per example: machines differ.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")


# No test depends on the clock, or on what an earlier run left in the user's cache folder.
os.environ["MAGMADNN_TUNE"] = "off"


@pytest.fixture(scope="session", autouse=True)
def _away_from_the_sources(tmp_path_factory):
    before = Path.cwd()
    os.environ["MAGMADNN_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.chdir(tmp_path_factory.mktemp("work"))
    yield
    os.chdir(before)
