"""Values and gradients of public functions of `ops` that take plain arguments beside arrays."""

from __future__ import annotations

from functools import partial

import numpy as np

from magmadnn_py.graph import gradients
from magmadnn_py.graph.types import is_floating
from ops import checks


def evaluate(function, *arrays, **arguments):
    """The function's result by the references; a list where it has several."""
    return checks.evaluate(partial(function, **arguments), *arrays)


def differentiate(function, *arrays, **arguments) -> list[np.ndarray]:
    """Gradients of the sum of the function's result for each floating array."""

    def derivatives(*values):
        result = function(*values, **arguments)
        return gradients(result, [value for value in values if is_floating(value.dtype)])

    return checks.evaluate(derivatives, *arrays)


def image(values, dtype="float32") -> np.ndarray:
    """Rows of cells of one channel as [1, H, W, 1]; a flat list as [1, W, 1]."""
    array = np.asarray(values, dtype)
    return array.reshape(1, *array.shape, 1)
