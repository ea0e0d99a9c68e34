"""The shared case lists, one file per op family: for tests of kernels and gradients, for speed, for the oracle."""
