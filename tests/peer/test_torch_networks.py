"""Known networks trained from the same weights, on the same batches, as their PyTorch twins."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from magmadnn_py import applications, config, losses, optimizers, utils
from magmadnn_py.applications.resnet import family_member
from peer.step_losses import StepLosses

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (pip install '.[peers]'): nothing to compare with"
)

from magmadnn_py.benchmarks import torch_networks  # noqa: E402


def train_both(model, network, x, y, batch: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The losses of each step, ours and PyTorch's."""
    torch_networks.copy_weights(model, network)
    model.compile(optimizers.SGD(rate, momentum=0.9), losses.SparseCategoricalCrossentropy(from_logits=True))
    watch = StepLosses()
    model.fit(x, y, batch_size=batch, shuffle=False, verbose=0, callbacks=[watch])

    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)
    images, labels = torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(y)
    wanted = []
    network.train()
    for first in range(0, len(x), batch):
        rows = slice(first, first + batch)
        loss = torch.nn.functional.cross_entropy(network(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wanted.append(loss.item())
    return np.array(watch.losses), np.array(wanted)


#: Our network, its twin, the shape of an image, and a learning rate at which the losses fall: where they jump about,
#: rounding errors grow from step to step.
NETWORKS = {
    "resnet20": (
        lambda: applications.ResNet20(classifier_activation=None),
        torch_networks.resnet20,
        (32, 32, 3),
        1e-3,
    ),
    "vgg16": (
        lambda: applications.VGG16(input_shape=(32, 32, 3), classes=10, classifier_activation=None, dropout=0.0),
        lambda: torch_networks.vgg16(10, cells=1, dropout=0.0),
        (32, 32, 3),
        1e-5,
    ),
    "alexnet": (
        lambda: applications.AlexNet(input_shape=(63, 63, 3), classes=10, classifier_activation=None, dropout=0.0),
        lambda: torch_networks.alexnet(10, cells=1, dropout=0.0),
        (63, 63, 3),
        1e-4,
    ),
    "bottlenecks": (
        lambda: family_member("ResNet14", "bottleneck", (1, 1, 1, 1), "")(
            input_shape=(64, 64, 3), classes=10, classifier_activation=None
        ),
        lambda: torch_networks.resnet50(10, depths=(1, 1, 1, 1)),
        (64, 64, 3),
        3e-4,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_losses_of_ten_steps(name):
    build, twin, shape, rate = NETWORKS[name]
    steps, batch = 10, 8
    utils.set_random_seed(3)
    random = np.random.default_rng(0)
    x = random.normal(size=(steps * batch, *shape)).astype("float32")
    y = random.integers(0, 10, steps * batch)
    found, wanted = train_both(build(), twin(), x, y, batch, rate)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.fixture
def double_precision():
    config.set_floatx("float64")
    yield
    config.set_floatx("float32")


@pytest.mark.usefixtures("double_precision")
def test_resnet50_in_double_precision():
    # In float32 its 53 normalisations make a part in a million of a loss one in a hundred of the next, in PyTorch too.
    utils.set_random_seed(3)
    model = applications.ResNet50(input_shape=(64, 64, 3), classes=10, classifier_activation=None)
    random = np.random.default_rng(0)
    x, y = random.normal(size=(16, 64, 64, 3)), random.integers(0, 10, 16)
    # The learning rate is kept in float32, so it is one that has no rounding error there.
    found, wanted = train_both(model, torch_networks.resnet50(10).double(), x, y, 8, 2.0**-10)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def cifar10_test_images(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` of the 10,000 test images, shuffled, with mean 0 and deviation 1 in each channel; and their labels."""
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[test]')")
    images, names = [], []
    with tarfile.open(folder / "cifar10" / "cifar10-jpeg.tar.gz") as archive:
        for member in archive:
            part, *rest = member.name.split("/")
            if part != "test":  # these come first
                break
            if member.isfile():
                images.append(np.asarray(image_module.open(io.BytesIO(archive.extractfile(member).read()))))
                names.append(rest[0])
    chosen = np.random.default_rng(0).permutation(len(images))[:count]
    x = np.stack(images)[chosen].astype("float32")
    x = (x - x.mean((0, 1, 2))) / x.std((0, 1, 2))
    return x, np.unique(names, return_inverse=True)[1][chosen]


@pytest.mark.skipif("MAGMADNN_TEST_DATA" not in os.environ, reason="MAGMADNN_TEST_DATA (folder of cifar10/) is not set")
def test_resnet20_on_cifar10_follows_the_loss_curve():
    steps, batch, window = 200, 32, 25
    x, y = cifar10_test_images(Path(os.environ["MAGMADNN_TEST_DATA"]), steps * batch)
    utils.set_random_seed(5)
    model = applications.ResNet20(classifier_activation=None)
    found, wanted = train_both(model, torch_networks.resnet20(), x, y, batch, 0.001)
    # Rounding errors grow from step to step (PyTorch's own curve moves as much when the last bits of its first weights
    # change), so the curves are compared as means over some steps.
    found, wanted = (curve.reshape(-1, window).mean(1) for curve in (found, wanted))
    assert wanted[-1] < 0.85 * wanted[0]
    np.testing.assert_allclose(found, wanted, rtol=0.01)
