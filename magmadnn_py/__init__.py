"""magmadnn_py: deep learning on one graph and one GEMM.

A Keras user finds the names of `keras` here: `Sequential`, `Model`, `Input`, `layers`, `optimizers`, ... Everything is
imported when it is first used.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

#: Public name -> module that defines it; modules stand for themselves.
_MODULES = (
    "activations", "applications", "callbacks", "config", "constraints", "datasets", "graph", "initializers", "layers",
    "losses", "metrics", "models", "ops", "optimizers", "random", "regularizers", "saving", "utils",
)  # fmt: skip
_NAMES = {
    "Functional": "models",
    "Input": "models",
    "Initializer": "initializers",
    "Layer": "layers",
    "Loss": "losses",
    "Metric": "metrics",
    "Model": "models",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
    "Sequential": "models",
    "Tensor": "runtime.tensor",
    "Variable": "graph",
    "get_threads": "_core",
    "set_threads": "_core",
}

__all__ = [*_MODULES, *_NAMES, "__version__"]


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module 'magmadnn_py' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)
