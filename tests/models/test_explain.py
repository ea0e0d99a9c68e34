"""model.explain(): its rows, its table, its trace; no time is looked at."""

import json

import numpy as np
import pytest

from magmadnn_py import Input, Model, Sequential, layers
from magmadnn_py.models import explain as explain_module
from models.networks import LABELS, X, classifier, two_outputs


@pytest.fixture(autouse=True)
def known_peaks(monkeypatch):
    monkeypatch.setattr(explain_module, "peak_flops", lambda dtype, threads: 1e11)
    monkeypatch.setattr(explain_module, "peak_bandwidth", lambda threads: 1e10)


def test_rows(capsys):
    model = classifier()
    rows = model.explain(batch_size=16)
    assert {"matmul", "elementwise"} <= {row["op"] for row in rows}
    (dense, *_) = [row for row in rows if row["op"] == "matmul"]
    assert dense["layer"].endswith("/dense") or "/dense" in dense["layer"]
    assert dense["type"] == "float32[16, 6]"
    assert dense["flops"] == 2 * 16 * 4 * 6
    for row in rows:
        assert set(row) == {
            "layer", "op", "algorithm", "type", "seconds", "flops", "bytes", "limit", "share",
        }  # fmt: skip
        time = max(row["flops"] / 1e11, row["bytes"] / 1e10)
        assert row["share"] == pytest.approx(time / max(row["seconds"], 1e-9))
    text = capsys.readouterr().out
    assert f'A train step of 16 rows of "{model.name}"' in text
    assert "matmul" in text and "gemm" in text and "Memory: arena" in text and "100.0 GFLOP/s float32" in text


def test_the_model_stays_as_it_is():
    model = classifier(metrics=["accuracy"])
    model.fit(X, LABELS, verbose=0)
    before = [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]
    logs = model.get_metrics_result()
    programs = dict(model._programs)
    for kind in ("train", "test", "predict"):
        model.explain(kind=kind)
    after = [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]
    assert [a.tobytes() for a in after] == [b.tobytes() for b in before]
    assert model.get_metrics_result() == logs
    assert programs.items() <= model._programs.items()


def test_weights_that_move_when_the_optimizer_is_built():
    model = classifier()
    before = model.predict(X, verbose=0)
    model.explain(batch_size=50)
    np.testing.assert_array_equal(model.predict(X, verbose=0), before)
    model.train_on_batch(X, LABELS)
    assert (model.predict(X, verbose=0) != before).any()


def test_made_up_targets_decide_nothing():
    """Metrics find their kind from the targets of `fit`, not from those that explain() made up."""

    def loss(y_true, y_pred):
        return y_pred[:, 0]

    def trained(explained: bool):
        model = Sequential([Input((4,)), layers.Dense(3, kernel_initializer="ones")])
        model.compile("sgd", loss, metrics=["accuracy"])
        if explained:
            model.explain()
        model.fit(X, LABELS, verbose=0, shuffle=False)
        return [type(metric) for metric in model.metrics], model.get_metrics_result()

    assert trained(True) == trained(False)


def test_given_data():
    rows = classifier().explain(X, LABELS, batch_size=20, kind="test")
    assert any(row["type"] == "float32[20, 6]" for row in rows)
    rows = classifier().explain(X[:7])
    assert any(row["type"] == "float32[7, 6]" for row in rows)


def test_networks_of_several_outputs_and_random_layers():
    model = two_outputs()
    model.compile("adam", ["sparse_categorical_crossentropy", "mse"])
    assert model.explain()
    inputs = Input((8, 8, 3))
    x = layers.Dropout(0.5)(layers.BatchNormalization()(layers.Conv2D(4, 3)(inputs)))
    model = Model(inputs, layers.Dense(2)(layers.Flatten()(x)))
    model.compile("sgd", "mse", run_eagerly=True)
    assert {row["algorithm"] for row in model.explain()} == {"reference"}


def test_gradients_belong_to_their_layer():
    rows = classifier().explain()
    assert len([row for row in rows if row["op"] == "matmul" and row["layer"].endswith("dense_1")]) <= 3
    assert all(row["layer"] for row in rows if row["op"] == "matmul")


def test_trace_file(tmp_path):
    path = tmp_path / "trace.json"
    rows = classifier().explain(trace=path)
    events = json.loads(path.read_text())["traceEvents"]
    assert [event["name"] for event in events] == [row["op"] for row in rows]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    starts = [event["ts"] for event in events]
    assert starts == sorted(starts) and starts[0] == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_errors():
    with pytest.raises(ValueError, match="explain: kind: got 'fit', wanted one of train, test, predict"):
        classifier().explain(kind="fit")
    model = Sequential([layers.Dense(3)])
    with pytest.raises(ValueError, match="explain\\(\\) needs compile\\(\\) first"):
        model.explain()
    with pytest.raises(ValueError, match="explain: x: got None, wanted arrays: its inputs are unknown"):
        model.explain(kind="predict")
    assert model.explain(np.zeros((2, 4)), kind="predict")
