"""Helpers for labels, seeds, splits and progress."""

import random

import numpy as np
import pytest

from magmadnn_py import initializers, utils


def test_to_categorical():
    np.testing.assert_array_equal(utils.to_categorical([0, 2]), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(utils.to_categorical([[1], [0]], 2), [[0, 1], [1, 0]])
    assert utils.to_categorical(np.zeros((2, 3)), 4).shape == (2, 3, 4)
    assert utils.to_categorical([], 4).shape == (0, 4)


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0]])
def test_to_categorical_out_of_range(labels):
    with pytest.raises(ValueError, match="wanted 0 to 2"):
        utils.to_categorical(labels, 3)


def test_normalize():
    np.testing.assert_allclose(utils.normalize([[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0.0, 0.0]])


def test_set_random_seed():
    def draw():
        utils.set_random_seed(7)
        return random.random(), np.random.rand(), initializers.get("normal")((2,)).tolist()

    assert draw() == draw()
    with pytest.raises(ValueError, match="seed"):
        utils.set_random_seed(-1)


def test_split_dataset():
    x, y = np.arange(10), np.arange(10) * 2
    left, right = utils.split_dataset((x, y), left_size=0.7, shuffle=True, seed=1)
    assert len(left[0]) == 7 and len(right[0]) == 3
    np.testing.assert_array_equal(left[0] * 2, left[1])
    assert sorted(np.concatenate([left[0], right[0]])) == list(range(10))
    with pytest.raises(ValueError, match="wanted at most 10"):
        utils.split_dataset(x, left_size=8, right_size=5)


def test_progbar_averages(capsys):
    bar = utils.Progbar(4, verbose=2)
    bar.update(1, [("loss", 4.0)])
    bar.update(4, [("loss", 0.0)])
    assert bar.values() == {"loss": 1.0}
    assert "4/4" in capsys.readouterr().out
