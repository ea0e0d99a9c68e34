"""Arrays as a dataset."""

import numpy as np
import pytest

from magmadnn_py.data import ArrayData, BatchData, make_data
from magmadnn_py.runtime.tensor import Tensor


def test_nestings_keep_their_structure():
    data = ArrayData({"a": np.ones((3, 2)), "b": [np.zeros(3), np.zeros((3, 1))]}, np.arange(3))
    assert len(data) == 3
    assert [t.shape for t in data.tensors()] == [(3, 2), (3,), (3, 1), (3,)]
    assert data.sample_weight is None


def test_contiguous_arrays_are_not_copied():
    x = np.zeros((4, 3), "float32")
    (tensor,) = ArrayData(x).tensors()
    x[0, 0] = 7
    assert tensor.numpy()[0, 0] == 7


def test_lists_of_numbers_are_one_array():
    (x,) = ArrayData([[1, 2], [3, 4]]).tensors()
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [3, 4]])
    assert len(ArrayData([np.ones(2), np.ones(2)]).tensors()) == 2


def test_tensors_are_taken():
    tensor = Tensor.from_array(np.arange(6, dtype="float32").reshape(3, 2))
    np.testing.assert_array_equal(ArrayData(tensor).tensors()[0].numpy(), tensor.numpy())


def test_split():
    first, last = ArrayData(np.arange(10), np.arange(10) * 2).split(0.3)
    np.testing.assert_array_equal(first.tensors()[1].numpy(), np.arange(7) * 2)
    np.testing.assert_array_equal(last.tensors()[0].numpy(), [7, 8, 9])
    for fraction in (0, 1, -1, 2):
        with pytest.raises(ValueError, match="validation_split"):
            ArrayData(np.arange(10)).split(fraction)


@pytest.mark.parametrize(("x", "y", "message"), [
    (None, None, "x: got no arrays"),
    (np.ones(3), np.ones(2), r"x \[3\], y \[2\]"),
    ([np.ones(3), np.ones(2)], None, r"x \[2, 3\]"),
    (np.float64(2), None, "x: got a scalar"),
    (np.ones(3), np.array("a"), "y: "),
    (np.array(["a", "b"]), None, "x: "),
    (np.array([None, object()]), None, "x: "),
    ([[1, 2], [3]], None, "x: "),
])  # fmt: skip
def test_errors_name_the_argument(x, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ArrayData(x, y)


def test_make_data_tells_arrays_from_batches():
    assert isinstance(make_data(np.ones(3), np.ones(3)), ArrayData)
    assert isinstance(make_data([np.ones(3), np.ones(3)]), ArrayData)
    assert isinstance(make_data(iter([np.ones(3)])), BatchData)
    with pytest.raises(ValueError, match="y: got a value, wanted None"):
        make_data(iter(()), np.ones(3))
    with pytest.raises(ValueError, match="sample_weight: got a value"):
        make_data(iter(()), None, np.ones(3))
    for wrong in (3, "x", object()):
        with pytest.raises((TypeError, ValueError), match="x: got"):
            make_data(wrong)
