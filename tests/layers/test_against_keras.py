"""Outputs, weights, shapes and configs against what Keras 3.15.1 recorded in golden/keras.npz."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden.cases import CASES, inputs_of

from magmadnn_py import layers, saving
from magmadnn_py.graph import Symbol
from magmadnn_py.utils.naming import clear_session

KERAS = np.load(Path(__file__).parent / "golden" / "keras.npz")
#: Entries of Keras's configs that this library does not have, because they say nothing at their defaults, and the
#: other way round.
LEFT_OUT = {"quantization_config", "rms_scaling", "renorm", "renorm_clipping", "renorm_momentum", "build_config"}
ADDED = {"activity_regularizer"}


@pytest.fixture(autouse=True)
def fresh_names():
    clear_session()


def make(name: str):
    return eval(CASES[name][0], {"layers": layers})


def one_or_all(items: list):
    return items if len(items) > 1 else items[0]


def config_of_keras(name: str) -> dict:
    return json.loads(str(KERAS[f"{name}/config"]))


@pytest.mark.parametrize("name", CASES)
def test_outputs_weights_and_shapes(name):
    layer, inputs, training = make(name), inputs_of(name), CASES[name][2]
    symbols = [Symbol((None, *array.shape[1:]), str(array.dtype)) for array in inputs]
    symbol = layer(one_or_all(symbols))
    assert [weight.name for weight in layer.weights] == [str(path).split("/")[-1] for path in KERAS[f"{name}/names"]]
    layer.set_weights([KERAS[f"{name}/weight{i}"] for i in range(len(layer.weights))])

    output, expected = np.asarray(layer(one_or_all(inputs), training=training)), KERAS[f"{name}/output"]
    assert symbol.shape == (None, *expected.shape[1:])
    np.testing.assert_allclose(output, expected, rtol=2e-6, atol=4e-6 * max(1, np.abs(expected).max()))
    if training:
        for i, weight in enumerate(layer.get_weights()):
            np.testing.assert_allclose(weight, KERAS[f"{name}/weight{i} after"], rtol=1e-5, atol=1e-6)


def without(config, names):
    """The config without entries of these names that say nothing, at any depth."""
    if isinstance(config, dict):
        return {
            key: without(value, names)
            for key, value in config.items()
            if key not in names or (key == "activity_regularizer" and value is not None)
        }
    return [without(item, names) for item in config] if isinstance(config, list) else config


@pytest.mark.parametrize("name", CASES)
def test_config_is_that_of_keras(name):
    ours = json.loads(json.dumps(saving.serialize(make(name))))
    theirs = config_of_keras(name)
    if name.startswith("sd2"):  # the one layer for which Keras writes the element type in another way
        theirs["config"]["dtype"] = ours["config"]["dtype"]
    if name == "gn_in":  # Keras forgets that the number of groups was -1
        theirs["config"]["groups"] = -1
    assert without(ours, LEFT_OUT | ADDED) == without(theirs, LEFT_OUT | ADDED)


@pytest.mark.parametrize("name", CASES)
def test_config_round_trip(name):
    layer = make(name)
    layer(one_or_all(inputs_of(name)))
    config = json.loads(json.dumps(saving.serialize(layer)))
    again = saving.deserialize(config)
    assert type(again) is type(layer)
    assert json.loads(json.dumps(saving.serialize(again))) == config
    assert [weight.shape for weight in again.weights] == [weight.shape for weight in layer.weights]


@pytest.mark.parametrize("name", CASES)
def test_reads_the_config_of_keras(name):
    layer = saving.deserialize(config_of_keras(name))
    assert type(layer) is type(make(name))
    assert [weight.shape for weight in layer.weights] == [
        KERAS[f"{name}/weight{i}"].shape for i in range(len(layer.weights))
    ]
