"""evaluate, predict, and the methods for single batches."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from magmadnn_py import Input, Model, Sequential, layers
from models.networks import LABELS, X, Y, classifier, identity, regressor, two_outputs


def test_evaluate_returns_a_number_a_list_or_a_dict():
    assert isinstance(regressor().evaluate(X, Y, verbose=0), float)
    model = classifier()
    loss, accuracy = model.evaluate(X, LABELS, verbose=0)
    assert model.evaluate(X, LABELS, verbose=0, return_dict=True) == {"accuracy": accuracy, "loss": loss}


def test_evaluate_by_hand():
    model = classifier()
    probabilities = model.predict(X, verbose=0)
    loss, accuracy = model.evaluate(X, LABELS, batch_size=7, verbose=0)
    assert loss == pytest.approx(-np.log(probabilities[np.arange(50), LABELS]).mean(), rel=1e-5)
    assert accuracy == pytest.approx((probabilities.argmax(1) == LABELS).mean())


def test_the_batch_size_changes_nothing():
    model = classifier()
    for size in (1, 7, 50, 64):
        np.testing.assert_allclose(model.predict(X, batch_size=size, verbose=0), model(X), rtol=1e-5)


def test_steps():
    model = identity()
    y = np.arange(6, dtype="float32")[:, None]
    assert model.evaluate(np.zeros((6, 1)), y, batch_size=2, steps=2, verbose=0) == pytest.approx(1.5)
    assert model.predict(y, batch_size=2, steps=2, verbose=0).shape == (4, 1)


def test_predict_needs_no_compile():
    assert Sequential([Input((4,)), layers.Dense(2)]).predict(X, verbose=0).shape == (50, 2)


def test_predict_without_rows():
    assert regressor().predict(X[:0], verbose=0).shape == (0, 1)
    first, second = two_outputs().predict(X[:0], verbose=0)
    assert (first.shape, second.shape) == ((0, 3), (0, 1))


def test_predict_keeps_element_types():
    x = Input((4,))
    labels = Model(x, layers.Lambda(lambda v: v > 0)(x)).predict(X, verbose=0)
    assert labels.dtype == bool
    np.testing.assert_array_equal(labels, X > 0)


def test_predict_twice_gives_arrays_of_their_own():
    model = regressor()
    first = model.predict(X, verbose=0)
    copy = first.copy()
    model.predict(2 * X, verbose=0)
    np.testing.assert_array_equal(first, copy)


def test_behaviour_24_single_batches_do_not_average():
    model = identity()
    x = np.zeros((1, 1), "float32")
    assert model.test_on_batch(x, np.full((1, 1), 10.0)) == pytest.approx(10)
    assert model.test_on_batch(x, np.full((1, 1), 2.0)) == pytest.approx(2)


def test_train_on_batch_is_one_step():
    one, other = regressor(), regressor()
    other.set_weights(one.get_weights())
    loss = one.evaluate(X, Y, verbose=0)
    assert one.train_on_batch(X, Y) == pytest.approx(loss, rel=1e-5)
    other.fit(X, Y, batch_size=50, verbose=0, shuffle=False)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def test_on_batch_with_metrics_and_weights():
    model = classifier()
    result = model.train_on_batch(X, LABELS, return_dict=True, sample_weight=np.ones(50))
    assert set(result) == {"loss", "accuracy"}
    assert len(model.train_on_batch(X, LABELS, class_weight={0: 2.0})) == 2
    assert model.test_on_batch(X, LABELS, sample_weight=np.zeros(50))[0] == 0.0


def test_predict_on_batch():
    model = regressor()
    np.testing.assert_array_equal(model.predict_on_batch(X[:3]), model.predict(X[:3], verbose=0))
    assert model.predict_on_batch(X[:0]).shape == (0, 1)


def test_generators():
    model = regressor()
    batches = [(X[i : i + 20], Y[i : i + 20]) for i in range(0, 50, 20)]
    assert model.evaluate(iter(batches), verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)
    np.testing.assert_allclose(
        model.predict((x for x, _ in batches), verbose=0), model.predict(X, verbose=0), rtol=1e-5
    )


def test_errors():
    model = classifier()
    with pytest.raises(ValueError, match="x: got no rows"):
        model.evaluate(X[:0], LABELS[:0], verbose=0)
    with pytest.raises(ValueError, match="x: got no rows"):
        model.train_on_batch(X[:0], LABELS[:0])
    with pytest.raises(ValueError, match="batch_size: got -1"):
        model.predict(X, batch_size=-1, verbose=0)
    with pytest.raises(ValueError, match="got shape"):
        model.predict(X[:, :2], verbose=0)
    with pytest.raises(ValueError, match="batch_size: got 4, wanted None"):
        model.evaluate(iter([(X, LABELS)]), batch_size=4, verbose=0)
    with pytest.raises(ValueError, match="no batch"):
        model.predict(iter(()), verbose=0)
    with pytest.raises(ValueError, match="y: .*no target"):
        model.evaluate(X, verbose=0)


def test_verbose_lines(capsys):
    model = classifier()
    model.fit(X, LABELS, epochs=2, verbose=2, validation_split=0.2)
    text = capsys.readouterr().out
    assert text.count("Epoch ") == 2
    assert "val_accuracy" in text
    model.evaluate(X, LABELS, verbose=0)
    model.predict(X, verbose=0)
    assert capsys.readouterr().out == ""


def test_predict_from_several_threads():
    model = classifier()
    wanted = [model.predict(X * scale, verbose=0) for scale in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda scale: model.predict(X * (scale % 4), verbose=0), range(16)))
    for scale, array in enumerate(found):
        np.testing.assert_array_equal(array, wanted[scale % 4])
