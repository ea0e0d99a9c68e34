"""The kernel database: rows, several processes at once, files that are damaged or somebody else's."""

import json
import multiprocessing
import os
import signal
import sqlite3

import pytest

from magmadnn_py.runtime.database import COLUMNS, KernelDatabase

ROW = {
    "device": "a processor, avx2",
    "version": "0123",
    "op": "matmul",
    "attributes": {"transpose_a": False, "axes": [0, 1]},
    "inputs": [["float32", [2, 3]], ["float32", [3, 4]]],
    "outputs": [["float32", [2, 4]]],
    "threads": 2,
    "algorithm": "gemm",
    "seconds": 1.25e-6,
    "samples": 5,
    "flops": 48,
    "bytes": 104,
}


@pytest.fixture
def database(tmp_path):
    return KernelDatabase(tmp_path / "cache" / "kernels.sqlite")


def test_rows_come_back_as_they_were(database):
    assert database.rows() == []
    database.add([ROW, {**ROW, "algorithm": "other"}])
    assert database.rows(algorithm="gemm") == [ROW]
    assert tuple(database.rows()[0]) == COLUMNS
    assert len(KernelDatabase(database.path).rows()) == 2


def test_rows_are_found_by_any_column(database):
    database.add([ROW, {**ROW, "threads": 1}, {**ROW, "attributes": {"axes": []}}])
    assert len(database.rows(op="matmul", threads=2)) == 2
    # Tuples and another order of the keys are the same attributes.
    assert len(database.rows(attributes={"axes": (0, 1), "transpose_a": False}, device=ROW["device"])) == 2
    with pytest.raises(ValueError, match="rows: got speed, wanted some of device, version"):
        database.rows(speed=1)


def test_a_new_timing_replaces_the_old_one(database):
    database.add([ROW])
    database.add([{**ROW, "seconds": 2.0, "samples": 9}])
    assert [(row["seconds"], row["samples"]) for row in database.rows()] == [(2.0, 9)]


def test_rows_travel_as_json(database, tmp_path):
    database.add([ROW])
    other = KernelDatabase(tmp_path / "other.sqlite")
    other.add(json.loads(json.dumps(database.rows())))
    assert other.rows() == [ROW]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": float("nan")}, "row 1: seconds: got nan, wanted a number from 0"),
        ({"seconds": -1.0}, "row 1: seconds: got -1.0"),
        ({"samples": 0}, "row 1: samples: got 0, wanted a number from 1"),
        ({"threads": "2"}, "row 1: threads: got '2'"),
        ({"flops": 1.5}, "row 1: flops: got 1.5"),
        ({"op": None}, "row 1: op: got None, wanted text"),
    ],
)
def test_bad_rows_are_refused_with_all_others(database, change, message):
    with pytest.raises(ValueError, match=message):
        database.add([ROW, {**ROW, **change}])
    with pytest.raises(ValueError, match="row 0: 'bytes' is missing"):
        database.add([{name: value for name, value in ROW.items() if name != "bytes"}])
    assert database.rows() == []


def test_the_file_is_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MAGMADNN_CACHE", str(tmp_path / "here"))
    KernelDatabase().add([ROW])
    assert os.listdir(tmp_path / "here") == ["kernels.sqlite"]


def damage_header(path):
    path.write_bytes(b"no database" * 1000)


def damage_pages(path):
    content = bytearray(path.read_bytes())
    content[100:] = b"\xa5" * (len(content) - 100)
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:5000])


def other_program(path):
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE timings (op TEXT)")


def other_version(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("spoil", [damage_header, damage_pages, cut, other_program, other_version])
def test_a_bad_file_is_set_aside_and_a_new_one_begun(database, spoil, caplog):
    database.add([{**ROW, "threads": count} for count in range(1, 200)])
    spoil(database.path)
    spoiled = database.path.read_bytes()
    (database.path.parent / "kernels.sqlite-journal").write_bytes(b"left behind")
    assert database.rows() == []
    database.add([ROW])
    assert database.rows() == [ROW]
    assert (database.path.parent / "kernels.sqlite.bad").read_bytes() == spoiled
    assert caplog.text.count("set aside as kernels.sqlite.bad, a new one is begun") == 1


def test_an_empty_file_is_a_new_database(database):
    database.path.parent.mkdir()
    database.path.touch()
    database.add([ROW])
    assert database.rows() == [ROW]


def test_without_a_folder_nothing_is_kept_and_one_warning_given(tmp_path, caplog):
    (tmp_path / "file").touch()
    database = KernelDatabase(tmp_path / "file" / "kernels.sqlite")
    for _ in range(3):
        database.add([ROW])
        assert database.rows() == []
    assert caplog.text.count("timings are not kept for other processes") == 1


def test_a_file_that_cannot_be_written_is_still_read(database, monkeypatch, caplog):
    database.add([ROW])
    connect = sqlite3.connect
    monkeypatch.setattr(
        "magmadnn_py.runtime.database.sqlite3.connect",
        lambda path, **arguments: connect(f"file:{path}?mode=ro", uri=True, **arguments),
    )
    assert database.rows() == [ROW]
    database.add([{**ROW, "threads": 3}])
    assert caplog.text.count("timings are not kept for other processes") == 1
    monkeypatch.undo()
    assert KernelDatabase(database.path).rows() == [ROW]


def write_rows(path, threads: int, count: int, ready) -> None:
    database = KernelDatabase(path)
    for number in range(count):
        database.add([{**ROW, "threads": threads, "algorithm": f"{number}"}, {**ROW, "threads": 9, "samples": threads}])
        ready.set()


def test_four_processes_write_at_once_and_one_is_killed(database):
    context = multiprocessing.get_context("spawn")
    ready = [context.Event() for _ in range(4)]
    counts = [10**9, 60, 60, 60]  # the first never ends by itself
    writers = [
        context.Process(target=write_rows, args=(database.path, number + 1, count, event), daemon=True)
        for number, (count, event) in enumerate(zip(counts, ready, strict=True))
    ]
    for writer in writers:
        writer.start()
    for event in ready:
        assert event.wait(60)
    os.kill(writers[0].pid, signal.SIGKILL)
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [-signal.SIGKILL, 0, 0, 0]
    rows = database.rows()
    assert [sum(row["threads"] == number for row in rows) for number in (2, 3, 4, 9)] == [60, 60, 60, 1]
    killed = sorted(int(row["algorithm"]) for row in rows if row["threads"] == 1)
    assert killed and killed == list(range(len(killed)))
    with sqlite3.connect(database.path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(database.path.parent.glob("*.bad"))


def begin(path, ready) -> None:
    ready.wait()
    KernelDatabase(path).add([{**ROW, "threads": os.getpid()}])


def test_processes_that_begin_the_file_at_once(database):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(4)
    writers = [context.Process(target=begin, args=(database.path, together), daemon=True) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(database.rows()) == 4
