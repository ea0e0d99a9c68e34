"""Every example runs, with little data and without a network connection, and prints the right numbers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from magmadnn_py.datasets.idx import write_idx

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture
def run(tmp_path):
    def run_example(name: str, *arguments: str) -> str:
        environment = os.environ | {"MAGMADNN_DATA": str(tmp_path), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_example


@pytest.fixture
def digits(tmp_path):
    """A set like MNIST whose images are bright in the row that is their label."""
    rng = np.random.default_rng(0)
    for name, count in (("train", 512), ("t10k", 100)):
        labels = rng.integers(0, 10, count).astype("uint8")
        images = rng.integers(0, 60, (count, 28, 28)).astype("uint8")
        for image, label in zip(images, labels, strict=True):
            image[2 + 2 * label : 4 + 2 * label] = 250
        write_idx(tmp_path / f"{name}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte", labels)


def test_every_example_is_tested():
    tests = set(re.findall(r'run\("(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tests


def test_tensors(run):
    said = run("tensors")
    assert "host     [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]" in said
    assert "diagonal  1.00  0.00  0.00  0.00  2.00  0.00" in said
    assert "element: 5.0 row: [1.0, 2.0, 3.0] column: [0.0, 3.0]" in said
    assert "view: [[9.0, 9.0], [9.0, 9.0], [9.0, 9.0]] copy: [[0.0, 5.0, 0.0], [1.0, 2.0, 3.0]]" in said


def test_compute_graph(run):
    said = run("compute_graph")
    assert "((x ** 2) + c)" in said
    assert "y is 15.5" in said
    assert "y with another x is 13.5" in said
    assert "dy/dx is [4.0, 4.0, 4.0] and dy/dc is 3.0" in said
    assert "%1: float32[3] = (x ** 2)" in said


def test_gradient_descent(run):
    found = re.findall(r"step +(\d+): x = ([\d.]+), value = ([\d.]+)", run("gradient_descent"))
    half = len(found) // 2
    squared = (found[:half], lambda x: x**2 + 2, lambda x: 2 * x)
    to_the_fourth = (found[half:], lambda x: x**4, lambda x: 4 * x**3)
    for rows, value, slope in (squared, to_the_fourth):
        x, way = 1.0, []
        for _ in range(101):
            way.append((x, value(x)))
            x -= 0.05 * slope(x)
        assert [int(step) for step, _, _ in rows] == [0, 1, 2, 20, 40, 60, 80, 100]
        for step, *numbers in rows:
            np.testing.assert_allclose([float(number) for number in numbers], way[int(step)], atol=2e-6)


def test_tensor_math(run):
    said = run("tensor_math")
    assert "at once: [[8.0], [18.0]]" in said
    assert "((A @ x) + b) = [[8.0], [18.0]]" in said
    assert "[[2.0], [2.0]]" in said


def test_mnist(run, digits, tmp_path):
    said = run("mnist", "--epochs", "2", "--samples", "256")
    assert re.search(r"'accuracy': [\d.]+", said)
    assert (tmp_path / "convnet.keras").stat().st_size > 1000


def test_mnist_from_a_folder(run, digits, tmp_path):
    said = run("mnist", "--epochs", "1", "--samples", "64", "--data", str(tmp_path), "--output", "other.keras")
    assert "accuracy" in said and (tmp_path / "other.keras").exists()


def test_simple_network(run, digits):
    said = run("simple_network", "--epochs", "8", "--samples", "512")
    loss, accuracy = map(float, re.search(r"test: loss ([\d.]+), accuracy ([\d.]+)", said).groups())
    assert loss < 2.5 and accuracy > 0.2


def test_simple_network_prints_an_image(run, digits):
    lines = run("simple_network", "--image", "3").splitlines()
    assert len(lines) == 29 and all(len(line) == 56 for line in lines[:28])
    assert lines[28] == "label 2"
