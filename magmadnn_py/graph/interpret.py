"""Runs a graph node by node with the NumPy references: slow, needs no compiled code, and says what is right."""

from __future__ import annotations

import numpy as np

from .graph import Graph
from .node import Constant, Input, ReadVariable, Value


def interpret(graph: Graph, inputs, xp=np) -> tuple[list, dict]:
    """Outputs of the graph, and what it assigns to variables, for the given input arrays.

    Variables are read but not changed.

    Raises:
        ValueError: an array does not have the type of its graph input.
    """
    arrays: dict[Value, object] = {}
    for value, array in zip(graph.inputs, inputs, strict=True):
        if tuple(array.shape) != value.shape or array.dtype != value.dtype:
            raise ValueError(
                f"input '{value.node.op.label}': got {array.dtype}{list(array.shape)}, wanted {value.type}"
            )
        arrays[value] = array
    for node in graph.order:
        match node.op:
            case Input():
                continue
            case Constant(array):
                results = (xp.asarray(array),)
            case ReadVariable(variable):
                results = (xp.asarray(variable.value.numpy()),)
            case op:
                results = op.reference(xp, *(arrays[value] for value in node.inputs))
                results = results if isinstance(results, tuple) else (results,)
        for value, array in zip(node.outputs, results, strict=True):
            arrays[value] = array
    updates = {variable: arrays[value] for variable, value in graph.updates}
    return [arrays[value] for value in graph.outputs], updates
