"""Rows: the roofline, the records, the table, the plot."""

import importlib.util
import io
import json

import pytest
from rich.console import Console

from magmadnn_py.benchmarks import plot, report
from magmadnn_py.benchmarks.limit import Limit
from magmadnn_py.benchmarks.rows import Row, write_json
from magmadnn_py.benchmarks.timing import Timing
from magmadnn_py.graph.node import Cost
from magmadnn_py.graph.types import TensorType
from magmadnn_py.ops import MatMul

LIMIT = Limit(flops_per_second=100e9, bytes_per_second=10e9)


def row(flops=10**9, bytes_=10**7, seconds=(0.02,), peer=None) -> Row:
    return Row(
        "square",
        "matmul",
        MatMul().attributes(),
        (TensorType((2, 3)), TensorType((3, 4))),
        (TensorType((2, 4)),),
        2,
        "gemm",
        Timing(seconds),
        Cost(flops, bytes_),
        LIMIT,
        peer,
    )


def test_rates():
    assert row().flops_per_second == pytest.approx(50e9)
    assert row().bytes_per_second == pytest.approx(0.5e9)


def test_arithmetic_or_memory_is_the_limit():
    assert row().share_of_limit == pytest.approx(0.5)
    assert row(flops=10**6, bytes_=10**8).share_of_limit == pytest.approx(0.5)


def test_peer_ratio_is_above_one_where_the_peer_is_slower():
    assert row(peer=Timing((0.03,))).peer_ratio == pytest.approx(1.5)
    assert row().peer_ratio is None


def test_json_is_a_list_of_records_of_the_kernel_database(tmp_path):
    path = tmp_path / "new" / "rows.json"
    write_json(path, [row(seconds=(0.01, 0.02, 0.06), peer=Timing((0.04,)))])
    (record,) = json.loads(path.read_text())
    assert set(record) >= {
        "device", "version", "op", "attributes", "inputs", "outputs", "threads", "algorithm", "seconds", "samples",
        "flops", "bytes",
    }  # fmt: skip
    assert record["op"] == "matmul" and record["attributes"]["activation"] == "linear"
    assert record["inputs"] == [["float32", [2, 3]], ["float32", [3, 4]]]
    assert (record["seconds"], record["samples"], record["flops"]) == (0.02, 3, 10**9)
    assert (record["peer"], record["peer_seconds"]) == ("torch", 0.04)
    assert [entry.name for entry in path.parent.iterdir()] == ["rows.json"]


def test_without_a_peer_its_fields_are_empty():
    record = row().record()
    assert record["peer"] is record["peer_seconds"] is record["peer_spread"] is None


def test_table_shows_the_figures():
    shown = io.StringIO()
    Console(file=shown, width=160).print(report.table("matmul", [row(peer=Timing((0.03,)))]))
    text = " ".join(shown.getvalue().split())
    assert "square matmul gemm 20 ms 0 % 50.0 0.5 50 % 30 ms 1.50 x" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2e-6, "3.2 us"), (9.994e-4, "999 us"), (0.012345, "12.3 ms"), (12.0, "12 s")]
)
def test_durations(seconds, text):
    assert report.duration(seconds) == text


def test_roofline_plot(tmp_path):
    pytest.importorskip("matplotlib")
    plot.check_plotting("x.svg")
    path = tmp_path / "roofline.svg"
    plot.write_roofline(path, [row(), row(flops=0), row(flops=10**6, bytes_=10**8)], LIMIT)
    text = path.read_text()
    assert "<svg" in text and "GFLOP/s" in text


def test_a_plot_of_no_known_kind():
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="roofline.doc.*svg"):
        plot.check_plotting("roofline.doc")


def test_a_plot_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"magmadnn-py\[plot\]"):
        plot.check_plotting("roofline.svg")
