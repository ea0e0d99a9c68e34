"""Settings shared by all tests. (That this file is here puts `tests/` on the path: `from cases.conv import CASES`.)"""

from hypothesis import settings

# Repeatable, and with no time limit per example: machines differ.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")
