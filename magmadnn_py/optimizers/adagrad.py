"""Gradient descent in units of all gradients so far: Adagrad and Adadelta."""

from __future__ import annotations

from .. import ops
from .optimizer import Optimizer


class Adagrad(Optimizer):
    """Duchi et al., 2011: w -= learning_rate * g / sqrt(a + epsilon), with the sum a of g^2.

    Args:
        initial_accumulator_value: where the sum begins.

    Others as for `Optimizer`.
    """

    slot_groups = (("accumulator",),)

    def __init__(self, learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7, **common):
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def slot_start(self, name):
        return self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(self, gradient, weight, learning_rate):
        total = self.assign_slot("accumulator", self.slot("accumulator") + ops.square(gradient))
        return weight - gradient * learning_rate / ops.sqrt(total + self.epsilon)

    def get_config(self) -> dict:
        names = ("initial_accumulator_value", "epsilon")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class Adadelta(Optimizer):
    """Zeiler, 2012: w -= learning_rate * g * sqrt(d + epsilon) / sqrt(a + epsilon), with the running means a of g^2
    and d of the squared steps.

    Args:
        rho: decay rate of the running means.

    Others as for `Optimizer`.
    """

    slot_groups = (("accumulated_grad", "accumulated_delta_var"),)

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-7, **common):
        super().__init__(learning_rate, **common)
        self.rho, self.epsilon = rho, epsilon

    def update(self, gradient, weight, learning_rate):
        squares = self._mean("accumulated_grad", ops.square(gradient))
        steps = self.slot("accumulated_delta_var")
        step = gradient * ops.sqrt(steps + self.epsilon) / ops.sqrt(squares + self.epsilon)
        self._mean("accumulated_delta_var", ops.square(step))
        return weight - step * learning_rate

    def _mean(self, slot: str, value):
        return self.assign_slot(slot, self.slot(slot) * self.rho + value * (1.0 - self.rho))

    def get_config(self) -> dict:
        return {**super().get_config(), "rho": self.rho, "epsilon": self.epsilon}
