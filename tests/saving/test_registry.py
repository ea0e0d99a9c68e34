import numpy as np
import pytest

from magmadnn_py import activations, initializers, layers, ops, regularizers, saving


@saving.register_keras_serializable("tests", "Doubling")
class Double(layers.Layer):
    def call(self, x):
        return x * 2.0


class Unregistered(layers.Layer):
    def call(self, x):
        return x


@saving.register_keras_serializable("tests")
def triple(x):
    return x * 3.0


def test_layer_config():
    config = saving.serialize(layers.Dense(3, activation="relu", name="head", kernel_regularizer="l2"))
    assert (config["module"], config["class_name"], config["registered_name"]) == ("keras.layers", "Dense", None)
    assert config["config"]["activation"] == "relu"
    assert config["config"]["kernel_regularizer"] == {
        "module": "keras.regularizers", "class_name": "L2", "config": {"l2": 0.01}, "registered_name": None,
    }  # fmt: skip
    layer = saving.deserialize(config)
    assert isinstance(layer.kernel_regularizer, regularizers.L2)
    assert layer.activation is activations.get("relu")


def test_registered_class():
    config = saving.serialize(Double())
    assert config["registered_name"] == "tests>Doubling"
    assert isinstance(saving.deserialize(config), Double)


def test_unknown_class_is_refused():
    config = saving.serialize(Unregistered())
    with pytest.raises(ValueError, match=r"class 'Unregistered'.*register_keras_serializable"):
        saving.deserialize(config)
    assert isinstance(saving.deserialize(config, {"Unregistered": Unregistered}), Unregistered)
    with saving.custom_object_scope({"Unregistered": Unregistered}):
        assert isinstance(saving.deserialize(config), Unregistered)


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("subprocess", "Popen"), ("keras.layers", "np"), ("keras.layers", "Nothing"),
     ("builtins", "eval"), ("keras.src.os", "system"), (None, "importlib")],
)  # fmt: skip
def test_nothing_else_can_be_named(module, name):
    config = {"module": module, "class_name": name, "config": {"args": ["true"]}, "registered_name": None}
    with pytest.raises(ValueError, match=f"class '{name}'"):
        saving.deserialize(config)


@pytest.mark.parametrize("name", ["system", "eval", "run_now", "__import__"])
def test_no_other_function_can_be_named(name):
    config = {"module": "builtins", "class_name": "function", "config": name, "registered_name": name}
    with pytest.raises(ValueError, match=f"function '{name}'"):
        saving.deserialize(config)


def test_entrance_and_models_have_the_modules_that_keras_looks_in():
    from magmadnn_py import models

    x = models.Input((4,))
    names = {
        type(layer).__name__: saving.registry.keras_module(type(layer))
        for layer in (models.Model(x, layers.Dense(2)(x)), models.Sequential(), models.InputLayer((3,)))
    }
    assert names == {
        "Functional": "keras.src.models.functional", "Sequential": "keras", "InputLayer": "keras.layers",
    }  # fmt: skip
    again = saving.deserialize(saving.serialize(models.InputLayer((3,))))
    assert again.batch_shape == (None, 3)


def test_functions():
    for function in (triple, ops.tanh, activations.exponential):
        assert saving.deserialize(saving.serialize(function)) is function
    layer = layers.Dense(2, activation=triple)
    assert saving.deserialize(saving.serialize(layer)).activation is triple


def test_string_identifiers_know_registered_names():
    with saving.custom_object_scope({"mine": initializers.Ones}):
        assert isinstance(layers.Dense(1, kernel_initializer="mine").kernel_initializer, initializers.Ones)


def test_plain_values():
    value = {"a": [1, 2.5, None, True, "x"], "b": (1, 2)}
    assert saving.deserialize(saving.serialize(value)) == value
    array = np.arange(6, dtype="float32").reshape(2, 3)
    again = saving.deserialize(saving.serialize(array))
    np.testing.assert_array_equal(again, array)
    assert again.dtype == "float32"
    assert saving.serialize(np.float32(0.5)) == 0.5
    with pytest.raises(TypeError, match="get_config"):
        saving.serialize(object())


def test_older_configs_without_module():
    layer = saving.deserialize({"class_name": "Dense", "config": {"units": 3, "name": "old"}})
    assert (type(layer), layer.units) == (layers.Dense, 3)
    assert isinstance(initializers.deserialize({"class_name": "Identity", "config": {}}), initializers.Identity)
