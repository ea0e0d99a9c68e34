"""fashion_mnist.load_data: the same form as MNIST, kept apart from it."""

import pytest

from magmadnn_py.datasets import fashion_mnist


@pytest.mark.parametrize("sub_folder", ["", "fashion-mnist"])
def test_path(tmp_path, write_digits, assert_digits, sub_folder):
    write_digits(tmp_path / sub_folder)
    assert_digits(fashion_mnist.load_data(tmp_path))


def test_environment(tmp_path, monkeypatch, write_digits, assert_digits):
    write_digits(tmp_path / "fashion-mnist")
    monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path))
    assert_digits(fashion_mnist.load_data())


def test_mnist_is_not_taken_for_it(tmp_path, monkeypatch, write_digits):
    write_digits(tmp_path)
    write_digits(tmp_path / "mnist")
    monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Fashion-MNIST could not be had"):
        fashion_mnist.load_data()
