"""AlexNet: five convolutions, three dense layers."""

from __future__ import annotations

from ..layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D, ZeroPadding2D
from ..models import Model
from .classifier import classifier, documented, image_input


@documented
def AlexNet(  # noqa: N802
    include_top=True,
    weights=None,
    input_tensor=None,
    input_shape=None,
    pooling=None,
    classes=1000,
    classifier_activation="softmax",
    dropout=0.5,
    filters=(64, 192, 384, 256, 256),
    groups=1,
    name="alexnet",
) -> Model:
    """AlexNet in one column (Krizhevsky, "One weird trick", 2014). Images of 224x224x3; 61,100,840 parameters.

    `filters=(96, 256, 384, 384, 256), groups=2` gives the two columns of Krizhevsky, Sutskever and Hinton (2012;
    60,965,224 parameters; its local response normalisation is left out), and `groups=1` with these filters the same in
    one column (62,378,344). The second, fourth and fifth convolution have the groups. `dropout` is the rate before
    each of the two hidden dense layers.
    """
    if len(filters) != 5:
        raise ValueError(f"AlexNet: filters: got {filters}, wanted 5 counts, one for each convolution")
    image = image_input("AlexNet", input_tensor, input_shape, (224, 224, 3))
    x = ZeroPadding2D(2)(image)
    x = Conv2D(filters[0], 11, strides=4, activation="relu", kernel_initializer="he_normal")(x)
    x = MaxPooling2D(3, strides=2)(x)
    x = _convolution(filters[1], 5, groups)(x)
    x = MaxPooling2D(3, strides=2)(x)
    x = _convolution(filters[2], 3, 1)(x)
    x = _convolution(filters[3], 3, groups)(x)
    x = _convolution(filters[4], 3, groups)(x)
    x = MaxPooling2D(3, strides=2)(x)
    top = [
        Flatten(),
        Dropout(dropout),
        Dense(4096, activation="relu", kernel_initializer="he_normal"),
        Dropout(dropout),
        Dense(4096, activation="relu", kernel_initializer="he_normal"),
        Dense(classes, activation=classifier_activation),
    ]
    return classifier("AlexNet", image, x, top, include_top, weights, pooling, name)


def _convolution(filters: int, size: int, groups: int) -> Conv2D:
    return Conv2D(
        filters, size, padding="same", groups=groups, activation="relu", kernel_initializer="he_normal"
    )  # fmt: skip
