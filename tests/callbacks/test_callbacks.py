"""Callbacks, driven by hand with a model that only has what they use."""

import csv
import math

import numpy as np
import pytest

from magmadnn_py import callbacks, optimizers
from magmadnn_py.callbacks import CallbackList
from magmadnn_py.callbacks import __all__ as names


class StubModel:
    """Weights, an optimizer, and files that hold the weights."""

    def __init__(self, learning_rate=0.1):
        self.optimizer = optimizers.SGD(learning_rate)
        self.stop_training = False
        self.weights = [np.zeros(2, "float32")]
        self.metrics = []
        self.saved = []

    def get_weights(self):
        return [weight.copy() for weight in self.weights]

    def set_weights(self, weights):
        self.weights = weights

    def save(self, path):
        np.savetxt(path, self.weights[0])
        self.saved.append(path)

    save_weights = save

    def load_weights(self, path):
        self.weights = [np.loadtxt(path)]


def train(callback, logs_of_epochs, model=None, batches=0, epochs=None, initial_epoch=0):
    """Plays a training run; the weights are the number of the epoch. Returns the model."""
    model = model or StubModel()
    several = callback if isinstance(callback, list) else [callback]
    run = CallbackList(several, model=model, verbose=0, epochs=epochs or len(logs_of_epochs), steps=batches)
    run.on_train_begin()
    for epoch, logs in enumerate(logs_of_epochs, start=run.initial_epoch or initial_epoch):
        run.on_epoch_begin(epoch)
        for batch in range(batches):
            run.on_batch_begin("train", batch)
            run.on_batch_end("train", batch, dict(logs))
            if model.stop_training:
                break
        model.weights = [np.full(2, epoch, "float32")]
        run.on_epoch_end(epoch, dict(logs))
        if model.stop_training:
            break
    run.on_train_end()
    return model


def losses(*values):
    return [{"val_loss": value} for value in values]


def test_history():
    model = train(callbacks.Callback(), [{"accuracy": 0.5, "loss": 2.0}, {"accuracy": 0.75, "loss": 1.0}])
    assert model.history.history == {"accuracy": [0.5, 0.75], "loss": [2.0, 1.0]}
    assert model.history.epoch == [0, 1]


def test_early_stopping():
    stopping = callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    model = train(stopping, losses(3.0, 1.0, 2.0, 1.5, 0.1))
    assert model.stop_training and stopping.stopped_epoch == 3 and stopping.best_epoch == 1
    np.testing.assert_array_equal(model.weights[0], [1.0, 1.0])


def test_early_stopping_needs_more_than_min_delta():
    stopping = callbacks.EarlyStopping(min_delta=0.5, patience=1)
    train(stopping, losses(3.0, 2.8, 0.0))
    assert stopping.stopped_epoch == 1


def test_early_stopping_baseline_and_start():
    stopping = callbacks.EarlyStopping(baseline=0.5, patience=2)
    train(stopping, losses(3.0, 2.0, 1.0))
    assert stopping.stopped_epoch == 1
    stopping = callbacks.EarlyStopping(patience=1, start_from_epoch=2)
    train(stopping, losses(1.0, 2.0, 3.0, 4.0))
    assert stopping.stopped_epoch == 3


def test_nan_is_never_better():
    stopping = callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    model = train(stopping, losses(math.nan, 1.0, math.nan, math.nan))
    assert stopping.best == 1.0 and stopping.stopped_epoch == 3
    np.testing.assert_array_equal(model.weights[0], [1.0, 1.0])


@pytest.mark.parametrize(
    "monitor, rises",
    [
        ("val_loss", False), ("loss", False), ("head_loss", False), ("val_accuracy", True), ("acc", True),
        ("val_auc", True), ("mean_absolute_error", False), ("val_mean_io_u", True), ("f1_score", True),
    ],
)  # fmt: skip
def test_direction_by_name(monitor, rises):
    stopping = callbacks.EarlyStopping(monitor)
    stopping.set_model(StubModel())
    assert stopping.rises == rises


def test_direction_of_the_metric():
    from magmadnn_py import metrics

    model = StubModel()
    model.metrics = [metrics.MeanIoU(num_classes=2, name="overlap")]
    stopping = callbacks.EarlyStopping("val_overlap")
    stopping.set_model(model)
    assert stopping.rises


def test_missing_monitor_warns():
    with pytest.warns(UserWarning, match="'val_loss' is not in the logs; there is loss"):
        train(callbacks.EarlyStopping(), [{"loss": 1.0}])


def test_checkpoint_of_the_best(tmp_path):
    path = tmp_path / "ü模型" / "best.keras"
    train(callbacks.ModelCheckpoint(path, save_best_only=True), losses(math.nan, 2.0, math.nan, 1.0, 3.0))
    np.testing.assert_array_equal(np.loadtxt(path), [3.0, 3.0])
    assert [file.name for file in path.parent.iterdir()] == ["best.keras"]


def test_checkpoint_names(tmp_path):
    train(callbacks.ModelCheckpoint(tmp_path / "m-{epoch:02d}-{val_loss:.2f}.keras"), losses(1.0, 0.5))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m-01-1.00.keras", "m-02-0.50.keras"]
    with pytest.raises(KeyError, match="'accuracy' is not known; there is batch, epoch, val_loss"):
        train(callbacks.ModelCheckpoint(tmp_path / "m-{accuracy}.keras"), losses(1.0))


def test_checkpoint_after_batches(tmp_path):
    checkpoint = callbacks.ModelCheckpoint(tmp_path / "{epoch}-{batch}.weights.h5", save_weights_only=True, save_freq=2)
    train(checkpoint, losses(1.0, 1.0), batches=3)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["1-2.weights.h5", "2-1.weights.h5", "2-3.weights.h5"]


def test_checkpoint_of_a_failed_save_leaves_no_file(tmp_path):
    class Failing(StubModel):
        def save(self, path):
            path.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(callbacks.ModelCheckpoint(tmp_path / "m.keras"), losses(1.0), model=Failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path, options", [("m.h5", {}), ("m.keras", {"save_weights_only": True})])
def test_checkpoint_needs_the_right_ending(path, options):
    with pytest.raises(ValueError, match="wanted a name that ends in"):
        callbacks.ModelCheckpoint(path, **options)


def test_reduce_on_plateau():
    reduce = callbacks.ReduceLROnPlateau(factor=0.5, patience=2, cooldown=1, min_lr=0.03)
    model = train(reduce, losses(1.0, 1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    np.testing.assert_allclose(model.history.history["learning_rate"], [0.1] * 3 + [0.05] * 2 + [0.03] * 5, rtol=1e-6)


@pytest.mark.parametrize("schedule", [lambda epoch: 0.1 / (epoch + 1), lambda epoch, lr: lr / max(epoch, 1) * 1.0])
def test_learning_rate_scheduler(schedule):
    model = train(callbacks.LearningRateScheduler(schedule), losses(1.0, 1.0, 1.0))
    expected = [0.1, 0.05, 0.1 / 3] if schedule.__code__.co_argcount == 1 else [0.1, 0.1, 0.05]
    np.testing.assert_allclose(model.history.history["learning_rate"], expected, rtol=1e-6)


def test_learning_rate_scheduler_wants_a_float():
    with pytest.raises(ValueError, match="wanted a float"):
        train(callbacks.LearningRateScheduler(lambda epoch: "small"), losses(1.0))


def test_csv_logger(tmp_path):
    path = tmp_path / "log.csv"
    logs = [{"loss": 2.0, "accuracy": 0.5}, {"loss": 1.0, "accuracy": 0.75}]
    train(callbacks.CSVLogger(path, separator=";"), logs)
    train(callbacks.CSVLogger(path, separator=";", append=True), [{"loss": 0.5}])
    with open(path, newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    assert rows[:3] == [["epoch", "accuracy", "loss"], ["0", "0.5", "2.0"], ["1", "0.75", "1.0"]]
    assert len(rows) == 4


def test_terminate_on_nan(capsys):
    model = train(callbacks.TerminateOnNaN(), [{"loss": 1.0}, {"loss": math.nan}, {"loss": 1.0}], batches=3)
    assert model.stop_training and model.history.epoch == [0, 1]
    assert "Batch 0: invalid loss nan" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="invalid loss inf"):
        train(callbacks.TerminateOnNaN(raise_error=True), [{"loss": math.inf}], batches=1)


def test_lambda_callback():
    seen = []
    callback = callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append((epoch, logs["loss"])),
        on_train_batch_end=lambda batch, logs: seen.append(batch),
    )
    assert callback.needs_batch_hooks("train") and not callback.needs_batch_hooks("test")
    train(callback, [{"loss": 1.0}], batches=2)
    assert seen == [0, 1, (0, 1.0)]
    with pytest.raises(ValueError, match="on_epoch_stop"):
        callbacks.LambdaCallback(on_epoch_stop=print)


def test_backup_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "backup"
    train(callbacks.BackupAndRestore(folder), losses(1.0, 1.0), epochs=5)
    assert folder.exists()
    backup = callbacks.BackupAndRestore(folder)
    model = StubModel()
    run = CallbackList([backup], model=model, verbose=0, epochs=5)
    run.on_train_begin()
    assert run.initial_epoch == 2
    np.testing.assert_array_equal(model.weights[0], [1.0, 1.0])
    model = train(callbacks.BackupAndRestore(folder), losses(1.0, 1.0, 1.0), epochs=5)
    assert model.history.epoch == [2, 3, 4] and not folder.exists()


class OldBatchHook(callbacks.Callback):
    def on_batch_end(self, batch, logs=None):
        pass


class TestBatchHook(callbacks.Callback):
    __test__ = False

    def on_test_batch_end(self, batch, logs=None):
        pass


@pytest.mark.parametrize(
    "callback, modes",
    [
        (callbacks.Callback(), ""),
        (callbacks.EarlyStopping(), ""),
        (callbacks.ModelCheckpoint("m.keras"), ""),
        (callbacks.ModelCheckpoint("m.keras", save_freq=5), "train"),
        (callbacks.ProgbarLogger(), ""),
        (callbacks.CSVLogger("log.csv"), ""),
        (callbacks.TerminateOnNaN(), "train"),
        (OldBatchHook(), "train"),
        (TestBatchHook(), "test"),
    ],
)
def test_which_need_batch_hooks(callback, modes):
    run = CallbackList([callback])
    assert [mode for mode in ("train", "test", "predict") if run.needs_batch_hooks(mode)] == modes.split()


def test_callbacks_share_logs():
    class Adding(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["added"] = 1.0

    assert train(Adding(), losses(1.0)).history.history["added"] == [1.0]


def test_not_a_callback():
    with pytest.raises(TypeError, match="wanted callbacks"):
        CallbackList([lambda epoch: None])


def test_tensor_board_says_what_to_do():
    assert "TensorBoard" in names
    with pytest.raises(NotImplementedError, match="CSVLogger"):
        callbacks.TensorBoard("logs")


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_of_a_file_is_one_line_per_epoch(verbose, capsys):
    run = CallbackList(None, model=StubModel(), verbose=verbose, epochs=2, steps=4, samples=100)
    run.on_train_begin()
    run.on_epoch_begin(0)
    run.on_batch_end("train", 1, {"accuracy": 0.25, "loss": 3.0})
    run.on_batch_end("train", 3, {"accuracy": 0.5, "loss": 2.0})
    run.on_epoch_end(0, {"accuracy": 0.5, "loss": 2.0, "val_loss": 1e-5})
    run.on_train_end()
    first, line = capsys.readouterr().out.splitlines()
    assert first == "Epoch 1/2"
    assert line.startswith("4/4") and line.endswith("- accuracy: 0.5000 - loss: 2.0000 - val_loss: 1.0000e-05")
    assert "/step" in line and "samples/s" in line


def test_silent(capsys):
    train(callbacks.Callback(), losses(1.0), batches=2)
    assert capsys.readouterr().out == ""


def test_progress_of_evaluate_without_number_of_steps(capsys):
    run = CallbackList(None, model=StubModel(), verbose=1, mode="test")
    run.on_test_begin()
    run.on_batch_end("test", 0, {"loss": 1.0})
    run.on_test_end({"loss": 1.0})
    assert capsys.readouterr().out.startswith("1/Unknown")
