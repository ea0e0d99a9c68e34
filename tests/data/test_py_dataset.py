"""PyDataset: batches made on demand by threads or processes."""

import threading
import time

import numpy as np
import pytest

from magmadnn_py import Input, Sequential, layers, utils
from magmadnn_py.data import BatchData
from magmadnn_py.data.py_dataset import batches_of


class Squares(utils.PyDataset):
    """Batch i is filled with i; later batches take less time, so that workers finish out of order."""

    def __init__(self, count=8, fail_at=None, **kwargs):
        super().__init__(**kwargs)
        self.count, self.fail_at = count, fail_at
        self.epochs = 0
        self.threads = set()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.fail_at:
            raise ValueError(f"batch {index} is broken")
        if self.workers > 1:
            time.sleep(0.002 * (self.count - index))
        self.threads.add(threading.get_ident())
        return np.full((2, 1), index, "float32"), np.full((2, 1), index, "float32")

    def on_epoch_end(self):
        self.epochs += 1


def values(epoch):
    return [int(data.tensors()[0].numpy()[0, 0]) for data in epoch]


def model():
    network = Sequential([Input((1,)), layers.Dense(1)])
    network.compile("sgd", "mse")
    network.optimizer.learning_rate = 0.001
    return network


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    dataset = Squares(workers=workers, max_queue_size=4)
    assert values(BatchData(dataset).epoch()) == list(range(8))
    assert dataset.epochs == 1
    here = threading.get_ident()
    assert (here in dataset.threads) == (workers < 2)


def test_behaviour_37_processes_after_training():
    network = model()
    network.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
    dataset = Squares(workers=2, use_multiprocessing=True)
    network.fit(dataset, epochs=1, verbose=0)
    assert int(network.optimizer.iterations) == 9
    assert dataset.threads == set()  # nothing was made in this process


def test_workers_are_few_and_gone_at_the_end():
    before = threading.active_count()
    dataset = Squares(workers=2)
    batches = batches_of(dataset, range(8))
    next(batches)
    assert threading.active_count() <= before + 2
    batches.close()
    assert threading.active_count() == before


def test_only_so_many_are_made_ahead():
    class Counting(Squares):
        made = 0

        def __getitem__(self, index):
            Counting.made += 1
            return super().__getitem__(index)

    batches = batches_of(Counting(count=100, workers=2, max_queue_size=3), range(100))
    next(batches)
    time.sleep(0.3)
    assert Counting.made <= 4
    batches.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_comes_out(workers):
    before = threading.active_count()
    with pytest.raises(ValueError, match="batch 3 is broken"):
        model().fit(Squares(fail_at=3, workers=workers), verbose=0)
    assert threading.active_count() == before


def test_fit_shuffles_and_can_be_stopped_short():
    dataset = Squares(workers=2)
    network = model()
    history = network.fit(dataset, epochs=2, steps_per_epoch=3, verbose=0, shuffle=False)
    assert len(history.epoch) == 2
    assert int(network.optimizer.iterations) == 6
    assert dataset.epochs == 2
    generator = np.random.Generator(np.random.Philox(0))
    orders = [values(BatchData(dataset).epoch(generator)) for _ in range(2)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(8))
    assert orders[0] != orders[1]


def test_evaluate_and_predict():
    network = model()
    assert network.predict(Squares(), verbose=0).shape == (16, 1)
    assert np.isfinite(network.evaluate(Squares(workers=2), verbose=0))
    assert "val_loss" in network.fit(Squares(), validation_data=Squares(3), verbose=0).history


def test_the_older_name_and_wrong_arguments():
    assert utils.Sequence is utils.PyDataset
    with pytest.raises(ValueError, match="workers"):
        utils.PyDataset(workers=-1)
    with pytest.raises(NotImplementedError, match="__len__"):
        len(utils.PyDataset())
    with pytest.raises(ValueError, match="batch_size: got 8, wanted None"):
        model().fit(Squares(), batch_size=8, verbose=0)
