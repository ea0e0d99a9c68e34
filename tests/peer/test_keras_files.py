"""Files that Keras 3 wrote are read here, and the other way round, with equal predictions."""

from __future__ import annotations

import os

import numpy as np
import pytest

import magmadnn_py as magmadnn

os.environ.setdefault("KERAS_BACKEND", "jax")
pytest.importorskip("jax", reason="JAX is not installed: files are not exchanged with Keras")
keras = pytest.importorskip("keras", reason="Keras is not installed: files are not exchanged with it")


def images(rows=3):
    return np.random.default_rng(0).normal(size=(rows, 12, 12, 3)).astype("float32")


# Each builds the same network with either library.


def small_convnet(k):
    return k.Sequential([
        k.Input((12, 12, 3)),
        k.layers.Rescaling(0.5),
        k.layers.Conv2D(8, 3, padding="same", activation="relu", kernel_regularizer="l2"),
        k.layers.BatchNormalization(),
        k.layers.MaxPooling2D(),
        k.layers.Dropout(0.3),
        k.layers.DepthwiseConv2D(3),
        k.layers.SeparableConv2D(6, 3),
        k.layers.GlobalAveragePooling2D(),
        k.layers.Dense(4, activation="softmax"),
    ])  # fmt: skip


def decoder(k):
    return k.Sequential([
        k.Input((12, 12, 3)),
        k.layers.Conv2D(4, 3, strides=2, padding="same"),
        k.layers.LayerNormalization(),
        k.layers.LeakyReLU(),
        k.layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
        k.layers.UpSampling2D(2),
        k.layers.ZeroPadding2D(1),
        k.layers.AveragePooling2D(2),
        k.layers.PReLU(shared_axes=[1, 2]),
    ])  # fmt: skip


def residual(k):
    x = k.Input((12, 12, 3), name="image")
    y = k.layers.Conv2D(4, 1)(x)
    shared = k.layers.Conv2D(4, 3, padding="same")
    y = k.layers.Add()([y, shared(y)])
    y = k.layers.Concatenate()([y, shared(y)])
    y = k.layers.Flatten()(y)
    return k.Model(x, [k.layers.Dense(3, name="one")(y), k.layers.Dense(1, activation="sigmoid", name="two")(y)])


def nested(k):
    inner = k.Sequential([k.layers.Conv2D(4, 3), k.layers.ReLU(max_value=6.0)])
    u = k.Input((10, 10, 4))
    head = k.Model(u, k.layers.Dense(2)(k.layers.GlobalMaxPooling2D()(u)))
    return k.Sequential([k.Input((12, 12, 3)), inner, head])


def deferred(k):
    model = k.Sequential([k.layers.Flatten(), k.layers.Dense(3, activation="gelu"), k.layers.Dense(2)])
    model.build((None, 12, 12, 3))
    return model


def with_operations(k):
    x = k.Input((12, 12, 3))
    y = k.ops.relu(x * 2.0 - 1.0) + k.ops.mean(x, axis=-1, keepdims=True)
    y = k.ops.reshape(y, (-1, 432))[:, 1:]
    return k.Model(x, k.ops.concatenate([k.layers.Dense(3)(y), -y[:, :2]], axis=-1))


NETWORKS = [small_convnet, decoder, residual, nested, deferred]


def predictions(model, x):
    found = model.predict(x, verbose=0)
    return list(found) if isinstance(found, list | tuple) else [found]


def shuffled_weights(model):
    """Weights that no initializer gives, so that none can be missed."""
    random = np.random.default_rng(1)
    model.set_weights([random.uniform(0.1, 0.5, w.shape).astype("float32") for w in model.get_weights()])
    return model


def assert_same(one, other):
    for a, b in zip(predictions(one, images()), predictions(other, images()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_file_of_ours_in_keras(tmp_path, network):
    model = shuffled_weights(network(magmadnn))
    model.save(tmp_path / "m.keras")
    assert_same(model, keras.models.load_model(tmp_path / "m.keras"))


@pytest.mark.parametrize("network", [*NETWORKS, with_operations])
def test_a_file_of_keras_here(tmp_path, network):
    model = shuffled_weights(network(keras))
    model.save(tmp_path / "m.keras")
    assert_same(model, magmadnn.models.load_model(tmp_path / "m.keras"))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("ours_first", [True, False])
def test_files_of_weights(tmp_path, network, ours_first):
    libraries = (magmadnn, keras) if ours_first else (keras, magmadnn)
    one, other = (network(library) for library in libraries)
    shuffled_weights(one).save_weights(tmp_path / "m.weights.h5")
    other.load_weights(tmp_path / "m.weights.h5")
    assert_same(one, other)


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "rmsprop", "adamw", "adagrad", "nadam"])
@pytest.mark.parametrize("ours_first", [True, False])
def test_training_goes_on_in_the_other_library(tmp_path, optimizer, ours_first):
    libraries = (magmadnn, keras) if ours_first else (keras, magmadnn)
    x, y = images(16), np.arange(16) % 4

    def network(k):
        stack = [k.layers.Conv2D(4, 3), k.layers.BatchNormalization(), k.layers.Flatten(), k.layers.Dense(4)]
        model = k.Sequential([k.Input((12, 12, 3)), *stack])
        loss = k.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer, loss, metrics=["accuracy"])
        return model

    one = network(libraries[0])
    one.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    one.save(tmp_path / "m.keras")
    other = libraries[1].models.load_model(tmp_path / "m.keras")
    logs = [m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history for m in (one, other)]
    assert set(logs[0]) == set(logs[1]) == {"accuracy", "loss"}
    np.testing.assert_allclose(logs[0]["loss"], logs[1]["loss"], rtol=1e-3)


def test_a_subclass(tmp_path):
    def network(k):
        class Net(k.Model):
            def __init__(self):
                super().__init__()
                self.first = k.layers.Conv2D(4, 3)
                self.rest = [k.layers.Flatten(), k.layers.Dense(3), k.layers.Dense(2)]
                self._last = k.layers.Dense(2)

            def call(self, x):
                x = self.first(x)
                for layer in self.rest:
                    x = layer(x)
                return self._last(x)

        model = Net()
        model.predict(images(), verbose=0)
        return model

    for libraries in ((magmadnn, keras), (keras, magmadnn)):
        one, other = (network(library) for library in libraries)
        shuffled_weights(one).save_weights(tmp_path / "m.weights.h5")
        other.load_weights(tmp_path / "m.weights.h5")
        assert_same(one, other)
