"""Files that appear whole or not at all."""

import os
import threading
from pathlib import Path

import pytest

from magmadnn_py.utils.files import atomic_write, set_aside


def test_atomic_write_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "file"
    atomic_write(path, b"one")
    atomic_write(path, b"two", b"three")
    assert path.read_bytes() == b"twothree"
    assert os.listdir(path.parent) == ["file"]


def test_atomic_write_that_fails_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        atomic_write(path, b"new", "not bytes")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_atomic_write_by_several_threads(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([i]) * 100_000 for i in range(8)]
    atomic_write(path, contents[0])
    threads = [threading.Thread(target=atomic_write, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert path.read_bytes() in contents
    assert path.read_bytes() in contents and os.listdir(tmp_path) == ["file"]


def test_set_aside(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"bad")
    set_aside(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bad"]
    set_aside(Path(tmp_path / "absent"))  # no error
