"""Objects to and from Keras 3 configs: {"module", "class_name", "config", "registered_name"}.

Reading a config never imports a module and never runs code that the config names: a class must be one of this
library, registered by `register_keras_serializable`, or given in `custom_objects`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import types
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from ..graph.symbolic import Symbol
from ..utils.naming import to_snake_case

#: Modules of this package and the public Keras module of the same contents; the first that fits counts.
_KERAS_MODULES = {
    "optimizers.schedules": "keras.optimizers.schedules",
    "optimizers": "keras.optimizers",
    "layers": "keras.layers",
    "initializers": "keras.initializers",
    "regularizers": "keras.regularizers",
    "constraints": "keras.constraints",
    "losses": "keras.losses",
    "metrics": "keras.metrics",
    "config": "keras",
    "models.input": "keras.layers",
    "models.functional": "keras.src.models.functional",
    "models": "keras",
}
#: Where the name of a plain function is looked up.
_FUNCTION_MODULES = ("activations", "losses", "metrics", "ops")
_PACKAGE = __name__.split(".")[0]

_registered: dict[str, object] = {}
_scopes: list[dict[str, object]] = []


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable:
    """Decorator: the class or function can be saved and loaded under "package>name" (default: its own name)."""

    def register(target):
        if inspect.isclass(target) and not hasattr(target, "get_config"):
            raise ValueError(f"register_keras_serializable: {target.__name__} has no get_config method")
        _registered[f"{package}>{name or target.__name__}"] = target
        return target

    return register


def get_registered_name(target) -> str:
    """The name a class or function is registered under, else its own name."""
    return next((name for name, other in _registered.items() if other is target), target.__name__)


def get_registered_object(name: str, custom_objects: dict | None = None):
    """What `name` stands for in `custom_objects`, the enclosing scopes or the registry; None if nothing."""
    for names in (custom_objects or {}, *reversed(_scopes), _registered):
        if name in names:
            return names[name]
    return next((target for key, target in _registered.items() if key.split(">")[-1] == name), None)


def get_custom_objects() -> dict[str, object]:
    """The registry itself; objects put into it can be loaded by their key."""
    return _registered


@contextmanager
def custom_object_scope(objects: dict[str, object]):
    """Inside, the names of `objects` can be used in configs and as string identifiers."""
    _scopes.append(objects)
    try:
        yield
    finally:
        _scopes.pop()


def serialize(target):
    """The Keras 3 config of an object; numbers, strings, lists and dicts of such stay as they are.

    Raises:
        TypeError: a function that is neither registered nor public, or an object without `get_config`.
    """
    match target:
        case None | bool() | int() | float() | str():
            return target
        case np.generic():
            return target.item()
        case np.ndarray():
            return {"class_name": "__numpy__", "config": {"value": target.tolist(), "dtype": target.dtype.name}}
        case slice():
            parts = {"start": target.start, "stop": target.stop, "step": target.step}
            return {"class_name": "__slice__", "config": serialize(parts)}
        case types.EllipsisType():
            return {"class_name": "__ellipsis__", "config": {}}
        case list() | tuple():
            return type(target)(serialize(item) for item in target)
        case dict():
            return {key: serialize(item) for key, item in target.items()}
    if isinstance(target, Symbol):
        raise TypeError(f"serialize: symbol '{target.name}' has no config of its own")
    if inspect.isfunction(target):
        return _serialize_function(target)
    if not hasattr(target, "get_config"):
        raise TypeError(f"serialize: got {target!r}, wanted an object with a get_config method")
    return _serialize_object(target)


def _serialize_function(function: Callable) -> dict:
    registered = get_registered_name(function)
    if not registered.split(">")[-1].isidentifier():  # a lambda
        raise TypeError(
            f"serialize: {registered} cannot be saved: give it a name with def, and load with custom_objects, or "
            "decorate it with register_keras_serializable()"
        )
    name = registered if ">" in registered else "function"
    return {"module": "builtins", "class_name": "function", "config": function.__name__, "registered_name": name}


def _serialize_object(target) -> dict:
    cls = type(target)
    module = keras_module(cls)
    config = {
        "module": module or cls.__module__,
        "class_name": cls.__name__,
        "config": serialize(target.get_config()),
        "registered_name": None if module else get_registered_name(cls),
    }
    for part in ("build_config", "compile_config"):
        get = getattr(target, f"get_{part}", None)
        value = get() if get else None
        if value is not None:
            config[part] = serialize(value)
    return config


def keras_module(cls: type) -> str | None:
    """The Keras module that holds the class of the same name, or None for a class from outside this library."""
    if cls.__module__.split(".")[0] != _PACKAGE:
        return None
    path = cls.__module__.split(".", 1)[-1] + "."
    return next((public for own, public in _KERAS_MODULES.items() if path.startswith(own + ".")), None)


def deserialize(config, custom_objects: dict | None = None, module: str | None = None):
    """The object that a config describes; lists and dicts of configs become lists and dicts of objects.

    Args:
        custom_objects: names to classes or functions that may appear in the config.
        module: the Keras module of a config that names none (older files).

    Raises:
        ValueError: a class or function that is not known, or code stored in the file.
    """
    with custom_object_scope(custom_objects or {}):
        return _deserialize(config, module)


def _deserialize(config, module=None):
    if isinstance(config, list | tuple):
        return type(config)(_deserialize(item) for item in config)
    if not isinstance(config, dict):
        return config
    if "class_name" not in config or "config" not in config and "items" not in config:
        return {key: _deserialize(item) for key, item in config.items()}
    match config["class_name"]:
        case "__numpy__" | "__tensor__":
            return np.array(config["config"]["value"], config["config"]["dtype"])
        case "__tuple__":
            return tuple(_deserialize(item) for item in config["items"])
        case "__slice__":
            return slice(*(config["config"][part] for part in ("start", "stop", "step")))
        case "__ellipsis__":
            return ...
        case "__lambda__":
            raise ValueError(
                "deserialize: the config holds the code of a Python lambda, which is never run; "
                "give it in custom_objects as a function, or register it"
            )
        case "function":
            return _find_function(config)
    cls = _find_class(config, module)
    target = cls.from_config(config["config"])
    if config.get("build_config") and hasattr(target, "build_from_config"):
        target.build_from_config(config["build_config"])
    if config.get("compile_config") and hasattr(target, "compile_from_config"):
        target.compile_from_config(config["compile_config"])
    return target


def _find_function(config: dict) -> Callable:
    name = config["config"]
    found = (
        get_registered_object(config.get("registered_name") or name)
        or get_registered_object(name)
        or _public_function(name)
    )
    if found is None:
        raise ValueError(f"deserialize: function '{name}' is not known: register it or give it in custom_objects")
    return found


def _find_class(config: dict, module: str | None) -> type:
    name = config["class_name"]
    module = config.get("module") or module
    found = get_registered_object(config.get("registered_name") or name) or get_registered_object(name)
    if found is None:
        found = next(filter(None, (_public(own, name) for own in _own_modules(module))), None)
    if not inspect.isclass(found) or not hasattr(found, "from_config"):
        raise ValueError(
            f"deserialize: class '{name}' (module {module!r}) is not known to this library: decorate it with "
            "register_keras_serializable() or give it in custom_objects"
        )
    return found


def _own_modules(module: str | None) -> list[str]:
    """Modules of this package in which to look for a class of Keras module `module`; all of them for None."""
    if module is None:
        return list(_KERAS_MODULES)
    if module.split(".")[0] != "keras":
        return []
    paths = (module, module.replace("keras.src", "keras", 1))
    fitting = [
        own
        for own, known in _KERAS_MODULES.items()
        if known != "keras" and any(path.startswith(known) for path in paths)
    ]
    return fitting or [own for own, known in _KERAS_MODULES.items() if known == "keras"]


def _public(own_module: str, name: str):
    """Attribute `name` of a module of this package, from the fixed lists above; None if there is none."""
    try:
        found = getattr(importlib.import_module(f"{_PACKAGE}.{own_module}"), name, None)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_PACKAGE):
            raise
        return None
    return found if getattr(found, "__module__", "").split(".")[0] == _PACKAGE else None


def _public_function(name: str) -> Callable | None:
    found = (_public(own, name) for own in _FUNCTION_MODULES)
    return next((function for function in found if inspect.isfunction(function)), None)


def lookup(kind: str, identifier, names: dict[str, object]):
    """What an identifier of one kind of object ("initializer", "regularizer", ...) stands for.

    Args:
        identifier: None, a name, a config dict, a class, or an object or function, which is returned as it is.
        names: the known names; classes among them are called without arguments.

    Raises:
        ValueError: an unknown name (close matches are listed), or something that cannot be called.
    """
    if isinstance(identifier, dict):
        identifier = deserialize(identifier, module=f"keras.{kind}s")
    elif isinstance(identifier, str):
        found = get_registered_object(identifier)
        found = names.get(identifier, names.get(to_snake_case(identifier))) if found is None else found
        if found is None:
            close = difflib.get_close_matches(identifier, names, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise ValueError(f"{kind}: got {identifier!r}, wanted one of {', '.join(sorted(names))}{hint}")
        identifier = found
    if inspect.isclass(identifier):
        identifier = identifier()
    if identifier is not None and not callable(identifier):
        raise ValueError(f"{kind}: got {identifier!r}, wanted a name, a config or something that can be called")
    return identifier
