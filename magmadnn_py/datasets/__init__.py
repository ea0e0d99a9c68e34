"""Data sets by name: `mnist` and `fashion_mnist`, each with a Keras-compatible `load_data()`.

A data set's module is imported when it is first used.
"""

import importlib

__all__ = ["fashion_mnist", "mnist"]


def __getattr__(name: str):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; data sets: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
