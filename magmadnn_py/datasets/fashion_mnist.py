"""Fashion-MNIST: 70,000 grey images of clothes, 28x28, in the same form as MNIST."""

import os

from magmadnn_py.datasets.idx_set import IdxFile, IdxSet, Pairs, load_idx_set

FASHION_MNIST = IdxSet(
    title="Fashion-MNIST",
    folder="fashion-mnist",
    files=(
        IdxFile("train-images-idx3-ubyte", (60000, 28, 28), download_md5="8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        IdxFile("train-labels-idx1-ubyte", (60000,), download_md5="25c81989df183df01b3e8a0aad5dffbe"),
        IdxFile("t10k-images-idx3-ubyte", (10000, 28, 28), download_md5="bef4ecab320f06d8554ea6380940ec79"),
        IdxFile("t10k-labels-idx1-ubyte", (10000,), download_md5="bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
)


def load_data(path: str | os.PathLike | None = None) -> Pairs:
    """Fashion-MNIST as `((x_train, y_train), (x_test, y_test))`, shapes and dtypes as in `mnist.load_data`.

    `path`: folder with the four idx files, plain or gzipped, in it or in its sub-folder `fashion-mnist`; no
    other source is tried then. By default, in this order: the sub-folder `fashion-mnist` of the folder
    MAGMADNN_DATA, the cache folder (in MAGMADNN_CACHE or the user's), public mirrors.

    Raises FileNotFoundError if no source has the files, saying which to put where; ValueError, naming the
    file, if one in `path` or MAGMADNN_DATA is damaged or does not fit the others.
    """
    return load_idx_set(FASHION_MNIST, path)
