"""The entrance of a network."""

from __future__ import annotations

from ..config import floatx
from ..graph.symbolic import Symbol
from ..graph.types import standardize_dtype
from ..layers.layer import Layer


class InputLayer(Layer):
    """Stands for one input of a network; `output` is its symbol."""

    def __init__(self, shape=None, batch_size=None, dtype=None, batch_shape=None, name=None, **kwargs):
        optional = {key: kwargs.pop(key) for key in ("sparse", "ragged", "optional", "input_tensor") if key in kwargs}
        if any(optional.values()):
            raise ValueError(f"Input: {', '.join(k for k, v in optional.items() if v)}: not supported")
        super().__init__(name=name, **kwargs)
        if batch_shape is not None:
            if shape is not None:
                raise ValueError("Input: shape, batch_shape: got both, wanted one of them")
            batch_size, *shape = batch_shape
        if shape is None:
            raise ValueError("Input: shape: got None, wanted the extents of one sample")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        for extent in shape:
            if extent is not None and (not isinstance(extent, int) or extent < 0):
                raise ValueError(f"Input: shape: got {shape}, wanted non-negative integers or None")
        self.batch_shape = (batch_size, *shape)
        self.input_dtype = standardize_dtype(dtype or floatx())
        self.output = Symbol(self.batch_shape, self.input_dtype, self.name)
        self.output.input_layer = self
        self.built = True

    def call(self, x):
        return x

    def get_config(self):
        return {
            "batch_shape": list(self.batch_shape),
            "dtype": self.input_dtype,
            "sparse": False,
            "ragged": False,
            "name": self.name,
        }


def Input(shape=None, batch_size=None, dtype=None, batch_shape=None, name=None, **kwargs) -> Symbol:  # noqa: N802
    """A symbol for one input of a network.

    Args:
        shape: extents of one sample, without the batch; None for an unknown one.
        batch_size: fixes the batch extent; by default it is open.
        dtype: element type, by default `config.floatx()`.
        batch_shape: `(batch_size, *shape)` in one.
    """
    return InputLayer(shape, batch_size, dtype, batch_shape, name, **kwargs).output
