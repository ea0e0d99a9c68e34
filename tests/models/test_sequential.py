"""Sequential: with and without Input, growing and shrinking."""

import numpy as np
import pytest

from magmadnn_py import Input, Sequential, layers, models


def test_with_an_input_it_is_built_at_once():
    model = Sequential([Input((4,)), layers.Dense(3), layers.Dense(2)])
    assert model.built
    assert model.output_shape == (None, 2)
    assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 2), (2,)]
    assert len(model.layers) == 2  # the Input is no layer of the stack


def test_without_an_input_it_is_built_by_the_first_data():
    model = Sequential([layers.Dense(3, activation="relu"), layers.Dense(2)])
    assert not model.built
    assert model.weights == []
    assert model.predict(np.ones((5, 4)), verbose=0).shape == (5, 2)
    assert model.built
    assert model.input_shape == (None, 4)


def test_build_with_a_shape():
    model = Sequential([layers.Conv2D(3, 3), layers.Flatten(), layers.Dense(2)])
    model.build((None, 5, 5, 1))
    assert model.count_params() == 30 + 27 * 2 + 2


@pytest.mark.parametrize(
    "make", [lambda: Sequential([layers.Dense(2)]), lambda: Sequential([Input((3,)), layers.Dense(2)])]
)
def test_calling_it_on_an_array(make):
    model = make()
    x = np.arange(6, dtype="float32").reshape(2, 3)
    y = np.asarray(model(x))
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(y, x @ kernel + bias, rtol=1e-6)


def test_add_and_pop():
    model = Sequential()
    model.add(Input((4,)))
    model.add(layers.Dense(3, name="first"))
    model.add(layers.Dense(2, name="second"))
    assert model.output_shape == (None, 2)
    assert model.pop().name == "second"
    assert model.output_shape == (None, 3)
    assert model.get_layer("first") is model.layers[0]
    model.add(layers.Dense(5))
    assert model.predict(np.ones((2, 4)), verbose=0).shape == (2, 5)


def test_adding_a_layer_after_use_changes_what_runs():
    model = Sequential([layers.Dense(3)])
    x = np.ones((2, 4), "float32")
    assert model.predict(x, verbose=0).shape == (2, 3)
    model.add(layers.Dense(1))
    assert model.predict(x, verbose=0).shape == (2, 1)
    model.compile("sgd", "mse")
    model.fit(x, np.ones((2, 1)), verbose=0)
    model.pop()
    assert model.predict(x, verbose=0).shape == (2, 3)


def test_a_layer_that_is_given_its_input_shape():
    model = Sequential([layers.Dense(3, input_shape=(4,))])
    assert model.predict(np.ones((1, 4)), verbose=0).shape == (1, 3)


def test_nested():
    inner = Sequential([layers.Dense(3), layers.Dense(2)], name="inner")
    model = Sequential([Input((4,)), inner, layers.Dense(1)])
    assert model.output_shape == (None, 1)
    assert len(model.weights) == 6
    assert model.get_layer("inner").layers[0].kernel.shape == (4, 3)


def test_input_dtype_from_its_input():
    model = Sequential(
        [Input((3,), dtype="int32"), layers.Embedding(5, 2)]
        if hasattr(layers, "Embedding")
        else [Input((3,), dtype="int32"), layers.Lambda(lambda x: x * 2)]
    )
    assert model.inputs[0].dtype == "int32"
    model.predict(np.array([[1, 2, 3]]), verbose=0)


def test_errors():
    model = Sequential([layers.Dense(2, name="a")])
    with pytest.raises(ValueError, match="'a' is taken"):
        model.add(layers.Dense(2, name="a"))
    with pytest.raises(ValueError, match="Input .* comes after other layers"):
        model.add(Input((3,)))
    with pytest.raises(ValueError, match="got int, wanted a layer"):
        model.add(3)
    with pytest.raises(ValueError, match="there are no layers"):
        Sequential().pop()
    with pytest.raises(ValueError, match="not built yet"):
        model.output_shape  # noqa: B018
    with pytest.raises(ValueError, match="'nothing', wanted one of"):
        model.get_layer("nothing")
    with pytest.raises(ValueError, match="index"):
        model.get_layer(index=7)
    with pytest.raises(ValueError, match="no layers"):
        Sequential().build((None, 3))


def test_wrong_shape_names_input_and_shapes():
    model = Sequential([Input((4,), name="pixels"), layers.Dense(2)])
    with pytest.raises(ValueError, match=r"'pixels'.*got shape \(2, 5\), wanted \(batch, 4\)"):
        model.predict(np.ones((2, 5)), verbose=0)


def test_config_round_trip():
    model = Sequential([Input((4,)), layers.Dense(3, activation="relu"), layers.Dropout(0.5)], name="net")
    copy = Sequential.from_config(model.get_config())
    assert copy.name == "net"
    assert [type(layer) for layer in copy.layers] == [layers.Dense, layers.Dropout]
    assert copy.built
    deferred = Sequential.from_config(Sequential([layers.Dense(3)]).get_config())
    assert not deferred.built


def test_clone_has_weights_of_its_own():
    model = Sequential([Input((4,)), layers.Dense(3)])
    copy = models.clone_model(model)
    copy.layers[0].kernel.assign(np.zeros((4, 3)))
    assert np.any(model.layers[0].kernel.numpy())
