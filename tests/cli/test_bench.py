"""`magmadnn bench`, with next to no time to measure."""

import importlib.util
import json

import pytest
from cli.command import command


def bench(*arguments):
    return command("bench", *arguments, "--seconds", 0)


def test_kernels(tmp_path):
    path = tmp_path / "rows.json"
    result = bench("kernels", "--families", "loss", "--filter", "mnist-sparse", "--threads", 1, "--json", path)
    assert result.returncode == 0, result.stderr
    assert "limit of this machine" in result.stdout and "1 threads" in result.stdout
    assert "mnist-sparse-gradient" in result.stdout
    records = json.loads(path.read_text())
    assert [record["op"] for record in records] == ["softmax_cross_entropy", "softmax_cross_entropy_gradient"]
    assert {record["threads"] for record in records} == {1}
    has_torch = importlib.util.find_spec("torch") is not None
    assert {record["peer"] for record in records} == {"torch" if has_torch else None}


def test_layers(tmp_path):
    path = tmp_path / "rows.json"
    result = bench("layers", "--filter", "lenet dense1", "--json", path)
    assert result.returncode == 0, result.stderr
    (record,) = json.loads(path.read_text())
    assert (record["op"], record["attributes"], record["inputs"]) == (
        "layer",
        {"layer": "Dense"},
        [["float32", [128, 800]]],
    )


def test_models(tmp_path):
    path = tmp_path / "rows.json"
    result = bench("models", "--filter", "MLP", "--json", path)
    assert result.returncode == 0, result.stderr
    records = json.loads(path.read_text())
    assert [record["attributes"] for record in records] == [
        {"network": "MLP", "step": "train"},
        {"network": "MLP", "step": "predict"},
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kernels", "--families", "convolutions"), "convolutions"),
        (("kernels", "--algorithms", "magic"), "magic"),
        (("layers", "--filter", "no such layer"), "--filter"),
    ],
)
def test_a_wrong_input_is_one_line(arguments, words):
    result = bench(*arguments)
    assert result.returncode == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_plot(tmp_path):
    path = tmp_path / "roofline.png"
    result = bench("kernels", "--filter", "mnist-sparse", "--plot", path)
    assert result.returncode == 0, result.stderr
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_plot_without_matplotlib_says_what_to_install(tmp_path):
    result = bench("kernels", "--plot", tmp_path / "roofline.png")
    assert result.returncode == 1
    assert "magmadnn-py[plot]" in result.stderr
