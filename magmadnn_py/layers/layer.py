"""The base class of layers: weights that belong together with the function that uses them."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import activations, constraints, initializers, ops, regularizers
from .. import config as settings
from ..graph.graph import Graph
from ..graph.interpret import interpret
from ..graph.node import Value
from ..graph.symbolic import Symbol, contains_symbol, leaves, map_structure, probe, record
from ..graph.trace import _stack, current_trace, scope
from ..graph.types import is_floating, standardize_dtype
from ..graph.variable import Variable
from ..saving import registry
from ..utils.naming import auto_name

__all__ = ["Layer"]

_state = threading.local()

#: Entries of newer Keras configs that say nothing at these values; others are errors.
_NEUTRAL_ARGUMENTS = {
    "quantization_config": None,
    "lora_rank": None,
    "lora_alpha": None,
    "rms_scaling": False,
    "renorm": False,
    "renorm_clipping": None,
    "renorm_momentum": 0.99,
}


_trainable_changes = 0


def trainable_version() -> int:
    """Grows whenever `trainable` of a layer is set: programs traced before then may train other weights."""
    return _trainable_changes


@contextmanager
def training_mode(training: bool):
    """Inside, layers that are not told whether they are training take `training`."""
    before = getattr(_state, "training", False)
    _state.training = training
    try:
        yield
    finally:
        _state.training = before


def is_training() -> bool:
    """Whether the enclosing layer call is one for training; False outside of any."""
    return getattr(_state, "training", False)


class Layer:
    """A function of tensors with weights. Subclasses define `call` and, for weights, `build`.

    Args:
        activity_regularizer: a penalty on the outputs, added to the training loss.
        trainable: False keeps the weights (and those of all layers inside) as they are in training.
        dtype: element type of weights and arithmetic; by default `config.floatx()`.
        autocast: whether floating-point inputs are converted to it.
        name: by default made of the class name: "conv2d", "conv2d_1", ...

    Raises:
        ValueError: an unknown keyword argument.
    """

    def __init__(self, *, activity_regularizer=None, trainable=True, dtype=None, autocast=True, name=None, **kwargs):
        self.name = str(name) if name else auto_name(type(self).__name__)
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self.dtype_policy = settings.dtype_policy(dtype)
        self.autocast = autocast
        self.built = False
        #: Shape of a sample, batch first, where a first layer was given one (`input_shape=`).
        self.batch_input_shape = _batch_input_shape(kwargs)
        self._trainable = bool(trainable)
        self._weights: list[Variable] = []
        self._layers: list[Layer] = []
        self._build_shapes: tuple | None = None
        unknown = [key for key, value in kwargs.items() if _NEUTRAL_ARGUMENTS.get(key, ...) != value]
        if unknown:
            self._fail("keyword arguments", ", ".join(sorted(unknown)), "only arguments of this layer")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _remembering_build(cls.build)
        if "call" in cls.__dict__:
            parameters = inspect.signature(cls.call).parameters
            cls._takes_training = "training" in parameters

    # ------------------------------------------------------------------ what subclasses define

    def build(self, *input_shapes) -> None:
        """Makes the weights. Each shape is a tuple, batch first, with None for an unknown extent; a list of such for
        an argument that is a list."""

    def call(self, *args, **kwargs):
        """The function itself, on graph values."""
        raise NotImplementedError(f"{type(self).__name__}: call is not defined")

    _takes_training = False

    # ------------------------------------------------------------------ calling

    def __call__(self, *args, **kwargs):
        """Applies the layer: to symbols (recorded), to graph values, or at once to arrays.

        Args:
            training: whether this is a training step; by default what the enclosing call says, else False.
        """
        if contains_symbol((args, kwargs)):
            self._build_for(args, kwargs)
            outputs = record(self, args, kwargs, self.name)
            if "_output" not in vars(self):
                self._input, self._output = (args[0] if args else kwargs), outputs
            return outputs
        if current_trace() is not None or any(isinstance(leaf, Value) for leaf in leaves((args, kwargs))):
            self._build_for(args, kwargs)
            return self._run(args, kwargs)
        from ..runtime.eager import run_now

        args = tuple(_array_of_numbers(argument) for argument in args)
        self._build_for(args, kwargs)
        return run_now(self, args, kwargs, cache=False)

    def _run(self, args, kwargs):
        training = kwargs.pop("training", None)
        training = is_training() if training is None else bool(training)
        if self._takes_training:
            kwargs["training"] = training
        if self.autocast:
            args = map_structure(self._cast_input, args)
        with scope(self.name), training_mode(training), self._named_errors():
            outputs = self.call(*args, **kwargs)
            if self.activity_regularizer is not None:
                for leaf in leaves(outputs):
                    self.add_loss(self.activity_regularizer(leaf))
        return outputs

    def _cast_input(self, leaf):
        if isinstance(leaf, Value) and is_floating(leaf.dtype):
            return ops.cast(leaf, self.compute_dtype)
        return leaf

    def _build_for(self, args, kwargs) -> None:
        if self.built:
            return
        given = [*args, *(value for key, value in kwargs.items() if key != "training")]
        shapes = [_shape_of(argument) for argument in given]
        limit = _positional_count(type(self).build)
        self.build(*[shape for shape in shapes if shape is not None][:limit])
        self.built = True

    @contextmanager
    def _named_errors(self):
        """A ValueError from inside says which layer it came from."""
        try:
            yield
        except ValueError as error:
            if "layer '" in str(error) or "model '" in str(error):
                raise
            raise ValueError(f"layer '{self.name}' ({type(self).__name__}): {error}") from error

    def _fail(self, argument: str, got, wanted) -> None:
        raise ValueError(f"layer '{self.name}' ({type(self).__name__}): {argument}: got {got}, wanted {wanted}")

    def compute_output_shape(self, *input_shapes):
        """Shape (or nesting of shapes) of the result for inputs of these shapes, None for unknown extents.

        The layer is built for them if it is not built yet.
        """
        symbols = [_map_shapes(lambda shape: Symbol(shape, self.compute_dtype), shape) for shape in input_shapes]
        self._build_for(symbols, {})
        return map_structure(lambda spec: spec.shape, probe(self, tuple(symbols), {}))

    @property
    def input(self):
        """The symbols of the first symbolic call. AttributeError if there was none."""
        return self._described("_input")

    @property
    def output(self):
        """The symbols that the first symbolic call returned. AttributeError if there was none."""
        return self._described("_output")

    @output.setter
    def output(self, value):
        self._output = value

    def _described(self, attribute: str):
        if attribute not in vars(self):
            raise AttributeError(f"layer '{self.name}' has never been called on the symbols of a network")
        return vars(self)[attribute]

    # ------------------------------------------------------------------ weights

    def add_weight(
        self,
        shape=(),
        initializer=None,
        dtype=None,
        trainable=True,
        regularizer=None,
        constraint=None,
        name=None,
    ) -> Variable:
        """A new variable of this layer.

        Args:
            shape: extents; a single integer for a vector.
            initializer: anything `initializers.get` takes; by default glorot_uniform, or zeros for integers.
            dtype: by default the layer's.
            trainable: whether gradients may change it.
            regularizer, constraint: penalty in the loss, condition restored after each update.
        """
        dtype = standardize_dtype(dtype or self.variable_dtype)
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        if any(extent is None for extent in shape):
            self._fail(f"weight '{name}'", f"shape {shape}", "known extents")
        initializer = initializers.get(initializer or ("glorot_uniform" if is_floating(dtype) else "zeros"))
        variable = Variable(_as_array(initializer(shape, dtype)), dtype, trainable, name or "variable")
        if variable.shape != shape:
            self._fail(f"initializer of weight '{name}'", f"values of shape {variable.shape}", f"shape {shape}")
        variable.path = f"{self.name}/{variable.name}"
        variable.regularizer = regularizers.get(regularizer)
        variable.constraint = constraints.get(constraint)
        self._weights.append(variable)
        return variable

    def _own_weights(self) -> list[Variable]:
        """Variables that are attributes of this layer, trainable ones first."""
        own = list(_find(vars(self), Variable))
        return [v for v in own if v.trainable] + [v for v in own if not v.trainable]

    def _sublayers(self) -> list[Layer]:
        """The layers that are attributes of this one, or in lists and dicts that are."""
        return [layer for layer in _unique(_find(vars(self), Layer)) if layer is not self]

    def _flatten_layers(self, include_self: bool = True, recursive: bool = True) -> list[Layer]:
        """This layer and those inside, depth first, each once."""
        found = [self] if include_self else []
        for layer in self._sublayers():
            found += layer._flatten_layers() if recursive else [layer]
        return _unique(found)

    @property
    def weights(self) -> list[Variable]:
        """All variables: the layer's own, trainable ones first, then those of the layers inside, in order."""
        return _unique(self._own_weights() + [w for layer in self._sublayers() for w in layer.weights])

    @property
    def variables(self) -> list[Variable]:
        return self.weights

    @property
    def trainable_weights(self) -> list[Variable]:
        """Those that training changes: none if `trainable` is False."""
        if not self.trainable:
            return []
        own = [variable for variable in self._own_weights() if variable.trainable]
        return _unique(own + [w for layer in self._sublayers() for w in layer.trainable_weights])

    @property
    def non_trainable_weights(self) -> list[Variable]:
        trainable = set(self.trainable_weights)
        return [variable for variable in self.weights if variable not in trainable]

    @property
    def trainable_variables(self) -> list[Variable]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        return self.non_trainable_weights

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        global _trainable_changes
        _trainable_changes += 1
        self._trainable = bool(value)
        for layer in self._sublayers():
            layer.trainable = value

    def get_weights(self) -> list[np.ndarray]:
        """Copies of all weights, in the order of `weights`."""
        return [variable.numpy() for variable in self.weights]

    def set_weights(self, weights) -> None:
        """Sets all weights, in the order of `weights`.

        Raises:
            ValueError: another number of arrays, or an array of another shape; nothing is changed then.
        """
        weights = [np.asarray(array) for array in weights]
        if len(weights) != len(self.weights):
            self._fail("set_weights", f"{len(weights)} arrays", f"{len(self.weights)}, one for each weight")
        for variable, array in zip(self.weights, weights, strict=True):
            if array.shape != variable.shape:
                self._fail(f"set_weights, weight '{variable.path}'", f"shape {array.shape}", variable.shape)
        for variable, array in zip(self.weights, weights, strict=True):
            variable.assign(array)

    def count_params(self) -> int:
        """The number of elements of all weights. ValueError if the layer is not built yet."""
        if not self.built:
            self._fail("count_params", "a layer without weights yet", "a built layer (call it or build it first)")
        return sum(variable.type.size for variable in self.weights)

    # ------------------------------------------------------------------ losses

    def add_loss(self, loss) -> None:
        """Adds a scalar (or the sum of a tensor) to the training loss; to be used in `call`."""
        trace = current_trace()
        if trace is None:
            raise RuntimeError(f"layer '{self.name}': add_loss can only be used while the layer is called")
        for value in leaves(loss):
            value = ops.convert(value)
            trace.losses.append(ops.sum(value) if value.ndim else value)

    @property
    def losses(self) -> list:
        """While a network is traced, what its layers have added to the loss; then the penalties on weights."""
        trace = current_trace()
        added = list(trace.losses) if trace is not None else []
        return added + [v.regularizer(v) for v in self.trainable_weights if v.regularizer is not None]

    # ------------------------------------------------------------------ types

    @property
    def dtype(self) -> str:
        """Element type of the weights."""
        return self.dtype_policy.variable_dtype

    @property
    def variable_dtype(self) -> str:
        return self.dtype_policy.variable_dtype

    @property
    def compute_dtype(self) -> str:
        """Element type that floating-point inputs are converted to."""
        return self.dtype_policy.compute_dtype

    # ------------------------------------------------------------------ configs

    def get_config(self) -> dict:
        """The arguments that make an equal layer without its weights: those attributes that carry the name of an
        argument of `__init__`. A subclass that keeps an argument under another name must add it here."""
        arguments = _init_arguments(type(self))
        config = {}
        for key, value in (("name", self.name), ("trainable", self.trainable), ("dtype", self.dtype_policy)):
            if key in arguments:
                config[key] = registry.serialize(value)
        for key in arguments:
            if key in vars(self) and key not in ("name", "trainable", "dtype", "autocast"):
                config[key] = _serialize_argument(vars(self)[key])
        explicit = "activity_regularizer" in _explicit_arguments(type(self))
        if self.activity_regularizer is None and not explicit:
            config.pop("activity_regularizer", None)
        return config

    @classmethod
    def from_config(cls, config: dict):
        """A layer from what `get_config` returned."""
        return cls(**{key: registry.deserialize(value) for key, value in config.items()})

    def get_build_config(self) -> dict | None:
        """The input shapes the weights were made for."""
        if self._build_shapes is None:
            return None
        shapes = self._build_shapes
        return {"input_shape": shapes[0]} if len(shapes) == 1 else {"input_shapes": list(shapes)}

    def build_from_config(self, config: dict) -> None:
        """Makes the weights for the input shapes of `get_build_config`."""
        if self.built or not config:
            return
        shapes = [config["input_shape"]] if "input_shape" in config else config.get("input_shapes", ())
        if shapes and None not in shapes:
            self.build(*(_map_shapes(tuple, shape) for shape in shapes))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def _remembering_build(build):
    """`build` so that it runs outside of any trace, and the layer knows that it is built and for which shapes."""

    @functools.wraps(build)
    def wrapped(self, *shapes, **named):
        with _outside_traces(), self._named_errors():
            build(self, *shapes, **named)
        self.built = True
        self._build_shapes = (*shapes, *named.values())

    return wrapped


Layer.build = _remembering_build(Layer.build)


@contextmanager
def _outside_traces():
    """Inside, no trace is active: ops on arrays run at once, and assignments to variables hold at once."""
    stack = _stack()
    saved = stack[:]
    stack.clear()
    try:
        yield
    finally:
        stack[:] = saved


def _batch_input_shape(kwargs: dict) -> tuple | None:
    """Takes the older ways to say the input's shape out of the keyword arguments."""
    shape = kwargs.pop("batch_input_shape", None)
    sample = kwargs.pop("input_shape", None)
    extent = kwargs.pop("input_dim", None)
    if sample is None and extent is not None:
        sample = (extent,)
    if shape is None and sample is not None:
        shape = (None, *((sample,) if isinstance(sample, int) else sample))
    return None if shape is None else tuple(shape)


def _positional_count(function) -> int:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 1 << 30
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _shape_of(argument):
    """Shape of a tensor, a list or dict of shapes for one of tensors, None for anything else."""
    if isinstance(argument, list | tuple):
        shapes = [_shape_of(item) for item in argument]
        return None if not shapes or None in shapes else shapes
    if isinstance(argument, dict):
        return {key: _shape_of(item) for key, item in argument.items()}
    shape = getattr(argument, "shape", None)
    return None if shape is None else tuple(None if extent is None else int(extent) for extent in shape)


def _map_shapes(function, shape):
    """`function` of every shape in a shape, or a list or dict of them."""
    if isinstance(shape, dict):
        return {key: _map_shapes(function, item) for key, item in shape.items()}
    if any(isinstance(item, list | tuple | dict) for item in shape):
        return [_map_shapes(function, item) for item in shape]
    return function(tuple(shape))


def _array_of_numbers(argument):
    """A nested list of plain numbers as an array; anything else as it is."""
    if isinstance(argument, int | float) or (
        isinstance(argument, list) and all(isinstance(leaf, int | float) for leaf in leaves(argument))
    ):
        array = np.asarray(argument)
        return array.astype("float32") if array.dtype == np.float64 else array
    return argument


def _as_array(values) -> np.ndarray:
    if isinstance(values, Value):  # an initializer of ops that ran under a trace of the caller's
        (values,), _ = interpret(Graph((), (values,)), ())
    return np.asarray(values)


def _find(structure, kind: type) -> Iterator:
    """All objects of `kind` in a nesting of dicts, lists, tuples and sets, in order, each once."""

    def search(item):
        if isinstance(item, kind):
            yield item
        elif isinstance(item, dict):
            for value in item.values():
                yield from search(value)
        elif isinstance(item, list | tuple | set):
            for value in item:
                yield from search(value)

    return iter(_unique(search(structure)))


def _unique(items) -> list:
    return list(dict.fromkeys(items))


@functools.cache
def _init_arguments(cls: type) -> tuple[str, ...]:
    """Names of the arguments of `__init__`, and of those it passes on by **kwargs, down to Layer's."""
    names: list[str] = []
    for base in cls.__mro__:
        if "__init__" not in base.__dict__:
            continue
        parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
        names += [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters) or base is Layer:
            break
    return tuple(_unique(names))


@functools.cache
def _explicit_arguments(cls: type) -> tuple[str, ...]:
    """Those of `_init_arguments` that a class other than Layer names."""
    names: list[str] = []
    for base in cls.__mro__:
        if base is Layer:
            break
        if "__init__" in base.__dict__:
            names += inspect.signature(base.__init__).parameters
    return tuple(names)


def _serialize_argument(value):
    if inspect.isfunction(value):
        return activations.serialize(value)
    return registry.serialize(value)
