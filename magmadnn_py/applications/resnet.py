"""ResNet for images of ImageNet's size (He et al., "Deep residual learning", 2015), in the form known as v1.5.

That is: where a bottleneck block halves the maps, its 3x3 convolution has the stride, not the 1x1 in front of it.
Convolutions have no bias; normalisation has momentum 0.9 and epsilon 1e-5; padding is the same on both sides.
"""

from __future__ import annotations

from ..layers import (
    Activation,
    Add,
    BatchNormalization,
    Conv2D,
    Dense,
    GlobalAveragePooling2D,
    MaxPooling2D,
    ZeroPadding2D,
)
from ..models import Model
from .classifier import classifier, documented, image_input


def family_member(owner: str, block: str, depths: tuple[int, ...], parameters: str):
    """The builder of one depth."""

    def builder(
        include_top=True,
        weights=None,
        input_tensor=None,
        input_shape=None,
        pooling=None,
        classes=1000,
        classifier_activation="softmax",
        name=None,
    ) -> Model:
        image = image_input(owner, input_tensor, input_shape, (224, 224, 3))
        x = _stem(image)
        for stage, depth in enumerate(depths):
            for number in range(depth):
                stride = 2 if stage and not number else 1
                x = _BLOCKS[block](x, 64 * 2**stage, stride, f"conv{stage + 2}_block{number + 1}")
        top = [
            GlobalAveragePooling2D(name="avg_pool"),
            Dense(classes, activation=classifier_activation, name="predictions"),
        ]
        return classifier(owner, image, x, top, include_top, weights, pooling, name or owner.lower())

    builder.__name__ = builder.__qualname__ = owner
    builder.__doc__ = f"""{owner} (v1.5), {block} blocks {depths}. Images of 224x224x3.

    {parameters} parameters, moving statistics not counted.
    """
    return documented(builder)


def _stem(x):
    x = normalized(x, 64, 7, 2, "conv1", padding=3)
    x = ZeroPadding2D(1, name="pool1_pad")(x)
    return MaxPooling2D(3, strides=2, name="pool1_pool")(x)


def _basic(x, filters: int, stride: int, name: str):
    """Two 3x3 convolutions."""
    y = normalized(x, filters, 3, stride, f"{name}_1", padding=1)
    y = normalized(y, filters, 3, 1, f"{name}_2", padding=1, activation=None)
    return joined(y, _shortcut(x, filters, stride, name), name)


def _bottleneck(x, filters: int, stride: int, name: str):
    """1x1, 3x3 and 1x1, the last with four times the filters."""
    y = normalized(x, filters, 1, 1, f"{name}_1")
    y = normalized(y, filters, 3, stride, f"{name}_2", padding=1)
    y = normalized(y, 4 * filters, 1, 1, f"{name}_3", activation=None)
    return joined(y, _shortcut(x, 4 * filters, stride, name), name)


_BLOCKS = {"basic": _basic, "bottleneck": _bottleneck}


def _shortcut(x, filters: int, stride: int, name: str):
    """x itself, or a projection where the shape changes (option B of the paper)."""
    if stride == 1 and x.shape[-1] == filters:
        return x
    return normalized(x, filters, 1, stride, f"{name}_0", activation=None)


def normalized(x, filters: int, size: int, stride: int, name: str, padding: int = 0, activation="relu"):
    """Convolution, batch normalisation and, unless None, an activation."""
    if padding and stride == 1:
        x = _convolution(filters, size, stride, name, "same")(x)
    else:
        x = ZeroPadding2D(padding, name=f"{name}_pad")(x) if padding else x
        x = _convolution(filters, size, stride, name, "valid")(x)
    x = BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{name}_bn")(x)
    return Activation(activation, name=f"{name}_{activation}")(x) if activation else x


def _convolution(filters: int, size: int, stride: int, name: str, padding: str) -> Conv2D:
    return Conv2D(
        filters, size, strides=stride, padding=padding, use_bias=False, kernel_initializer="he_normal",
        name=f"{name}_conv",
    )  # fmt: skip


def joined(y, shortcut, name: str):
    """The end of a block: ReLU of the sum."""
    return Activation("relu", name=f"{name}_out")(Add(name=f"{name}_add")([y, shortcut]))


ResNet18 = family_member("ResNet18", "basic", (2, 2, 2, 2), "11,689,512")
ResNet34 = family_member("ResNet34", "basic", (3, 4, 6, 3), "21,797,672")
ResNet50 = family_member("ResNet50", "bottleneck", (3, 4, 6, 3), "25,557,032")
ResNet101 = family_member("ResNet101", "bottleneck", (3, 4, 23, 3), "44,549,160")
ResNet152 = family_member("ResNet152", "bottleneck", (3, 8, 36, 3), "60,192,808")
