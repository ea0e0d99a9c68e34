"""Running a graph by references: several outputs, variables, wrong inputs."""

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.graph import Trace, Variable
from magmadnn_py.graph.interpret import interpret


def test_outputs_in_order():
    with Trace() as trace:
        x, y = trace.input((2,)), trace.input((2,))
        graph = trace.graph([x * y, x, x - y])
    a, b = np.array([1, 2], "float32"), np.array([3, 5], "float32")
    outputs, updates = interpret(graph, [a, b])
    assert [o.tolist() for o in outputs] == [[3, 10], [1, 2], [-2, -3]]
    assert updates == {}


def test_a_node_that_several_read_runs_once():
    runs = []

    class Counting(ops.Copy):
        def reference(self, xp, x):
            runs.append(x)
            return x

    with Trace() as trace:
        y = Counting()(trace.input((2,)))
        graph = trace.graph([y + y, y * y, y])
    interpret(graph, [np.zeros(2, "float32")])
    assert len(runs) == 1


@pytest.mark.parametrize("array", [np.zeros((3, 2), "float32"), np.zeros((2, 3), "float64")])
def test_a_wrong_input_is_named(array):
    with Trace() as trace:
        graph = trace.graph([trace.input((2, 3), label="image") * 1.0])
    with pytest.raises(ValueError, match=r"input 'image': got .* wanted float32\[2, 3\]"):
        interpret(graph, [array])


def test_variables_are_read_and_not_changed():
    variable = Variable(np.array([1.0, 2.0]))
    with Trace() as trace:
        x = trace.input((2,))
        before = variable * x
        variable.assign_add(x)
        after = variable * x
        graph = trace.graph([before, after])
    outputs, updates = interpret(graph, [np.array([10, 20], "float32")])
    assert [o.tolist() for o in outputs] == [[10, 40], [110, 440]]
    assert updates[variable].tolist() == [11, 22]
    assert variable.numpy().tolist() == [1, 2]
