"""Models: layers joined to a network that can be trained."""

from .functional import Functional
from .input import Input, InputLayer
from .model import Model
from .sequential import Sequential

__all__ = [
    "Functional", "Input", "InputLayer", "Model", "Sequential", "clone_model", "load_model", "model_from_json",
    "save_model",
]  # fmt: skip


def load_model(filepath, custom_objects=None, compile: bool = True, resume: bool = False):
    """See `saving.load_model`."""
    from ..saving.files import load_model

    return load_model(filepath, custom_objects, compile, resume)


def save_model(model, filepath, overwrite: bool = True) -> None:
    """See `saving.save_model`."""
    from ..saving.files import save_model

    save_model(model, filepath, overwrite)


def model_from_json(text: str, custom_objects=None) -> Model:
    """The untrained model whose `to_json()` gave the text.

    Raises:
        ValueError: the text is no JSON, or describes something else.
    """
    import json

    from ..saving import deserialize

    model = deserialize(json.loads(text), custom_objects)
    if not isinstance(model, Model):
        raise ValueError(f"model_from_json: text: describes a {type(model).__name__}, wanted a model")
    return model


def clone_model(model: Model) -> Model:
    """A model of the same architecture with weights of its own, freshly initialised."""
    return type(model).from_config(model.get_config())
