"""VGG: stacks of 3x3 convolutions (Simonyan and Zisserman, "Very deep convolutional networks", 2014)."""

from __future__ import annotations

from ..layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from ..models import Model
from .classifier import classifier, documented, image_input


def family_member(owner: str, depths: tuple[int, ...], configuration: str, parameters: str):
    """The builder of one depth: a block of `depths[i]` convolutions with 64, 128, 256, 512 and 512 filters each."""

    def builder(
        include_top=True,
        weights=None,
        input_tensor=None,
        input_shape=None,
        pooling=None,
        classes=1000,
        classifier_activation="softmax",
        dropout=0.5,
        name=None,
    ) -> Model:
        image = image_input(owner, input_tensor, input_shape, (224, 224, 3))
        x = image
        for block, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512, 512), strict=True), start=1):
            for number in range(1, depth + 1):
                x = _convolution(filters, f"block{block}_conv{number}")(x)
            x = MaxPooling2D(2, name=f"block{block}_pool")(x)
        top = [
            Flatten(name="flatten"),
            Dense(4096, activation="relu", kernel_initializer="he_normal", name="fc1"),
            Dropout(dropout),
            Dense(4096, activation="relu", kernel_initializer="he_normal", name="fc2"),
            Dropout(dropout),
            Dense(classes, activation=classifier_activation, name="predictions"),
        ]
        return classifier(owner, image, x, top, include_top, weights, pooling, name or owner.lower())

    builder.__name__ = builder.__qualname__ = owner
    builder.__doc__ = f"""{owner} (configuration {configuration} of the paper). Images of 224x224x3.

    {parameters} parameters. Layers are named as in Keras; `dropout` is the rate after each of the two hidden dense
    layers, as in the paper.
    """
    return documented(builder)


def _convolution(filters: int, name: str) -> Conv2D:
    return Conv2D(filters, 3, padding="same", activation="relu", kernel_initializer="he_normal", name=name)


VGG16 = family_member("VGG16", (2, 2, 3, 3, 3), "D", "138,357,544")
VGG19 = family_member("VGG19", (2, 2, 4, 4, 4), "E", "143,667,240")
