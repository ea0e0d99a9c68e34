"""Small networks for 28x28 grey images such as MNIST's."""

from __future__ import annotations

from collections.abc import Sequence

from ..layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from ..models import Input, Sequential

_SHAPE = (28, 28, 1)


def LeNet5(input_shape=_SHAPE, classes: int = 10, dropout: float = 0.0) -> Sequential:  # noqa: N802
    """LeNet-5 in the form of LeCun et al. as later libraries have it: 20 and 50 filters of 5x5, 500 units.

    Args:
        input_shape: height, width, channels of an image.
        classes: units of the softmax at the end.
        dropout: rate after the 500 units.
    """
    head = [Dropout(dropout)] if dropout else []
    return Sequential(
        [
            Input(input_shape),
            Conv2D(20, 5, activation="relu"),
            MaxPooling2D(2),
            Conv2D(50, 5, activation="relu"),
            MaxPooling2D(2),
            Flatten(),
            Dense(500, activation="relu"),
            *head,
            Dense(classes, activation="softmax"),
        ],
        name="lenet5",
    )


def mnist_convnet(input_shape=_SHAPE, classes: int = 10) -> Sequential:
    """The network of Keras's "simple MNIST convnet" example: 32 and 64 filters of 3x3, dropout, softmax."""
    return Sequential(
        [
            Input(input_shape),
            Conv2D(32, 3, activation="relu"),
            MaxPooling2D(2),
            Conv2D(64, 3, activation="relu"),
            MaxPooling2D(2),
            Flatten(),
            Dropout(0.5),
            Dense(classes, activation="softmax"),
        ],
        name="mnist_convnet",
    )


def MLP(input_shape=_SHAPE, units: Sequence[int] = (512, 512), classes: int = 10) -> Sequential:  # noqa: N802
    """Dense layers of the given units with ReLU, and a softmax."""
    hidden = [Dense(count, activation="relu") for count in units]
    return Sequential([Input(input_shape), Flatten(), *hidden, Dense(classes, activation="softmax")], name="mlp")
