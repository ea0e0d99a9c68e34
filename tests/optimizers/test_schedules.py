"""Learning rate schedules against Keras's values."""

import numpy as np
import pytest

from magmadnn_py import saving
from magmadnn_py.optimizers import schedules

from .golden import SCHEDULES, STEPS


@pytest.mark.parametrize("name, arguments, expected", SCHEDULES)
def test_value_of_keras(name, arguments, expected):
    schedule = getattr(schedules, name)(**arguments)
    np.testing.assert_allclose([float(np.asarray(schedule(step))) for step in STEPS], expected, rtol=3e-6)
    np.testing.assert_allclose(np.asarray(schedule(np.array(STEPS))), expected, rtol=3e-6)


@pytest.mark.parametrize("name, arguments, expected", SCHEDULES)
def test_config_round_trip(name, arguments, expected):
    config = saving.serialize(getattr(schedules, name)(**arguments))
    assert config["module"] == "keras.optimizers.schedules"
    assert saving.serialize(saving.deserialize(config)) == config


def test_probe_of_boundaries():
    schedule = schedules.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.1])
    values = [float(np.asarray(schedule(step))) for step in (10, 11, 20, 21)]
    np.testing.assert_allclose(values, [1.0, 0.5, 0.5, 0.1], rtol=1e-6)


def test_bad_arguments():
    with pytest.raises(ValueError, match="values: got 2, wanted one more than the 2"):
        schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="decay_steps"):
        schedules.CosineDecay(0.1, 0)
