"""Model: a layer with a training loop."""

from __future__ import annotations

from ..graph.symbolic import Symbol, probe
from ..layers.layer import Layer, _map_shapes, _shape_of
from .explain import explain
from .summary import summary
from .training import Trainer


class Model(Trainer, Layer):
    """A network to train.

    Either `Model(inputs, outputs)`, with symbols from `Input` and from calling layers on them; or a subclass with
    `call(self, x, training=False)` whose layers are attributes.
    """

    def __new__(cls, *args, **kwargs):
        from .functional import Functional

        functional = args or "inputs" in kwargs or "outputs" in kwargs
        if cls is Model and functional:
            return super().__new__(Functional)
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        from .functional import Functional

        if (args or "inputs" in kwargs) and not isinstance(self, Functional):
            # A subclass that gives inputs and outputs here: from now on it is one of Functional.
            _replace_base(type(self), Functional)
            Functional.__init__(self, *args, **kwargs)
            return
        super().__init__(*args, **kwargs)
        self._init_training()

    def build(self, *input_shapes) -> None:
        """Makes the weights of all layers, for inputs of these shapes, batch first, by tracing `call` once."""
        symbols = [_map_shapes(lambda shape: Symbol(shape, self.compute_dtype), shape) for shape in input_shapes]
        probe(self.call, tuple(symbols), {})

    def _build_for(self, args, kwargs) -> None:
        if type(self).build is not Model.build:
            super()._build_for(args, kwargs)
        elif not self.built:  # `call`, which comes next, makes the weights
            self._build_shapes = tuple(shape for shape in map(_shape_of, args) if shape is not None)
            self.built = True

    def call(self, *args, **kwargs):
        raise NotImplementedError(f"model '{self.name}': define call(self, inputs) or give inputs and outputs")

    @property
    def layers(self) -> list[Layer]:
        """The layers this model is made of, in the order they were attached."""
        return self._sublayers()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of that name, or at that position.

        Raises:
            ValueError: neither or both are given, or there is no such layer.
        """
        if (name is None) == (index is None):
            raise ValueError("get_layer: give either name or index")
        if index is not None:
            if not -len(self.layers) <= index < len(self.layers):
                raise ValueError(f"get_layer: index: got {index}, wanted less than {len(self.layers)}")
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"get_layer: name: got '{name}', wanted one of {[layer.name for layer in self.layers]}")

    @property
    def output_names(self) -> list[str]:
        return getattr(self, "_output_names", ["output"])

    def summary(self, line_length=None, print_fn=None, expand_nested=False, show_trainable=False):
        """Prints a table of layers, output shapes and parameter counts."""
        summary(self, line_length, print_fn, expand_nested, show_trainable)

    def explain(self, x=None, y=None, batch_size=None, kind="train", trace=None) -> list[dict]:
        """Times a step of the model and prints, call by call, where the time goes. Weights and states stay as they are.

        Args:
            x, y: a batch, as for `fit`; by default made up, of the shapes the model's inputs and losses name.
            batch_size: rows of the step; 32 by default, or as many as `x` has if they are fewer.
            kind: "train", "test" or "predict": which step.
            trace: a file to write the step to, in the format of Chrome's trace viewer (and Perfetto).

        Returns:
            For each call a dict: layer, op, algorithm, type (of the results), seconds (median of several runs), flops
            and bytes (by the op's own count), limit ("arithmetic" or "memory": which of the machine's peaks is
            nearer) and share (the time that the peak would take, of `seconds`; data in the caches may exceed 1). The
            peaks are those of a large matrix product and a large copy, measured once and kept in the kernel database.

        Raises:
            ValueError: the model is not compiled (but for "predict"), an unknown kind, or x is needed.
        """
        return explain(self, x, y, batch_size, kind, trace)

    def save(self, filepath, overwrite=True):
        """Saves architecture, weights, optimizer and training state to one `.keras` file."""
        from ..saving import save_model

        save_model(self, filepath, overwrite)

    def save_weights(self, filepath, overwrite=True):
        """Saves the weights (and the optimizer's state) to a `.weights.h5` file."""
        from ..saving import save_weights

        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath, skip_mismatch=False):
        """Reads weights that `save_weights` or `save` wrote."""
        from ..saving import load_weights

        load_weights(self, filepath, skip_mismatch)

    def to_json(self, **kwargs) -> str:
        """The architecture as JSON, for `model_from_json`."""
        import json

        from ..saving import serialize

        return json.dumps(serialize(self), **kwargs)


def _replace_base(cls: type, functional: type) -> None:
    """Puts Functional in the place of Model among the bases of a class, or of those above it."""
    if Model in cls.__bases__:
        cls.__bases__ = tuple(functional if base is Model else base for base in cls.__bases__)
        return
    for base in cls.__bases__:
        if issubclass(base, Model):
            _replace_base(base, functional)
