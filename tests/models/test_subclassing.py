"""Models and layers of one's own."""

import numpy as np
import pytest

from magmadnn_py import Input, Layer, Model, Sequential, layers, metrics, ops, regularizers, saving, utils

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = X @ np.array([[1.0], [-2.0], [0.5], [3.0]], "float32")


class Net(Model):
    def __init__(self, units=8):
        super().__init__()
        self.hidden = layers.Dense(units, activation="relu")
        self.drop = layers.Dropout(0.5)
        self.top = [layers.Dense(1)]

    def call(self, x, training=False):
        x = self.hidden(x)
        if training:
            x = self.drop(x, training=training)
        return self.top[0](x)


def test_it_is_built_by_fit_and_learns():
    utils.set_random_seed(0)
    model = Net()
    model.compile("adam", "mse")
    model.optimizer.learning_rate = 0.01
    history = model.fit(X, Y, batch_size=8, epochs=30, verbose=0).history["loss"]
    assert history[-1] < 0.5 * history[0]
    assert len(model.trainable_weights) == 4
    assert [layer.name.split("_")[0] for layer in model.layers] == ["dense", "dropout", "dense"]


def test_the_training_flag():
    model = Net()
    x = np.ones((64, 4), "float32")
    quiet = np.asarray(model(x))
    np.testing.assert_array_equal(quiet, np.asarray(model(x, training=False)))
    np.testing.assert_allclose(quiet, model.predict(x, verbose=0), rtol=1e-5)
    assert np.ptp(np.asarray(model(x, training=True))) > 0
    assert np.ptp(quiet) == pytest.approx(0, abs=1e-5)


def test_several_inputs_and_a_dict_of_outputs():
    class Two(Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, inputs):
            left, right = inputs
            return {"sum": self.dense(left) + right, "right": right * 2.0}

    model = Two()
    model.compile("sgd", {"sum": "mse", "right": "mae"})
    logs = model.fit([X, Y], {"sum": Y, "right": Y}, verbose=0).history
    assert set(logs) == {"loss", "sum_loss", "right_loss"}
    assert logs["loss"][0] == pytest.approx(logs["sum_loss"][0] + logs["right_loss"][0], rel=1e-5)
    assert model.predict([X, Y], verbose=0)["right"].shape == (32, 1)


def test_subclass_of_a_functional_model():
    class Named(Model):
        def __init__(self):
            x = Input((4,))
            super().__init__(x, layers.Dense(1)(x))

    model = Named()
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(X, Y, verbose=0).history["loss"][0])
    assert model.output_shape == (None, 1)


class Scale(Layer):
    def __init__(self, penalty=0.0, **kwargs):
        super().__init__(**kwargs)
        self.penalty = penalty

    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[-1],), initializer="ones", name="scale")

    def call(self, x):
        if self.penalty:
            self.add_loss(self.penalty * ops.sum(ops.square(self.scale)))
        return x * self.scale


def test_a_layer_that_adds_a_loss():
    model = Sequential([Input((4,)), Scale(0.5), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(np.mean(Y**2) + 0.5 * 4, rel=1e-5)


def test_only_added_losses():
    model = Sequential([Input((4,)), Scale(0.5)])
    model.compile("sgd")
    model.optimizer.learning_rate = 0.1
    assert model.fit(X, batch_size=32, verbose=0).history["loss"] == [pytest.approx(2.0)]
    np.testing.assert_allclose(model.get_weights()[0], np.full(4, 0.9), rtol=1e-6)


def test_no_loss_at_all_is_an_error():
    model = Sequential([Input((4,)), Scale()])
    model.compile("sgd")
    with pytest.raises(ValueError, match="loss"):
        model.fit(X, verbose=0)


def test_regularizers_of_weights_and_activities():
    model = Sequential(
        [
            Input((4,)),
            layers.Dense(2, use_bias=False, kernel_initializer="ones", kernel_regularizer=regularizers.L2(0.1)),
            layers.Dense(1, use_bias=False, kernel_initializer="zeros", activity_regularizer="l1"),
            layers.ActivityRegularization(l2=0.01),
        ]
    )
    model.compile("sgd", "mse")
    wanted = np.mean(Y**2) + 0.1 * 8
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(wanted, rel=1e-5)
    assert model.fit(X, Y, batch_size=32, verbose=0).history["loss"][0] == pytest.approx(wanted, rel=1e-5)


def test_own_compute_loss():
    class Weighted(Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1, kernel_initializer="zeros", kernel_regularizer="l2")

        def call(self, x):
            return self.dense(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return 3.0 * ops.mean(ops.square(y - y_pred)) + ops.mean(ops.square(x)) + sum(self.losses)

    model = Weighted()
    model.compile("sgd")
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(3 * np.mean(Y**2) + np.mean(X**2), rel=1e-5)
    history = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_compute_loss_that_asks_the_compiled_one():
    class Doubled(Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1, kernel_initializer="zeros")

        def call(self, x):
            return self.dense(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return 2.0 * super().compute_loss(x, y, y_pred, sample_weight, training)

    model = Doubled()
    model.compile("sgd", "mse", metrics=["mse"])
    loss, mse = model.evaluate(X, Y, verbose=0)
    assert loss == pytest.approx(2 * mse, rel=1e-5)


def test_compute_loss_must_give_a_scalar():
    class Wrong(Net):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return ops.square(y - y_pred)

    model = Wrong()
    model.compile("sgd")
    with pytest.raises(ValueError, match="compute_loss.*wanted a scalar"):
        model.fit(X, Y, verbose=0)


def test_a_metric_of_ones_own():
    class MeanOfPredictions(metrics.Metric):
        def __init__(self, name="mean_of_predictions", **kwargs):
            super().__init__(name=name, **kwargs)
            self.total = self.add_variable(name="total")
            self.count = self.add_variable(name="count")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign(self.total + ops.sum(y_pred))
            self.count.assign(self.count + float(y_pred.shape[0]))

        def result(self):
            return self.total / self.count

    model = Sequential([Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[MeanOfPredictions()])
    result = model.evaluate(X, Y, batch_size=10, verbose=0, return_dict=True)
    assert result["mean_of_predictions"] == pytest.approx(model.predict(X, verbose=0).mean(), rel=1e-4, abs=1e-6)


def test_loss_and_metric_functions_of_ones_own():
    def half_square(y_true, y_pred):
        return 0.5 * ops.mean(ops.square(y_true - y_pred), axis=-1)

    def largest(y_true, y_pred):
        return ops.max(ops.absolute(y_true - y_pred), axis=-1)

    model = Sequential([Input((4,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", half_square, metrics=[largest])
    loss, metric = model.evaluate(X, Y, verbose=0)
    assert loss == pytest.approx(0.5 * np.mean(Y**2), rel=1e-5)
    assert metric == pytest.approx(np.mean(np.abs(Y)), rel=1e-5)


def test_without_call_it_says_so():
    class Nothing(Model):
        pass

    with pytest.raises(NotImplementedError, match="define call"):
        Nothing().predict(X, verbose=0)


def test_an_error_in_call_names_the_layer():
    class Bad(Layer):
        def call(self, x):
            return ops.reshape(x, (3, 5))

    with pytest.raises(ValueError, match="layer 'bad' "):
        Bad(name="bad")(X)


def test_config_of_a_subclass(tmp_path):
    @saving.register_keras_serializable("test_subclassing")
    class Small(Model):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units
            self.first = layers.Dense(units)
            self.rest = [layers.Dense(2), {"last": layers.Dense(1)}]

        def call(self, x):
            return self.rest[1]["last"](self.rest[0](self.first(x)))

    model = Small(3)
    model.predict(X, verbose=0)
    model.save_weights(tmp_path / "w.weights.h5")
    copy = Small.from_config(model.get_config())
    copy.predict(X, verbose=0)
    copy.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(copy.predict(X, verbose=0), model.predict(X, verbose=0))


def test_build_makes_all_weights():
    model = Net()
    model.build((None, 4))
    assert [w.shape for w in model.weights] == [(4, 8), (8,), (8, 1), (1,)]
    assert model.count_params() == 49
