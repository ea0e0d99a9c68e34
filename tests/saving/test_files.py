"""Models on disk."""

import io
import json
import os
import zipfile

import h5py
import numpy as np
import pytest

from magmadnn_py import (
    Input,
    Model,
    Sequential,
    callbacks,
    layers,
    losses,
    metrics,
    models,
    ops,
    optimizers,
    saving,
    utils,
)
from magmadnn_py.saving import files

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(40, 4)).astype("float32")
Y = RANDOM.integers(0, 3, 40)


def network(**compile_arguments) -> Sequential:
    model = Sequential(
        [
            Input((4,)),
            layers.Dense(6, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(3, activation="softmax"),
        ]
    )
    given = {"optimizer": "adam", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    model.compile(**{**given, **compile_arguments})
    return model


def trained() -> Sequential:
    model = network()
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def same_weights(one, other) -> bool:
    pairs = zip(one.get_weights(), other.get_weights(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


# Round trips


def test_the_whole_model(tmp_path):
    model = trained()
    model.save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(copy.predict(X, verbose=0), model.predict(X, verbose=0))
    assert copy.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)
    assert copy.epoch == 2
    for a, b in zip(copy.optimizer.get_state(), model.optimizer.get_state(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]


def test_without_compiling(tmp_path):
    trained().save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras", compile=False)
    assert not copy.compiled
    assert copy.predict(X, verbose=0).shape == (40, 3)


def test_weights_alone(tmp_path):
    model, other = trained(), network()
    model.save_weights(tmp_path / "m.weights.h5")
    other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)
    third = network()
    model.save(tmp_path / "m.keras")
    third.load_weights(tmp_path / "m.keras")
    assert same_weights(model, third)


def test_loading_into_a_model_that_was_run_already(tmp_path):
    model, other = trained(), trained()
    model.save_weights(tmp_path / "m.weights.h5")
    before = other.predict(X, verbose=0)
    other.load_weights(tmp_path / "m.weights.h5")
    assert np.any(other.predict(X, verbose=0) != before)
    np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))


def test_functional_nested_and_shared(tmp_path):
    inner = Sequential([layers.Dense(3), layers.Dense(3)], name="inner")
    a, b = Input((4,), name="a"), Input((4,), name="b")
    shared = layers.Dense(4)
    joined = layers.Concatenate()([inner(shared(a)), inner(shared(b))])
    model = Model([a, b], {"out": layers.Dense(2)(joined), "raw": ops.relu(joined) * 2.0})
    model.save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras")
    for name, array in model.predict([X, 2 * X], verbose=0).items():
        np.testing.assert_array_equal(copy.predict([X, 2 * X], verbose=0)[name], array)
    assert len(copy.weights) == len(model.weights)


def test_frozen_layers_stay_frozen(tmp_path):
    model = network()
    model.layers[0].trainable = False
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras")
    assert not copy.layers[0].trainable
    assert len(copy.trainable_weights) == len(model.trainable_weights) == 4
    copy.fit(X, Y, verbose=0)


def own_loss(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


class Doubled(layers.Layer):
    def call(self, x):
        return 2 * x


def test_objects_of_ones_own(tmp_path):
    model = Sequential([Input((4,)), Doubled(), layers.Dense(1)])
    model.compile("sgd", own_loss, metrics=[own_loss])
    model.save(tmp_path / "m.keras")
    given = {"own_loss": own_loss, "Doubled": Doubled}
    copy = models.load_model(tmp_path / "m.keras", custom_objects=given)
    y = X[:, :1]
    assert copy.evaluate(X, y, verbose=0) == model.evaluate(X, y, verbose=0)
    with pytest.raises(ValueError, match=r"m\.keras.*'Doubled'.* not known"):
        models.load_model(tmp_path / "m.keras")


def test_a_lambda_cannot_be_saved(tmp_path):
    model = Sequential([Input((4,)), layers.Dense(1)])
    model.compile("sgd", lambda y_true, y_pred: ops.mean(ops.square(y_true - y_pred), axis=-1))
    with pytest.raises(TypeError, match="cannot be saved"):
        model.save(tmp_path / "m.keras")
    assert os.listdir(tmp_path) == []


def test_settings_of_training(tmp_path):
    model = network(
        optimizer=optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 10, 0.9), momentum=0.9, clipnorm=1.0),
        loss=losses.SparseCategoricalCrossentropy(),
        weighted_metrics=[metrics.SparseTopKCategoricalAccuracy(2)],
    )
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras")
    assert copy.get_compile_config() == model.get_compile_config()
    assert copy.optimizer.clipnorm == 1.0
    assert copy.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)


def test_behaviour_33_a_folder_with_other_letters(tmp_path):
    folder = tmp_path / "ü模型"
    model = trained()
    model.save(folder / "é.keras")
    assert same_weights(models.load_model(folder / "é.keras"), model)
    model.save_weights(str(folder / "權.weights.h5"))
    other = network()
    other.load_weights(str(folder / "權.weights.h5"))
    assert same_weights(other, model)


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "rmsprop", "adamw"])
@pytest.mark.parametrize("kind", ["array", "generator"])
def test_resuming_equals_an_unbroken_run(tmp_path, optimizer, kind):
    def fit(model, **arguments):
        if kind == "generator":

            class Batches(utils.PyDataset):
                def __len__(self):
                    return 4

                def __getitem__(self, index):
                    return X[index * 10 : index * 10 + 10], Y[index * 10 : index * 10 + 10]

            return model.fit(Batches(), verbose=0, **arguments)
        return model.fit(X, Y, batch_size=16, verbose=0, **arguments)

    utils.set_random_seed(11)
    unbroken = network(optimizer=optimizer)
    start = unbroken.get_weights()
    whole = fit(unbroken, epochs=5).history["loss"]

    utils.set_random_seed(11)
    broken = network(optimizer=optimizer)
    broken.set_weights(start)
    first = fit(broken, epochs=2).history["loss"]
    broken.save(tmp_path / "m.keras")
    utils.set_random_seed(99)  # what another process would have
    resumed = models.load_model(tmp_path / "m.keras", resume=True)
    assert resumed.epoch == 2
    rest = fit(resumed, epochs=5, initial_epoch=resumed.epoch).history["loss"]
    assert first + rest == whole
    assert same_weights(resumed, unbroken)


def test_checkpoints_of_fit(tmp_path):
    model = network()
    save = callbacks.ModelCheckpoint(tmp_path / "{epoch:02d}.keras")
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[save])
    assert sorted(os.listdir(tmp_path)) == ["01.keras", "02.keras"]
    assert models.load_model(tmp_path / "01.keras").epoch == 1
    assert same_weights(models.load_model(tmp_path / "02.keras"), model)


# The files


def test_layout_of_the_archive(tmp_path):
    trained().save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert {"metadata.json", "config.json", "model.weights.h5"} <= set(archive.namelist())
        config = json.loads(archive.read("config.json"))
        assert config["module"] == "keras"
        assert config["class_name"] == "Sequential"
        assert config["compile_config"]["optimizer"]["class_name"] == "Adam"
        with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
            assert file["layers/dense/vars/0"].shape == (4, 6)
            assert file["layers/dense_1/vars/1"].shape == (3,)
            assert len(file["layers/batch_normalization/vars"]) == 4
            assert file["optimizer/vars/0"][()] == 4


def test_names_in_a_weights_file_do_not_depend_on_the_names_of_layers(tmp_path):
    one = Sequential([Input((4,)), layers.Dense(3, name="x"), layers.Dense(2, name="y")])
    other = Sequential([Input((4,)), layers.Dense(3, name="u"), layers.Dense(2, name="v")])
    one.save_weights(tmp_path / "m.weights.h5")
    other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(one, other)


def test_names_of_attributes_in_a_subclass(tmp_path):
    class Net(Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(3)
            self.rest = [layers.Dense(2), {"deep": [layers.Dense(1)]}]
            self._hidden = layers.Dense(1)

        def call(self, x):
            return self._hidden(self.rest[1]["deep"][0](self.rest[0](self.first(x))))

    model = Net()
    model.predict(X, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    with h5py.File(tmp_path / "m.weights.h5") as file:
        assert file["first/vars/0"].shape == (4, 3)
        found = []
        file.visit(found.append)
    assert sum(name.endswith("vars/0") for name in found) == 4
    other = Net()
    other.predict(X, verbose=0)
    other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)


def test_overwrite(tmp_path):
    model = trained()
    for name, save in (("m.keras", model.save), ("m.weights.h5", model.save_weights)):
        save(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(FileExistsError, match=name):
            save(tmp_path / name, overwrite=False)
        assert (tmp_path / name).read_bytes() == before
        save(tmp_path / name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("name", ["m.keras", "m.weights.h5"])
def test_behaviour_33_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch, error, name):
    model = trained()
    save = model.save if name == "m.keras" else model.save_weights
    save(tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def fail(*args):
        raise error("in the middle")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(error):
        save(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == before


def test_no_temporary_file_is_left(tmp_path):
    trained().save(tmp_path / "m.keras")
    assert os.listdir(tmp_path) == ["m.keras"]
    assert oct((tmp_path / "m.keras").stat().st_mode & 0o400) == "0o400"


# What cannot be read


def damaged(path, kind):
    data = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "cut by a few bytes":
        path.write_bytes(data[:-100])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_bytes(b"<html>not found</html>" * 40)
    elif kind == "bytes changed":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes(200) + data[middle + 200 :])
    elif kind == "another archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "hello")
    elif kind == "another hdf5 file":
        with h5py.File(path, "w") as file:
            file["layers"] = np.arange(3)


KINDS = ["truncated", "cut by a few bytes", "empty", "text", "another archive", "another hdf5 file"]


@pytest.mark.parametrize("kind", [*KINDS, "bytes changed"])
def test_damaged_models(tmp_path, kind):
    path = tmp_path / "broken.keras"
    trained().save(path)
    damaged(path, kind)
    with pytest.raises(ValueError, match=r"broken\.keras"):
        models.load_model(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["broken.weights.h5", "broken.keras"])
def test_damaged_weights_change_nothing(tmp_path, kind, name):
    path = tmp_path / name
    model = trained()
    (model.save if name.endswith("keras") else model.save_weights)(path)
    damaged(path, kind)
    other = trained()
    before = [*other.get_weights(), *other.optimizer.get_state()]
    with pytest.raises(ValueError, match=r"broken\."):
        other.load_weights(path)
    for a, b in zip(before, [*other.get_weights(), *other.optimizer.get_state()], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("config", ["[]", "{}", "null", '{"class_name": "Sequential", "config": {}}', "{", "5",
    '{"class_name": "Dense", "module": "keras.layers", "config": {"units": 3}}',
    '{"class_name": "os.system", "module": "os", "config": {}}'])  # fmt: skip
def test_strange_configs(tmp_path, config):
    path = tmp_path / "strange.keras"
    trained().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, config if name == "config.json" else data)
    with pytest.raises(ValueError, match=r"strange\.keras"):
        models.load_model(path)


def test_other_shapes_change_nothing(tmp_path):
    trained().save_weights(tmp_path / "m.weights.h5")
    other = Sequential(
        [Input((4,)), layers.Dense(6), layers.BatchNormalization(), layers.Dropout(0.3), layers.Dense(5)]
    )
    before = other.get_weights()
    with pytest.raises(ValueError, match=r"m\.weights\.h5.*layer 'dense.*\(6, 3\).*wanted .*\(6, 5\)"):
        other.load_weights(tmp_path / "m.weights.h5")
    for a, b in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    other.load_weights(tmp_path / "m.weights.h5", skip_mismatch=True)
    assert np.any(other.get_weights()[0] != before[0])
    np.testing.assert_array_equal(other.layers[-1].get_weights()[0], before[6])


def test_missing_layers(tmp_path):
    trained().save_weights(tmp_path / "m.weights.h5")
    other = Sequential([Input((4,)), layers.Dense(6), layers.BatchNormalization(), layers.Dense(3), layers.Dense(3)])
    with pytest.raises(ValueError, match="got shapes none"):
        other.load_weights(tmp_path / "m.weights.h5")


def test_the_state_of_another_optimizer_is_left_out(tmp_path):
    model = trained()
    model.save_weights(tmp_path / "m.weights.h5")
    other = network(optimizer="sgd")
    with pytest.warns(UserWarning, match="optimizer state does not fit 'sgd'"):
        other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)


def test_names_and_models_that_do_not_fit(tmp_path):
    model = trained()
    with pytest.raises(ValueError, match=r"'m\.h5', wanted one that ends in '\.keras'"):
        model.save(tmp_path / "m.h5")
    with pytest.raises(ValueError, match=r"wanted one that ends in '\.weights\.h5'"):
        model.save_weights(tmp_path / "m.h5")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        models.load_model(tmp_path / "nowhere.keras")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.load_weights(tmp_path / "nowhere.weights.h5")
    fresh = Sequential([layers.Dense(3)])
    with pytest.raises(ValueError, match="save: .*not built"):
        fresh.save(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="save_weights: .*not built"):
        fresh.save_weights(tmp_path / "m.weights.h5")
    model.save_weights(tmp_path / "m.weights.h5")
    with pytest.raises(ValueError, match="load_weights: .*not built"):
        fresh.load_weights(tmp_path / "m.weights.h5")
    assert os.listdir(tmp_path) == ["m.weights.h5"]


def test_the_functions_of_the_package(tmp_path):
    model = trained()
    saving.save_model(model, tmp_path / "a.keras")
    assert same_weights(saving.load_model(tmp_path / "a.keras"), model)
    saving.save_weights(model, tmp_path / "a.weights.h5")
    saving.load_weights(model, tmp_path / "a.weights.h5")
    models.save_model(model, tmp_path / "b.keras")
    assert same_weights(models.load_model(tmp_path / "b.keras"), model)


@saving.register_keras_serializable("test_files")
class Subclass(Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.first = layers.Dense(units, activation="relu")
        self.top = layers.Dense(3, activation="softmax")

    def call(self, x):
        return self.top(self.first(x))


def test_a_subclass(tmp_path):
    model = Subclass(5)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    copy = models.load_model(tmp_path / "m.keras")
    assert type(copy) is Subclass
    np.testing.assert_array_equal(copy.predict(X, verbose=0), model.predict(X, verbose=0))
    for a, b in zip(copy.optimizer.get_state(), model.optimizer.get_state(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_for_a_subclass_that_has_none_yet(tmp_path):
    model = Subclass(5)
    model.predict(X, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    other = Subclass(5)
    with pytest.raises(ValueError, match="not built"):
        other.load_weights(tmp_path / "m.weights.h5")
    other.build((None, 4))
    other.load_weights(tmp_path / "m.weights.h5")
    assert same_weights(model, other)
