"""Initial values of weights, as NumPy arrays.

All random numbers come from NumPy's Philox. An initializer with a seed gives the same values at every call; one
without takes the next seed of a sequence of the whole process at each call, so that no two layers begin alike and
`set_seed` makes a whole run repeatable.
"""

from __future__ import annotations

import math

import numpy as np

from .graph.types import is_floating, standardize_dtype
from .saving import registry

#: Standard deviation of a normal distribution of deviation 1 that is cut off at 2.
_TRUNCATED_DEVIATION = 0.87962566103423978


class _SeedSequence:
    """Seeds that are drawn one after the other from a root."""

    def __init__(self, root: int | None):
        self.root = np.random.SeedSequence(root).entropy
        self.drawn = 0

    def next(self) -> int:
        self.drawn += 1
        words = np.random.SeedSequence(self.root, spawn_key=(self.drawn,)).generate_state(2)
        return int(words[0]) | (int(words[1]) & 0x7FFFFFFF) << 32  # fits a signed 64-bit integer


_seeds = _SeedSequence(None)


def set_seed(seed: int | None) -> None:
    """Begins the sequence of seeds anew; None begins an unpredictable one."""
    global _seeds
    _seeds = _SeedSequence(seed)


def next_seed() -> int:
    """The next seed of the process: a number below 2**63."""
    return _seeds.next()


class Initializer:
    """Base class: `initializer(shape, dtype=None)` returns an array (float32 unless `dtype` says otherwise)."""

    def __call__(self, shape, dtype=None) -> np.ndarray:
        raise NotImplementedError(type(self).__name__)

    def get_config(self) -> dict:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict) -> Initializer:
        return cls(**config)

    def clone(self) -> Initializer:
        return self.from_config(self.get_config())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_config().items())})"


class Constant(Initializer):
    """`value` everywhere: a number, or an array that broadcasts to the shape."""

    def __init__(self, value=0.0):
        self.value = value

    def __call__(self, shape, dtype=None):
        return np.broadcast_to(np.asarray(self.value), shape).astype(_dtype(dtype))


class Zeros(Initializer):
    """0 everywhere."""

    def __call__(self, shape, dtype=None):
        return np.zeros(shape, _dtype(dtype))


class Ones(Initializer):
    """1 everywhere."""

    def __call__(self, shape, dtype=None):
        return np.ones(shape, _dtype(dtype))


class Identity(Initializer):
    """`gain` times the identity matrix; ValueError unless the shape is of rank 2."""

    def __init__(self, gain=1.0):
        self.gain = gain

    def __call__(self, shape, dtype=None):
        if len(shape) != 2:
            raise ValueError(f"Identity: shape: got {tuple(shape)}, wanted rank 2")
        return (self.gain * np.eye(*shape)).astype(_dtype(dtype))


class RandomInitializer(Initializer):
    """Base of those that draw random numbers: `draw(generator, shape, dtype)` gives the values."""

    def __init__(self, seed: int | None = None):
        if seed is not None and not isinstance(seed, int | np.integer):
            raise ValueError(f"{type(self).__name__}: seed: got {seed!r}, wanted an integer or None")
        self.seed = seed

    def __call__(self, shape, dtype=None):
        dtype = _dtype(dtype)
        if not is_floating(dtype):
            raise ValueError(f"{type(self).__name__}: dtype: got {dtype}, wanted a floating-point type")
        seed = next_seed() if self.seed is None else int(self.seed)
        generator = np.random.Generator(np.random.Philox(seed))
        return np.asarray(self.draw(generator, tuple(shape), np.dtype(dtype)), dtype)

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        raise NotImplementedError(type(self).__name__)


class RandomUniform(RandomInitializer):
    """Uniform in [minval, maxval)."""

    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        super().__init__(seed)
        self.minval = minval
        self.maxval = maxval

    def draw(self, generator, shape, dtype):
        return _uniform(generator, shape, dtype, self.minval, self.maxval)


class RandomNormal(RandomInitializer):
    """Normal with the given mean and standard deviation."""

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def draw(self, generator, shape, dtype):
        return generator.standard_normal(shape, dtype) * dtype.type(self.stddev) + dtype.type(self.mean)


class TruncatedNormal(RandomInitializer):
    """Normal, with what is more than two standard deviations from the mean drawn again."""

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def draw(self, generator, shape, dtype):
        return _truncated_normal(generator, shape, dtype) * dtype.type(self.stddev) + dtype.type(self.mean)


class VarianceScaling(RandomInitializer):
    """Variance scale / n, where n is the number of inputs, of outputs, or their mean.

    Args:
        scale: positive.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform".
        input_axes, output_axes: axes whose extents make up the fans; by default see `compute_fans`.
    """

    MODES = ("fan_in", "fan_out", "fan_avg")
    DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")

    def __init__(
        self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None, input_axes=None, output_axes=None
    ):
        super().__init__(seed)
        distribution = {"normal": "truncated_normal"}.get(str(distribution).lower(), str(distribution).lower())
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale: got {scale}, wanted a positive number")
        if mode not in self.MODES:
            raise ValueError(f"VarianceScaling: mode: got {mode!r}, wanted one of {', '.join(self.MODES)}")
        if distribution not in self.DISTRIBUTIONS:
            raise ValueError(
                f"VarianceScaling: distribution: got {distribution!r}, wanted one of {', '.join(self.DISTRIBUTIONS)}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes

    def draw(self, generator, shape, dtype):
        fan_in, fan_out = compute_fans(shape, self.input_axes, self.output_axes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        match self.distribution:
            case "uniform":
                limit = math.sqrt(3 * variance)
                return _uniform(generator, shape, dtype, -limit, limit)
            case "untruncated_normal":
                return generator.standard_normal(shape, dtype) * dtype.type(math.sqrt(variance))
        deviation = math.sqrt(variance) / _TRUNCATED_DEVIATION
        return _truncated_normal(generator, shape, dtype) * dtype.type(deviation)


def _scaled(name: str, scale: float, mode: str, distribution: str, doc: str) -> type[VarianceScaling]:
    """A VarianceScaling whose only arguments are the seed and the axes."""

    def __init__(self, seed=None, input_axes=None, output_axes=None):  # noqa: N807
        VarianceScaling.__init__(self, scale, mode, distribution, seed, input_axes, output_axes)

    def get_config(self):
        return {"seed": self.seed, "input_axes": self.input_axes, "output_axes": self.output_axes}

    members = {"__init__": __init__, "get_config": get_config, "__doc__": doc, "__module__": __name__}
    return type(name, (VarianceScaling,), members)


GlorotUniform = _scaled(
    "GlorotUniform", 1.0, "fan_avg", "uniform",
    "Uniform within +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010).",
)  # fmt: skip
GlorotNormal = _scaled(
    "GlorotNormal", 1.0, "fan_avg", "truncated_normal",
    "Truncated normal of variance 2 / (inputs + outputs) (Glorot and Bengio, 2010).",
)  # fmt: skip
HeUniform = _scaled(
    "HeUniform", 2.0, "fan_in", "uniform", "Uniform within +-sqrt(6 / inputs) (He et al., 2015)."
)  # fmt: skip
HeNormal = _scaled(
    "HeNormal", 2.0, "fan_in", "truncated_normal", "Truncated normal of variance 2 / inputs (He et al., 2015)."
)  # fmt: skip
LecunUniform = _scaled(
    "LecunUniform", 1.0, "fan_in", "uniform", "Uniform within +-sqrt(3 / inputs) (LeCun et al., 1998)."
)  # fmt: skip
LecunNormal = _scaled(
    "LecunNormal", 1.0, "fan_in", "truncated_normal", "Truncated normal of variance 1 / inputs (LeCun et al., 1998)."
)  # fmt: skip


class Orthogonal(RandomInitializer):
    """`gain` times a matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2014).

    All axes but the last count as rows. ValueError for a shape of rank less than 2.
    """

    def __init__(self, gain=1.0, seed=None):
        super().__init__(seed)
        self.gain = gain

    def draw(self, generator, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: shape: got {shape}, wanted rank 2 or more")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        q, r = np.linalg.qr(generator.standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diag(r))  # without it, q would not be uniform over the orthogonal matrices
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


def compute_fans(shape, input_axes=None, output_axes=None) -> tuple[int, int]:
    """Numbers of inputs and outputs that a weight of this shape joins.

    The last two axes are inputs and outputs; those before are a window that multiplies both.
    """
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    window = math.prod(shape[:-2])
    return window * shape[-2], window * shape[-1]


def _dtype(dtype) -> str:
    from .config import floatx

    return standardize_dtype(dtype or floatx())


def _uniform(generator, shape, dtype, low, high):
    return generator.random(shape, dtype) * dtype.type(high - low) + dtype.type(low)


def _truncated_normal(generator, shape, dtype):
    values = np.asarray(generator.standard_normal(shape, dtype))
    outside = np.abs(values) > 2
    while outside.any():
        values[outside] = generator.standard_normal(int(outside.sum()), dtype)
        outside = np.abs(values) > 2
    return values


# Keras's other names.
zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
he_uniform, he_normal, lecun_uniform, lecun_normal = HeUniform, HeNormal, LecunUniform, LecunNormal
OrthogonalInitializer, IdentityInitializer = Orthogonal, Identity

_CLASSES = (
    Constant, Zeros, Ones, Identity, RandomUniform, RandomNormal, TruncatedNormal, VarianceScaling, GlorotUniform,
    GlorotNormal, HeUniform, HeNormal, LecunUniform, LecunNormal, Orthogonal,
)  # fmt: skip
_NAMES = {registry.to_snake_case(cls.__name__): cls for cls in _CLASSES} | {
    "uniform": RandomUniform,
    "normal": RandomNormal,
    "zero": Zeros,
    "one": Ones,
}


def get(identifier):
    """An initializer from a name ("he_normal", "HeNormal"), a config, a class, a function or an array.

    Raises:
        ValueError: there is no initializer of that name.
    """
    if isinstance(identifier, np.ndarray):
        return Constant(identifier)
    return registry.lookup("initializer", identifier, _NAMES)


def serialize(initializer) -> dict:
    return registry.serialize(initializer)


def deserialize(config, custom_objects=None):
    return registry.deserialize(config, custom_objects, module="keras.initializers")
