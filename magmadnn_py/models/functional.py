"""Models described by symbols: a graph of layer calls."""

from __future__ import annotations

from collections import Counter

from ..config import floatx
from ..graph.symbolic import Symbol, calls_between, leaves, map_structure, replay
from ..graph.types import standardize_dtype
from ..layers.layer import Layer
from ..ops import cast, convert
from .input import InputLayer
from .model import Model


class Functional(Model):
    """`Model(inputs, outputs)`: any nesting of symbols on both sides; layers may be shared."""

    def __init__(self, inputs, outputs, name=None, trainable=True, **kwargs):
        super().__init__(name=name, trainable=trainable, **kwargs)
        self._connect(inputs, outputs)

    def _connect(self, inputs, outputs) -> None:
        for argument, structure in (("inputs", inputs), ("outputs", outputs)):
            for leaf in leaves(structure):
                if not isinstance(leaf, Symbol):
                    raise ValueError(
                        f"Model: {argument}: got {type(leaf).__name__}, wanted symbols from Input or layers"
                    )
        self.inputs_structure = inputs
        self.outputs_structure = outputs
        self.inputs = leaves(inputs)
        self.outputs = leaves(outputs)
        self.calls = calls_between(self.inputs, self.outputs)
        self._layers = self._ordered_layers()
        self._output_names = _unique([self._producer(symbol) for symbol in self.outputs])
        self.built = True

    def _ordered_layers(self) -> list[Layer]:
        found = [input_layer(symbol) for symbol in self.inputs]
        for call in self.calls:
            if isinstance(call.function, Layer) and call.function not in found:
                found.append(call.function)
        for name, count in Counter(layer.name for layer in found).items():
            if count > 1:
                raise ValueError(f"model '{self.name}': {count} layers have the name '{name}', wanted different names")
        return found

    @property
    def layers(self) -> list[Layer]:
        return list(self._layers)

    def _has_all_weights(self) -> bool:
        return True

    def _producer(self, symbol: Symbol) -> str:
        if symbol.call is not None and isinstance(symbol.call.function, Layer):
            return symbol.call.function.name
        return symbol.name

    @property
    def input(self):
        return self.inputs_structure

    @property
    def output(self):
        return self.outputs_structure

    @property
    def input_shape(self):
        return map_structure(lambda symbol: symbol.shape, self.inputs_structure)

    @property
    def output_shape(self):
        return map_structure(lambda symbol: symbol.shape, self.outputs_structure)

    @property
    def input_names(self) -> list[str]:
        """What the inputs are called in a dict of them."""
        return list(self.inputs_structure) if isinstance(self.inputs_structure, dict) else [s.name for s in self.inputs]

    def input_dtypes_for(self, x) -> list[str]:
        if not isinstance(x, dict):
            return [symbol.dtype for symbol in self.inputs]
        dtypes = {name: symbol.dtype for name, symbol in zip(self.input_names, self.inputs, strict=False)}
        return [dtypes.get(name, floatx()) for name in x]

    def call(self, inputs, training=None):
        given = self._match(inputs)
        values = {}
        for symbol, value in zip(self.inputs, given, strict=True):
            value = cast(convert(value), symbol.dtype)
            _check_shape(self.name, symbol, value.shape)
            values[symbol] = value
        replay(self.calls, values)
        return map_structure(lambda symbol: values[symbol], self.outputs_structure)

    def _match(self, inputs) -> list:
        """The given inputs in the order of the symbols; dicts go by name."""
        if isinstance(inputs, dict):
            missing = [name for name in self.input_names if name not in inputs]
            if missing:
                raise ValueError(f"model '{self.name}': inputs: got {sorted(inputs)}, wanted also {missing}")
            return [inputs[name] for name in self.input_names]
        given = leaves(inputs)
        if len(given) != len(self.inputs):
            raise ValueError(f"model '{self.name}': inputs: got {len(given)} tensors, wanted {len(self.inputs)}")
        return given

    def get_config(self):
        from ..saving.functional_config import functional_config

        if type(self) is not Functional:
            return super().get_config()
        return functional_config(self)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        from ..saving.functional_config import functional_from_config

        return functional_from_config(cls, config, custom_objects)


def input_layer(symbol: Symbol) -> InputLayer:
    """The InputLayer of a symbol; one is made for a symbol in the middle of another network."""
    layer = getattr(symbol, "input_layer", None)
    if layer is None:
        layer = InputLayer(batch_shape=symbol.shape, dtype=standardize_dtype(symbol.dtype), name=f"{symbol.name}_input")
        symbol.input_layer = layer
    return layer


def _check_shape(model: str, symbol: Symbol, shape: tuple[int, ...]) -> None:
    fits = len(shape) == len(symbol.shape) and all(
        wanted is None or wanted == got for wanted, got in zip(symbol.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("batch" if e is None else str(e) for e in symbol.shape) + ")"
        raise ValueError(f"model '{model}': input '{symbol.name}': got shape {tuple(shape)}, wanted {wanted}")


def _unique(names: list[str]) -> list[str]:
    result: list[str] = []
    for name in names:
        count = sum(other == name or other.startswith(f"{name}_") for other in result)
        result.append(name if name not in result else f"{name}_{count}")
    return result
