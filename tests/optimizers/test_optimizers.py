"""Optimizers against Keras's trajectories, their flat memory, state and configs."""

import numpy as np
import pytest

from magmadnn_py import constraints, graph, ops, optimizers
from magmadnn_py.optimizers import schedules
from magmadnn_py.runtime.program import Program

from .golden import GRADIENTS, START, TRAJECTORIES


def make_variables(start=START):
    return [graph.Variable(np.array(value, "float32"), name=name) for value, name in zip(start, "ab", strict=True)]


def weights(variables):
    return np.concatenate([variable.numpy().ravel() for variable in variables])


def as_arrays(gradients):
    return [np.array(gradient, "float32") for gradient in gradients]


def run(optimizer, gradients, start=1.0):
    """Values of one variable after each gradient."""
    variable = graph.Variable(np.float32(start))
    values = []
    for gradient in gradients:
        optimizer.apply([np.float32(gradient)], [variable])
        values.append(float(variable.numpy()))
    return values


@pytest.mark.parametrize("name, arguments, expected", TRAJECTORIES)
def test_trajectory_of_keras(name, arguments, expected):
    optimizer = getattr(optimizers, name)(learning_rate=0.1, **arguments)
    variables = make_variables()
    for gradients, wanted in zip(GRADIENTS, expected, strict=True):
        optimizer.apply(as_arrays(gradients), variables)
        np.testing.assert_allclose(weights(variables), wanted, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name, arguments, expected", TRAJECTORIES)
def test_one_program_for_all_steps(name, arguments, expected):
    optimizer = getattr(optimizers, name)(learning_rate=0.1, **arguments)
    variables = make_variables()
    optimizer.build(variables)
    with graph.Trace() as trace:
        inputs = [trace.input(variable.shape) for variable in variables]
        optimizer.apply(inputs, variables)
    program = Program(trace.graph([]))
    for gradients, wanted in zip(GRADIENTS, expected, strict=True):
        program.run(*as_arrays(gradients))
        np.testing.assert_allclose(weights(variables), wanted, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name, arguments, expected", TRAJECTORIES)
def test_config_and_state_round_trip(name, arguments, expected):
    optimizer = getattr(optimizers, name)(learning_rate=0.1, **arguments)
    variables = make_variables()
    for gradients in GRADIENTS[:2]:
        optimizer.apply(as_arrays(gradients), variables)
    store = {}
    optimizer.save_own_variables(store)
    config = optimizers.serialize(optimizer)
    other = optimizers.deserialize(config)
    assert optimizers.serialize(other) == config
    copies = make_variables([variable.numpy() for variable in variables])
    other.build(copies)
    other.load_own_variables(store)
    for gradients, wanted in zip(GRADIENTS[2:], expected[2:], strict=True):
        other.apply(as_arrays(gradients), copies)
        np.testing.assert_allclose(weights(copies), wanted, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize(
    "optimizer, gradients, expected",
    [
        (optimizers.SGD(0.1, momentum=0.9), [1, 1, 1], [0.9, 0.71, 0.439]),
        (optimizers.SGD(0.1, momentum=0.9, nesterov=True), [1, 1, 1], [0.81, 0.539, 0.1951]),
        (optimizers.Adam(0.1), [1e-3, 1e-3], [0.900316, 0.800540]),
        (optimizers.RMSprop(0.1), [2], [0.683772]),
        (optimizers.Adagrad(0.1), [2], [0.901227]),
        (optimizers.SGD(0.1, gradient_accumulation_steps=2), [1, 3, 5], [1.0, 0.8, 0.8]),
    ],
)
def test_probe(optimizer, gradients, expected):
    np.testing.assert_allclose(run(optimizer, gradients), expected, atol=2e-6)


def test_iterations_count_updates():
    optimizer = optimizers.SGD(0.1, gradient_accumulation_steps=2)
    variable = graph.Variable(np.float32(1.0))
    counts = []
    for gradient in (1, 3, 5):
        optimizer.apply([np.float32(gradient)], [variable])
        counts.append(int(np.asarray(optimizer.iterations)))
    assert counts == [0, 1, 1]


def test_weights_lie_one_after_another():
    variables = make_variables()
    optimizer = optimizers.Adam()
    optimizer.build(variables)
    (flat, first), (other, second) = (variable.base for variable in variables)
    assert flat is other and (first, second) == (0, 2) and flat.shape == (3,)
    np.testing.assert_array_equal(flat.numpy(), [1.0, -2.0, 0.5])
    flat.assign(np.array([7.0, 8.0, 9.0], "float32"))
    np.testing.assert_array_equal(weights(variables), [7.0, 8.0, 9.0])


def test_a_second_optimizer_uses_the_same_memory():
    variables = make_variables()
    optimizers.SGD().build(variables)
    flat, version = variables[0].base[0], optimizers.layout_version()
    optimizers.Adam().build(variables)
    assert variables[0].base[0] is flat and optimizers.layout_version() == version


def test_an_optimizer_of_some_of_the_variables_moves_them():
    variables = make_variables()
    first, second = optimizers.SGD(0.1), optimizers.SGD(0.1)
    first.build(variables)
    version = optimizers.layout_version()
    second.build(variables[:1])
    assert optimizers.layout_version() > version
    second.apply([np.ones(2, "float32")], variables[:1])
    first.apply([np.ones(2, "float32"), np.ones(1, "float32")], variables)
    np.testing.assert_allclose(weights(variables), [0.8, -2.2, 0.4], rtol=1e-6)


def test_two_element_types():
    variables = [graph.Variable(np.ones(2), dtype="float64"), graph.Variable(np.ones(3, "float32"))]
    optimizer = optimizers.Nadam(0.1, global_clipnorm=1.0)
    for _ in range(3):
        optimizer.apply([np.ones(2), np.ones(3, "float32")], variables)
    assert [variable.dtype for variable in variables] == ["float64", "float32"]
    np.testing.assert_allclose(variables[0].numpy()[:1], variables[1].numpy()[:1], rtol=1e-6)


def test_variable_without_gradient_stays():
    variables = make_variables()
    optimizer = optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.apply([None, np.ones(1, "float32")], variables)
    np.testing.assert_array_equal(variables[0].numpy(), START[0])
    assert variables[1].numpy()[0] < 0.5


def test_order_of_gradients_may_differ():
    variables = make_variables()
    optimizer = optimizers.SGD(0.1)
    optimizer.build(variables)
    optimizer.apply_gradients([(np.ones(1, "float32"), variables[1]), (np.zeros(2, "float32"), variables[0])])
    np.testing.assert_allclose(weights(variables), [1.0, -2.0, 0.4], rtol=1e-6)


def test_errors_of_apply():
    variables = make_variables()
    optimizer = optimizers.SGD(0.1)
    with pytest.raises(ValueError, match="not built"):
        optimizer.apply([np.ones(2, "float32")])
    optimizer.build(variables)
    with pytest.raises(ValueError, match="no variable has a gradient"):
        optimizer.apply([None, None])
    with pytest.raises(ValueError, match="gradient of 'a': got shape .3,., wanted .2,."):
        optimizer.apply([np.ones(3, "float32"), np.ones(1, "float32")])
    with pytest.raises(ValueError, match="not built for"):
        optimizer.apply([np.ones(2, "float32")], [graph.Variable(np.ones(2, "float32"), name="c")])
    with pytest.raises(ValueError, match="other variables"):
        optimizer.build(variables[:1])


def test_constraint_after_the_update():
    variables = make_variables()
    variables[0].constraint = constraints.NonNeg()
    optimizers.SGD(1.0).apply([np.array([0.5, 1.0], "float32"), np.array([1.0], "float32")], variables)
    np.testing.assert_array_equal(weights(variables), [0.5, 0.0, -0.5])


def test_excluded_from_weight_decay():
    optimizer = optimizers.SGD(0.5, weight_decay=0.5)
    variables = make_variables()
    optimizer.exclude_from_weight_decay(var_names=["b"])
    optimizer.apply([np.zeros(2, "float32"), np.zeros(1, "float32")], variables)
    np.testing.assert_array_equal(weights(variables), [0.75, -1.5, 0.5])
    with pytest.raises(ValueError, match="before the first step"):
        optimizer.exclude_from_weight_decay(var_list=variables)


def test_moving_average_at_the_end():
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    variable = graph.Variable(np.float32(1.0))
    for _ in range(2):
        optimizer.apply([np.float32(1.0)], [variable])
    assert variable.numpy() == -1.0
    optimizer.finalize_variable_values()
    assert variable.numpy() == -0.5


def test_state_variables_in_the_order_of_keras():
    optimizer = optimizers.Adam(amsgrad=True, use_ema=True)
    optimizer.build(make_variables())
    assert [variable.path for variable in optimizer.variables] == [
        f"adam/{name}"
        for name in (
            "iteration", "learning_rate", "a_average", "b_average", "a_momentum", "a_velocity", "b_momentum",
            "b_velocity", "a_velocity_hat", "b_velocity_hat",
        )
    ]  # fmt: skip
    assert "adam/a_momentum" in optimizer.slot_variables()


def test_slot_variables_are_parts_of_the_flat_ones():
    optimizer = optimizers.SGD(0.1, momentum=0.9)
    variables = make_variables()
    optimizer.apply(as_arrays(GRADIENTS[0]), variables)
    momentum = optimizer.slot_variables()["sgd/a_momentum"]
    np.testing.assert_allclose(momentum.numpy(), [-0.05, 0.1], rtol=1e-6)
    momentum.assign(np.zeros(2, "float32"))
    optimizer.apply(as_arrays(GRADIENTS[0]), variables)
    np.testing.assert_allclose(momentum.numpy(), [-0.05, 0.1], rtol=1e-6)


def test_state_of_another_optimizer_is_skipped():
    optimizer = optimizers.SGD()
    optimizer.build(make_variables())
    with pytest.warns(UserWarning, match="not loaded"):
        optimizer.load_own_variables({"0": 1})
    with pytest.raises(ValueError, match="got 1 arrays, wanted 2"):
        optimizer.set_state([np.int64(0)])


def test_learning_rate_can_be_assigned():
    optimizer = optimizers.SGD(0.1)
    assert run(optimizer, [1.0]) == pytest.approx([0.9])
    optimizer.learning_rate = 0.5
    np.testing.assert_allclose(np.asarray(optimizer.learning_rate), 0.5)
    optimizer.learning_rate.assign(0.25)
    assert optimizer.get_config()["learning_rate"] == 0.25


def test_learning_rate_of_a_schedule_cannot_be_assigned():
    optimizer = optimizers.SGD(schedules.ExponentialDecay(0.1, 10, 0.9))
    with pytest.raises(TypeError, match="ExponentialDecay"):
        optimizer.learning_rate = 0.5


def test_schedule_in_the_program():
    optimizer = optimizers.SGD(schedules.PiecewiseConstantDecay([0, 1], [1.0, 0.5, 0.1]))
    assert not optimizer.host_schedule
    np.testing.assert_allclose(run(optimizer, [1.0] * 4, start=0.0), [-1.0, -1.5, -1.6, -1.7], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(optimizer.learning_rate), 0.1, rtol=1e-6)
    assert [variable.path for variable in optimizer.variables] == ["sgd/iteration"]


def test_schedule_of_python_numbers():
    class Halving(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 ** float(step)

        def get_config(self):
            return {}

    optimizer = optimizers.SGD(Halving())
    assert optimizer.host_schedule
    np.testing.assert_allclose(run(optimizer, [1.0] * 3, start=0.0), [-1.0, -1.5, -1.75], rtol=1e-6)


def test_schedule_with_ops_of_a_user():
    class Linear(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1 * ops.cast(step + 1, "float32")

    optimizer = optimizers.SGD(Linear())
    assert not optimizer.host_schedule
    np.testing.assert_allclose(run(optimizer, [1.0] * 3, start=0.0), [-0.1, -0.3, -0.6], rtol=1e-6)


@pytest.mark.parametrize("name", ["adam", "Adam", "RMSprop", "rmsprop", "adamw", "SGD"])
def test_names(name):
    assert type(optimizers.get(name)).__name__.lower() == name.lower()


def test_unknown_name_lists_close_ones():
    with pytest.raises(ValueError, match="'adma'.*did you mean.*'adam'"):
        optimizers.get("adma")
    with pytest.raises(ValueError, match="wanted a name, a config or an optimizer"):
        optimizers.get(3)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: optimizers.SGD(decay=1e-6), "unknown arguments decay"),
        (lambda: optimizers.SGD(clipnorm=1.0, clipvalue=1.0), "at most one"),
        (lambda: optimizers.SGD(clipnorm=-1.0), "clipnorm"),
        (lambda: optimizers.SGD(momentum=2.0), "momentum"),
        (lambda: optimizers.SGD(gradient_accumulation_steps=1), "gradient_accumulation_steps"),
        (lambda: optimizers.Adam(beta_1=1.0), "beta_1"),
        (lambda: optimizers.AdamW(weight_decay=None), "weight_decay"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_scaled_loss():
    optimizer = optimizers.SGD(loss_scale_factor=8.0)
    assert optimizer.scale_loss(2.0) == 16.0
    assert optimizers.SGD().scale_loss(2.0) == 2.0
