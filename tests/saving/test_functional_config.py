"""Functional models as configs."""

import json

import numpy as np
import pytest

from magmadnn_py import Functional, Input, Model, layers, ops
from magmadnn_py.saving import deserialize, serialize

X = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")


def round_trip(model):
    """The model of the model's config, as a file holds it."""
    copy = deserialize(json.loads(json.dumps(serialize(model))))
    copy.set_weights(model.get_weights())
    return copy


def test_places_are_layer_call_and_output():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    dense = layers.Dense(2, name="dense")
    first, second = dense(a), dense(b)
    model = Model([a, b], layers.Add(name="sum")([first, second]))
    config = model.get_config()
    assert config["input_layers"] == [["a", 0, 0], ["b", 0, 0]]
    assert config["output_layers"] == ["sum", 0, 0]
    entry = next(entry for entry in config["layers"] if entry["name"] == "dense")
    histories = [node["args"][0]["config"]["keras_history"] for node in entry["inbound_nodes"]]
    assert histories == [["a", 0, 0], ["b", 0, 0]]


@pytest.mark.parametrize("structure", [
    lambda x: x, lambda x: [x], lambda x: [x, x * 2], lambda x: {"one": x, "two": x + 1},
    lambda x: [x, x + 1, x + 2], lambda x: {"list": [x, x * 2], "one": x},
])  # fmt: skip
def test_nestings_of_outputs(structure):
    x = Input((4,))
    model = Model(x, structure(layers.Dense(3)(x)))
    wanted, found = model.predict(X, verbose=0), round_trip(model).predict(X, verbose=0)
    assert type(wanted) is type(found)
    flat = [list(v.values()) if isinstance(v, dict) else v for v in (wanted, found)]
    for a, b in zip(np.asarray(flat[0][0]), np.asarray(flat[1][0]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_input_in_a_list_stays_in_a_list():
    x = Input((4,))
    assert isinstance(round_trip(Model([x], x + 1)).input, list)
    assert not isinstance(round_trip(Model(x, x + 1)).input, list)


def test_three_inputs():
    inputs = [Input((4,)) for _ in range(3)]
    model = Model(inputs, layers.Concatenate()(inputs))
    given = [X, 2 * X, 3 * X]
    np.testing.assert_array_equal(round_trip(model).predict(given, verbose=0), np.concatenate(given, -1))


def test_operations_with_arguments():
    x = Input((4, 3))
    y = ops.mean(x * 2 - 1, axis=(1,), keepdims=True) / ops.sqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + 1.0)
    y = ops.concatenate([y, ops.transpose(ops.reshape(x, (-1, 3, 4)), (0, 2, 1))], axis=1)
    model = Model(x, y)
    data = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    np.testing.assert_array_equal(round_trip(model).predict(data, verbose=0), model.predict(data, verbose=0))


def test_slices():
    x = Input((4, 3))
    model = Model(x, x[:, 1:, ::2] + x[:, :1, None, 0] + x[..., 1:, -1:])
    data = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    np.testing.assert_array_equal(round_trip(model).predict(data, verbose=0), model.predict(data, verbose=0))


def test_constants_in_calls():
    x = Input((4,))
    model = Model(x, layers.Add()([x, ops.multiply(x, np.arange(4, dtype="float32"))]))
    np.testing.assert_allclose(round_trip(model).predict(X, verbose=0), X + X * np.arange(4), rtol=1e-6)


def test_training_argument():
    x = Input((4,))
    model = Model(x, layers.Dropout(0.5)(x, training=True))
    assert np.any(round_trip(model).predict(X, verbose=0) == 0)


def test_nested_models():
    u = Input((4,))
    inner = Model(u, [layers.Dense(2)(u), u * 3], name="inner")
    x = Input((4,))
    first, second = inner(x)
    model = Model(x, layers.Concatenate()([first, second]), name="outer")
    copy = round_trip(model)
    assert isinstance(copy.get_layer("inner"), Functional)
    np.testing.assert_array_equal(copy.predict(X, verbose=0), model.predict(X, verbose=0))


def test_a_model_that_begins_in_the_middle():
    x = Input((4,))
    hidden = layers.Dense(3)(x)
    model = Model(hidden, layers.Dense(2)(hidden))
    data = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(round_trip(model).predict(data, verbose=0), model.predict(data, verbose=0))


def test_layers_may_stand_in_any_order():
    x = Input((4,))
    model = Model(x, layers.Dense(2)(layers.Dense(3)(x)))
    config = model.get_config()
    config["layers"].reverse()
    assert Functional.from_config(config).output_shape == (None, 2)


def test_operations_that_keras_wrote():
    x = Input((4,), name="x")
    config = Model(x, ops.relu(x)).get_config()
    (entry,) = [entry for entry in config["layers"] if entry["name"] != "x"]
    entry.update(module="keras.src.ops.numpy", class_name="Mean", config={"name": "m", "axis": -1, "keepdims": True})
    np.testing.assert_allclose(
        Functional.from_config(config).predict(X, verbose=0), X.mean(-1, keepdims=True), rtol=1e-5, atol=1e-6
    )


def test_errors():
    x = Input((4,), name="x")
    config = Model(x, layers.Dense(2, name="d")(x)).get_config()
    config["layers"][1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = ["other", 0, 0]
    with pytest.raises(ValueError, match=r"inputs of layers \['d'\] are not there"):
        Functional.from_config(config)
    config = Model(x, ops.relu(x)).get_config()
    config["output_layers"] = ["nothing", 0, 0]
    with pytest.raises(ValueError, match="no output"):
        Functional.from_config(config)
    for name in ("__import__", "nothing", "_private", "np"):
        config = Model(x, ops.relu(x)).get_config()
        config["layers"][1]["config"]["function"] = name
        with pytest.raises(ValueError, match=f"operation '{name}' is not one of ops"):
            Functional.from_config(config)
