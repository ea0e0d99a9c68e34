"""What training costs in memory and in Python."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

from magmadnn_py import _core
from magmadnn_py.models.training import Trainer
from models.networks import LABELS, X, Y, classifier, regressor

ROUNDS = """
import gc, os
import numpy as np
from magmadnn_py import Input, Sequential, layers

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def build_fit_delete():
    model = Sequential([Input((4,)), layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.ones((32, 4)), np.ones((32, 2)), batch_size=16, verbose=0)

for round_number in range(1, 201):
    build_fit_delete()
    if round_number in (20, 200):
        gc.collect()
        print(resident_bytes())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to see the memory of a process")
def test_behaviour_27_memory_stays_flat():
    # In a process of its own: what other tests have left lying about comes and goes.
    done = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, check=True)
    early, late = (int(line) for line in done.stdout.split())
    assert late <= early + 5e6


def counted(function) -> int:
    """The number of Python and C functions that are called while it runs."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what a collection finalises is not the function's doing
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.fixture
def one_call_per_epoch(monkeypatch):
    """As many steps in one native call as there are: what a clock decides otherwise."""
    monkeypatch.setattr(Trainer, "_steps_per_call", lambda *args: 10**9)


@pytest.mark.usefixtures("one_call_per_epoch")
@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_ten_times_the_steps_take_no_more_python_and_no_memory(method):
    model = classifier()
    sizes = {}
    for steps in (8, 80):
        x, y = np.tile(X[:16], (steps, 1)), np.tile(LABELS[:16], steps)
        given = (x,) if method == "predict" else (x, y)

        def run(given=given):
            getattr(model, method)(*given, batch_size=16, verbose=0)

        run()  # programs, optimizer state and imports
        before = _core.allocation_count()
        run()
        allocations = _core.allocation_count() - before
        sizes[steps] = (allocations, counted(run))
    assert sizes[8] == sizes[80]


def test_the_pace_grows_to_many_steps_per_call(monkeypatch):
    """With the clock in charge: a call takes about a tenth of a second, so a quick step is run thousands of times."""
    counts = []
    model = regressor()
    real = Trainer._paced_runs

    def watched(*args):
        for run in real(*args):
            counts.append(run[3])
            yield run

    monkeypatch.setattr(Trainer, "_paced_runs", watched)
    model.fit(np.tile(X, (400, 1)), np.tile(Y, (400, 1)), batch_size=1, verbose=0)
    assert sum(counts) == 20000
    assert len(counts) < 2000


def test_programs_are_made_once():
    model = classifier()
    model.fit(X, LABELS, batch_size=16, epochs=2, verbose=0, validation_split=0.2)
    programs = dict(model._programs)
    model.fit(X, LABELS, batch_size=16, epochs=2, verbose=0, validation_split=0.2)
    assert model._programs == programs
    assert len(programs) == 3  # a train batch of 16, one of the 8 rows left, and the 10 rows of validation


def test_deleted_models_are_freed():
    model = classifier()
    model.fit(X, LABELS, verbose=0)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
