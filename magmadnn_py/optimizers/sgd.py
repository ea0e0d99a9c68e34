"""Gradient descent, plain or with momentum."""

from __future__ import annotations

from .optimizer import Optimizer


class SGD(Optimizer):
    """w -= learning_rate * g; with momentum m = momentum * m - learning_rate * g and w += m, or with `nesterov`
    w += momentum * m - learning_rate * g.

    Args: learning_rate, momentum, nesterov; others as for `Optimizer`.
    """

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **common):
        super().__init__(learning_rate, **common)
        if not 0 <= momentum <= 1:
            raise ValueError(f"SGD: momentum: got {momentum}, wanted a number from 0 to 1")
        self.momentum, self.nesterov = momentum, nesterov
        self.slot_groups = (("momentum",),) if momentum else ()

    def update(self, gradient, weight, learning_rate):
        step = gradient * learning_rate
        if not self.momentum:
            return weight - step
        momentum = self.assign_slot("momentum", self.slot("momentum") * self.momentum - step)
        return weight + (momentum * self.momentum - step if self.nesterov else momentum)

    def get_config(self) -> dict:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}
