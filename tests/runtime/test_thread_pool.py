"""The thread pool: every index once, exceptions, nesting, several callers, forks, and the number of threads."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

from magmadnn_py import _core


@pytest.fixture(params=[1, 2, 5])
def pool(request):
    return _core.WorkerPool(request.param)


def indices(pool, count):
    seen = []
    pool.run(count, lambda index, worker: seen.append(index))
    return seen


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 1000])
def test_every_index_once(pool, count):
    assert sorted(indices(pool, count)) == list(range(count))


def test_many_short_runs(pool):
    for count in range(500):
        assert len(indices(pool, count % 7)) == count % 7


def test_a_worker_has_one_task_at_a_time(pool):
    busy = Counter()

    def task(index, worker):
        assert 0 <= worker < pool.size
        busy[worker] += 1
        assert busy[worker] == 1
        threading.Event().wait(0.0005)
        busy[worker] -= 1

    pool.run(50, task)


def test_the_lowest_exception_comes_after_all_tasks(pool):
    seen = []

    def task(index, worker):
        seen.append(index)
        if index % 10 == 3:
            raise KeyError(index)

    for _ in range(20):
        seen.clear()
        with pytest.raises(KeyError, match="3"):
            pool.run(100, task)
        assert len(seen) == 100
    assert len(indices(pool, 10)) == 10


def test_nested_runs(pool):
    seen = []

    def outer(i, worker):
        pool.run(10, lambda j, inner: (seen.append((i, j)), check(worker, inner)))

    def check(worker, inner):
        assert inner == worker

    pool.run(10, outer)
    assert sorted(seen) == [(i, j) for i in range(10) for j in range(10)]


def test_nested_run_of_another_pool(pool):
    other, seen = _core.WorkerPool(2), []
    pool.run(5, lambda i, worker: other.run(5, lambda j, inner: seen.append((i, j))))
    assert len(set(seen)) == 25


def test_several_callers_at_once(pool):
    failures = []

    def call(number):
        try:
            for _ in range(50):
                assert sorted(indices(pool, number)) == list(range(number))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=call, args=(10 + i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_resize():
    pool = _core.WorkerPool(1)
    for size in (3, 1, 2, 2, 4):
        pool.resize(size)
        assert pool.size == size
        assert sorted(indices(pool, 50)) == list(range(50))
    with pytest.raises(RuntimeError, match="inside a task"):
        pool.run(4, lambda index, worker: pool.resize(2))


def run_in_child(function):
    """The exit status of function() in a forked child: 0 if it returned True, a signal's if it hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if function() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork(pool):
    indices(pool, 100)

    def child():
        works = sorted(indices(pool, 100)) == list(range(100))
        again = run_in_child(lambda: len(indices(pool, 100)) == 100)
        pool.resize(3)
        return works and again == 0 and len(indices(pool, 100)) == 100

    assert run_in_child(child) == 0
    assert sorted(indices(pool, 100)) == list(range(100))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_another_thread_runs():
    pool, stop = _core.WorkerPool(3), threading.Event()

    def keep_running():
        while not stop.is_set():
            pool.run(20, lambda index, worker: None)

    thread = threading.Thread(target=keep_running)
    thread.start()
    try:
        results = [run_in_child(lambda: len(indices(pool, 100)) == 100) for _ in range(10)]
    finally:
        stop.set()
        thread.join()
    assert results == [0] * 10


@pytest.mark.parametrize("threads", [0, -1, 100000])
def test_bad_sizes(threads):
    before = _core.get_threads()
    for call in (_core.WorkerPool, _core.WorkerPool(1).resize, _core.set_threads):
        with pytest.raises(ValueError, match=f"threads: got {threads}, wanted 1 to 1024"):
            call(threads)
    assert _core.get_threads() == before


def test_set_threads():
    before = _core.get_threads()
    try:
        _core.set_threads(3)
        assert _core.get_threads() == 3
    finally:
        _core.set_threads(before)


def threads_of_new_process(threads=None, before="pass"):
    code = f"import os; {before}; from magmadnn_py._core import get_threads; print(get_threads())"
    environment = {key: value for key, value in os.environ.items() if key != "MAGMADNN_THREADS"}
    if threads is not None:
        environment["MAGMADNN_THREADS"] = threads
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_default_size():
    assert 1 <= int(threads_of_new_process().stdout) <= os.cpu_count()
    assert threads_of_new_process("3").stdout == "3\n"
    one_core = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert threads_of_new_process(before=one_core).stdout == "1\n"


@pytest.mark.parametrize("value", ["0", "-2", "two", "2.5", "3 ", "99999999999"])
def test_bad_environment(value):
    result = threads_of_new_process(value)
    assert f"ValueError: MAGMADNN_THREADS: got '{value}', wanted a whole number from 1 to 1024" in result.stderr
