"""Adam and its relatives: steps in units of a running root mean square of the gradients."""

from __future__ import annotations

from .. import ops
from ..ops.function import convert
from .optimizer import Optimizer


class AdamFamily(Optimizer):
    """What they share: the two decay rates, epsilon, and the running moments."""

    def __init__(self, learning_rate, beta_1, beta_2, epsilon, **common):
        super().__init__(learning_rate, **common)
        for name, value in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0 <= value < 1:
                raise ValueError(f"{type(self).__name__}: {name}: got {value}, wanted a number from 0 to below 1")
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def moved(self, slot: str, value, beta: float):
        """The slot moved towards `value` by the part 1 - beta."""
        old = self.slot(slot)
        return self.assign_slot(slot, old + (value - old) * (1.0 - beta))

    def bias(self, beta: float):
        """1 - beta^step: how much of its full weight a running mean has."""
        return 1.0 - beta**self.step

    def get_config(self) -> dict:
        names = ("beta_1", "beta_2", "epsilon")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class Adam(AdamFamily):
    """Kingma and Ba, 2014: w -= alpha * m / (sqrt(v) + epsilon), with running means m of g and v of g^2 and
    alpha = learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t).

    Args:
        amsgrad: whether v never shrinks (Reddi et al., 2018).

    Others as for `Optimizer`.
    """

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False, **common):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **common)
        self.amsgrad = amsgrad
        self.slot_groups = (("momentum", "velocity"), ("velocity_hat",)) if amsgrad else (("momentum", "velocity"),)

    def update(self, gradient, weight, learning_rate):
        alpha = learning_rate * self.number(ops.sqrt(self.bias(self.beta_2)) / self.bias(self.beta_1))
        momentum = self.moved("momentum", gradient, self.beta_1)
        velocity = self.moved("velocity", ops.square(gradient), self.beta_2)
        if self.amsgrad:
            velocity = self.assign_slot("velocity_hat", ops.maximum(self.slot("velocity_hat"), velocity))
        return weight - momentum * alpha / (ops.sqrt(velocity) + self.epsilon)

    def get_config(self) -> dict:
        return {**super().get_config(), "amsgrad": self.amsgrad}


class AdamW(Adam):
    """`Adam` whose weights decay by weight_decay * learning_rate before each update (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        learning_rate=0.001,
        weight_decay=0.004,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        amsgrad=False,
        **common,
    ):
        if weight_decay is None:
            raise ValueError("AdamW: weight_decay: got None, wanted a number; Adam is without")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **common)


class Adamax(AdamFamily):
    """`Adam` with a running maximum of |g| in the place of the root mean square."""

    slot_groups = (("momentum", "norm"),)

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **common):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **common)

    def update(self, gradient, weight, learning_rate):
        momentum = self.moved("momentum", gradient, self.beta_1)
        norm = self.assign_slot("norm", ops.maximum(self.slot("norm") * self.beta_2, ops.abs(gradient)))
        alpha = learning_rate * self.number(1.0 / self.bias(self.beta_1))
        return weight - momentum * alpha / (norm + self.epsilon)


class Nadam(AdamFamily):
    """`Adam` with Nesterov's momentum (Dozat, 2016)."""

    slot_groups = (("momentum", "velocity"),)

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **common):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **common)
        self._product = self.add_state("u_product", 1.0)

    def begin_step(self):
        now, following = (self.beta_1 * (1.0 - 0.5 * 0.96 ** (self.step + i)) for i in (0.0, 1.0))
        product = convert(self._product) * now
        self._assign(self._product, product)
        self._of_gradient = (1.0 - now) / (1.0 - product)
        self._of_momentum = following / (1.0 - product * following)

    def update(self, gradient, weight, learning_rate):
        momentum = self.moved("momentum", gradient, self.beta_1)
        velocity = self.moved("velocity", ops.square(gradient), self.beta_2)
        ahead = momentum * self.number(self._of_momentum) + gradient * self.number(self._of_gradient)
        root = ops.sqrt(velocity * self.number(1.0 / self.bias(self.beta_2)))
        return weight - ahead * learning_rate / (root + self.epsilon)


class Lamb(AdamFamily):
    """`Adam` whose step for each variable has the norm of its weights, times the learning rate (You et al., 2020)."""

    slot_groups = (("momentum", "velocity"),)

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **common):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **common)

    def update(self, gradient, weight, learning_rate):
        momentum = self.moved("momentum", gradient, self.beta_1)
        velocity = self.moved("velocity", ops.square(gradient), self.beta_2)
        root = ops.sqrt(velocity * self.number(1.0 / self.bias(self.beta_2)))
        step = momentum * self.number(1.0 / self.bias(self.beta_1)) / (root + self.epsilon)
        pairs = zip(self._arena.split(weight), self._arena.split(step), strict=True)
        return weight - learning_rate * self._arena.join([_trusted(*pair) for pair in pairs])


def _trusted(weight, step):
    """The step with the norm of the weights, if neither is 0."""
    norms = [ops.sqrt(ops.sum(ops.square(x))) for x in (weight, step)]
    both = ops.logical_and(norms[0] > 0.0, norms[1] > 0.0)
    return step * ops.where(both, norms[0] / ops.where(both, norms[1], 1.0), 1.0)
