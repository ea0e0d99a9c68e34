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
import zipfile
from datetime import datetime
from pathlib import Path

import h5py
import numpy as np

from ..layers.layer import Layer
from ..ops.random import random_state
from .registry import deserialize, serialize

_WEIGHTS = "model.weights.h5"
_STATE = "training_state.json"
_VERSION = "3.10.0"  # of the Keras format that is written


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
    if not model.built:
        raise ValueError(f"save: model '{model.name}' is not built: call it, fit it or give it an Input first")
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
        if not compile:
            config.pop("compile_config", None)
        model = deserialize(config, custom_objects)
        with h5py.File(io.BytesIO(members[_WEIGHTS]), "r") as file:
            _read_weights(model, file, skip_mismatch=False)
        if _STATE in members:
            _restore_state(model, json.loads(members[_STATE]), resume)
    return model


def save_weights(model, filepath, overwrite: bool = True) -> None:
    """Saves the weights and the optimizer's state to a `.weights.h5` file."""
    path = _target(filepath, ".weights.h5", overwrite)
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _write_weights(model, file)


def load_weights(model, filepath, skip_mismatch: bool = False) -> None:
    """Reads weights from a `.weights.h5` or `.keras` file into a built model.

    Args:
        skip_mismatch: leave layers whose weights have other shapes as they are.

    Raises:
        ValueError: a layer is missing or has other shapes; nothing is changed then.
    """
    path = _source(filepath)
    with _reading(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                source = io.BytesIO(archive.read(_WEIGHTS))
        else:
            source = path
        with h5py.File(source, "r") as file:
            _read_weights(model, file, skip_mismatch)


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
    """Errors of damaged files name the file."""
    try:
        yield
    except (zipfile.BadZipFile, json.JSONDecodeError, KeyError, OSError, EOFError) as error:
        raise ValueError(f"'{path}' is not a readable model file: {error}") from error


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


def _write_weights(model, file: h5py.File) -> None:
    _write_layer(model, file)
    if model.optimizer is not None and model.optimizer.built:
        group = file.create_group("optimizer/vars")
        for index, array in enumerate(model.optimizer.get_state()):
            group[str(index)] = array


def _children(layer: Layer) -> list[tuple[str, Layer]]:
    """(path below the layer, sublayer): "layers/<name>" in a model, the attribute's name in a layer."""
    if hasattr(layer, "layers"):
        return [(f"layers/{child.name}", child) for child in layer.layers]
    return [(child.name, child) for child in layer._sublayers()]


def _write_layer(layer: Layer, group: h5py.Group) -> None:
    variables = group.create_group("vars")
    for index, variable in enumerate(layer._own_weights()):
        variables[str(index)] = variable.numpy()
    for path, child in _children(layer):
        if child.weights:
            _write_layer(child, group.create_group(path))


def _read_weights(model, file: h5py.File, skip_mismatch: bool) -> None:
    pairs: list = []
    _collect(model, file, pairs, skip_mismatch)
    for variable, array in pairs:  # all were found and fit: only now is anything changed
        variable.assign(array)
    if model.optimizer is not None and "optimizer/vars" in file:
        stored = file["optimizer/vars"]
        arrays = [stored[str(index)][()] for index in range(len(stored))]
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        model.optimizer.set_state(arrays)


def _collect(layer: Layer, group: h5py.Group, pairs: list, skip_mismatch: bool) -> None:
    own = layer._own_weights()
    stored = group["vars"] if "vars" in group else {}
    arrays = [stored[str(index)][()] for index in range(len(stored))]
    shapes = [array.shape for array in arrays]
    wanted = [variable.shape for variable in own]
    if shapes == wanted:
        pairs += zip(own, arrays, strict=True)
    elif not skip_mismatch:
        raise ValueError(f"weights of layer '{layer.name}': the file has shapes {shapes}, wanted {wanted}")
    for path, child in _children(layer):
        if not child.weights:
            continue
        if path in group:
            _collect(child, group[path], pairs, skip_mismatch)
        elif not skip_mismatch:
            raise ValueError(f"weights of layer '{child.name}': the file has none, wanted {len(child.weights)}")
