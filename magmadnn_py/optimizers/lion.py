"""Descent along the sign of a momentum."""

from __future__ import annotations

from .. import ops
from .optimizer import Optimizer


class Lion(Optimizer):
    """Chen et al., 2023: w -= learning_rate * sign(beta_1 * m + (1 - beta_1) * g); then m moves towards g by the part
    1 - beta_2. Arguments as for `Optimizer`."""

    slot_groups = (("momentum",),)

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.99, **common):
        super().__init__(learning_rate, **common)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"Lion: beta_1: got {beta_1}, wanted a number above 0 and at most 1")
        self.beta_1, self.beta_2 = beta_1, beta_2

    def update(self, gradient, weight, learning_rate):
        momentum = self.slot("momentum")
        direction = ops.sign(momentum * self.beta_1 + gradient * (1.0 - self.beta_1))
        self.assign_slot("momentum", momentum * self.beta_2 + gradient * (1.0 - self.beta_2))
        return weight - direction * learning_rate

    def get_config(self) -> dict:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2}
