"""Saving and loading: objects as Keras 3 configs, models as files."""

from .registry import (
    custom_object_scope,
    deserialize,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize,
)

# Keras's names.
serialize_keras_object = serialize
deserialize_keras_object = deserialize
CustomObjectScope = custom_object_scope

__all__ = [
    "CustomObjectScope", "custom_object_scope", "deserialize", "deserialize_keras_object", "get_custom_objects",
    "get_registered_name", "get_registered_object", "load_model", "load_weights", "register_keras_serializable",
    "save_model", "save_weights", "serialize", "serialize_keras_object",
]  # fmt: skip


def __getattr__(name: str):
    # The files know layers, and layers know the registry: so they are imported when they are first asked for.
    if name in ("load_model", "load_weights", "save_model", "save_weights"):
        from . import files

        return getattr(files, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
