"""Models that are a plain stack of layers."""

from __future__ import annotations

from ..config import floatx
from ..graph.symbolic import Symbol
from ..layers.layer import Layer
from ..utils.naming import auto_name
from .functional import Functional
from .input import InputLayer
from .model import Model


class Sequential(Model):
    """A stack of layers. Without an Input as its first entry it is built from the first data it sees."""

    def __init__(self, layers=None, trainable=True, name=None):
        super().__init__(name=name or auto_name("sequential"), trainable=trainable)
        self._functional: Functional | None = None
        for layer in layers or ():
            self.add(layer)

    def add(self, layer, rebuild: bool = True) -> None:
        """Puts a layer on top of the stack.

        Raises:
            ValueError: it is no layer, its name is taken, or an Input comes after other layers.
        """
        if isinstance(layer, Symbol) and hasattr(layer, "input_layer"):
            layer = layer.input_layer
        if not isinstance(layer, Layer):
            raise ValueError(f"Sequential: add: got {type(layer).__name__}, wanted a layer")
        if any(layer.name == other.name for other in self._layers):
            raise ValueError(f"Sequential: add: the name '{layer.name}' is taken by another layer")
        if isinstance(layer, InputLayer) and self._layers:
            raise ValueError(f"Sequential: add: Input '{layer.name}' comes after other layers, wanted it first")
        self._layers.append(layer)
        self._take_apart()
        if rebuild and isinstance(self._layers[0], InputLayer):
            self._connect(self._layers[0].output)

    def pop(self) -> Layer:
        """Takes the last layer off the stack and returns it."""
        if not self._layers:
            raise ValueError("Sequential: pop: there are no layers")
        layer = self._layers.pop()
        self._take_apart()
        if self._layers and isinstance(self._layers[0], InputLayer):
            self._connect(self._layers[0].output)
        return layer

    def _take_apart(self) -> None:
        self._functional = None
        self.built = False
        self._programs = {}
        self._output_types = []

    def _connect(self, symbol: Symbol) -> None:
        outputs = symbol
        for layer in self._layers:
            if not isinstance(layer, InputLayer):
                outputs = layer(outputs)
        self._functional = Functional(symbol, outputs, name=self.name)
        self.built = True

    def _has_all_weights(self) -> bool:
        return self._functional is not None

    def build(self, input_shape=None) -> None:
        """Makes the weights for inputs of that shape, batch included."""
        if self._functional is not None:
            return
        if not self._layers:
            raise ValueError(f"Sequential '{self.name}': build: there are no layers")
        if input_shape is None:
            raise ValueError(f"Sequential '{self.name}': build: input_shape: got None, wanted the shape of the input")
        self._connect(InputLayer(batch_shape=(None, *tuple(input_shape)[1:]), dtype=floatx()).output)

    def call(self, inputs, training=None):
        return self._functional.call(inputs)

    @property
    def layers(self) -> list[Layer]:
        return [layer for layer in self._layers if not isinstance(layer, InputLayer)]

    @property
    def output_names(self) -> list[str]:
        return self._functional.output_names if self._functional else ["output"]

    def _described(self) -> Functional:
        if self._functional is None:
            raise ValueError(f"Sequential '{self.name}' is not built yet: its input shape is unknown")
        return self._functional

    @property
    def inputs(self):
        return self._described().inputs

    @property
    def outputs(self):
        return self._described().outputs

    @property
    def input(self):
        return self._described().input

    @property
    def output(self):
        return self._described().output

    @property
    def input_shape(self):
        return self._described().input_shape

    @property
    def output_shape(self):
        return self._described().output_shape

    def input_dtypes_for(self, x) -> list[str]:
        return self._functional.input_dtypes_for(x) if self._functional else [floatx()]

    @property
    def calls(self):
        return self._described().calls

    def get_config(self):
        from ..saving import serialize

        config = {"name": self.name, "trainable": self.trainable}
        stack = list(self._layers)
        if self._functional is not None and not isinstance(stack[0], InputLayer):
            stack.insert(0, self._functional.layers[0])
        config["layers"] = [serialize(layer) for layer in stack]
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        from ..saving import deserialize

        model = cls(name=config.get("name"), trainable=config.get("trainable", True))
        for entry in config["layers"]:
            model.add(deserialize(entry, custom_objects))
        if not model.built and config.get("build_input_shape"):
            model.build(tuple(config["build_input_shape"]))
        return model
