"""Getting an MNIST-like data set, four idx files, from a folder, the cache, mirrors or a last resort."""

import hashlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from magmadnn_py.datasets import cache
from magmadnn_py.datasets.idx import decode_idx, idx_md5, read_idx, write_idx
from magmadnn_py.utils.files import atomic_write, set_aside

CLASSES = 10
logger = logging.getLogger(__name__)

Arrays = dict[str, np.ndarray]  # by IdxFile.name
Pairs = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class IdxFile:
    """One published file; `md5` is of the uncompressed bytes, `download_md5` of the mirrors' gzip file."""

    name: str
    shape: tuple[int, ...]
    md5: str | None = None
    download_md5: str | None = None


@dataclass(frozen=True)
class IdxSet:
    """A data set: its files (train images, train labels, test images, test labels) and where they come from.

    `flat`: the folder MAGMADNN_DATA may hold the files itself, not only in its sub-folder `folder`.
    `last_resort`: gives all four arrays by file name, or raises OSError or ValueError.
    """

    title: str
    folder: str
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    mirrors: tuple[str, ...]
    flat: bool = False
    last_resort: Callable[[], Arrays] | None = None


def load_idx_set(idx_set: IdxSet, path: str | os.PathLike | None = None) -> Pairs:
    """((x_train, y_train), (x_test, y_test)) of the first source that has them.

    The sources: `path` (no other is tried then), MAGMADNN_DATA, the cache folder, mirrors, the last resort.
    Raises FileNotFoundError, with one line for each source, if none has them.
    """
    if path is not None:
        return _load_path(idx_set, Path(path).expanduser())
    reasons: list[str] = []
    arrays = _load_environment(idx_set, reasons)
    if arrays is None:
        arrays = {}
        for add_missing in (_from_cache, _from_mirrors, _from_last_resort):
            if len(arrays) < len(idx_set.files):
                add_missing(idx_set, arrays, reasons)
        if len(arrays) < len(idx_set.files):
            raise FileNotFoundError("\n  ".join([_what_to_do(idx_set), *reasons]))
    return _pairs(idx_set, arrays)


def _pairs(idx_set: IdxSet, arrays: Arrays) -> Pairs:
    x_train, y_train, x_test, y_test = (arrays[file.name] for file in idx_set.files)
    return (x_train, y_train), (x_test, y_test)


def _names(files: Iterable[IdxFile]) -> str:
    return ", ".join(file.name for file in files) + " (plain or .gz)"


def _what_to_do(idx_set: IdxSet) -> str:
    return (
        f"{idx_set.title} could not be had from any source. Put the files {_names(idx_set.files)} into "
        f"{cache.cache_folder(idx_set.folder)}, or name their folder as `path` or in MAGMADNN_DATA. Tried:"
    )


def _find(folder: Path, file: IdxFile) -> Path | None:
    # Both spellings are in use: train-images-idx3-ubyte and train-images.idx3-ubyte.
    dotted = file.name.replace("-idx", ".idx")
    spellings = (folder / (name + end) for name in (file.name, dotted) for end in ("", ".gz"))
    return next((spelling for spelling in spellings if spelling.is_file()), None)


# The user's own folder: any contents of the right structure are taken.


def _load_path(idx_set: IdxSet, folder: Path) -> Pairs:
    if not folder.is_dir():
        kind = "is not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"path: {folder} {kind}; wanted one that has {_names(idx_set.files)}")
    arrays = _load_folder(idx_set, (folder / idx_set.folder, folder))
    if arrays is None:
        raise FileNotFoundError(f"path: {folder} has none of {_names(idx_set.files)}")
    return _pairs(idx_set, arrays)


def _load_environment(idx_set: IdxSet, reasons: list[str]) -> Arrays | None:
    value = os.environ.get("MAGMADNN_DATA")
    if not value:
        reasons.append("MAGMADNN_DATA: not set")
        return None
    folder = Path(value).expanduser()
    folders = (folder / idx_set.folder, folder) if idx_set.flat else (folder / idx_set.folder,)
    arrays = _load_folder(idx_set, folders)
    if arrays is None:
        reasons.append(f"MAGMADNN_DATA: none of the files in {' or '.join(map(str, folders))}")
    return arrays


def _load_folder(idx_set: IdxSet, folders: tuple[Path, ...]) -> Arrays | None:
    """Arrays of the first folder that has any of the files; all four must be there, and good."""
    for folder in folders:
        paths = {file: _find(folder, file) for file in idx_set.files}
        missing = [file for file, path in paths.items() if path is None]
        if len(missing) == len(paths):
            continue
        if missing:
            raise FileNotFoundError(f"{folder} lacks {_names(missing)}")
        arrays = {file.name: read_idx(path) for file, path in paths.items()}
        _check_structure(list(paths.values()), list(arrays.values()))
        others = [file for file in idx_set.files if file.md5 and idx_md5(arrays[file.name]) != file.md5]
        if others:
            names = ", ".join(paths[file].name for file in others)
            message = f"{folder}: not the published {idx_set.title}: other contents in {names}"
            warnings.warn(message, stacklevel=5)  # at the caller of load_data
        return arrays
    return None


def _check_structure(paths: list[Path], arrays: list[np.ndarray]) -> None:
    for path, array, rank in zip(paths, arrays, (3, 1, 3, 1), strict=True):
        if array.dtype != np.uint8 or array.ndim != rank:
            raise ValueError(f"{path}: holds {array.dtype} of rank {array.ndim}, wanted uint8 of rank {rank}")
        if array.size == 0:
            raise ValueError(f"{path}: is empty, of shape {array.shape}")
        if rank == 1 and array.max() >= CLASSES:
            raise ValueError(f"{path}: has the label {array.max()}, wanted 0 to {CLASSES - 1}")
    for images, labels in ((0, 1), (2, 3)):
        if len(arrays[images]) != len(arrays[labels]):
            raise ValueError(
                f"{paths[labels]}: has {len(arrays[labels])} labels for the {len(arrays[images])} images of "
                f"{paths[images].name}"
            )
    train, test = arrays[0].shape[1:], arrays[2].shape[1:]
    if train != test:
        raise ValueError(f"{paths[2]}: has images of {test}, but {paths[0].name} of {train}")


# The published files: only their exact contents are taken.


def _check_published(file: IdxFile, array: np.ndarray, name: str) -> None:
    if array.dtype != np.uint8 or array.shape != file.shape:
        raise ValueError(f"{name}: holds {array.dtype} {array.shape}, wanted uint8 {file.shape}")
    if len(file.shape) == 1 and array.max() >= CLASSES:
        raise ValueError(f"{name}: has the label {array.max()}, wanted 0 to {CLASSES - 1}")
    if file.md5 and (found := idx_md5(array)) != file.md5:
        raise ValueError(f"{name}: MD5 of the uncompressed file is {found}, wanted {file.md5}")


def _from_cache(idx_set: IdxSet, arrays: Arrays, reasons: list[str]) -> None:
    folder = cache.cache_folder(idx_set.folder)
    missing = []
    for file in idx_set.files:
        try:
            path = _find(folder, file)
            if path is None:
                missing.append(file)
                continue
            array = read_idx(path)
            _check_published(file, array, str(path))
            arrays[file.name] = array
        except ValueError as error:
            reasons.append(f"cache: {error}")
            logger.warning("set aside a bad file of the cache: %s", error)
            set_aside(path)
        except OSError as error:
            reasons.append(f"cache: {error}")
    if missing:
        reasons.append(f"cache: {folder} lacks {_names(missing)}")


def _from_mirrors(idx_set: IdxSet, arrays: Arrays, reasons: list[str]) -> None:
    for mirror in idx_set.mirrors:
        # The smallest first: a mirror that fails then costs little.
        missing = sorted((file for file in idx_set.files if file.name not in arrays), key=_size)
        try:
            for file in missing:
                url = f"{mirror}{file.name}.gz"
                logger.info("downloading %s", url)
                content = cache.fetch(url, largest=_size(file) + cache.CHUNK_BYTES)
                arrays[file.name] = _check_download(file, content)
                _keep(idx_set, file, lambda target, content=content: atomic_write(target, content))
            return
        except (OSError, ValueError) as error:
            reasons.append(f"{mirror}{file.name}.gz: {_one_line(error)}")


def _size(file: IdxFile) -> int:
    return int(np.prod(file.shape))


def _check_download(file: IdxFile, content: bytes) -> np.ndarray:
    array = decode_idx(content, "download")
    _check_published(file, array, "download")
    if file.download_md5:
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != file.download_md5:
            raise ValueError(f"download: MD5 is {found}, wanted {file.download_md5}")
    return array


def _from_last_resort(idx_set: IdxSet, arrays: Arrays, reasons: list[str]) -> None:
    if idx_set.last_resort is None:
        return
    try:
        found = idx_set.last_resort()
        for file in idx_set.files:
            _check_published(file, found[file.name], file.name)
    except (OSError, ValueError) as error:
        reasons.append(_one_line(error))
        return
    for file in idx_set.files:
        if file.name not in arrays:
            arrays[file.name] = found[file.name]
            _keep(idx_set, file, lambda target, array=found[file.name]: write_idx(target, array))


def _keep(idx_set: IdxSet, file: IdxFile, write: Callable[[Path], None]) -> None:
    """Puts a file into the cache; where that cannot be (read-only, full), the data is used all the same."""
    target = cache.cache_folder(idx_set.folder) / f"{file.name}.gz"
    try:
        write(target)
    except OSError as error:
        warnings.warn(f"{idx_set.title} is not kept for the next run: {error}", stacklevel=2)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
