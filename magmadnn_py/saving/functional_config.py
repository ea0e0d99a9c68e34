"""Functional models as Keras 3 configs: layers, and for each the calls made of it."""

from __future__ import annotations

import functools
import inspect

from ..graph.symbolic import Call, Symbol, leaves, map_structure
from ..layers.layer import Layer
from ..utils.naming import to_snake_case
from .registry import deserialize, serialize

#: A call of an `ops` function is written like a layer of this class.
_OPERATION = "Operation"


class _Places:
    """(layer name, call number, output number) of every symbol of a model."""

    def __init__(self, model):
        self.of_symbol: dict[Symbol, list] = {}
        self.calls: dict[str, list[Call]] = {}
        self.operations: list[tuple[str, Call]] = []
        for symbol in model.inputs:
            self.of_symbol[symbol] = [symbol.input_layer.name, 0, 0]
        for call in model.calls:
            name = self._name(call)
            calls = self.calls.setdefault(name, [])
            for number, symbol in enumerate(leaves(call.outputs)):
                self.of_symbol[symbol] = [name, len(calls), number]
            calls.append(call)

    def _name(self, call: Call) -> str:
        if isinstance(call.function, Layer):
            return call.function.name
        name = f"{call.function.__name__}_{len(self.operations)}"
        self.operations.append((name, call))
        return name


def functional_config(model) -> dict:
    """The config of a Functional model.

    Raises:
        TypeError: a call argument, or a layer, that cannot be written.
    """
    places = _Places(model)
    entries = [_layer_entry(layer, places) for layer in model.layers]
    entries += [_operation_entry(name, call, places) for name, call in places.operations]

    def place(symbol):
        return list(places.of_symbol[symbol])

    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": entries,
        "input_layers": map_structure(place, model.inputs_structure),
        "output_layers": map_structure(place, model.outputs_structure),
    }


def _layer_entry(layer: Layer, places: _Places) -> dict:
    entry = serialize(layer)
    entry["name"] = layer.name
    entry["inbound_nodes"] = [_call_entry(call, places) for call in places.calls.get(layer.name, ())]
    return entry


def _operation_entry(name: str, call: Call, places: _Places) -> dict:
    return {
        "module": "magmadnn_py.ops",
        "class_name": _OPERATION,
        "config": {"name": name, "function": call.function.__name__},
        "registered_name": None,
        "name": name,
        "inbound_nodes": [_call_entry(call, places)],
    }


def _call_entry(call: Call, places: _Places) -> dict:
    def argument(leaf):
        if not isinstance(leaf, Symbol):
            return serialize(leaf)
        shape, dtype = list(leaf.shape), leaf.dtype
        history = places.of_symbol[leaf]
        return {
            "class_name": "__keras_tensor__",
            "config": {"shape": shape, "dtype": dtype, "keras_history": list(history)},
        }

    return {"args": list(map_structure(argument, call.args)), "kwargs": map_structure(argument, call.kwargs)}


def functional_from_config(cls, config: dict, custom_objects=None):
    """A model of class `cls` from such a config.

    Raises:
        ValueError: an unknown layer, or calls that refer to what is not there.
    """
    functions: dict[str, object] = {}
    pending: list[tuple[str, int, dict]] = []
    symbols: dict[tuple[str, int, int], Symbol] = {}
    for entry in config["layers"]:
        name = entry.get("name") or entry["config"]["name"]
        functions[name] = _function(entry, custom_objects)
        if hasattr(functions[name], "batch_shape"):
            symbols[name, 0, 0] = functions[name].output
        pending += [(name, number, node) for number, node in enumerate(entry["inbound_nodes"])]
    while pending:
        waiting = [item for item in pending if not _replay(item, functions, symbols)]
        if len(waiting) == len(pending):
            names = sorted({name for name, *_ in waiting})
            raise ValueError(f"config of model '{config.get('name')}': the inputs of layers {names} are not there")
        pending = waiting
    inputs = _symbols_at(config["input_layers"], symbols)
    outputs = _symbols_at(config["output_layers"], symbols)
    return cls(inputs, outputs, name=config.get("name"), trainable=config.get("trainable", True))


def _function(entry: dict, custom_objects):
    module = str(entry.get("module"))
    if entry["class_name"] == _OPERATION and module == "magmadnn_py.ops":
        return _operation(entry["config"]["function"])
    if module.startswith(("keras.src.ops.", "keras.ops.")):  # a class for each operation, with its settings
        settings = {key: value for key, value in entry["config"].items() if key != "name"}
        return functools.partial(_operation(to_snake_case(entry["class_name"])), **settings)
    return deserialize({key: entry[key] for key in entry if key != "inbound_nodes"}, custom_objects)


def _operation(name: str):
    from .. import ops

    if name in ("getitem", "get_item"):
        return _item
    found = vars(ops).get(name)
    if not inspect.isfunction(found) or name.startswith("_"):
        raise ValueError(f"config: operation '{name}' is not one of ops")
    return found


def _item(x, key):
    """`x[key]`; JSON has made a list of a tuple of slices."""
    return x[tuple(key) if isinstance(key, list) else key]


def _replay(item: tuple[str, int, dict], functions: dict, symbols: dict) -> bool:
    """Makes the call if all its inputs exist; says whether it did."""
    name, number, node = item
    if any(tuple(place) not in symbols for place in _histories(node)):
        return False
    args = [_argument(argument, symbols) for argument in node["args"]]
    kwargs = {key: _argument(argument, symbols) for key, argument in node["kwargs"].items()}
    if kwargs.get("mask", ...) is None:  # Keras writes it; no layer here takes one
        kwargs.pop("mask")
    for position, symbol in enumerate(leaves(functions[name](*args, **kwargs))):
        symbols[name, number, position] = symbol
    return True


def _is_tensor(item) -> bool:
    return isinstance(item, dict) and item.get("class_name") == "__keras_tensor__"


def _histories(structure) -> list:
    if _is_tensor(structure):
        return [structure["config"]["keras_history"]]
    items = structure.values() if isinstance(structure, dict) else structure if isinstance(structure, list) else ()
    return [place for item in items for place in _histories(item)]


def _argument(item, symbols: dict):
    if _is_tensor(item):
        return symbols[tuple(item["config"]["keras_history"])]
    if isinstance(item, list):
        return [_argument(part, symbols) for part in item]
    if isinstance(item, dict) and "class_name" not in item:
        return {key: _argument(part, symbols) for key, part in item.items()}
    return deserialize(item)


def _symbols_at(places, symbols: dict):
    """Symbols for a nesting of [layer, call, output] places; a single one stands alone, as Keras writes it."""
    if isinstance(places, dict):
        return {key: _symbols_at(part, symbols) for key, part in places.items()}
    if len(places) == 3 and isinstance(places[0], str):
        if tuple(places) not in symbols:
            raise ValueError(f"config: there is no output {places}")
        return symbols[tuple(places)]
    return [_symbols_at(part, symbols) for part in places]
