"""The shared case lists, one file per op family: for tests of kernels and gradients, for speed, for the oracle.

CASES: shapes on which results are checked. SPEED_CASES: layers of real networks, for speed only.
"""
