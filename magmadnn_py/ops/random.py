"""Random numbers by a counter: element i of the n-th random op of a run depends on the seed, the run's number and
(n, i) only, so it is the same on every device and for every number of threads.

The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Its key is the
seed; its counter is (block low, block high, stream, step): `stream` numbers the random ops of a trace, `step` the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..graph.node import Constant, Cost, Op, Value, total_bytes
from ..graph.symbolic import Symbol, leaves
from ..graph.trace import Trace, current_trace
from ..graph.types import TensorType, is_floating, standardize_dtype
from ..graph.variable import Variable
from .elementwise import add, clip, floor, log, to_floating
from .function import convert, function
from .movement import _extents, broadcast_to, cast, concatenate, filled

__all__ = [
    "Dropout", "RandomNormal", "RandomUniform", "dropout", "normal", "randint", "random_state", "set_seed",
    "truncated_normal", "uniform",
]  # fmt: skip

#: A random integer costs about so many operations.
_FLOPS = 12


# --------------------------------------------------------------------------- the generator


def philox(xp, counter, key):
    """Ten rounds of Philox4x32 on arrays of four counter and two key words (uint32 in uint64 arrays)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    low = xp.uint64(0xFFFFFFFF)
    half = xp.uint64(32)
    for _ in range(10):
        p0, p1 = c0 * xp.uint64(0xD2511F53), c2 * xp.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & low, (p0 >> half) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + xp.uint64(0x9E3779B9)) & low, (k1 + xp.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


def random_words(xp, state, stream: int, count: int):
    """The first `count` words of a stream, as uint64; word i is word i % 4 of block i / 4."""
    seed, step = (xp.asarray(state).astype("uint64")[i] for i in (0, 1))
    low, half = xp.uint64(0xFFFFFFFF), xp.uint64(32)
    block = xp.arange((count + 3) // 4, dtype="uint64")
    same = xp.zeros_like(block)
    counter = (block & low, block >> half, same + xp.uint64(stream), same + (step & low))
    words = philox(xp, counter, (same + (seed & low), same + (seed >> half)))
    return xp.stack(words, axis=1).reshape(-1)[:count]


# --------------------------------------------------------------------------- ops


class _Draw(Op):
    """What the two distributions share: one input, the state, and a tensor of `shape` and `dtype`."""

    def infer(self, state):
        _check_state(self, state)
        if not is_floating(self.dtype):
            self.fail("dtype", self.dtype, "float32 or float64")
        return (TensorType(self.shape, self.dtype),)

    def gradient(self, node, gradients):
        return (None,)


def _check_state(op: Op, state: TensorType) -> None:
    if state != TensorType((2,), "int64"):
        op.fail("state", state, "int64[2]")


@dataclass(frozen=True)
class RandomUniform(_Draw):
    """Numbers equally distributed from `low` to below `high` (up to rounding)."""

    shape: tuple[int, ...]
    low: float
    high: float
    dtype: str
    stream: int

    name = "random_uniform"

    def cost(self, inputs, outputs):
        return Cost(_FLOPS * outputs[0].size, total_bytes(inputs, outputs))

    def reference(self, xp, state):
        count = math.prod(self.shape)
        if self.dtype == "float32":
            u = (random_words(xp, state, self.stream, count) >> xp.uint64(8)).astype("float32") * xp.float32(2**-24)
        else:
            pairs = random_words(xp, state, self.stream, 2 * count).reshape(count, 2)
            first, second = pairs[:, 0] >> xp.uint64(5), pairs[:, 1] >> xp.uint64(6)
            u = (first * xp.uint64(2**26) + second).astype("float64") * 2.0**-53
        low, span = (xp.asarray(value, self.dtype) for value in (self.low, self.high - self.low))
        return (low + u * span).reshape(self.shape)


@dataclass(frozen=True)
class RandomNormal(_Draw):
    """Normally distributed numbers, by the method of Box and Muller."""

    shape: tuple[int, ...]
    mean: float
    stddev: float
    dtype: str
    stream: int

    name = "random_normal"

    def cost(self, inputs, outputs):
        return Cost(3 * _FLOPS * outputs[0].size, total_bytes(inputs, outputs))

    def reference(self, xp, state):
        count = math.prod(self.shape)
        pairs = random_words(xp, state, self.stream, count + count % 2).reshape(-1, 2).astype("float64")
        radius = xp.sqrt(-2.0 * xp.log((pairs[:, 0] + 1.0) * 2.0**-32))
        angle = 2.0 * math.pi * (pairs[:, 1] * 2.0**-32)
        z = xp.stack([radius * xp.cos(angle), radius * xp.sin(angle)], axis=1).reshape(-1)[:count]
        return (self.mean + z * self.stddev).astype(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Dropout(Op):
    """Each element becomes 0 with probability `rate`, else x / (1 - rate)."""

    rate: float
    stream: int

    name = "dropout"

    def infer(self, x, state):
        _check_state(self, state)
        if not 0 <= self.rate <= 1:
            self.fail("rate", self.rate, "a number from 0 to 1")
        if not is_floating(x.dtype):
            self.fail("x", x.dtype, "a floating-point type")
        return (x,)

    def gradient(self, node, gradients):
        return self(gradients[0], node.inputs[1]), None  # the same elements again

    def cost(self, inputs, outputs):
        return Cost(_FLOPS * outputs[0].size, total_bytes(inputs, outputs))

    def reference(self, xp, x, state):
        words = random_words(xp, state, self.stream, x.size).reshape(x.shape)
        kept = words >= xp.uint64(math.floor(self.rate * 2**32))
        scale = xp.asarray(1 - self.rate if self.rate < 1 else 1, x.dtype)
        return xp.where(kept, x / scale, xp.zeros_like(x))


# --------------------------------------------------------------------------- the state of the process

_state: Variable | None = None


def random_state() -> Variable:
    """The variable int64[2] = (seed, step) that random ops read; step grows by one with each run that reads it.

    Until `set_seed` is called the seed comes from the operating system.
    """
    global _state
    if _state is None:
        seed = np.random.SeedSequence().generate_state(1, "uint64")[0] >> np.uint64(1)
        _state = Variable(np.array([seed, 0], "int64"), trainable=False, name="random_state")
    return _state


def set_seed(seed: int) -> None:
    """Restarts all random numbers from `seed`, an integer from 0 to below 2^63.

    Raises:
        ValueError: the seed is out of range.
    """
    random_state().assign(_seed_array(seed))


def _seed_array(seed: int) -> np.ndarray:
    if not 0 <= int(seed) < 2**63:
        raise ValueError(f"seed: got {seed}, wanted an integer from 0 to below 2^63")
    return np.array([int(seed), 0], "int64")


def _fixed_state(seed: int | None, *arguments) -> np.ndarray | None:
    """The state of a call that runs at once with a seed of its own: such calls give the same numbers each time."""
    traced = current_trace() is not None
    if seed is None or traced or any(isinstance(leaf, Symbol | Value) for leaf in leaves(arguments)):
        return None
    return _seed_array(seed)


def _draw(owner: str, seed: int | None, fixed) -> tuple[Value, int]:
    """The state a random op reads, and its stream. What runs after this run gets other numbers."""
    trace = current_trace()
    if trace is None:
        raise RuntimeError(f"{owner}: random ops on graph values need an active Trace")
    if fixed is not None:
        return convert(fixed), trace.random_stream()
    state = _advancing_state(trace)
    if seed is not None:
        state = concatenate([Constant(_seed_array(seed)[:1])(), state[1:]])
    return state, trace.random_stream()


def _advancing_state(trace: Trace) -> Value:
    """The state at the start of a run; the trace adds one to the step, once."""
    variable = random_state()
    state = trace.initial(variable)
    if trace.read(variable) is state:
        trace.assign(variable, add(state, Constant(np.array([0, 1], "int64"))()))
    return state


# --------------------------------------------------------------------------- public functions


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Numbers equally distributed from `minval` to below `maxval`.

    Args:
        dtype: float32 (default) or float64.
        seed: an integer makes the numbers independent of `set_seed`; a call outside of a traced network then gives
            the same ones each time.
    """
    return _uniform(shape, minval, maxval, dtype, seed, _fixed_state(seed))


@function
def _uniform(shape, minval, maxval, dtype, seed, fixed):
    state, stream = _draw("uniform", seed, fixed)
    dtype = standardize_dtype(dtype or "float32")
    return RandomUniform(_extents(shape, "uniform"), float(minval), float(maxval), dtype, stream)(state)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers; `dtype` and `seed` as for `uniform`."""
    return _normal(shape, mean, stddev, dtype, seed, _fixed_state(seed))


@function
def _normal(shape, mean, stddev, dtype, seed, fixed):
    state, stream = _draw("normal", seed, fixed)
    dtype = standardize_dtype(dtype or "float32")
    return RandomNormal(_extents(shape, "normal"), float(mean), float(stddev), dtype, stream)(state)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers, none further from the mean than two `stddev`; else as `normal`."""
    return _truncated_normal(shape, mean, stddev, dtype, seed, _fixed_state(seed))


@function
def _truncated_normal(shape, mean, stddev, dtype, seed, fixed):
    # The inverse of the distribution function, of numbers uniform over its values within two deviations.
    edge = math.erf(math.sqrt(2.0))
    z = math.sqrt(2.0) * _inverse_erf(_uniform(shape, -edge, edge, dtype, seed, fixed))
    return clip(z, -2.0, 2.0) * float(stddev) + float(mean)


# Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2011), single precision: right to about 3e-7 for
# |x| < 0.99, and no more than 2 deviations are wanted.
_INVERSE_ERF = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip


def _inverse_erf(x: Value) -> Value:
    w = -log((1.0 - x) * (1.0 + x)) - 2.5
    result = _INVERSE_ERF[0] * w + _INVERSE_ERF[1]
    for coefficient in _INVERSE_ERF[2:]:
        result = result * w + coefficient
    return result * x


def randint(shape, minval, maxval, dtype="int32", seed=None):
    """Integers equally distributed from `minval` to below `maxval`; `seed` as for `uniform`.

    Raises:
        ValueError: there are none, or `dtype` is not an integer type.
    """
    return _randint(shape, minval, maxval, dtype, seed, _fixed_state(seed))


@function
def _randint(shape, minval, maxval, dtype, seed, fixed):
    dtype = standardize_dtype(dtype)
    if is_floating(dtype) or dtype == "bool":
        raise ValueError(f"randint: dtype: got {dtype}, wanted an integer type")
    if not int(minval) < int(maxval):
        raise ValueError(f"randint: maxval: got {maxval}, wanted more than minval, {minval}")
    # float64 has 53 bits: exact for every range that is asked for in practice.
    u = _uniform(shape, 0.0, 1.0, "float64", seed, fixed)
    return cast(floor(u * float(int(maxval) - int(minval))), dtype) + int(minval)


def dropout(inputs, rate, noise_shape=None, seed=None):
    """Elements become 0 with probability `rate`; the others are divided by 1 - rate.

    Args:
        noise_shape: the shape of the random choice, broadcast to the inputs'; None in it stands for their extent.
        seed: as for `uniform`.

    Raises:
        ValueError: `rate` is not from 0 to 1.
    """
    return _dropout(inputs, rate, noise_shape, seed, _fixed_state(seed, inputs))


@function
def _dropout(inputs, rate, noise_shape, seed, fixed):
    x, rate = to_floating(convert(inputs)), float(rate)
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout: rate: got {rate}, wanted a number from 0 to 1")
    if rate == 0:
        return x
    state, stream = _draw("dropout", seed, fixed)
    if noise_shape is None:
        return Dropout(rate, stream)(x, state)
    if len(noise_shape) != x.ndim:
        raise ValueError(f"dropout: noise_shape: got {noise_shape}, wanted {x.ndim} extents for {x.type}")
    extents = tuple(own if extent is None else extent for own, extent in zip(x.shape, noise_shape, strict=True))
    return x * broadcast_to(Dropout(rate, stream)(filled(extents, 1, x.dtype), state), x.shape)
