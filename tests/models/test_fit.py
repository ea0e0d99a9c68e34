"""fit: what is trained, in which order, what is reported."""

import signal
import threading
import time

import numpy as np
import pytest

from magmadnn_py import Input, Model, Sequential, callbacks, layers, ops, optimizers, utils
from models.networks import LABELS, X, Y, classifier, identity, regressor, two_outputs


def sgd(rate=0.1):
    return optimizers.SGD(rate)


# History


def test_history_keys_and_lengths():
    history = classifier().fit(X, LABELS, epochs=3, validation_split=0.2, verbose=0)
    assert set(history.history) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert all(len(values) == 3 for values in history.history.values())
    assert history.epoch == [0, 1, 2]


def test_it_learns():
    utils.set_random_seed(0)
    labels = (X[:, 0] > 0).astype("int64")
    model = classifier(optimizer=optimizers.Adam(0.02))
    model.fit(X, labels, epochs=60, verbose=0)
    assert model.evaluate(X, labels, verbose=0, return_dict=True)["accuracy"] > 0.95


def test_history_of_several_outputs():
    model = two_outputs()
    model.compile("sgd", ["sparse_categorical_crossentropy", "mse"], metrics=[["accuracy"], ["mae"]])
    logs = model.fit(X, [LABELS, Y], verbose=0, validation_data=(X, [LABELS, Y])).history
    names = {"loss", "kind_loss", "size_loss", "kind_accuracy", "size_mae"}
    assert set(logs) == names | {f"val_{name}" for name in names}


def test_epoch_numbers():
    seen = []
    model = regressor()
    model.fit(
        X,
        Y,
        epochs=5,
        initial_epoch=3,
        verbose=0,
        callbacks=[callbacks.LambdaCallback(on_epoch_begin=lambda e, logs: seen.append(e))],
    )
    assert seen == [3, 4]
    assert model.epoch == 5


# The steps themselves


def test_one_step_of_sgd_by_hand():
    model = regressor(optimizer=sgd(0.1))
    kernel, bias = model.get_weights()
    error = X @ kernel + bias - Y
    model.fit(X, Y, batch_size=50, verbose=0)
    np.testing.assert_allclose(
        model.layers[0].kernel.numpy(), kernel - 0.1 * 2 * X.T @ error / 50, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(model.layers[0].bias.numpy(), bias - 0.1 * 2 * error.mean(0), rtol=1e-4, atol=1e-6)


def test_batches_in_order_without_shuffling():
    model = regressor(optimizer=sgd(0.05))
    kernel, bias = (w.astype("float64") for w in model.get_weights())
    for first in range(0, 50, 16):  # the last batch has 2 rows
        x, y = X[first : first + 16], Y[first : first + 16]
        error = x @ kernel + bias - y
        kernel -= 0.05 * 2 * x.T @ error / len(x)
        bias -= 0.05 * 2 * error.mean(0)
    model.fit(X, Y, batch_size=16, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.layers[0].kernel.numpy(), kernel, rtol=1e-4, atol=1e-6)
    assert int(model.optimizer.iterations.numpy()) == 4


@pytest.mark.parametrize("kind", ["arrays", "generator", "validation"])
def test_behaviour_23_the_last_batch_counts_by_its_size(kind):
    x, y = np.zeros((3, 1), "float32"), np.array([[10.0], [10], [9]], "float32")
    model = identity(optimizer=sgd(0.0))
    if kind == "arrays":
        logs = model.fit(x, y, batch_size=2, shuffle=False, verbose=0).history
    elif kind == "generator":
        batches = ((x[i : i + 2], y[i : i + 2]) for i in (0, 2))
        logs = model.fit(batches, verbose=0).history
    else:
        logs = {"loss": model.fit(x, x, batch_size=2, validation_data=(x, y), verbose=0).history["val_loss"]}
    assert logs["loss"][0] == pytest.approx(29 / 3, rel=1e-6)
    assert model.evaluate(x, y, batch_size=2, verbose=0) == pytest.approx(29 / 3, rel=1e-6)


def test_behaviour_1_a_last_batch_of_one_with_batch_norm():
    x = np.random.default_rng(0).normal(size=(33, 3)).astype("float32")
    model = Sequential([Input((3,)), layers.Dense(4), layers.BatchNormalization(), layers.Dense(1)])
    model.compile("adam", "mse")
    assert np.isfinite(model.fit(x, x[:, :1], batch_size=32, verbose=0).history["loss"][0])


def test_behaviour_25_orders():
    def orders(seed, epochs=2, shuffle=True):
        """The order in which each epoch sees the rows: a Lambda that keeps the last row it saw would not do; the
        targets of batches of one row are recorded by the loss of each step."""
        utils.set_random_seed(seed)
        model = identity(optimizer=sgd(0.0))
        x, y = np.zeros((20, 1), "float32"), np.arange(20, dtype="float32")[:, None]
        running = []
        hook = callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: running.append(logs["loss"] * (batch + 1))
        )
        model.fit(x, y, batch_size=1, epochs=epochs, shuffle=shuffle, verbose=0, callbacks=[hook])
        sums = np.array(running).reshape(epochs, 20)
        return np.rint(np.diff(sums, prepend=0, axis=1)).astype(int)

    first = orders(3)
    assert sorted(first[0]) == sorted(first[1]) == list(range(20))
    assert list(first[0]) != list(first[1])
    np.testing.assert_array_equal(first, orders(3))
    assert list(orders(4)[0]) != list(first[0])
    np.testing.assert_array_equal(orders(3, shuffle=False), [range(20)] * 2)


def test_shuffle_inside_batches():
    model = identity(optimizer=sgd(0.0))
    order = model._order(10, 4, "batch").numpy()
    assert sorted(order[:4]) == [0, 1, 2, 3]
    assert sorted(order[4:8]) == [4, 5, 6, 7]
    assert sorted(order[8:]) == [8, 9]


def test_steps_per_epoch_ends_an_epoch_early():
    model = regressor()
    model.fit(X, Y, batch_size=10, steps_per_epoch=2, epochs=3, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == 6


def test_eager_running_gives_the_same_numbers():
    utils.set_random_seed(5)
    one = classifier()
    other = classifier(run_eagerly=True)
    other.set_weights(one.get_weights())
    logs = [m.fit(X, LABELS, batch_size=20, epochs=2, shuffle=False, verbose=0).history["loss"] for m in (one, other)]
    np.testing.assert_allclose(*logs, rtol=1e-5)
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


# Weights of samples and classes


def test_sample_weights_scale_the_gradient():
    weights = np.linspace(0, 2, 50).astype("float32")
    model = regressor(optimizer=sgd(0.1))
    kernel, bias = model.get_weights()
    error = (X @ kernel + bias - Y) * weights[:, None]
    model.fit(X, Y, batch_size=50, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(
        model.layers[0].kernel.numpy(), kernel - 0.1 * 2 * X.T @ error / 50, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("one_hot", [False, True])
def test_class_weights(one_hot):
    y = utils.to_categorical(LABELS, 3) if one_hot else LABELS
    loss = "categorical_crossentropy" if one_hot else "sparse_categorical_crossentropy"
    one, other = classifier(loss=loss), classifier(loss=loss)
    other.set_weights(one.get_weights())
    one.fit(X, y, class_weight={0: 3.0, 2: 0.0}, shuffle=False, verbose=0)
    weights = np.array([3.0, 1.0, 0.0], "float32")[LABELS]
    other.fit(X, y, sample_weight=weights, shuffle=False, verbose=0)
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_class_weights_with_a_generator():
    one, other = classifier(), classifier()
    other.set_weights(one.get_weights())
    one.fit(((X, LABELS) for _ in range(1)), class_weight={1: 2.0}, verbose=0)
    other.fit(X, LABELS, batch_size=50, class_weight={1: 2.0}, verbose=0, shuffle=False)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def test_class_weight_errors():
    model = classifier()
    with pytest.raises(ValueError, match="class_weight, sample_weight: got both"):
        model.fit(X, LABELS, class_weight={0: 1.0}, sample_weight=np.ones(50), verbose=0)
    with pytest.raises(ValueError, match="class_weight: got .*'a'"):
        model.fit(X, LABELS, class_weight={"a": 1.0}, verbose=0)
    several = two_outputs()
    several.compile("sgd", ["sparse_categorical_crossentropy", "mse"])
    with pytest.raises(ValueError, match="class_weight: .*one output"):
        several.fit(X, [LABELS, Y], class_weight={0: 1.0}, verbose=0)


def test_behaviour_22_class_weight_on_maps():
    model = Sequential([Input((4, 4, 1)), layers.Conv2D(2, 1, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match=r"use sample_weight of shape \(batch, h, w\)"):
        model.fit(np.ones((2, 4, 4, 1)), np.ones((2, 4, 4), int), class_weight={0: 2.0}, verbose=0)
    weights = np.zeros((2, 4, 4), "float32")
    weights[:, 0, 0] = 1
    assert np.isfinite(
        model.fit(np.ones((2, 4, 4, 1)), np.ones((2, 4, 4), int), sample_weight=weights, verbose=0).history["loss"][0]
    )


# Validation


def test_validation_split_takes_the_last_rows():
    model = identity(optimizer=sgd(0.0))
    x, y = np.zeros((10, 1), "float32"), np.arange(10, dtype="float32")[:, None]
    logs = model.fit(x, y, validation_split=0.3, verbose=0).history
    assert logs["loss"][0] == pytest.approx(3.0)
    assert logs["val_loss"][0] == pytest.approx(8.0)


@pytest.mark.parametrize(("frequency", "epochs"), [(2, [2, 4]), ([1, 3], [1, 3])])
def test_validation_frequency(frequency, epochs):
    seen = []

    class Watch(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if "val_loss" in logs:
                seen.append(epoch + 1)

    regressor().fit(X, Y, epochs=4, validation_data=(X, Y), validation_freq=frequency, verbose=0, callbacks=[Watch()])
    assert seen == epochs


def test_behaviour_21_validation_with_sample_weights():
    x = np.array([[1.0], [-1.0]], "float32")
    model = Sequential([Input((1,)), layers.Dense(1, activation="sigmoid", use_bias=False, kernel_initializer="ones")])
    model.compile(sgd(0.0), "binary_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"])
    y = np.array([[1.0], [1.0]])
    weights = np.array([1.0, 0.0])
    logs = model.fit(x, y, validation_data=(x, y, weights), verbose=0).history
    plain = [v for k, v in logs.items() if k.startswith("val_") and "accuracy" in k]
    assert sorted(v[0] for v in plain) == [0.5, 1.0]
    assert logs["val_loss"][0] == pytest.approx(np.log1p(np.exp(-1)) / 2, rel=1e-5)


def test_behaviour_20_weights_of_zero_give_zero():
    model = classifier()
    logs = model.fit(X, LABELS, validation_data=(X, LABELS, np.zeros(50)), verbose=0).history
    assert logs["val_loss"] == [0.0]
    assert model.evaluate(X, LABELS, sample_weight=np.zeros(50), verbose=0)[0] == 0.0


def test_validation_does_not_train():
    model = Sequential([Input((4,)), layers.BatchNormalization(), layers.Dense(1)])
    model.compile(sgd(0.0), "mse")
    model.fit(X[:10], Y[:10], verbose=0)
    before = model.get_weights()
    model.evaluate(X, Y, verbose=0)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_validation_with_several_batch_sizes_and_steps():
    logs = regressor().fit(X, Y, validation_data=(X, Y), validation_batch_size=7, validation_steps=2, verbose=0).history
    assert len(logs["val_loss"]) == 1


# Callbacks


class Steps(callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.begun, self.ended = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.begun.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        self.ended.append((batch, logs["loss"]))


def test_batch_hooks_are_called_at_each_step():
    steps = Steps()
    regressor().fit(X, Y, batch_size=8, verbose=0, callbacks=[steps])
    assert steps.begun == list(range(7))
    assert [batch for batch, _ in steps.ended] == list(range(7))
    assert len({loss for _, loss in steps.ended}) == 7


def test_several_steps_per_execution():
    steps = Steps()
    regressor(steps_per_execution=3).fit(X, Y, batch_size=8, verbose=0, callbacks=[steps])
    assert steps.begun == [0, 3, 6]


def test_test_and_predict_hooks():
    seen = []
    hook = callbacks.LambdaCallback()
    for kind in ("test", "predict"):
        setattr(hook, f"on_{kind}_batch_end", lambda batch, logs=None, kind=kind: seen.append((kind, batch)))
    model = regressor()
    model.evaluate(X, Y, batch_size=20, verbose=0, callbacks=[hook])
    model.predict(X, batch_size=20, verbose=0, callbacks=[hook])
    assert seen == [(kind, batch) for kind in ("test", "predict") for batch in range(3)]


def test_stopping_in_the_middle_of_an_epoch():
    class Stop(callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 2

    model = regressor()
    history = model.fit(X, Y, batch_size=8, epochs=4, verbose=0, callbacks=[Stop()], validation_data=(X, Y))
    assert int(model.optimizer.iterations.numpy()) == 3
    assert len(history.history["val_loss"]) == 1
    assert np.isfinite(model.evaluate(X, Y, verbose=0))  # which runs although training was stopped
    model.fit(X, Y, batch_size=8, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == 10


@pytest.mark.parametrize("kind", ["arrays", "generator"])
def test_behaviour_26_nan_stops_training(kind):
    y = Y.copy()
    y[25] = np.nan
    model = regressor()
    steps = Steps()
    stop = callbacks.TerminateOnNaN()
    if kind == "arrays":
        model.fit(X, y, batch_size=5, shuffle=False, epochs=3, verbose=0, callbacks=[stop, steps])
    else:
        batches = ((X[i : i + 5], y[i : i + 5]) for i in range(0, 50, 5))
        model.fit(batches, epochs=1, verbose=0, callbacks=[stop, steps])
    assert [batch for batch, _ in steps.ended] == list(range(6))


def test_behaviour_26_nan_is_never_an_improvement(tmp_path):
    y = np.full_like(Y, np.nan)
    model = regressor()
    early = callbacks.EarlyStopping(patience=1, restore_best_weights=True)
    save = callbacks.ModelCheckpoint(tmp_path / "best.keras", save_best_only=True)
    history = model.fit(X, y, validation_data=(X, y), epochs=6, verbose=0, callbacks=[early, save])
    assert len(history.epoch) == 2
    assert not (tmp_path / "best.keras").exists()


def test_learning_rate_changes_while_training():
    model = identity(optimizer=sgd(1.0))
    x, y = np.ones((1, 1), "float32"), np.full((1, 1), -100, "float32")
    rates = [1.0, 0.25, 0.5]
    schedule = callbacks.LearningRateScheduler(lambda epoch: rates[epoch])
    model.fit(x, y, epochs=3, verbose=0, callbacks=[schedule])
    assert model.get_weights()[0][0, 0] == pytest.approx(1 - sum(rates))
    model.optimizer.learning_rate = 2.0
    model.fit(x, y, verbose=0)
    assert model.get_weights()[0][0, 0] == pytest.approx(1 - sum(rates) - 2)


@pytest.mark.parametrize("schedule", [
    optimizers.schedules.ExponentialDecay(1.0, 1, 0.5),
    type("Own", (optimizers.schedules.LearningRateSchedule,), {"__call__": lambda self, step: 0.5 ** float(step)})(),
])  # fmt: skip
def test_schedules(schedule):
    model = identity(optimizer=sgd(schedule))
    x, y = np.ones((3, 1), "float32"), np.full((3, 1), -100, "float32")
    model.fit(x, y, batch_size=1, verbose=0)
    assert model.get_weights()[0][0, 0] == pytest.approx(1 - 1.75)


def test_keyboard_interrupt_leaves_a_usable_model():
    utils.set_random_seed(0)
    model = classifier()
    x, labels = np.tile(X, (40, 1)), np.tile(LABELS, 40)
    ended = []
    done = threading.Event()

    def interrupt():
        while not done.wait(0.3):
            signal.raise_signal(signal.SIGINT) if False else signal.pthread_kill(
                threading.main_thread().ident, signal.SIGINT
            )
            return

    thread = threading.Thread(target=interrupt)
    hook = callbacks.LambdaCallback(on_train_end=lambda logs: ended.append(True))
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        model.fit(x, labels, batch_size=4, epochs=10**6, verbose=0, callbacks=[hook])
    done.set()
    thread.join()
    assert time.perf_counter() - begun < 20
    assert ended == [True]
    count = int(model.optimizer.iterations.numpy())
    assert all(np.isfinite(w).all() for w in model.get_weights())
    model.fit(X, LABELS, batch_size=25, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == count + 2


def test_an_error_in_a_callback_leaves_a_usable_model():
    def fail(epoch, logs):
        raise RuntimeError("no more")

    model = regressor()
    with pytest.raises(RuntimeError, match="no more"):
        model.fit(X, Y, verbose=0, callbacks=[callbacks.LambdaCallback(on_epoch_end=fail)])
    assert np.isfinite(model.fit(X, Y, verbose=0).history["loss"][0])


# What trains


def test_frozen_layers_stay():
    model = Sequential([Input((4,)), layers.Dense(3, name="frozen"), layers.BatchNormalization(), layers.Dense(1)])
    model.get_layer("frozen").trainable = False
    model.layers[1].trainable = False
    model.compile("adam", "mse")
    before = [w.copy() for layer in model.layers[:2] for w in layer.get_weights()]
    top = model.layers[2].get_weights()[0]
    model.fit(X, Y, epochs=2, verbose=0)
    for a, b in zip(before, [w for layer in model.layers[:2] for w in layer.get_weights()], strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.any(model.layers[2].get_weights()[0] != top)
    assert len(model.trainable_weights) == 2


def test_freezing_after_compile_and_before_the_first_step():
    model = regressor()
    model.add(layers.Dense(1))
    model.layers[0].trainable = False
    before = model.layers[0].get_weights()[0]
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.layers[0].get_weights()[0], before)


def test_freezing_in_the_middle_needs_another_compile():
    model = Sequential([Input((4,)), layers.Dense(3), layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.layers[0].trainable = False
    with pytest.raises(ValueError, match=r"call compile\(\) again"):
        model.fit(X, Y, verbose=0)
    assert np.isfinite(model.evaluate(X, Y, verbose=0))
    model.compile("adam", "mse")
    before = model.layers[0].get_weights()[0]
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.layers[0].get_weights()[0], before)
    model.layers[0].trainable = True
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    assert np.any(model.layers[0].get_weights()[0] != before)


def test_nothing_to_train_is_an_error():
    model = regressor()
    model.trainable = False
    with pytest.raises(ValueError, match="no trainable weights"):
        model.fit(X, Y, verbose=0)


def test_behaviour_2_moving_statistics_are_biased():
    model = Sequential([Input((1,)), layers.BatchNormalization(momentum=0.0)])
    model.compile(sgd(0.0), "mse")
    x = np.array([[1.0], [2], [3], [4]])
    model.fit(x, x, verbose=0)
    assert model.layers[0].moving_variance.numpy() == pytest.approx([1.25])
    assert model.layers[0].moving_mean.numpy() == pytest.approx([2.5])


def test_compiling_again_keeps_the_weights_and_begins_the_optimizer():
    model = classifier()
    model.fit(X, LABELS, verbose=0)
    before = model.get_weights()
    model.compile("sgd", "sparse_categorical_crossentropy")
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    first = model.predict(X, verbose=0)
    model.fit(X, LABELS, verbose=0)
    assert np.any(model.predict(X, verbose=0) != first)
    assert int(model.optimizer.iterations.numpy()) == 2


def test_two_models_that_train_the_same_layers_in_turn():
    shared = layers.Dense(3)
    x = Input((4,))
    hidden = shared(x)
    one, other = Model(x, layers.Dense(1)(hidden)), Model(x, layers.Dense(1)(hidden))
    for model in (one, other):
        model.compile(sgd(0.01), "mse")
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=w.shape) for w in (*one.weights, *other.weights[2:])]
    one.set_weights([w.astype("float32") for w in weights[:4]])
    other.set_weights([w.astype("float32") for w in (*weights[:2], *weights[4:])])
    for _ in range(2):
        for first, model in ((2, one), (4, other)):
            model.fit(X, Y, batch_size=50, verbose=0)
            kernel, bias, top, top_bias = *weights[:2], weights[first], weights[first + 1]
            inner = X @ kernel + bias
            error = 2 * (inner @ top + top_bias - Y) / 50
            back = error @ top.T
            changes = (X.T @ back, back.sum(0), inner.T @ error, error.sum(0))
            for index, change in zip((0, 1, first, first + 1), changes, strict=True):
                weights[index] = weights[index] - 0.01 * change
    found = [*one.get_weights(), *other.get_weights()[2:]]
    for a, b in zip(found, weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def test_a_generator_and_discriminator_in_turn():
    """The pattern of adversarial training: one model trains a part that the other holds frozen."""
    judge = Sequential([Input((2,)), layers.Dense(1, activation="sigmoid")])
    judge.compile(sgd(), "binary_crossentropy")
    maker = Sequential([Input((2,)), layers.Dense(2)])
    z = Input((2,))
    judge.trainable = False
    both = Model(z, judge(maker(z)))
    both.compile(sgd(), "binary_crossentropy")
    noise = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
    for _ in range(3):
        judge.trainable = True
        judge.train_on_batch(maker.predict(noise, verbose=0), np.zeros((8, 1)))
        judge.trainable = False
        frozen, moved = judge.get_weights(), maker.get_weights()
        both.train_on_batch(noise, np.ones((8, 1)))
        np.testing.assert_array_equal(judge.get_weights()[0], frozen[0])
        assert np.any(maker.get_weights()[0] != moved[0])


# Data that does not fit: one error that names it, and nothing is changed


@pytest.mark.parametrize(("x", "y", "message"), [
    (X[:, :3], Y, r"input .*got shape \(32, 3\), wanted \(batch, 4\)"),
    (X, Y[:40], r"different numbers of rows \(x \[50\], y \[40\]\)"),
    (X[:0], Y[:0], "x: got no rows"),
    (None, None, "x: got no arrays"),
    (np.float32(3), Y, "x: got a scalar"),
    ([X, X], Y, "got 2 tensors, wanted 1"),
    (X, [Y, Y], "y: got 2 targets, wanted 1"),
    (X, None, "y: .*no target"),
    (X, np.ones((50, 2), "float32"), r"shape \(32, 2\)"),
    (X.astype(str), Y, "x: "),
    (X.astype(object), Y, "x: "),
    ([[1.0, 2, 3, 4], [1, 2]], Y[:2], "x: "),
    ("text", None, "x: got str, wanted arrays"),
])  # fmt: skip
def test_bad_arrays(x, y, message):
    model = regressor()
    before = model.get_weights()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y, verbose=0)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert np.isfinite(model.fit(X, Y, verbose=0).history["loss"][0])


@pytest.mark.parametrize(("arguments", "message"), [
    ({"batch_size": 0}, "batch_size: got 0, wanted a positive integer"),
    ({"batch_size": 2.5}, "batch_size"),
    ({"epochs": 0}, "epochs"),
    ({"epochs": True}, "epochs"),
    ({"validation_split": 1.5}, "validation_split: got 1.5"),
    ({"validation_split": 0.999}, "leaves one part empty"),
    ({"validation_data": (X[:, :2], Y)}, "got shape"),
    ({"validation_data": (X, Y[:3])}, "validation_data: .*different numbers of rows"),
    ({"validation_data": (X[:0], Y[:0])}, "validation_data: x: got no rows"),
    ({"validation_data": (X, Y, Y, Y)}, "validation_data: got 4 parts"),
    ({"validation_freq": 0, "validation_data": (X, Y)}, "validation_freq"),
    ({"sample_weight": np.ones(3)}, "different numbers of rows"),
    ({"sample_weight": np.ones((50, 7))}, "sample_weight: got shape"),
    ({"callbacks": ["history"]}, "callbacks: got 'history'"),
    ({"steps_per_epoch": 0}, "steps_per_epoch"),
    ({"initial_epoch": -1}, "initial_epoch"),
])  # fmt: skip
def test_bad_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        regressor().fit(X, Y, verbose=0, **arguments)


@pytest.mark.parametrize("labels", [np.array([0, 5]), np.array([0, -1]), np.array([0.0, np.nan]), np.array([[0], [3]])])
@pytest.mark.parametrize("method", ["fit", "evaluate", "train_on_batch", "test_on_batch", "validation", "generator"])
def test_behaviour_19_labels_that_are_no_class(labels, method):
    model = classifier()
    before = model.get_weights()
    with pytest.raises(ValueError, match="y: .*output '.*'.*(5|-1|nan|NaN|3).*"):
        if method == "validation":
            model.fit(X, LABELS, validation_data=(X[:2], labels), verbose=0)
        elif method == "generator":
            model.fit(((X[:2], labels) for _ in range(2)), verbose=0)
        elif method in ("fit", "evaluate"):
            getattr(model, method)(X[:2], labels, verbose=0)
        else:
            getattr(model, method)(X[:2], labels)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


def test_fit_before_compile():
    model = Sequential([Input((4,)), layers.Dense(1)])
    for method in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=r"needs compile\(\) first"):
            method(X, Y)


@pytest.mark.parametrize("make", [
    lambda x: x[:, ::-1][:, ::-1],
    lambda x: np.asfortranarray(x),
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    lambda x: np.ascontiguousarray(x.T).T,
    lambda x: x.astype(">f4"),
    lambda x: x.astype("float64"),
    lambda x: x[::-1][::-1],
    lambda x: x.tolist(),
    lambda x: _read_only(x),
])  # fmt: skip
def test_behaviour_28_layouts_of_arrays(make):
    one, other = regressor(), regressor()
    other.set_weights(one.get_weights())
    one.fit(X, Y, shuffle=False, verbose=0)
    other.fit(make(X), make(Y) if Y.shape[1] != 1 else Y[::-1][::-1], shuffle=False, verbose=0)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "int32", "int64", "float16", "float64"])
def test_behaviour_28_element_types(dtype):
    data = (np.arange(200).reshape(50, 4) % 7).astype(dtype)
    model = regressor()
    np.testing.assert_array_equal(model.predict(data, verbose=0), model.predict(data.astype("float32"), verbose=0))


def test_behaviour_28_memmap(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    model = regressor()
    np.testing.assert_array_equal(model.predict(np.load(path, mmap_mode="r"), verbose=0), model.predict(X, verbose=0))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64", "uint16"])
def test_labels_of_any_type(dtype):
    one, other = classifier(), classifier()
    other.set_weights(one.get_weights())
    one.fit(X, LABELS, shuffle=False, verbose=0)
    other.fit(X, LABELS.astype(dtype)[:, None], shuffle=False, verbose=0)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def test_lambda_layers_and_ops_train():
    x = Input((4,))
    model = Model(x, ops.sum(layers.Lambda(lambda v: v * 2)(layers.Dense(3)(x)), axis=-1, keepdims=True))
    model.compile("sgd", "mse")
    first = model.evaluate(X, Y, verbose=0)
    model.fit(X, Y, epochs=5, verbose=0)
    assert model.evaluate(X, Y, verbose=0) < first
