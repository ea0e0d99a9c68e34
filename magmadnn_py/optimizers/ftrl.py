"""Follow the regularised leader."""

from __future__ import annotations

from .. import ops
from .optimizer import Optimizer

_ARGUMENTS = (
    "learning_rate_power", "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
    "l2_shrinkage_regularization_strength", "beta",
)  # fmt: skip


class Ftrl(Optimizer):
    """McMahan et al., 2013: per-weight learning rates from the sum of g^2, with L1 and L2 regularisation.

    Args:
        learning_rate_power: at most 0; how the learning rate falls with the sum.
        initial_accumulator_value: where the sum begins.
        l1_regularization_strength, l2_regularization_strength: of the weights.
        l2_shrinkage_regularization_strength: a penalty that acts on the gradient only.
        beta: of the paper.

    Others as for `Optimizer`.
    """

    slot_groups = (("accumulator", "linear"),)

    def __init__(
        self,
        learning_rate=0.001,
        learning_rate_power=-0.5,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        l2_shrinkage_regularization_strength=0.0,
        beta=0.0,
        **common,
    ):
        super().__init__(learning_rate, **common)
        given = locals()
        for name in _ARGUMENTS:
            setattr(self, name, given[name])
            if given[name] < 0 and name != "learning_rate_power":
                raise ValueError(f"Ftrl: {name}: got {given[name]}, wanted 0 or more")
        if learning_rate_power > 0:
            raise ValueError(f"Ftrl: learning_rate_power: got {learning_rate_power}, wanted 0 or less")

    def slot_start(self, name):
        return self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(self, gradient, weight, learning_rate):
        old = self.slot("accumulator")
        new = self.assign_slot("accumulator", old + ops.square(gradient))
        power = -self.learning_rate_power
        shrunk = gradient + weight * (2.0 * self.l2_shrinkage_regularization_strength)
        growth = (new**power - old**power) / learning_rate
        linear = self.assign_slot("linear", self.slot("linear") + shrunk - growth * weight)
        quadratic = (new**power + self.beta) / learning_rate + 2.0 * self.l2_regularization_strength
        strength = self.l1_regularization_strength
        return (ops.clip(linear, -strength, strength) - linear) / quadratic

    def get_config(self) -> dict:
        return {**super().get_config(), **{name: getattr(self, name) for name in _ARGUMENTS}}
