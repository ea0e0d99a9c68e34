"""Learning rates that are functions of the number of updates made."""

from __future__ import annotations

import math

from .. import ops
from ..graph.node import Value
from ..losses.matching import plain
from ..ops.function import convert, function


class LearningRateSchedule:
    """Base class: `schedule(step)` is the learning rate after `step` updates.

    A subclass may compute with ops, and is then part of the compiled step; or with Python numbers, and is then called
    before each step.
    """

    def __call__(self, step):
        raise NotImplementedError(f"{type(self).__name__}.__call__(step)")

    def get_config(self) -> dict:
        raise NotImplementedError(f"{type(self).__name__}.get_config()")

    @classmethod
    def from_config(cls, config: dict) -> LearningRateSchedule:
        return cls(**config)


class _Schedule(LearningRateSchedule):
    """A schedule whose config is its arguments. The arithmetic is in float64; the rate is float32."""

    def __init__(self, **config):
        self._config = config
        for name, value in config.items():
            setattr(self, name, value)

    def __call__(self, step):
        return _rate(plain(step), self)

    def rate(self, step: Value) -> Value:
        """The rate for a step of type float64."""
        raise NotImplementedError(type(self).__name__)

    def get_config(self) -> dict:
        return dict(self._config)

    def _require_positive(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) <= 0:
                raise ValueError(f"{type(self).__name__}: {name}: got {getattr(self, name)}, wanted more than 0")


@function
def _rate(step, schedule: _Schedule):
    return ops.cast(schedule.rate(ops.cast(convert(step), "float64")), "float32")


class ExponentialDecay(_Schedule):
    """initial_learning_rate * decay_rate^(step / decay_steps); with `staircase` the exponent is rounded down."""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="ExponentialDecay"):
        super().__init__(
            initial_learning_rate=initial_learning_rate,
            decay_steps=decay_steps,
            decay_rate=decay_rate,
            staircase=staircase,
            name=name,
        )
        self._require_positive("decay_steps")

    def rate(self, step):
        passed = step / self.decay_steps
        passed = ops.floor(passed) if self.staircase else passed
        return self.decay_rate**passed * self.initial_learning_rate


class InverseTimeDecay(_Schedule):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps); `staircase` rounds step / decay_steps down."""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="InverseTimeDecay"):
        super().__init__(
            initial_learning_rate=initial_learning_rate,
            decay_steps=decay_steps,
            decay_rate=decay_rate,
            staircase=staircase,
            name=name,
        )
        self._require_positive("decay_steps")

    def rate(self, step):
        passed = step / self.decay_steps
        passed = ops.floor(passed) if self.staircase else passed
        return self.initial_learning_rate / (1.0 + self.decay_rate * passed)


class PiecewiseConstantDecay(_Schedule):
    """values[0] up to and at step boundaries[0], values[1] up to boundaries[1], ..., the last value beyond."""

    def __init__(self, boundaries, values, name="PiecewiseConstant"):
        if len(boundaries) + 1 != len(values):
            raise ValueError(
                f"PiecewiseConstantDecay: values: got {len(values)}, wanted one more than the "
                f"{len(boundaries)} boundaries"
            )
        super().__init__(boundaries=list(boundaries), values=list(values), name=name)

    def rate(self, step):
        rate = ops.full((), self.values[-1], dtype="float64")
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1]), strict=True):
            rate = ops.where(step <= boundary, float(value), rate)
        return rate


class PolynomialDecay(_Schedule):
    """From `initial_learning_rate` to `end_learning_rate` in `decay_steps`: (1 - step / decay_steps)^power.

    With `cycle` the decay begins anew, to the next multiple of `decay_steps`, instead of staying at the end.
    """

    def __init__(
        self,
        initial_learning_rate,
        decay_steps,
        end_learning_rate=0.0001,
        power=1.0,
        cycle=False,
        name="PolynomialDecay",
    ):
        super().__init__(
            initial_learning_rate=initial_learning_rate,
            decay_steps=decay_steps,
            end_learning_rate=end_learning_rate,
            power=power,
            cycle=cycle,
            name=name,
        )
        self._require_positive("decay_steps")

    def rate(self, step):
        if self.cycle:
            part = step / (ops.maximum(ops.ceil(step / self.decay_steps), 1.0) * self.decay_steps)
        else:
            part = ops.minimum(step / self.decay_steps, 1.0)
        span = self.initial_learning_rate - self.end_learning_rate
        return (1.0 - part) ** self.power * span + self.end_learning_rate


class CosineDecay(_Schedule):
    """Half a cosine from the initial rate to `alpha` times it in `decay_steps` (Loshchilov and Hutter, 2016).

    With `warmup_target` the rate first rises linearly from the initial one to it in `warmup_steps`, and decays from it.
    """

    def __init__(
        self,
        initial_learning_rate,
        decay_steps,
        alpha=0.0,
        name="CosineDecay",
        warmup_target=None,
        warmup_steps=0,
    ):
        super().__init__(
            initial_learning_rate=initial_learning_rate,
            decay_steps=decay_steps,
            alpha=alpha,
            name=name,
            warmup_target=warmup_target,
            warmup_steps=warmup_steps,
        )
        self._require_positive("decay_steps")

    def rate(self, step):
        if self.warmup_target is None:
            return self._decayed(step, self.initial_learning_rate)
        rise = (self.warmup_target - self.initial_learning_rate) / max(self.warmup_steps, 1)
        cold = self._decayed(step - self.warmup_steps, self.warmup_target)
        return ops.where(step < self.warmup_steps, self.initial_learning_rate + rise * step, cold)

    def _decayed(self, step, start: float):
        part = ops.clip(step / self.decay_steps, 0.0, 1.0)
        return start * _cosine(part, 1.0, self.alpha)


class CosineDecayRestarts(_Schedule):
    """Cosine decays one after the other, each `t_mul` times as long as and `m_mul` times as high as the last."""

    def __init__(self, initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0, name="SGDRDecay"):
        super().__init__(
            initial_learning_rate=initial_learning_rate,
            first_decay_steps=first_decay_steps,
            t_mul=t_mul,
            m_mul=m_mul,
            alpha=alpha,
            name=name,
        )
        self._require_positive("first_decay_steps")

    def rate(self, step):
        passed = step / self.first_decay_steps
        if self.t_mul == 1.0:
            restarts = ops.floor(passed)
            part = passed - restarts
        else:
            # Restart i begins after 1 + t + ... + t^(i-1) = (1 - t^i) / (1 - t) times the first length.
            restarts = ops.floor(ops.log(1.0 - passed * (1.0 - self.t_mul)) / math.log(self.t_mul))
            length = self.t_mul**restarts
            part = (passed - (1.0 - length) / (1.0 - self.t_mul)) / length
        return self.initial_learning_rate * _cosine(part, self.m_mul**restarts, self.alpha)


def _cosine(part, height, alpha: float):
    """From `height` at part 0 to `alpha` at part 1."""
    return (1.0 - alpha) * 0.5 * height * (1.0 + ops.cos(math.pi * part)) + alpha
