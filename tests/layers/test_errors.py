"""Wrong arguments and inputs: the error names the layer, the argument, what came and what was wanted."""

import re

import numpy as np
import pytest

from magmadnn_py import layers
from magmadnn_py.graph import Symbol

ARGUMENTS = [
    (lambda: layers.Dense(0), "units: got 0, wanted a positive integer"),
    (lambda: layers.Dense(2.5), "units: got 2.5"),
    (lambda: layers.Conv2D(0, 3), "filters: got 0"),
    (lambda: layers.Conv2D(-1, 3), "filters: got -1"),
    (lambda: layers.Conv2D(4, 0), "kernel_size: got 0"),
    (lambda: layers.Conv2D(4, (3, 3, 3)), "kernel_size: got (3, 3, 3)"),
    (lambda: layers.Conv2D(4, 3, strides=0), "strides: got 0"),
    (lambda: layers.Conv2D(4, 3, strides=2, dilation_rate=2), "strides, dilation_rate: got (2, 2) and (2, 2)"),
    (lambda: layers.Conv2D(4, 3, padding="full"), "padding: got 'full', wanted one of valid, same"),
    (lambda: layers.Conv2D(4, 3, padding="causal"), "padding: got 'causal'"),
    (lambda: layers.Conv2D(4, 3, groups=3), "filters: got 4, wanted a multiple of the 3 groups"),
    (lambda: layers.Conv2D(4, 3, data_format="NHWC"), "data_format: got 'NHWC'"),
    (lambda: layers.Conv2D(4, 3, activation="rellu"), "did you mean 'relu'"),
    (lambda: layers.Conv2D(4, 3, kernel_initializer="he"), "initializer: got 'he'"),
    (lambda: layers.Conv2D(4, 3, kernel_regularizer="l3"), "regularizer: got 'l3'"),
    (lambda: layers.Conv2DTranspose(4, 3, strides=2, output_padding=2), "output_padding: got (2, 2)"),
    (lambda: layers.DepthwiseConv2D(3, depth_multiplier=0), "depth_multiplier: got 0"),
    (lambda: layers.MaxPooling2D(0), "pool_size: got 0"),
    (lambda: layers.MaxPooling2D(2, padding="ceil"), "padding: got 'ceil'"),
    (lambda: layers.BatchNormalization(axis=[1, 2]), "axis: got [1, 2]"),
    (lambda: layers.BatchNormalization(momentum=1.5), "momentum: got 1.5"),
    (lambda: layers.BatchNormalization(epsilon=-1), "epsilon: got -1"),
    (lambda: layers.GroupNormalization(0), "groups: got 0"),
    (lambda: layers.Dropout(1.5), "rate: got 1.5, wanted a number from 0 to 1"),
    (lambda: layers.Dropout(-0.1), "rate: got -0.1"),
    (lambda: layers.Dropout(0.5, seed=0.5), "seed: got 0.5"),
    (lambda: layers.GaussianNoise(-1), "stddev: got -1"),
    (lambda: layers.GaussianDropout(1), "rate: got 1"),
    (lambda: layers.ReLU(max_value=-1), "max_value: got -1"),
    (lambda: layers.LeakyReLU(negative_slope=None), "negative_slope: got None"),
    (lambda: layers.Reshape((-1, -1)), "target_shape: got (-1, -1)"),
    (lambda: layers.Permute((0, 1)), "dims: got (0, 1)"),
    (lambda: layers.RepeatVector(0), "n: got 0"),
    (lambda: layers.ZeroPadding2D((1, 2, 3)), "padding: got (1, 2, 3)"),
    (lambda: layers.ZeroPadding2D(-1), "padding: got -1"),
    (lambda: layers.Cropping2D(((1, 2), (3,))), "cropping: got ((1, 2), (3,))"),
    (lambda: layers.UpSampling2D(0), "size: got 0"),
    (lambda: layers.UpSampling2D(2, interpolation="lanczos5"), "interpolation: got 'lanczos5'"),
    (lambda: layers.Concatenate(axis=None), "axis: got None"),
    (lambda: layers.Dot(0), "axes: got 0"),
    (lambda: layers.Embedding(0, 3), "input_dim: got 0"),
    (lambda: layers.Embedding(3, 3, mask_zero=True), "mask_zero"),
    (lambda: layers.RandomFlip("diagonal"), "mode: got 'diagonal'"),
    (lambda: layers.RandomRotation((0.3, 0.1)), "factor: got (0.3, 0.1)"),
    (lambda: layers.Resizing(3, 4, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True), "crop_to_aspect_ratio"),
    (lambda: layers.Normalization(mean=1.0), "mean, variance: got 1.0 and None"),
    (lambda: layers.Lambda(3), "function: got 3"),
    (lambda: layers.TimeDistributed(3), "layer: got 3"),
]

INPUTS = [
    (layers.Dense(2), (None, None), "shape (None, None)"),
    (layers.Dense(2), (3,), "rank 2 or more"),
    (layers.Conv2D(4, 3), (None, 8, 3), "rank 4"),
    (layers.Conv2D(4, 3), (None, 8, 8, None), "extent of axis -1"),
    (layers.Conv2D(4, 3, groups=2), (None, 8, 8, 3), "groups: got 2, wanted a divisor of the input's 3 channels"),
    (layers.Conv2D(4, 5), (None, 4, 8, 3), "kernel_size: got a window of (5, 5) for an input of shape (None, 4, 8, 3)"),
    (layers.Conv2D(4, 3, dilation_rate=4), (None, 8, 9, 3), "window of (9, 9)"),
    (layers.Conv2D(4, 5, data_format="channels_first"), (None, 3, 4, 8), "window of (5, 5)"),
    (layers.MaxPooling2D(5), (None, 4, 8, 3), "pool_size: got a window of (5, 5)"),
    (layers.AveragePooling1D(3), (None, 2, 8), "pool_size: got a window of (3,)"),
    (layers.GlobalMaxPooling2D(), (None, 8, 8), "rank 4"),
    (layers.BatchNormalization(), (None, 8, None), "extent of axis 2"),
    (layers.BatchNormalization(axis=4), (None, 8, 8), "axis: got 4"),
    (layers.GroupNormalization(3), (None, 8, 8), "groups: got 3, wanted a divisor of the input's 8 channels"),
    (layers.SpatialDropout2D(0.5), (None, 8, 8), "rank 4"),
    (layers.Reshape((5,)), (None, 2, 3), "target_shape: got (5,), wanted the 6 elements"),
    (layers.Reshape((-1, 4)), (None, 2, 3), "the 6 elements"),
    (layers.Permute((2, 1)), (None, 2, 3, 4), "rank 3"),
    (layers.RepeatVector(2), (None, 2, 3), "rank 2"),
    (layers.Cropping1D(2), (None, 4, 3), "cropping: got (2, 2)"),
    (layers.Add(), (None, 4), "a list of tensors"),
    (layers.Add(), [(None, 4), (None, 3)], "inputs: got shapes (None, 4), (None, 3)"),
    (layers.Subtract(), [(None, 4)], "exactly 2"),
    (layers.Concatenate(), [(None, 4, 2), (None, 3, 2)], "agree in all axes but axis 2"),
    (layers.Dot(1), [(None, 4), (None, 3)], "equal extents"),
]


@pytest.mark.parametrize(("make", "message"), ARGUMENTS, ids=[message for _, message in ARGUMENTS])
def test_arguments(make, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        make()
    if ": got" in message and "izer:" not in message:
        assert "layer '" in str(caught.value)


@pytest.mark.parametrize(
    ("layer", "shape", "message"), INPUTS, ids=[f"{type(layer).__name__} {shape}" for layer, shape, _ in INPUTS]
)
def test_inputs(layer, shape, message):
    symbols = [Symbol(part) for part in shape] if isinstance(shape, list) else Symbol(shape)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        layer(symbols)
    assert f"'{layer.name}'" in str(caught.value)


def test_embedding_index_out_of_range():
    layer = layers.Embedding(3, 2)
    with pytest.raises(IndexError):
        layer(np.array([[5]], "int32"))


def test_no_call():
    with pytest.raises(NotImplementedError, match="call"):
        layers.Layer()(np.ones((2, 3), "float32"))
