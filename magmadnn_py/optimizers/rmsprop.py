"""Gradient descent in units of a running root mean square of the gradients."""

from __future__ import annotations

from .. import ops
from .optimizer import Optimizer


class RMSprop(Optimizer):
    """Hinton, 2012: w -= learning_rate * g / sqrt(v + epsilon), with the running mean v of g^2.

    Args:
        rho: decay rate of the running means.
        momentum: of the steps.
        centered: whether the square of the running mean of g is taken off v.

    Others as for `Optimizer`.
    """

    def __init__(self, learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, **common):
        super().__init__(learning_rate, **common)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered
        optional = {"momentum": momentum > 0, "average_gradient": centered}
        self.slot_groups = (("velocity",), *((name,) for name, used in optional.items() if used))

    def update(self, gradient, weight, learning_rate):
        velocity = self._mean("velocity", ops.square(gradient))
        if self.centered:
            velocity = velocity - ops.square(self._mean("average_gradient", gradient))
        step = gradient * learning_rate / ops.sqrt(velocity + self.epsilon)
        if self.momentum > 0:
            step = self.assign_slot("momentum", self.slot("momentum") * self.momentum + step)
        return weight - step

    def _mean(self, slot: str, value):
        return self.assign_slot(slot, self.slot(slot) * self.rho + value * (1.0 - self.rho))

    def get_config(self) -> dict:
        names = ("rho", "momentum", "epsilon", "centered")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
