"""Reverse-mode differentiation by graph rewriting: the backward pass is ordinary nodes."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import reachable
from .node import Value
from .trace import scope
from .types import is_floating


def gradients(
    outputs: Value | Sequence[Value], wrt: Sequence[Value], output_gradients: Sequence[Value] | None = None
) -> list[Value | None]:
    """Gradients of the sum of `outputs`, weighted by `output_gradients` (default: ones), for each value of `wrt`.

    A value that is consumed several times gets the sum of what its consumers say; every gradient is a value of its
    own, so none is ever changed by another's accumulation. None stands for "does not depend on it".
    """
    from .. import ops

    outputs = [outputs] if isinstance(outputs, Value) else list(outputs)
    if output_gradients is None:
        output_gradients = [ops.ones_like(value) for value in outputs]
    order = reachable(outputs)
    needed = _dependents(order, set(wrt))
    pending: dict[Value, list[Value]] = {}
    for value, gradient in zip(outputs, output_gradients, strict=True):
        if gradient.type != value.type:
            raise ValueError(f"gradients: output_gradients: got {gradient.type}, wanted {value.type}")
        pending.setdefault(value, []).append(gradient)
    totals: dict[Value, Value] = {}

    def total(value: Value) -> Value | None:
        if value not in totals and value in pending:
            result, *others = pending[value]
            for other in others:
                result = ops.add(result, other)
            totals[value] = result
        return totals.get(value)

    for node in reversed(order):
        if node.op.is_leaf or not any(value in needed for value in node.inputs):
            continue
        incoming = [total(value) for value in node.outputs]
        if all(gradient is None for gradient in incoming):
            continue
        with scope(node.scope):
            found = node.op.gradient(node, incoming)
        for value, gradient in zip(node.inputs, found, strict=True):
            if gradient is None or value not in needed:
                continue
            if gradient.type != value.type:
                raise ValueError(f"gradient of {node.op.name}: got {gradient.type}, wanted {value.type}")
            pending.setdefault(value, []).append(gradient)
    return [total(value) for value in wrt]


def _dependents(order, wrt: set[Value]) -> set[Value]:
    """Every floating-point value that depends on one of `wrt`, those included."""
    needed = set(wrt)
    for node in order:
        if any(value in needed for value in node.inputs):
            needed.update(value for value in node.outputs if is_floating(value.dtype))
    return needed
