"""Generators and loaders."""

import numpy as np
import pytest

from magmadnn_py import Input, Sequential, layers
from magmadnn_py.data import BatchData


def batch(value, rows=2):
    return np.full((rows, 1), value, "float32"), np.full((rows, 1), value, "float32")


def values(epoch):
    return [int(data.tensors()[0].numpy()[0, 0]) for data in epoch]


def model():
    network = Sequential([Input((1,)), layers.Dense(1)])
    network.compile("sgd", "mse")
    network.optimizer.learning_rate = 0.001
    return network


def test_a_generator_goes_on_over_epochs():
    data = BatchData((batch(i) for i in range(5)), steps=2)
    assert values(data.epoch()) == [0, 1]
    assert values(data.epoch()) == [2, 3]
    assert values(data.epoch()) == [4]


def test_no_batch_is_taken_too_many():
    source = iter([batch(i) for i in range(3)])
    assert values(BatchData(source, steps=2).epoch()) == [0, 1]
    assert next(source)[0][0, 0] == 2


def test_an_iterable_starts_again():
    class Loader:
        def __iter__(self):
            return (batch(i) for i in range(3))

        def __len__(self):
            return 3

    data = BatchData(Loader())
    assert data.steps == 3
    assert values(data.epoch()) == values(data.epoch()) == [0, 1, 2]


@pytest.mark.parametrize(
    "parts", [(np.ones((2, 1)),), np.ones((2, 1)), [np.ones((2, 1)), np.ones(2)], (np.ones(2),) * 3]
)
def test_forms_of_batches(parts):
    (data,) = BatchData(iter([parts])).epoch()
    assert len(data) == 2


def test_a_batch_of_too_many_parts():
    with pytest.raises(ValueError, match="batch: got 4 parts"):
        list(BatchData(iter([(np.ones(2),) * 4])).epoch())


def test_fit_with_an_endless_generator():
    def endless():
        while True:
            yield batch(1)

    network = model()
    history = network.fit(
        endless(), steps_per_epoch=3, epochs=2, validation_data=endless(), validation_steps=2, verbose=0
    )
    assert len(history.history["val_loss"]) == 2
    assert int(network.optimizer.iterations) == 6


def test_batches_of_several_sizes():
    network = model()
    network.fit((batch(1, rows) for rows in (4, 2, 1, 4)), verbose=0)
    assert int(network.optimizer.iterations) == 4


def test_a_generator_that_ends_too_early_warns():
    with pytest.warns(UserWarning, match="gave 3 batches, wanted 5"):
        model().fit((batch(1) for _ in range(3)), steps_per_epoch=5, verbose=0)


def test_an_empty_generator():
    with pytest.raises(ValueError, match="no batch"):
        model().fit(iter(()), verbose=0)


def test_validation_split_needs_arrays():
    with pytest.raises(ValueError, match="validation_split: needs arrays"):
        model().fit(iter([batch(1)]), validation_split=0.5, verbose=0)


def test_an_error_in_the_generator_comes_out():
    def broken():
        yield batch(1)
        raise OSError("disk")

    network = model()
    with pytest.raises(OSError, match="disk"):
        network.fit(broken(), verbose=0)
    assert int(network.optimizer.iterations) == 1


def test_a_loader_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: the test of its DataLoader is skipped")
    x, y = torch.arange(10.0)[:, None], torch.arange(10.0)[:, None]
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)
    one, other = model(), model()
    other.set_weights(one.get_weights())
    one.fit(loader, epochs=2, verbose=0)
    other.fit(x.numpy(), y.numpy(), batch_size=4, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])
    np.testing.assert_array_equal(
        one.predict(x.requires_grad_(), verbose=0), one.predict(x.detach().numpy(), verbose=0)
    )


def test_a_set_that_iterates_as_numpy():
    class Batched:
        def as_numpy_iterator(self):
            return iter([batch(1), batch(2)])

    network = model()
    network.fit(Batched(), epochs=2, verbose=0)
    assert int(network.optimizer.iterations) == 4
