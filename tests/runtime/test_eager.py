"""Functions run at once on arrays: nesting, kept programs, variables, threads."""

import threading

import numpy as np
import pytest

from magmadnn_py import _core, ops
from magmadnn_py.graph import Variable, current_trace
from magmadnn_py.runtime import eager
from magmadnn_py.runtime.eager import run_now
from magmadnn_py.runtime.tensor import Tensor


@pytest.fixture(autouse=True)
def no_kept_programs():
    eager._programs.clear()


def counted(function):
    """The function, and a list that grows by one at each tracing."""
    calls = []

    def body(*args, **kwargs):
        calls.append(1)
        return function(*args, **kwargs)

    return body, calls


def test_results_are_tensors_in_the_nesting_of_the_body():
    def body(x, scale):
        return {"double": x * scale, "rest": [x + 1, (x, "text", None)]}

    result = run_now(body, (np.ones(2, "float32"),), {"scale": 2})
    assert isinstance(result["double"], Tensor)
    assert result["double"].numpy().tolist() == [2, 2]
    assert result["rest"][0].numpy().tolist() == [2, 2]
    assert result["rest"][1][0].numpy().tolist() == [1, 1]
    assert result["rest"][1][1:] == ("text", None)


@pytest.mark.parametrize(
    "make", [lambda a: a, Tensor.from_array, lambda a: a[::-1][::-1], lambda a: np.asfortranarray(a)]
)
def test_kinds_of_arrays(make):
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(ops.exp(make(array)).numpy(), ops.exp(array).numpy())


@pytest.mark.parametrize("dtype", ["float16", "int8", "int16", "uint16", ">f4"])
def test_element_types_of_others_are_converted(dtype):
    result = ops.add(np.array([1, 2], dtype), np.array([1, 2], dtype))
    np.testing.assert_array_equal(result.numpy(), [2, 4])


def test_numbers_and_lists():
    assert float(np.asarray(ops.add(1, 2))) == 3
    assert ops.add([1, 2], [3.5, 4]).numpy().tolist() == [4.5, 6]


def test_a_program_is_kept_for_the_same_types():
    body, calls = counted(lambda x, y: x + y)
    for _ in range(3):
        run_now(body, (np.ones(3, "float32"), np.ones(3, "float32")), {})
    assert len(calls) == 1
    run_now(body, (np.ones(4, "float32"), np.ones(4, "float32")), {})
    run_now(body, (np.ones(3, "float64"), np.ones(3, "float64")), {})
    assert len(calls) == 3


def test_other_settings_are_other_programs():
    body, calls = counted(lambda x, factor: x * factor)
    types = [run_now(body, (np.ones(2, "int32"), factor), {}).dtype for factor in (1, 1.0, True)]
    assert len(calls) == 3
    assert types == ["int32", "float32", "int32"]


def test_numpy_integers_are_settings():
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(ops.sum(x, axis=np.int64(1)).numpy(), x.sum(1))


def test_arrays_are_not_kept_in_the_program():
    assert ops.add(np.ones(2), 1.0).numpy().tolist() == [2, 2]
    assert ops.add(np.zeros(2), 1.0).numpy().tolist() == [1, 1]


def test_the_number_of_kept_programs_is_limited(monkeypatch):
    monkeypatch.setattr(eager, "_CACHE_SIZE", 3)
    for i in range(10):
        ops.exp(np.ones(i + 1, "float32"))
    assert len(eager._programs) == 3


def test_without_keeping():
    body, calls = counted(lambda x: x + 1)
    for _ in range(2):
        run_now(body, (np.ones(2),), {}, cache=False)
    assert len(calls) == 2 and not eager._programs


def test_arguments_that_cannot_be_a_key():
    class Settings:
        __hash__ = None
        shift = 2.0

    body, calls = counted(lambda x, settings: x + settings.shift)
    for _ in range(2):
        assert run_now(body, (np.ones(1, "float32"), Settings()), {}).numpy().tolist() == [3]
    assert len(calls) == 2


def test_variables_are_read_anew_and_assigned():
    v = Variable(np.array([1.0, 2.0]))
    assert (v * 2.0).numpy().tolist() == [2, 4]
    v.assign(v + 1.0)
    assert (v * 2.0).numpy().tolist() == [4, 6]

    def step(x):
        v.assign(v * x)
        return v + 0.0

    assert run_now(step, (np.float32(10),), {}, cache=False).numpy().tolist() == [20, 30]
    assert v.numpy().tolist() == [20, 30]


def test_a_body_without_graph_results():
    assert run_now(lambda x: "nothing", (np.ones(2),), {}) == "nothing"


def test_an_error_in_the_body_leaves_no_trace_behind():
    def wrong(x):
        raise KeyError("wrong")

    with pytest.raises(KeyError, match="wrong"):
        run_now(wrong, (np.ones(2),), {})
    assert current_trace() is None
    assert ops.add(np.ones(2), 1.0).numpy().tolist() == [2, 2]


def test_shape_errors_name_the_op():
    with pytest.raises(ValueError, match=r"add: inputs: got shapes \(2,\), \(3,\)"):
        ops.add(np.ones(2), np.ones(3))


def test_another_number_of_threads():
    before = _core.get_threads()
    x = np.ones((50, 50), "float32")
    try:
        for count in (1, 2, 1):
            _core.set_threads(count)
            np.testing.assert_array_equal(ops.matmul(x, x).numpy(), np.full((50, 50), 50))
    finally:
        _core.set_threads(before)


def test_several_python_threads():
    failures = []

    def work(number):
        x = np.full((number + 1, 3), number, "float32")
        for _ in range(50):
            if not np.array_equal(ops.exp(x) - ops.exp(x) + x, x):
                failures.append(number)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
