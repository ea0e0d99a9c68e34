"""What the image classifiers share: the checks of their arguments, the input, and the two kinds of end."""

from __future__ import annotations

from ..graph.symbolic import Symbol
from ..layers import GlobalAveragePooling2D, GlobalMaxPooling2D
from ..models import Input, Model

_POOLING = {None: [], "avg": [GlobalAveragePooling2D], "max": [GlobalMaxPooling2D]}


def image_input(owner: str, input_tensor, input_shape, default: tuple[int, int, int]) -> Symbol:
    """The symbol a network starts from: the given one, or a new one of the given or the default shape.

    Raises:
        ValueError: the tensor is no symbol, or the shape is not height, width and channels.
    """
    if input_tensor is not None:
        if not isinstance(input_tensor, Symbol):
            raise ValueError(
                f"{owner}: input_tensor: got {type(input_tensor).__name__}, wanted what Input(...) returns"
            )
        return input_tensor
    shape = default if input_shape is None else tuple(input_shape)
    if len(shape) != 3 or not all(isinstance(extent, int) and extent > 0 for extent in shape):
        raise ValueError(f"{owner}: input_shape: got {input_shape}, wanted height, width and channels")
    return Input(shape)


def classifier(owner: str, image: Symbol, features: Symbol, top: list, include_top, weights, pooling, name) -> Model:
    """The model from `image` to `features`, and on through the layers of `top` or the pooling.

    Raises:
        ValueError: `weights` or `pooling` is none of the values that `documented` lists.
    """
    if weights == "imagenet":
        raise ValueError(
            f"{owner}: weights: got 'imagenet', wanted None or a file of weights: trained ones do not come along"
        )
    if pooling not in _POOLING:
        raise ValueError(f"{owner}: pooling: got {pooling!r}, wanted None, 'avg' or 'max'")
    for layer in top if include_top else [kind() for kind in _POOLING[pooling]]:
        features = layer(features)
    model = Model(image, features, name=name)
    if weights is not None:
        model.load_weights(weights)
    return model


def documented(builder):
    """Adds to the docstring what is the same for all classifiers."""
    builder.__doc__ += """
    Args:
        include_top: whether the layers that classify are at the end; without them the features are the output.
        weights: None, or a file that `save_weights` of the same network wrote.
        input_tensor: what `Input` returned, to be used as the input.
        input_shape: height, width, channels of an image.
        pooling: without a top: None for the whole maps, "avg" or "max" for one number per channel.
        classes: units at the end.
        classifier_activation: of these units; None for logits.
        name: of the model; by default the network's, in lower case.

    Raises:
        ValueError: an argument is none of these; the images are too small for the network.
    """
    return builder
