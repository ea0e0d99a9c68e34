"""PyTorch twins of the networks in `magmadnn_py.applications`: the same layers in the same order, ending in logits.

The tests compare training runs with them, `magmadnn bench models` and `benchmarks/compare.py` speed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from .. import layers


def mlp(classes: int = 10) -> nn.Module:
    return nn.Sequential(nn.Flatten(), *_dense(784, 512), *_dense(512, 512), nn.Linear(512, classes))


def lenet5(classes: int = 10) -> nn.Module:
    return nn.Sequential(
        *_convolution(1, 20, 5), nn.MaxPool2d(2), *_convolution(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        *_dense(800, 500), nn.Linear(500, classes),
    )  # fmt: skip


def mnist_convnet(classes: int = 10) -> nn.Module:
    return nn.Sequential(
        *_convolution(1, 32, 3), nn.MaxPool2d(2), *_convolution(32, 64, 3), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(1600, classes),
    )  # fmt: skip


def alexnet(classes: int = 1000, cells: int = 6, dropout: float = 0.5) -> nn.Module:
    """`cells`: height and width of the maps that are flattened; 6 for images of 224x224."""
    return nn.Sequential(
        *_convolution(3, 64, 11, stride=4, padding=2), nn.MaxPool2d(3, 2),
        *_convolution(64, 192, 5, padding=2), nn.MaxPool2d(3, 2),
        *_convolution(192, 384, 3, padding=1), *_convolution(384, 256, 3, padding=1),
        *_convolution(256, 256, 3, padding=1), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Dropout(dropout), *_dense(256 * cells * cells, 4096), nn.Dropout(dropout), *_dense(4096, 4096),
        nn.Linear(4096, classes),
    )  # fmt: skip


def vgg16(classes: int = 1000, cells: int = 7, dropout: float = 0.5) -> nn.Module:
    """`cells`: height and width of the maps that are flattened; 7 for images of 224x224."""
    stack, channels = [], 3
    for depth, filters in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(depth):
            stack += _convolution(channels, filters, 3, padding=1)
            channels = filters
        stack.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *stack, nn.Flatten(), *_dense(512 * cells * cells, 4096), nn.Dropout(dropout), *_dense(4096, 4096),
        nn.Dropout(dropout), nn.Linear(4096, classes),
    )  # fmt: skip


def resnet50(classes: int = 1000, depths: tuple[int, ...] = (3, 4, 6, 3)) -> nn.Module:
    stack = [*_normalized(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for stage, depth in enumerate(depths):
        for number in range(depth):
            stack.append(_bottleneck(channels, 64 * 2**stage, 2 if stage and not number else 1))
            channels = 256 * 2**stage
    return nn.Sequential(*stack, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet20(classes: int = 10) -> nn.Module:
    """For CIFAR, with shortcuts of option A."""
    stack, channels = [*_normalized(3, 16, 3), nn.ReLU(inplace=True)], 16
    for stage in range(3):
        for _ in range(3):
            filters = 16 * 2**stage
            branch = [
                *_normalized(channels, filters, 3, filters // channels), nn.ReLU(inplace=True),
                *_normalized(filters, filters, 3),
            ]  # fmt: skip
            stack.append(Residual(branch, nn.Identity() if filters == channels else Subsample()))
            channels = filters
    return nn.Sequential(*stack, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


class Residual(nn.Module):
    """ReLU of the sum of a branch and a shortcut."""

    def __init__(self, branch: list[nn.Module], shortcut: nn.Module):
        super().__init__()
        self.branch = nn.Sequential(*branch)
        self.shortcut = shortcut

    def forward(self, x):
        return nn.functional.relu(self.branch(x) + self.shortcut(x), inplace=True)


class Subsample(nn.Module):
    """Every other cell, and as many channels of zeros as there are channels."""

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, x.shape[1]))


def _bottleneck(channels: int, filters: int, stride: int) -> Residual:
    branch = [
        *_normalized(channels, filters, 1), nn.ReLU(inplace=True),
        *_normalized(filters, filters, 3, stride), nn.ReLU(inplace=True),
        *_normalized(filters, 4 * filters, 1),
    ]  # fmt: skip
    same = stride == 1 and channels == 4 * filters
    return Residual(branch, nn.Identity() if same else nn.Sequential(*_normalized(channels, 4 * filters, 1, stride)))


def _normalized(channels: int, filters: int, size: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, filters, size, stride, padding=size // 2, bias=False)
    return [convolution, nn.BatchNorm2d(filters)]


def _convolution(channels: int, filters: int, size: int, stride: int = 1, padding: int = 0) -> list[nn.Module]:
    return [nn.Conv2d(channels, filters, size, stride, padding), nn.ReLU(inplace=True)]


def _dense(inputs: int, units: int) -> list[nn.Module]:
    return [nn.Linear(inputs, units), nn.ReLU(inplace=True)]


@torch.no_grad()
def copy_weights(model, network: nn.Module) -> None:
    """Gives `network` the weights of `model`, whose twin it is."""
    kinds = nn.Conv2d | nn.Linear | nn.BatchNorm2d
    modules = [module for module in network.modules() if isinstance(module, kinds)]
    flattened = None  # the shape of the maps that a Dense gets flattened
    with_weights = iter(modules)
    for layer in model.layers:
        if isinstance(layer, layers.Flatten):
            flattened = layer.input.shape[1:]
        if not layer.weights:
            continue
        module = next(with_weights)
        arrays = [weight.numpy() for weight in layer.weights]
        if isinstance(layer, layers.Dense) and flattened is not None:
            maps = arrays[0].reshape(*flattened, -1)
            arrays[0] = np.moveaxis(maps, -2, 0).reshape(arrays[0].shape)  # channels first, as PyTorch flattens
            flattened = None
        if not isinstance(layer, layers.BatchNormalization):
            arrays[0] = np.moveaxis(arrays[0], (-1, -2), (0, 1))
        targets = [*module.parameters(), *(b for b in module.buffers() if b.ndim)]
        for target, array in zip(targets, arrays, strict=True):
            target.copy_(torch.from_numpy(np.ascontiguousarray(array)))
    if any(True for _ in with_weights):
        raise ValueError(f"{model.name}: its twin has more layers")
