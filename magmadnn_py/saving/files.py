"""Models on disk: `.keras` (a zip of architecture, weights and training state) and `.weights.h5`.

Every file is written under a temporary name and renamed, so that a reader, or a crash in the middle, never sees half
of one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import h5py
import numpy as np

from ..layers.layer import Layer
from ..models import Functional, Model, Sequential
from ..ops.random import random_state
from ..utils.naming import to_snake_case
from .registry import deserialize, serialize

_WEIGHTS = "model.weights.h5"
_STATE = "training_state.json"
_VERSION = "3.10.0"  # of the Keras format that is written
#: Where layers keep layers for themselves: those are reached by "layers".
_PRIVATE_ATTRIBUTES = ("_layers", "_functional")
#: What reading a damaged file, or one of something else, raises.
_FILE_ERRORS = (
    zipfile.BadZipFile, zlib.error, OSError, EOFError, KeyError, ValueError, TypeError, AttributeError, RuntimeError,
)  # fmt: skip


@contextlib.contextmanager
def replacing(path: Path):
    """A temporary file beside `path`, renamed to it at the end; removed if anything fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(descriptor)
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def save_model(model, filepath, overwrite: bool = True) -> None:
    """Saves architecture, weights, optimizer, random state and epoch to a `.keras` file.

    Raises:
        ValueError: the name does not end in `.keras`, or the model is not built.
        FileExistsError: the file exists and `overwrite` is False.
    """
    path = _target(filepath, ".keras", overwrite)
    _require_built(model, "save")
    metadata = {"keras_version": _VERSION, "date_saved": datetime.now().strftime("%Y-%m-%d@%H:%M:%S")}
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        _write_weights(model, file)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr("metadata.json", json.dumps(metadata))
        archive.writestr("config.json", json.dumps(serialize(model)))
        archive.writestr(_STATE, json.dumps(_training_state(model)))
        archive.writestr(_WEIGHTS, weights.getvalue())


def load_model(filepath, custom_objects=None, compile: bool = True, resume: bool = False):
    """Reads a model that `save_model` (or Keras 3) wrote.

    Args:
        custom_objects: names to classes or functions that the file mentions.
        compile: restore optimizer, loss and metrics as well.
        resume: also set the random state to that of the moment of saving, so that `fit(initial_epoch=model.epoch)`
            gives the numbers of an unbroken run.

    Raises:
        ValueError: a damaged file, or one that mentions unknown classes; the message names the file.
        FileNotFoundError: there is no such file.
    """
    path = _source(filepath)
    with _reading(path), zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if "/" not in name}
        config = json.loads(members["config.json"])
        if not isinstance(config, dict) or "class_name" not in config:
            raise ValueError("its config.json describes no model")
        if not compile:
            config.pop("compile_config", None)
        model = deserialize(config, custom_objects)
        if not isinstance(model, Model):
            raise ValueError(f"its config.json describes a {type(model).__name__}, wanted a model")
        with h5py.File(io.BytesIO(members[_WEIGHTS]), "r") as file:
            _read_weights(model, file, skip_mismatch=False)
        if _STATE in members:
            _restore_state(model, json.loads(members[_STATE]), resume)
    return model


def save_weights(model, filepath, overwrite: bool = True) -> None:
    """Saves the weights and the optimizer's state to a `.weights.h5` file."""
    path = _target(filepath, ".weights.h5", overwrite)
    _require_built(model, "save_weights")
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _write_weights(model, file)


def load_weights(model, filepath, skip_mismatch: bool = False) -> None:
    """Reads weights from a `.weights.h5` or `.keras` file into a built model.

    Args:
        skip_mismatch: leave layers whose weights have other shapes as they are.

    Raises:
        ValueError: the file is damaged, or a layer is missing or has other shapes; nothing is changed then.
        FileNotFoundError: there is no such file.
    """
    path = _source(filepath)
    _require_built(model, "load_weights")
    with _reading(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                source = io.BytesIO(archive.read(_WEIGHTS))
        else:
            source = path
        with h5py.File(source, "r") as file:
            _read_weights(model, file, skip_mismatch)


def _require_built(model, method: str) -> None:
    if not model.built:
        raise ValueError(f"{method}: model '{model.name}' is not built: call it, fit it or give it an Input first")


def _target(filepath, suffix: str, overwrite: bool) -> Path:
    path = Path(filepath)
    if not path.name.endswith(suffix):
        raise ValueError(f"save: got file name '{path.name}', wanted one that ends in '{suffix}'")
    if path.exists() and not overwrite:
        raise FileExistsError(f"save: '{path}' exists and overwrite is False")
    return path


def _source(filepath) -> Path:
    path = Path(filepath)
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file '{path}'")
    return path


@contextlib.contextmanager
def _reading(path: Path):
    """Errors of damaged or foreign files name the file."""
    try:
        yield
    except _FILE_ERRORS as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"'{path}': cannot be read as a model file: {reason}") from error


def _training_state(model) -> dict:
    return {
        "epoch": model.epoch,
        "shuffle_state": model._shuffle_state,
        "random_state": random_state().numpy().tolist(),
    }


def _restore_state(model, state: dict, resume: bool) -> None:
    model.epoch = int(state["epoch"])
    model._shuffle_state = state["shuffle_state"]
    if resume:
        random_state().assign(np.array(state["random_state"], np.int64))


# Weights: the layout of Keras 3. A layer's own are <path>/vars/0, 1, ...; a path is made of names of attributes, and in
# lists (the "layers" of a model above all) of class names, numbered where they come again.


def _write_weights(model, file: h5py.File) -> None:
    for path, layer in _walk(model):
        variables = file.require_group(f"{path}vars")
        for index, variable in enumerate(layer._own_weights()):
            variables[str(index)] = variable.numpy()
    if model.optimizer is not None and model.optimizer.built:
        model.optimizer.save_own_variables(file.create_group("optimizer/vars"))


def _read_weights(model, file: h5py.File, skip_mismatch: bool) -> None:
    pairs: list = []
    for path, layer in _walk(model):
        pairs += _stored_weights(layer, file, f"{path}vars", skip_mismatch)
    state = _stored_optimizer(model, file)
    for variable, array in [*pairs, *state]:  # all were found and fit: only now is anything changed
        variable.assign(array)


def _stored_weights(layer: Layer, file: h5py.File, path: str, skip_mismatch: bool) -> list[tuple]:
    """(variable, contents) of a layer's own weights; none where they do not fit and that is to be skipped."""
    own = layer._own_weights()
    stored = file.get(path, {})
    if not own and not len(stored):
        return []
    arrays = [stored[str(index)][()] for index in range(len(stored))]
    shapes, wanted = [array.shape for array in arrays], [variable.shape for variable in own]
    if shapes != wanted:
        if skip_mismatch:
            return []
        raise ValueError(f"weights of layer '{layer.name}' ({path}): got shapes {shapes or 'none'}, wanted {wanted}")
    return [(variable, np.asarray(array, variable.dtype)) for variable, array in zip(own, arrays, strict=True)]


def _stored_optimizer(model, file: h5py.File) -> list[tuple]:
    """(variable, contents) of the optimizer's state; none, with a warning, if it is that of another optimizer."""
    optimizer = model.optimizer
    if optimizer is None or "optimizer/vars" not in file or not model.trainable_variables:
        return []
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    stored = file["optimizer/vars"]
    arrays = [stored[str(index)][()] for index in range(len(stored))]
    if [array.shape for array in arrays] != [variable.shape for variable in optimizer.variables]:
        warnings.warn(f"the saved optimizer state does not fit '{optimizer.name}' and is not loaded", stacklevel=5)
        return []
    return [(v, np.asarray(array, v.dtype)) for v, array in zip(optimizer.variables, arrays, strict=True)]


def _walk(layer: Layer, path: str = "", seen: set | None = None) -> Iterator[tuple[str, Layer]]:
    """(path, layer) for a layer and all those inside, each once, depth first."""
    seen = set() if seen is None else seen
    if layer in seen:
        return
    seen.add(layer)
    yield path, layer
    attributes = {name: item for name, item in vars(layer).items() if name not in _PRIVATE_ATTRIBUTES}
    if isinstance(layer, Model):
        attributes["layers"] = layer.layers
    described = isinstance(layer, Functional | Sequential)  # their "layers" come first
    for name in sorted(attributes, key=lambda name: (not described or name != "layers", name.startswith("_"), name)):
        for inner, child in _named_layers(attributes[name], f"{path}{name}"):
            yield from _walk(child, f"{inner}/", seen)


def _named_layers(item, path: str) -> Iterator[tuple[str, Layer]]:
    if isinstance(item, Layer):
        yield path, item
        return
    if not isinstance(item, dict | list | tuple):
        return
    used: Counter[str] = Counter()
    for part in item.values() if isinstance(item, dict) else item:
        if not isinstance(part, Layer | dict | list | tuple):
            continue
        kind = to_snake_case(type(part).__name__) if isinstance(part, Layer) else "container"
        name = f"{kind}_{used[kind]}" if used[kind] else kind
        used[kind] += 1
        yield from _named_layers(part, f"{path}/{name}")
