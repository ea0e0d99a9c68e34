"""Cases of convolutions with a max-pooling behind them, and of their gradients."""

from __future__ import annotations

from ...graph.types import TensorType
from ...ops.conv import Convolution
from ...ops.conv_pooled import (
    ConvolutionMaxPool,
    PooledConvolutionInputGradient,
    PooledConvolutionWeightGradient,
)
from ...ops.window import resolve_padding
from .case import Case, random_array, types


def family(label, x, w, window=(2, 2), padding="valid", strides=1, dilation=1, groups=1) -> list[Case]:
    """Both gradients for x[N, *S, C] and w[*K, C, F], with half of the pooled gradient zero, as behind a ReLU."""
    rank = len(x) - 2
    strides, dilation = (strides,) * rank, (dilation,) * rank
    padding = resolve_padding(padding, x[1:-1], w[:-2], strides, dilation, label)
    attributes = (strides, padding, dilation, groups)
    x_type, w_type = types(x, w)
    (y,) = Convolution(*attributes).infer(x_type, w_type)
    unpooled = y.shape[1:-1]
    pooled = TensorType((x[0], *(e // k for e, k in zip(unpooled, window, strict=True)), w[-1]), "float32")
    positions = TensorType(pooled.shape, "uint8")
    cells = 1
    for extent in window:
        cells *= extent

    def gradient(rng, type_):
        return random_array(rng, type_) * (rng.random(type_.shape) < 0.5), rng.integers(0, cells, positions.shape)

    def weight(rng, types_):
        return [random_array(rng, types_[0]), *gradient(rng, types_[1])]

    def inputs(rng, types_):
        return [*gradient(rng, types_[0]), random_array(rng, types_[2])]

    return [
        Case(
            f"{label}-weight-gradient",
            PooledConvolutionWeightGradient(*attributes, tuple(w[:-2]), tuple(window), unpooled),
            (x_type, pooled, positions),
            weight,
        ),
        Case(
            f"{label}-input-gradient",
            PooledConvolutionInputGradient(*attributes, tuple(x[1:-1]), tuple(window), unpooled),
            (pooled, positions, w_type),
            inputs,
        ),
    ]


def forward(label, x, w, window=(2, 2), padding="valid", strides=1, dilation=1, groups=1, **attributes) -> Case:
    """Convolution and pooling for x[N, *S, C] and w[*K, C, F]; `attributes` are those of the epilogue."""
    rank = len(x) - 2
    strides, dilation = (strides,) * rank, (dilation,) * rank
    padding = resolve_padding(padding, x[1:-1], w[:-2], strides, dilation, label)
    op = ConvolutionMaxPool(strides, padding, dilation, groups, tuple(window), **attributes)
    return Case(label, op, types(x, w, *[w[-1:]] * op.bias))


_EPILOGUE = {"bias": True, "activation": "relu"}
#: These have a kernel.
FORWARD_CASES = [
    forward("lenet-conv1", (3, 28, 28, 1), (5, 5, 1, 20), **_EPILOGUE),
    forward("lenet-conv2", (3, 12, 12, 20), (5, 5, 20, 50), **_EPILOGUE),
    forward("convnet-conv1", (3, 28, 28, 1), (3, 3, 1, 32), **_EPILOGUE),
    forward("convnet-conv2-odd", (3, 13, 13, 32), (3, 3, 32, 64), **_EPILOGUE),
    forward("no-positions", (2, 9, 9, 16), (3, 3, 16, 24), positions=False, **_EPILOGUE),
    forward("plain", (2, 8, 8, 8), (3, 3, 8, 8)),
    forward("bias-alone", (2, 7, 6, 9), (3, 3, 9, 7), bias=True),
    forward("relu-alone", (2, 7, 6, 3), (2, 3, 3, 9), activation="relu"),
    forward("one-image", (1, 6, 6, 3), (3, 3, 3, 4), **_EPILOGUE),
    forward("one-window", (1, 2, 2, 1), (1, 1, 1, 1)),
    forward("no-images", (0, 6, 6, 8), (3, 3, 8, 4), **_EPILOGUE),
    forward("same-3x3", (2, 11, 8, 10), (3, 3, 10, 17), padding="same", **_EPILOGUE),
    forward("same-5x5", (2, 8, 11, 17), (5, 5, 17, 3), padding="same", **_EPILOGUE),
    forward("asymmetric", (2, 7, 9, 3), (2, 4, 3, 5), padding=((1, 0), (2, 3)), **_EPILOGUE),
    forward("strides", (2, 13, 13, 3), (3, 3, 3, 4), strides=2, **_EPILOGUE),
    forward("dilation", (2, 13, 13, 3), (3, 3, 3, 4), dilation=2, **_EPILOGUE),
    forward("large-image", (1, 70, 66, 8), (3, 3, 8, 8), padding="same", **_EPILOGUE),
]
#: These run by their reference: the kernels are for windows of 2x2 and plain channels.
OTHER_FORWARD_CASES = [
    forward("window-3x3", (2, 11, 11, 4), (3, 3, 4, 6), window=(3, 3), **_EPILOGUE),
    forward("groups", (2, 7, 7, 4), (3, 3, 2, 6), groups=2, **_EPILOGUE),
    forward("1d", (2, 12, 3), (3, 3, 4), window=(4,), **_EPILOGUE),
]
#: These have a kernel.
CASES = [
    *family("lenet-conv2", (3, 12, 12, 20), (5, 5, 20, 50)),
    *family("convnet-conv2-odd", (3, 13, 13, 32), (3, 3, 32, 64)),
    *family("first-layer", (5, 28, 28, 1), (5, 5, 1, 20)),
    *family("one-image", (1, 6, 6, 3), (3, 3, 3, 4)),
    *family("one-window", (2, 4, 4, 1), (3, 3, 1, 1)),
    *family("no-images", (0, 6, 6, 2), (3, 3, 2, 4)),
    *family("same", (3, 8, 8, 5), (3, 3, 5, 7), padding="same"),
    *family("asymmetric", (2, 7, 9, 3), (2, 4, 3, 5), padding=((1, 0), (2, 3))),
    *family("1x1", (2, 6, 6, 9), (1, 1, 9, 3)),
    *family("wide-row", (2, 6, 8, 40), (3, 4, 40, 3)),
    *family("tall-kernel", (2, 14, 5, 2), (9, 2, 2, 3)),
    *family("window-3x3", (2, 11, 11, 4), (3, 3, 4, 6), window=(3, 3)),
    *family("window-1x4", (2, 5, 11, 4), (2, 3, 4, 6), window=(1, 4)),
    *family("few-channels", (3, 9, 10, 3), (3, 3, 3, 13), padding="same"),
    *family("image-smaller-than-a-vector", (4, 2, 2, 1), (1, 1, 1, 3)),
]
#: These run by their reference: the kernel is for two dimensions, stride 1 and plain channels.
OTHER_CASES = [
    *family("strides", (2, 9, 9, 3), (3, 3, 3, 4), strides=2),
    *family("dilation", (2, 9, 9, 3), (3, 3, 3, 4), dilation=2),
    *family("groups", (2, 7, 7, 4), (3, 3, 2, 6), groups=2),
    *family("1d", (2, 12, 3), (3, 3, 4), window=(4,)),
    *family("3d", (1, 6, 6, 6, 2), (3, 3, 3, 2, 3), window=(2, 2, 2)),
]
SPEED_CASES = [
    forward("lenet-conv1", (128, 28, 28, 1), (5, 5, 1, 20), **_EPILOGUE),
    forward("lenet-conv2", (128, 12, 12, 20), (5, 5, 20, 50), **_EPILOGUE),
    forward("mnist-convnet-conv1", (128, 28, 28, 1), (3, 3, 1, 32), **_EPILOGUE),
    forward("mnist-convnet-conv2", (128, 13, 13, 32), (3, 3, 32, 64), **_EPILOGUE),
    forward("cifar-conv2", (128, 32, 32, 32), (3, 3, 32, 32), padding="same", **_EPILOGUE),
    forward("vgg-conv2", (4, 224, 224, 64), (3, 3, 64, 64), padding="same", **_EPILOGUE),
    *family("lenet-conv1", (128, 28, 28, 1), (5, 5, 1, 20)),
    *family("lenet-conv2", (128, 12, 12, 20), (5, 5, 20, 50)),
    *family("mnist-convnet-conv1", (128, 28, 28, 1), (3, 3, 1, 32)),
    *family("mnist-convnet-conv2", (128, 13, 13, 32), (3, 3, 32, 64)),
    *family("cifar-conv2", (128, 32, 32, 32), (3, 3, 32, 32), padding="same"),
]
