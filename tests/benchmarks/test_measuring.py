"""What is measured: cases by family, every algorithm, whole layers. No test looks at a time."""

import pytest

from magmadnn_py import _core, layers
from magmadnn_py.benchmarks import kernels, peers, timing
from magmadnn_py.benchmarks.cases import conv, matmul
from magmadnn_py.benchmarks.cases.case import Case, types
from magmadnn_py.benchmarks.layers import LayerCase, measure_layer
from magmadnn_py.benchmarks.limit import Limit
from magmadnn_py.graph.node import Input, Node
from magmadnn_py.graph.variable import Variable
from magmadnn_py.ops.movement import StopGradient
from magmadnn_py.runtime.kernels import algorithms

LIMIT = Limit(1e11, 1e10)


@pytest.fixture(autouse=True)
def no_peer(monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda: False)


def find(cases, label):
    (case,) = (case for case in cases if case.label == label)
    return case


def test_every_family_with_kernels_has_cases_for_speed():
    assert set(kernels.families()) >= {
        "conv", "conv_pooled", "elementwise", "loss", "matmul", "movement", "norm", "pool", "random", "reduce",
    }  # fmt: skip


def test_every_case_for_speed_is_well_formed():
    for cases in kernels.families().values():
        labels = [case.label for case in cases]
        assert len(labels) == len(set(labels))
        for case in cases:
            assert case.outputs


def test_select_by_family_and_text():
    assert list(kernels.select(["pool", "conv"], "")) == ["pool", "conv"]
    chosen = kernels.select([], "lenet-conv2-forward")
    assert [(family, [case.label for case in cases]) for family, cases in chosen.items()] == [
        ("conv", ["lenet-conv2-forward"])
    ]
    assert {case.op.name for case in kernels.select([], "max_pool_gradient")["pool"]} == {"max_pool_gradient"}


def test_unknown_names():
    with pytest.raises(ValueError, match="families: got 'convolutions', wanted some of conv, "):
        kernels.select(["convolutions"], "")
    with pytest.raises(ValueError, match="algorithms: got 'magic', wanted some of .*gemm"):
        kernels.check_algorithms(["gemm", "magic"])


@pytest.mark.parametrize("label", ["3x3-same-forward", "3x3-same-input-gradient", "depthwise-weight-gradient"])
def test_a_row_for_each_algorithm(label):
    case = find(conv.CASES, label)
    rows = list(kernels.measure_case(case, LIMIT, 0.0))
    node = Node(case.op, [Input(type_)() for type_ in case.inputs])
    assert [row.algorithm for row in rows] == algorithms(node, _core.get_threads())
    for row in rows:
        assert (row.op, row.inputs, row.outputs) == (case.op.name, case.inputs, case.outputs)
        assert row.cost == case.op.cost(case.inputs, case.outputs)
        assert row.seconds > 0 and row.peer is None


def test_only_the_algorithms_asked_for():
    case = find(conv.CASES, "depthwise-forward")
    assert [row.algorithm for row in kernels.measure_case(case, LIMIT, 0.0, ["direct"])] == ["direct"]
    assert list(kernels.measure_case(case, LIMIT, 0.0, ["gemm"])) == []


def test_an_op_without_a_kernel_is_measured_by_its_reference():
    (row,) = kernels.measure_case(find(matmul.CASES, "int32 5x6x7"), LIMIT, 0.0)
    assert row.algorithm in ("reference", *(name for op, name in _core.kernels() if op == "matmul"))
    (row,) = kernels.measure_case(Case("none", StopGradient(), types((3, 4))), LIMIT, 0.0)
    assert row.algorithm == "reference"


def test_a_program_of_one_op_leaves_its_inputs_as_they_are():
    (case,) = (c for c in kernels.families()["elementwise"] if c.label == "tanh")
    x = Variable(case.arrays()[0])
    before = x.numpy()
    timing.contender(kernels.op_program(case.op, [x]))(3)
    assert (x.numpy() == before).all()


def test_layers_are_built_and_run():
    small = LayerCase("dense", (4, 6), lambda: layers.Dense(3), lambda nn: nn.Linear(6, 3))
    row = measure_layer(small, LIMIT, 0.0)
    assert (row.op, row.attributes, row.algorithm) == ("layer", {"layer": "Dense"}, "program")
    assert [t.shape for t in (*row.inputs, *row.outputs)] == [(4, 6), (4, 3)]
    assert row.cost.flops >= 3 * 2 * 4 * 6 * 3  # forward, and the gradients of input and weights
