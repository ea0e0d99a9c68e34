"""Known networks trained from the same weights, on the same batches, as their PyTorch twins."""

from __future__ import annotations

import numpy as np
import pytest

from magmadnn_py import applications, losses, optimizers, utils
from peer.step_losses import StepLosses

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (pip install '.[peers]'): nothing to compare with"
)

from peer import torch_networks  # noqa: E402


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
        1e-4,
    ),
    "alexnet": (
        lambda: applications.AlexNet(input_shape=(63, 63, 3), classes=10, classifier_activation=None, dropout=0.0),
        lambda: torch_networks.alexnet(10, cells=1, dropout=0.0),
        (63, 63, 3),
        1e-4,
    ),
    "resnet50": (
        lambda: applications.ResNet50(input_shape=(64, 64, 3), classes=10, classifier_activation=None),
        lambda: torch_networks.resnet50(10),
        (64, 64, 3),
        1e-3,
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
