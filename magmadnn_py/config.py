"""Settings that hold for the whole process: the default element type, the fuzz factor, the data format."""

from __future__ import annotations

from .graph.types import is_floating, standardize_dtype

DATA_FORMATS = ("channels_last", "channels_first")

_settings = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


def floatx() -> str:
    """The element type of layers that are given none: "float32" unless changed."""
    return _settings["floatx"]


def set_floatx(value: str) -> None:
    """Raises ValueError unless `value` is a floating-point type of this library."""
    dtype = standardize_dtype(value)
    if not is_floating(dtype):
        raise ValueError(f"set_floatx: value: got {value!r}, wanted 'float32' or 'float64'")
    _settings["floatx"] = dtype


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite: 1e-7 unless changed."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    _settings["epsilon"] = float(value)


def image_data_format() -> str:
    """Where layers that are given no data format expect the channels: "channels_last" unless changed."""
    return _settings["image_data_format"]


def set_image_data_format(data_format: str) -> None:
    """Raises ValueError unless it is "channels_last" or "channels_first"."""
    _settings["image_data_format"] = standardize_data_format(data_format)


def standardize_data_format(data_format: str | None, owner: str = "set_image_data_format") -> str:
    """The default for None, else the lower-case name; ValueError naming `owner` if there is no such format."""
    name = image_data_format() if data_format is None else str(data_format).lower()
    if name not in DATA_FORMATS:
        raise ValueError(f"{owner}: data_format: got {data_format!r}, wanted one of {', '.join(DATA_FORMATS)}")
    return name


class DTypePolicy:
    """The element types a layer computes in and keeps its weights in. Here they are one and the same.

    Args:
        name: "float32", "float64" or another element type of this library.
    """

    def __init__(self, name: str):
        self.name = standardize_dtype(name)

    @property
    def compute_dtype(self) -> str:
        return self.name

    @property
    def variable_dtype(self) -> str:
        return self.name

    def get_config(self) -> dict:
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict) -> DTypePolicy:
        return cls(**config)

    def __eq__(self, other):
        return isinstance(other, DTypePolicy) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<DTypePolicy '{self.name}'>"


def dtype_policy(value=None) -> DTypePolicy:
    """A policy from one, a name or None (that of `floatx()`)."""
    return value if isinstance(value, DTypePolicy) else DTypePolicy(value or floatx())
