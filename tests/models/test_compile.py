"""compile: names, objects, several outputs."""

import numpy as np
import pytest

from magmadnn_py import Sequential, layers, losses, metrics, optimizers, utils
from models.networks import LABELS, X, Y, classifier, regressor, two_outputs


@pytest.mark.parametrize(
    "optimizer", ["sgd", "SGD", optimizers.SGD, optimizers.SGD(0.01), {"class_name": "SGD", "config": {}}]
)
def test_optimizers_by_name_class_object_and_config(optimizer):
    assert isinstance(regressor(optimizer=optimizer).optimizer, optimizers.SGD)


@pytest.mark.parametrize(
    "loss", ["mse", "mean_squared_error", "MeanSquaredError", losses.MeanSquaredError(), losses.mean_squared_error]
)
def test_losses_by_name_object_and_function(loss):
    model = regressor(loss=loss)
    wanted = np.mean((model.predict(X, verbose=0) - Y) ** 2)
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"optimizer": "adm"}, "optimizer: got 'adm'.*did you mean 'adam'"),
    ({"loss": "mee"}, "loss: got 'mee'"),
    ({"steps_per_execution": 0}, "steps_per_execution"),
])  # fmt: skip
def test_unknown_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        regressor(**arguments)


def test_unknown_metric():
    with pytest.raises(ValueError, match="metric: got 'acuracy'.*"):
        regressor(metrics=["acuracy"]).fit(X, Y, verbose=0)


@pytest.mark.parametrize(("y", "units", "loss", "kind"), [
    (LABELS, 3, "sparse_categorical_crossentropy", metrics.SparseCategoricalAccuracy),
    (utils.to_categorical(LABELS, 3), 3, "categorical_crossentropy", metrics.CategoricalAccuracy),
    ((LABELS > 0)[:, None], 1, "binary_crossentropy", metrics.BinaryAccuracy),
    ((LABELS > 0), 1, "binary_crossentropy", metrics.BinaryAccuracy),
])  # fmt: skip
def test_accuracy_takes_its_kind_from_the_shapes(y, units, loss, kind):
    model = Sequential([layers.Dense(units, activation="sigmoid" if units == 1 else "softmax")])
    model.compile("sgd", loss, metrics=["accuracy"])
    logs = model.evaluate(X, y, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "accuracy"}
    assert any(isinstance(metric, kind) for metric in model.metrics)


def test_names_in_the_logs():
    model = classifier(metrics=["acc", metrics.SparseTopKCategoricalAccuracy(2, name="top_2")])
    assert set(model.evaluate(X, LABELS, verbose=0, return_dict=True)) == {"loss", "acc", "top_2"}


def losses_of(model):
    kind, size = model.predict(X, verbose=0)
    return -np.log(kind[np.arange(50), LABELS]).mean(), np.mean((size - Y) ** 2)


@pytest.mark.parametrize(("loss", "weights", "factors"), [
    (["sparse_categorical_crossentropy", "mse"], None, (1, 1)),
    (["sparse_categorical_crossentropy", "mse"], [2.0, 0.5], (2, 0.5)),
    ({"size": "mse", "kind": "sparse_categorical_crossentropy"}, {"size": 3.0}, (1, 3)),
    ({"size": "mse"}, None, (0, 1)),
    ([None, "mse"], None, (0, 1)),
])  # fmt: skip
def test_losses_of_several_outputs(loss, weights, factors):
    model = two_outputs()
    model.compile("sgd", loss, loss_weights=weights)
    kind, size = losses_of(model)
    logs = model.evaluate(X, [LABELS, Y], verbose=0, return_dict=True)
    assert logs["loss"] == pytest.approx(factors[0] * kind + factors[1] * size, rel=1e-5)
    assert logs["size_loss"] == pytest.approx(size, rel=1e-5)


def test_targets_by_name():
    model = two_outputs()
    model.compile("sgd", {"size": "mse", "kind": "sparse_categorical_crossentropy"}, metrics={"kind": ["accuracy"]})
    logs = model.evaluate(X, {"size": Y, "kind": LABELS}, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "size_loss", "kind_loss", "kind_accuracy"}
    assert logs["loss"] == pytest.approx(sum(losses_of(model)), rel=1e-5)


def test_sample_weights_per_output():
    model = two_outputs()
    model.compile("sgd", ["sparse_categorical_crossentropy", "mse"])
    _, size = losses_of(model)
    logs = model.evaluate(X, [LABELS, Y], sample_weight=[np.zeros(50), np.ones(50)], verbose=0, return_dict=True)
    assert logs["loss"] == pytest.approx(size, rel=1e-5)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"loss": ["mse"] * 3}, "loss: got 3 entries, wanted 2"),
    ({"loss": {"sizes": "mse"}}, r"loss: got output names \['sizes'\]"),
    ({"loss": "mse", "loss_weights": [1.0]}, "loss_weights: got 1 entries"),
    ({"loss": "mse", "metrics": {"kinds": ["mse"]}}, r"metrics: got output names \['kinds'\]"),
])  # fmt: skip
def test_wrong_entries_for_outputs(arguments, message):
    model = two_outputs()
    model.compile("sgd", **arguments)
    with pytest.raises(ValueError, match=message):
        model.fit(X, [np.zeros((50, 3)), Y], verbose=0)


def test_wrong_targets_for_outputs():
    model = two_outputs()
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"y: got output names \['sizes'\]"):
        model.fit(X, {"kind": np.zeros((50, 3)), "sizes": Y}, verbose=0)


def test_config_round_trip():
    model = classifier(
        optimizer=optimizers.SGD(0.25, momentum=0.5),
        metrics=["accuracy", metrics.MeanSquaredError()],
        loss=losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    config = model.get_compile_config()
    other = Sequential.from_config(model.get_config())
    assert other.get_compile_config() is None
    other.compile_from_config(config)
    assert float(other.optimizer.learning_rate) == 0.25
    assert other.get_compile_config() == config


def test_lists_of_one_for_one_output():
    model = regressor(loss=["mse"], loss_weights=[2.0], metrics=[["mse"]])
    loss, mse = model.evaluate([X], [Y], sample_weight=[np.ones(50)], verbose=0)
    assert loss == pytest.approx(2 * mse, rel=1e-5)
    with pytest.raises(ValueError, match="loss: got 2 entries, wanted 1"):
        regressor(loss=["mse", "mse"]).evaluate(X, Y, verbose=0)
