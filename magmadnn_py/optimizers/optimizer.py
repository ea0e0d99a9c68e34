"""The base class of optimizers: everything around an update rule."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from .. import ops
from ..graph.node import Value
from ..graph.trace import Trace, current_trace
from ..graph.types import is_floating
from ..graph.variable import Variable
from ..losses.matching import plain
from ..ops.function import convert
from ..utils.naming import to_snake_case
from .arena import Arena
from .schedules import LearningRateSchedule

#: Arguments that every optimizer takes, with their defaults; see `Optimizer`.
COMMON = {
    "weight_decay": None,
    "clipnorm": None,
    "global_clipnorm": None,
    "clipvalue": None,
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "loss_scale_factor": None,
    "gradient_accumulation_steps": None,
}


class Optimizer:
    """Base class. A subclass writes `update(gradient, weight, learning_rate)` for flat values of all weights.

    One step: the gradients are divided by the loss scale, then averaged over `gradient_accumulation_steps`, then
    clipped; the weights decay, are updated, enter their moving average, and are constrained.

    Args:
        learning_rate: a number, a function without arguments, or a `LearningRateSchedule`, which is given the number
            of calls of `apply` (as in Keras, also where several of them make one update).
        weight_decay: the part of each weight, times the learning rate, that is taken away first.
        clipnorm: largest norm of the gradient of each variable.
        global_clipnorm: largest norm of all gradients together.
        clipvalue: largest magnitude of any element of a gradient. At most one of these three.
        use_ema: whether a moving average of the weights is kept, with momentum `ema_momentum`; every
            `ema_overwrite_frequency` updates (None: only in `finalize_variable_values`) it takes their place.
        loss_scale_factor: what `scale_loss` multiplies the loss by, and gradients are divided by.
        gradient_accumulation_steps: number of calls whose mean gradient makes one update.
        name: by default the class's in snake case.

    Raises:
        ValueError: an argument out of range or unknown.
    """

    def __init__(self, learning_rate, *, name: str | None = None, **common):
        unknown = sorted(set(common) - set(COMMON))
        if unknown:
            raise ValueError(f"{type(self).__name__}: unknown arguments {', '.join(unknown)}")
        for argument, default in COMMON.items():
            setattr(self, argument, common.get(argument, default))
        self._check_arguments()
        self.name = name or to_snake_case(type(self).__name__)
        self.built = False
        #: Whether the schedule computes with Python numbers: `update_host_schedule` must be called before each step.
        self.host_schedule = False
        self._schedule: LearningRateSchedule | None = None
        self._calls = self._scalar("iteration", 0, "int64")
        self._rate = self._scalar("learning_rate", 0.0, "float32")
        self._set_learning_rate(learning_rate)
        self._order: list[Variable] = []
        self._arenas: list[Arena] = []
        self._slot_views: list[Variable] = []
        self._extra: list[Variable] = []
        self._undecayed: list[Variable] = []
        self._undecayed_names: list[str] = []
        self._arena: Arena | None = None
        self._due: Value | None = None

    def _check_arguments(self) -> None:
        clips = [name for name in ("clipnorm", "clipvalue", "global_clipnorm") if getattr(self, name) is not None]
        if len(clips) > 1:
            raise ValueError(f"{type(self).__name__}: got {' and '.join(clips)}, wanted at most one of them")
        for name in (*clips, "loss_scale_factor"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{type(self).__name__}: {name}: got {value}, wanted a number above 0")
        if self.use_ema and not 0 <= self.ema_momentum <= 1:
            raise ValueError(
                f"{type(self).__name__}: ema_momentum: got {self.ema_momentum}, wanted a number from 0 to 1"
            )
        steps = self.gradient_accumulation_steps
        if steps is not None and steps < 2:
            raise ValueError(
                f"{type(self).__name__}: gradient_accumulation_steps: got {steps}, wanted 2 or more, or None"
            )
        frequency = self.ema_overwrite_frequency
        if self.use_ema and frequency is not None and (not isinstance(frequency, int) or frequency < 1):
            raise ValueError(
                f"{type(self).__name__}: ema_overwrite_frequency: got {frequency}, wanted an integer above 0"
            )

    # What a rule writes and uses

    #: Names of the flat state variables. Each group is one for files: its slots follow one another per variable.
    slot_groups: tuple[tuple[str, ...], ...] = ()

    def slot_start(self, name: str) -> float:
        """The first value of a slot's elements."""
        return 0.0

    def begin_step(self) -> None:
        """Called once in each step, before the updates."""

    def update(self, gradient: Value, weight: Value, learning_rate: Value) -> Value:
        """The new weights. All are flat values of one element type; the learning rate is of rank 0."""
        raise NotImplementedError(f"{type(self).__name__}.update")

    def slot(self, name: str) -> Value:
        """The slot's value for the weights that are being updated."""
        return convert(self._arena.slots[name])

    def assign_slot(self, name: str, value: Value) -> Value:
        """Gives the slot its new value, and returns that."""
        self._assign(self._arena.slots[name], value)
        return value

    @property
    def step(self) -> Value:
        """The number of this update, 1 at first: float64 of rank 0, in which its powers are exact enough."""
        return ops.cast(convert(self.iterations) + 1, "float64")

    def number(self, value: Value) -> Value:
        """A scalar in the element type of the weights that are being updated."""
        return ops.cast(value, self._arena.dtype)

    def add_state(self, name: str, initial: float) -> Variable:
        """A scalar that is part of the state, as float64; for `build`."""
        variable = self._scalar(name, initial, "float64")
        self._extra.append(variable)
        return variable

    def _scalar(self, name: str, value, dtype: str) -> Variable:
        variable = Variable(np.asarray(value, dtype), dtype, trainable=False, name=name)
        variable.path = f"{self.name}/{name}"
        return variable

    def _assign(self, variable: Variable, value: Value) -> None:
        """Assigns, unless this call only accumulates."""
        if self._due is not None:
            value = ops.where(self._due, value, convert(variable))
        variable.assign(value)

    # Learning rate and counters

    @property
    def iterations(self):
        """The number of updates made: a variable, or with accumulation computed from that of the calls."""
        if self.gradient_accumulation_steps is None:
            return self._calls
        return ops.floor_divide(self._calls, self.gradient_accumulation_steps)

    @property
    def learning_rate(self):
        """The variable to read and assign; with a schedule its value now."""
        if self._schedule is None or self.host_schedule:
            return self._rate
        return ops.cast(self._schedule(self._calls), "float32")

    @learning_rate.setter
    def learning_rate(self, value) -> None:
        if self._schedule is not None and not isinstance(value, LearningRateSchedule):
            raise TypeError(
                f"{self.name}: the learning rate is a {type(self._schedule).__name__} and cannot be assigned; "
                "make the optimizer with a number to change it while training"
            )
        self._set_learning_rate(value)

    def _set_learning_rate(self, value) -> None:
        if isinstance(value, LearningRateSchedule):
            self._schedule = value
            self.host_schedule = not _traces(value)
            if self.host_schedule:
                self.update_host_schedule()
            return
        self._rate.assign(np.asarray(value() if callable(value) else value, "float32"))

    def update_host_schedule(self) -> None:
        """With a schedule of Python numbers, computes the learning rate of the next step; else does nothing."""
        if self.host_schedule:
            self._rate.assign(np.asarray(self._schedule(int(self._calls.numpy())), "float32"))

    def scale_loss(self, loss):
        """The loss to differentiate: times `loss_scale_factor`, if there is one."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    # Variables

    def build(self, variables: Sequence[Variable]) -> None:
        """Lays the variables out and makes the state; nothing where that is done already for the same ones.

        Raises:
            ValueError: it was built for other variables.
        """
        variables = list(variables)
        if self.built:
            if {id(v) for v in variables} != {id(v) for v in self.trainable_variables}:
                raise ValueError(f"{self.name}: build: it was built for other variables; make a new optimizer")
            for arena in self._arenas:
                arena.ensure()
            return
        for variable in variables:
            if not is_floating(variable.dtype):
                raise ValueError(f"{self.name}: variable '{variable.path}': got {variable.dtype}, wanted a float type")
        self._order = variables
        dtypes = dict.fromkeys(variable.dtype for variable in variables)
        self._arenas = [Arena([v for v in variables if v.dtype == dtype]) for dtype in dtypes]
        groups = [("average",)] if self.use_ema else []
        groups += [("gradient_accumulator",)] if self.gradient_accumulation_steps else []
        for group in (*groups, *self.slot_groups):
            self._slot_views += self._make_slots(group)
        self.built = True

    def _make_slots(self, group: tuple[str, ...]) -> list[Variable]:
        views = {}
        for arena in self._arenas:
            for name in group:
                slot = arena.add_slot(name, self.slot_start(name), self.name)
                views.update({(id(v), name): view for v, view in zip(arena.variables, slot, strict=True)})
        return [views[id(variable), name] for variable in self._order for name in group]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables it was built for."""
        return list(self._order)

    @property
    def variables(self) -> list[Variable]:
        """The state in Keras's order: iterations, learning rate (unless a schedule), slots, other scalars.

        Slots are one variable per weight, each a part of a flat one.
        """
        rate = [self._rate] if self._schedule is None else []
        return [self._calls, *rate, *self._slot_views, *self._extra]

    def slot_variables(self) -> dict[str, Variable]:
        """Path -> variable for the slots of each weight."""
        return {view.path: view for view in self._slot_views}

    def get_state(self) -> list[np.ndarray]:
        """Copies of the contents of `variables`."""
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state: Sequence[np.ndarray]) -> None:
        """Gives `variables` these contents. Raises ValueError where number or shapes differ."""
        if len(state) != len(self.variables):
            raise ValueError(f"{self.name}: set_state: got {len(state)} arrays, wanted {len(self.variables)}")
        for variable, array in zip(self.variables, state, strict=True):
            variable.assign(np.asarray(array, variable.dtype))

    def save_own_variables(self, store) -> None:
        """Writes the state to a mapping, under "0", "1", ... as in Keras's files."""
        for index, variable in enumerate(self.variables):
            store[str(index)] = variable.numpy()

    def load_own_variables(self, store) -> None:
        """Reads what `save_own_variables` wrote; a store of another length is skipped with a warning."""
        keys = [key for key in store if str(key).isdigit()]
        if len(keys) != len(self.variables):
            warnings.warn(
                f"{self.name}: the saved optimizer has {len(keys)} variables, this one {len(self.variables)}: "
                "its state is not loaded",
                stacklevel=2,
            )
            return
        self.set_state([np.asarray(store[str(index)]) for index in range(len(keys))])

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """These variables do not decay: given themselves, or by regular expressions found in their paths.

        Raises:
            ValueError: the optimizer is built already.
        """
        if self.built:
            raise ValueError(f"{self.name}: exclude_from_weight_decay must be called before the first step")
        self._undecayed += var_list or ()
        self._undecayed_names += var_names or ()

    def finalize_variable_values(self, variables=None) -> None:
        """With a moving average of the weights, gives them its values: the end of training."""
        if self.use_ema and self._calls.numpy() > 0:
            for arena in self._arenas:
                arena.ensure()
                arena.flat.assign(arena.slots["average"].numpy())

    # A step

    def apply_gradients(self, grads_and_vars) -> None:
        """`apply` for pairs of gradient and variable."""
        gradients, variables = zip(*grads_and_vars, strict=True)
        self.apply(gradients, variables)

    def apply(self, gradients: Sequence, trainable_variables: Sequence[Variable] | None = None) -> None:
        """One step, in the network that is traced, or at once for arrays.

        Args:
            gradients: one per variable, None for a variable that the loss does not depend on.
            trainable_variables: those of the gradients, in order; by default those it was built for.

        Raises:
            ValueError: no gradient at all, an unknown variable, or a gradient of the wrong shape.
        """
        gradients = [plain(gradient) for gradient in gradients]
        if not self.built:
            if trainable_variables is None:
                raise ValueError(f"{self.name}: apply: it is not built yet; give trainable_variables")
            self.build(trainable_variables)
        ordered = self._in_order(gradients, trainable_variables)
        if current_trace() is not None:
            self._apply(ordered)
            return
        from ..runtime.eager import run_now

        self.update_host_schedule()
        run_now(self._apply, (ordered,), {}, cache=False)

    def _in_order(self, gradients: list, variables: Sequence[Variable] | None) -> list:
        """Gradients in the order of the variables it was built for; None where there is none."""
        variables = self._order if variables is None else list(variables)
        if len(gradients) != len(variables):
            raise ValueError(f"{self.name}: apply: got {len(gradients)} gradients, wanted {len(variables)}")
        if all(gradient is None for gradient in gradients):
            raise ValueError(f"{self.name}: apply: no variable has a gradient")
        by_variable = {id(v): g for v, g in zip(variables, gradients, strict=True)}
        unknown = [v.path for v in variables if id(v) not in {id(own) for own in self._order}]
        if unknown:
            raise ValueError(f"{self.name}: apply: it was not built for variables {', '.join(unknown)}")
        for variable, gradient in zip(variables, gradients, strict=True):
            if gradient is not None and tuple(gradient.shape) != variable.shape:
                raise ValueError(
                    f"{self.name}: gradient of '{variable.path}': got shape {tuple(gradient.shape)}, "
                    f"wanted {variable.shape}"
                )
        return [by_variable.get(id(variable)) for variable in self._order]

    def _apply(self, gradients: list) -> None:
        """The step in a trace."""
        given = {id(v) for v, g in zip(self._order, gradients, strict=True) if g is not None}
        by_variable = {id(v): g for v, g in zip(self._order, gradients, strict=True)}
        for arena in self._arenas:
            arena.ensure()
        every = self.gradient_accumulation_steps
        self._due = None if every is None else ops.equal((convert(self._calls) + 1) % every, 0)
        flat = [self._flat_gradient(arena, by_variable) for arena in self._arenas]
        if self.global_clipnorm is not None:
            flat = _clip_together(flat, self.global_clipnorm)
        self.begin_step()
        rate = convert(self.learning_rate)
        for arena, gradient in zip(self._arenas, flat, strict=True):
            self._arena = arena
            self._update_arena(arena, gradient, self.number(rate), given)
        self._arena = self._due = None
        self._calls.assign(convert(self._calls) + 1)

    def _flat_gradient(self, arena: Arena, by_variable: dict[int, Value | None]) -> Value:
        """The gradient of all the arena's variables: unscaled, accumulated, and clipped by norm or value."""
        pieces = []
        for variable in arena.variables:
            gradient = by_variable[id(variable)]
            gradient = ops.zeros(variable.shape) if gradient is None else convert(gradient)
            pieces.append(ops.reshape(ops.cast(gradient, arena.dtype), (-1,)))
        joined = None
        if self.loss_scale_factor is not None or self._due is not None:
            joined = arena.join(pieces)
            if self.loss_scale_factor is not None:
                joined = joined / self.loss_scale_factor
            if self._due is not None:
                joined = self._accumulate(arena, joined)
        if self.clipnorm is not None:
            pieces = pieces if joined is None else arena.split(joined)
            joined = arena.join([_clip_together([piece], self.clipnorm)[0] for piece in pieces])
        joined = arena.join(pieces) if joined is None else joined
        return joined if self.clipvalue is None else ops.clip(joined, -self.clipvalue, self.clipvalue)

    def _accumulate(self, arena: Arena, gradient: Value) -> Value:
        """The mean of the gradients since the last update; the sum is kept for the next call, unless this is one."""
        total = arena.slots["gradient_accumulator"]
        summed = convert(total) + gradient
        total.assign(ops.where(self._due, 0.0, summed))
        return summed / float(self.gradient_accumulation_steps)

    def _update_arena(self, arena: Arena, gradient: Value, rate: Value, given: set[int]) -> None:
        weight = convert(arena.flat)
        if self.weight_decay is not None:
            weight = self._decayed(arena, weight, rate, given)
        weight = self.update(gradient, weight, rate)
        if self.use_ema:
            weight = self._averaged(arena, weight)
        if any(variable.constraint is not None for variable in arena.variables):
            weight = _constrained(arena, weight)
        self._assign(arena.flat, weight)

    def _decayed(self, arena: Arena, weight: Value, rate: Value, given: set[int]) -> Value:
        decay = rate * self.weight_decay
        keeps = [id(v) in given and self._decays(v) for v in arena.variables]
        if all(keeps):
            return weight - weight * decay
        parts = [np.full(v.type.size, keep, arena.dtype) for v, keep in zip(arena.variables, keeps, strict=True)]
        return weight - weight * (convert(np.concatenate(parts)) * decay)

    def _decays(self, variable: Variable) -> bool:
        if any(variable is other for other in self._undecayed):
            return False
        return not any(
            re.search(pattern, name) for pattern in self._undecayed_names for name in (variable.path, variable.name)
        )

    def _averaged(self, arena: Arena, weight: Value) -> Value:
        average = self.slot("average") * self.ema_momentum + weight * (1.0 - self.ema_momentum)
        first = ops.equal(convert(self.iterations), 0)
        average = self.assign_slot("average", ops.where(first, weight, average))
        if self.ema_overwrite_frequency is None:
            return weight
        turn = ops.equal((convert(self.iterations) + 1) % self.ema_overwrite_frequency, 0)
        return ops.where(turn, average, weight)

    # Configs

    def get_config(self) -> dict:
        from ..saving import serialize

        rate = float(self._rate.numpy()) if self._schedule is None else serialize(self._schedule)
        return {"name": self.name, "learning_rate": rate, **{name: getattr(self, name) for name in COMMON}}

    @classmethod
    def from_config(cls, config: dict, custom_objects=None) -> Optimizer:
        from ..saving import deserialize

        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = deserialize(config["learning_rate"], custom_objects)
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"


def _traces(schedule: LearningRateSchedule) -> bool:
    """Whether the schedule can be part of a graph: it makes a value of a value."""
    with Trace() as trace:
        try:
            return isinstance(schedule(trace.input((), "int64", "step")), Value)
        except (TypeError, AttributeError):  # float(step), if step < 10, step.numpy(), ...
            return False


def _clip_together(gradients: list[Value], largest: float) -> list[Value]:
    """Gradients scaled down so that their common norm is at most `largest`."""
    squares = [ops.sum(ops.square(gradient)) for gradient in gradients]
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    scale = largest / ops.maximum(ops.sqrt(total), largest)
    return [gradient * ops.cast(scale, gradient.dtype) for gradient in gradients]


def _constrained(arena: Arena, weight: Value) -> Value:
    pieces = []
    for variable, piece in zip(arena.variables, arena.split(weight), strict=True):
        if variable.constraint is not None:
            piece = variable.constraint(ops.reshape(piece, variable.shape))
        pieces.append(piece)
    return arena.join(pieces)
