"""The command line: training, resuming, and errors of one line."""

import numpy as np
import pytest
from cli.command import command

from magmadnn_py.datasets.idx import write_idx


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small MNIST-like set: the class is the brightest of ten columns."""
    path = tmp_path_factory.mktemp("mnist")
    generator = np.random.default_rng(0)
    for part, count in (("train", 600), ("t10k", 200)):
        labels = generator.integers(0, 10, count).astype(np.uint8)
        images = generator.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[4:24, 2 * label + 4 : 2 * label + 6] = 250
        write_idx(path / f"{part}-images-idx3-ubyte", images)
        write_idx(path / f"{part}-labels-idx1-ubyte", labels)
    return path


def train(folder, output, *more):
    result = command("train", "mnist", "--data", folder, "--network", "mlp", "--batch", 50, "--output", output, *more)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_trains_evaluates_and_saves(folder, tmp_path):
    printed = train(folder, tmp_path / "m.keras", "--epochs", 4)
    assert "Epoch 4/4" in printed and "loss" in printed and "accuracy" in printed
    accuracy = float(printed.split("test accuracy ")[1].split(" ")[0])
    assert accuracy > 80
    assert (tmp_path / "m.keras").exists()


def test_resume_gives_the_numbers_of_an_unbroken_run(folder, tmp_path):
    import magmadnn_py as mdnn

    whole = train(folder, tmp_path / "whole.keras", "--epochs", 3)
    part = tmp_path / "part.keras"
    train(folder, part, "--epochs", 3, "--stop-after", 1)
    printed = train(folder, part, "--epochs", 3, "--resume")
    assert "after epoch 1" in printed
    assert printed.split("test accuracy")[1].split(", trained")[0] == whole.split("test accuracy")[1].split(", tra")[0]
    models = [mdnn.saving.load_model(tmp_path / name) for name in ("whole.keras", "part.keras")]
    for a, b in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--optimizer", "adma"), "adma"),
        (("--data", "nowhere"), "nowhere"),
        (("--resume",), "missing.keras"),
    ],
)
def test_a_wrong_input_is_one_line(folder, tmp_path, arguments, words):
    given = ("--data", folder, *arguments) if "--data" not in arguments else arguments
    result = command("train", "mnist", *given, "--output", tmp_path / "missing.keras")
    assert result.returncode == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_info_names_the_instruction_set():
    result = command("info", MAGMADNN_ISA="generic")
    assert result.returncode == 0
    assert "instruction set  generic" in result.stdout
