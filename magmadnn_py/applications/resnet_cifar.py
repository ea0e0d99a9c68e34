"""ResNet for images of CIFAR's size (He et al., "Deep residual learning", 2015, section 4.2).

A 3x3 convolution, three stages of n blocks with 16, 32 and 64 filters on maps of 32, 16 and 8 cells, the mean of each
map, and a dense layer: 6n + 2 layers with weights.
"""

from __future__ import annotations

from ..layers import AveragePooling2D, Dense, GlobalAveragePooling2D
from ..models import Model
from ..ops import pad
from .classifier import classifier, documented, image_input
from .resnet import joined, normalized


def family_member(owner: str, blocks: int, parameters: str):
    """The builder of one depth."""

    def builder(
        include_top=True,
        weights=None,
        input_tensor=None,
        input_shape=None,
        pooling=None,
        classes=10,
        classifier_activation="softmax",
        shortcut="A",
        name=None,
    ) -> Model:
        if shortcut not in _SHORTCUTS:
            raise ValueError(f"{owner}: shortcut: got {shortcut!r}, wanted 'A' or 'B'")
        image = image_input(owner, input_tensor, input_shape, (32, 32, 3))
        x = normalized(image, 16, 3, 1, "conv1", padding=1)
        for stage in range(3):
            for number in range(blocks):
                stride = 2 if stage and not number else 1
                x = _block(x, 16 * 2**stage, stride, f"conv{stage + 2}_block{number + 1}", _SHORTCUTS[shortcut])
        top = [
            GlobalAveragePooling2D(name="avg_pool"),
            Dense(classes, activation=classifier_activation, kernel_initializer="he_normal", name="predictions"),
        ]
        return classifier(owner, image, x, top, include_top, weights, pooling, name or owner.lower())

    builder.__name__ = builder.__qualname__ = owner
    builder.__doc__ = f"""{owner} for CIFAR, {blocks} blocks per stage. Images of 32x32x3.

    {parameters} parameters with the shortcuts of option A, moving statistics not counted.

    `shortcut` says what the two shortcuts are where the number of filters doubles: "A", every other cell and zeros for
    the new channels, as in the paper's experiments; "B", a 1x1 convolution with normalisation.
    """
    return documented(builder)


def _block(x, filters: int, stride: int, name: str, shortcut):
    y = normalized(x, filters, 3, stride, f"{name}_1", padding=1)
    y = normalized(y, filters, 3, 1, f"{name}_2", padding=1, activation=None)
    return joined(y, shortcut(x, filters, name) if stride > 1 else x, name)


def _subsampled(x, filters: int, name: str):
    """Option A."""
    x = AveragePooling2D(1, strides=2, name=f"{name}_0_pool")(x)
    return pad(x, ((0, 0), (0, 0), (0, 0), (0, filters - x.shape[-1])))


def _projected(x, filters: int, name: str):
    """Option B."""
    return normalized(x, filters, 1, 2, f"{name}_0", activation=None)


_SHORTCUTS = {"A": _subsampled, "B": _projected}

ResNet20 = family_member("ResNet20", 3, "269,722")
ResNet32 = family_member("ResNet32", 5, "464,154")
ResNet44 = family_member("ResNet44", 7, "658,586")
ResNet56 = family_member("ResNet56", 9, "853,018")
