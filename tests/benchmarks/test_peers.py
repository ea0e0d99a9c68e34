"""The peer computes what the op does, on the same numbers."""

import numpy as np
import pytest

from magmadnn_py.benchmarks import kernels, peers
from magmadnn_py.benchmarks.cases import conv, loss, matmul, norm, pool, reduce

torch = pytest.importorskip("torch")

LABELS = ("3x3-same", "3x3-stride2-same", "depthwise", "dilation3", "groups2-stride2", "1d-long-window", "3d-same")


def _comparable(case) -> bool:
    """The peer's gradient for the input is that of the padded one where low and high padding differ."""
    even = all(low == high for low, high in case.op.padding)
    return case.label.startswith(LABELS) and (even or case.op.name != "convolution_input_gradient")


CONVOLUTIONS = [case for case in conv.CASES + conv.EPILOGUE_CASES if _comparable(case)]
POOLS = [case for case in pool.CASES if case.label in ("2x2-max", "2x2-average", "3x3-stride2-same-max",
                                                       "2x2-average-gradient", "3d-max", "3d-average")]  # fmt: skip


def results(case):
    """The peer's results as the op lays them out."""
    call = peers.op_call(case.op, case.arrays())
    if call is None:
        return None
    found = call()
    found = [tensor.detach() for tensor in (found if isinstance(found, tuple) else (found,))]
    name = case.op.name
    if name == "convolution_weight_gradient":
        found = [found[0].movedim((0, 1), (-1, -2))]
    elif "pool" in name or name.startswith("convolution") or name.startswith("normalize"):
        found = [tensor.movedim(1, -1) if tensor.ndim > 2 else tensor for tensor in found]
    return [tensor.numpy() for tensor in found]


def check(case, count=1):
    """The first `count` results are the reference's."""
    wanted = case.op.reference(np, *case.arrays())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = results(case)
    assert found is not None
    for a, b in list(zip(found, wanted, strict=False))[:count]:
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution(case):
    check(case)


@pytest.mark.parametrize("case", matmul.MATRIX_CASES + matmul.BATCH_CASES + matmul.EPILOGUE_CASES, ids=str)
def test_matmul(case):
    check(case)


@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pool(case):
    check(case)


@pytest.mark.parametrize(
    "case",
    [c for c in loss.CASES if not c.label.startswith(("vector", "empty", "first", "middle"))],
    ids=str,
)
def test_loss(case):
    check(case)


@pytest.mark.parametrize(
    "case", [c for c in norm.CASES if c.label.removesuffix("-gradient") in ("batch-2d", "batch-dense")], ids=str
)
def test_batch_normalization(case):
    check(case, 3 if case.op.name == "normalize_gradient" else 1)


@pytest.mark.parametrize("label", ["layer", "layer-two-axes"])
def test_layer_normalization(label):
    (case,) = (c for c in norm.CASES if c.label == label)
    y = peers.op_call(case.op, case.arrays())().numpy()
    np.testing.assert_allclose(y, case.op.reference(np, *case.arrays())[0], rtol=2e-4, atol=2e-4)


def test_group_normalization():
    (case,) = (c for c in norm.CASES if c.label == "group")
    y = peers.op_call(case.op, case.arrays())()  # N C 1 S
    y = y.squeeze(2).movedim(1, -1).reshape(case.inputs[0].shape).numpy()
    np.testing.assert_allclose(y, case.op.reference(np, *case.arrays())[0], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", reduce.LAYER_CASES, ids=str)
def test_reduce(case):
    check(case)


def test_without_torch_there_is_no_peer(monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda: False)
    case = matmul.CASES[0]
    assert peers.op_contender(case.op, case.arrays(), 1) is None


def test_an_op_without_a_peer():
    (case, *_) = kernels.families()["conv_pooled"]
    assert peers.op_call(case.op, case.arrays()) is None
