"""CosmoFlow: a network over cubes of matter density (Mathuriya et al., 2018), in the variant that ParaDL studied."""

from __future__ import annotations

from ..layers import AveragePooling3D, Conv3D, Dense, Flatten
from ..models import Input, Sequential

#: Cells along each axis -> padding of the convolutions, and which of the seven has stride 2.
_VARIANTS = {128: ("same", None), 256: ("same", 4), 512: ("valid", 3)}
_FILTERS_AND_WINDOWS = ((16, 3), (32, 3), (64, 3), (128, 3), (256, 2), (256, 2), (128, 2))


def CosmoFlow(input_shape=(128, 128, 128, 4), outputs: int = 4, name: str = "cosmoflow") -> Sequential:  # noqa: N802
    """Seven 3-D convolutions, the first six with an average pooling, and dense layers of 2048, 256 and `outputs` units.

    2,131,252 parameters: 2,128,064 in kernels, as ParaDL's tables count them, and 3,188 biases. The output is linear:
    cosmological parameters, to be trained by mean squared error.

    Args:
        input_shape: depth, height, width (one number of cells: 128, 256 or 512) and channels. With 256 and 512 cells
            the fourth, or third, convolution has stride 2, and with 512 they have no padding, as in ParaDL's tables.
        outputs: units at the end.
        name: of the model.

    Raises:
        ValueError: another shape.
    """
    cells = input_shape[0] if input_shape else None
    if len(input_shape) != 4 or cells not in _VARIANTS or set(input_shape[:3]) != {cells}:
        raise ValueError(
            f"CosmoFlow: input_shape: got {tuple(input_shape)}, wanted a cube of 128, 256 or 512 cells, and channels"
        )
    padding, strided = _VARIANTS[cells]
    stack = [Input(input_shape)]
    for number, (filters, window) in enumerate(_FILTERS_AND_WINDOWS, start=1):
        last = number == len(_FILTERS_AND_WINDOWS)
        convolution = Conv3D(
            filters, window, strides=2 if number == strided else 1, padding="valid" if last else padding,
            activation="relu", kernel_initializer="he_normal", name=f"conv{number}",
        )  # fmt: skip
        stack.append(convolution)
        if not last:
            stack.append(AveragePooling3D(2, name=f"pool{number}"))
    stack += [
        Flatten(),
        Dense(2048, activation="relu", kernel_initializer="he_normal", name="fc1"),
        Dense(256, activation="relu", kernel_initializer="he_normal", name="fc2"),
        Dense(outputs, name="fc3"),
    ]
    return Sequential(stack, name=name)
