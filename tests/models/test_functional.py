"""Functional models: several inputs and outputs, shared layers, nesting, ops on symbols."""

import numpy as np
import pytest

from magmadnn_py import Input, Model, Sequential, layers, models, ops

X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
Z = np.random.default_rng(1).normal(size=(6, 4)).astype("float32")


def test_one_input_one_output():
    inputs = Input((4,))
    outputs = layers.Dense(2)(inputs)
    model = Model(inputs, outputs)
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(model.predict(X, verbose=0), X @ kernel + bias, rtol=1e-5, atol=1e-6)
    assert model.input_shape == (None, 4)
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Dense"]


def test_several_inputs_as_list_and_as_dict():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    model = Model([a, b], a - b)
    np.testing.assert_allclose(model.predict([X, Z], verbose=0), X - Z)
    np.testing.assert_allclose(model.predict({"b": Z, "a": X}, verbose=0), X - Z)
    named = Model({"left": a, "right": b}, a - b)
    np.testing.assert_allclose(named.predict({"right": Z, "left": X}, verbose=0), X - Z)
    with pytest.raises(ValueError, match="wanted also .*'b'"):
        model.predict({"a": X}, verbose=0)
    with pytest.raises(ValueError, match="got 1 tensors, wanted 2"):
        model.predict(X, verbose=0)


def test_inputs_of_a_dict_keep_their_types_in_any_order():
    ids, x = Input((1,), dtype="int32", name="ids"), Input((1,), name="x")
    model = Model([ids, x], ops.cast(ids, "float32") + x)
    given = {"x": np.array([[0.5]]), "ids": np.array([[3]])}
    np.testing.assert_allclose(model.predict(given, verbose=0), [[3.5]])


def test_outputs_keep_their_nesting():
    x = Input((4,))
    model = Model(x, {"twice": x * 2, "pair": [x + 1, x - 1]})
    result = model.predict(X, verbose=0)
    assert set(result) == {"twice", "pair"}
    np.testing.assert_allclose(result["twice"], X * 2)
    np.testing.assert_allclose(result["pair"][1], X - 1)


def test_a_shared_layer_is_one_set_of_weights_and_gets_both_gradients():
    a, b = Input((4,)), Input((4,))
    shared = layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = Model([a, b], shared(a) + shared(b))
    assert len(model.weights) == 1
    model.compile("sgd", "mse")
    model.optimizer.learning_rate = 0.1
    y = np.zeros((6, 1), "float32")
    model.fit([X, Z], y, batch_size=6, verbose=0)
    both = (X + Z).astype("float64")
    gradient = 2 * both.T @ both.sum(1, keepdims=True) / 6
    np.testing.assert_allclose(shared.kernel.numpy(), 1 - 0.1 * gradient, rtol=1e-4)


def test_nested_models_share_their_weights():
    x = Input((4,))
    inner = Model(x, layers.Dense(3)(x), name="inner")
    u = Input((4,))
    outer = Model(u, layers.Dense(1)(inner(u) + inner(u * 2)))
    assert len(outer.weights) == 4
    inner.layers[1].bias.assign([1, 2, 3])
    hidden = inner.predict(X, verbose=0) + inner.predict(X * 2, verbose=0)
    kernel, bias = outer.layers[-1].get_weights()
    np.testing.assert_allclose(outer.predict(X, verbose=0), hidden @ kernel + bias, rtol=1e-4, atol=1e-5)


def test_a_model_up_to_an_inner_layer():
    model = Sequential([Input((4,)), layers.Dense(3, name="features"), layers.Dense(2)])
    features = Model(model.input, model.get_layer("features").output)
    kernel, bias = model.layers[0].get_weights()
    np.testing.assert_allclose(features.predict(X, verbose=0), X @ kernel + bias, rtol=1e-5, atol=1e-6)
    assert features.layers[-1] is model.layers[0]


def test_a_model_that_begins_at_an_inner_layer():
    x = Input((4,))
    hidden = layers.Dense(3)(x)
    head = Model(hidden, layers.Dense(2)(hidden))
    assert head.predict(np.ones((2, 3)), verbose=0).shape == (2, 2)


def test_operators_and_ops_on_symbols():
    x = Input((4, 3))
    y = ops.relu(x * 2.0 - 1.0) / 3 + ops.mean(x, axis=1, keepdims=True)
    y = ops.reshape(y, (-1, 12))
    y = ops.concatenate([y, -y[:, :2]], axis=-1)
    model = Model(x, y)
    assert model.output_shape == (None, 14)
    data = np.random.default_rng(2).normal(size=(5, 4, 3)).astype("float32")
    wanted = (np.maximum(data * 2 - 1, 0) / 3 + data.mean(1, keepdims=True)).reshape(5, 12)
    wanted = np.concatenate([wanted, -wanted[:, :2]], -1)
    np.testing.assert_allclose(model.predict(data, verbose=0), wanted, rtol=1e-5, atol=1e-6)


def test_training_flag_of_a_call_is_kept():
    x = Input((4,))
    norm = layers.BatchNormalization(momentum=0.0)
    model = Model(x, norm(x, training=False))
    model.compile("sgd", "mse")
    model.fit(X, X, verbose=0)
    np.testing.assert_array_equal(norm.moving_mean.numpy(), np.zeros(4))


def test_open_extents_inside():
    x = Input((None, None, 1))
    model = Model(x, layers.GlobalAveragePooling2D()(layers.Conv2D(2, 3, padding="same")(x)))
    assert model.output_shape == (None, 2)
    for size in (3, 6):
        assert model.predict(np.ones((2, size, size, 1)), verbose=0).shape == (2, 2)


def test_a_fixed_batch():
    model = Model(x := Input((4,), batch_size=2), x + 1)
    assert model.predict(X[:2], verbose=0).shape == (2, 4)
    with pytest.raises(ValueError, match=r"got shape \(3, 4\), wanted \(2, 4\)"):
        model.predict(X[:3], verbose=0)


def test_errors():
    x = Input((4,))
    with pytest.raises(ValueError, match="inputs: got ndarray, wanted symbols"):
        Model(X, x)
    with pytest.raises(ValueError, match="not among the inputs"):
        Model(Input((4,), name="other"), layers.Dense(2)(x))
    with pytest.raises(ValueError, match="shape"):
        Input()
    with pytest.raises(ValueError, match="shape"):
        Input((3, -1))
    with pytest.raises(ValueError, match="got both"):
        Input((3,), batch_shape=(None, 3))
    with pytest.raises(ValueError, match="sparse"):
        Input((3,), sparse=True)


def test_two_layers_of_one_name_are_refused():
    x = Input((4,))
    with pytest.raises(ValueError, match="name 'same'"):
        Model(x, layers.Dense(2, name="same")(layers.Dense(3, name="same")(x)))


def test_config_round_trip():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    shared = layers.Dense(3, name="shared")
    model = Model({"a": a, "b": b}, [layers.Add(name="sum")([shared(a), shared(b)]), ops.relu(shared(a)) * 2.0])
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    given = {"a": X, "b": Z}
    for one, other in zip(model.predict(given, verbose=0), copy.predict(given, verbose=0), strict=True):
        np.testing.assert_array_equal(one, other)
    again = models.model_from_json(model.to_json())
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]


def test_json_that_describes_no_model():
    for text in ("{}", "[1]", '{"class_name": "Dense", "config": {"units": 2}}', "nothing"):
        with pytest.raises(ValueError):
            models.model_from_json(text)
