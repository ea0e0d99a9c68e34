"""Cases of the convolution family. N batch, S spatial extents, C channels, K window, F filters, G groups."""

from __future__ import annotations

import itertools

from ...graph.types import TensorType
from ...ops.conv import Convolution, ConvolutionInputGradient, ConvolutionWeightGradient
from ...ops.window import Padding, resolve_padding
from .case import Case, types


def family(label, x, w, strides=1, padding="valid", dilation=1, groups=1) -> list[Case]:
    """The three ops for one layer: x[N, *S, C], w[*K, C/G, F]; strides and dilation are the same on all axes."""
    rank = len(x) - 2
    strides, dilation = (strides,) * rank, (dilation,) * rank
    pads: Padding = resolve_padding(padding, x[1:-1], w[:-2], strides, dilation, label)
    attributes = (strides, pads, dilation, groups)
    forward = Convolution(*attributes)
    (y,) = (t.shape for t in forward.infer(*types(x, w)))
    return [
        Case(f"{label}-forward", forward, types(x, w)),
        Case(f"{label}-input-gradient", ConvolutionInputGradient(*attributes, tuple(x[1:-1])), types(y, w)),
        Case(f"{label}-weight-gradient", ConvolutionWeightGradient(*attributes, tuple(w[:-2])), types(x, y)),
    ]


def _product_cases():
    """groups x stride x dilation x padding x rank, on shapes that are no multiples of anything."""
    sizes = {1: (11,), 2: (9, 8), 3: (7, 6, 5)}
    windows = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}
    paddings = {"valid": "valid", "same": "same", "explicit": ((2, 0), (1, 3), (0, 1))}
    for rank, groups, stride, dilation, padding in itertools.product((1, 2, 3), (1, 2), (1, 2), (1, 2), paddings):
        pads = paddings[padding]
        pads = pads if isinstance(pads, str) else pads[:rank]
        channels, filters = 4, 6
        yield from family(
            f"{rank}d-groups{groups}-stride{stride}-dilation{dilation}-{padding}",
            (2, *sizes[rank], channels),
            (*windows[rank], channels // groups, filters),
            stride,
            pads,
            dilation,
            groups,
        )


#: The whole product, for comparison with another computation.
PRODUCT_CASES = list(_product_cases())

CASES = [
    *family("1x1", (2, 5, 5, 3), (1, 1, 3, 4)),
    *family("1x1-stride2", (2, 6, 4, 3), (1, 1, 3, 4), 2),
    *family("stride-above-window", (1, 7, 10, 2), (2, 2, 2, 3), 4),
    *family("stride-above-window-same", (1, 3, 1), (1, 1, 1), 3, "same"),
    *family("3x3-same", (2, 7, 6, 3), (3, 3, 3, 5), 1, "same"),
    *family("3x3-stride2-same", (1, 8, 7, 4), (3, 3, 4, 4), 2, "same"),
    *family("even-window-same", (1, 6, 5, 2), (4, 2, 2, 3), 1, "same"),
    *family("dilation3", (1, 12, 11, 2), (3, 3, 2, 3), 1, "valid", 3),
    *family("window-is-input", (2, 4, 5, 3), (4, 5, 3, 2)),
    *family("window-larger-than-input", (1, 2, 2, 1), (3, 3, 1, 2), 2, "same"),
    *family("pad-above-window", (1, 4, 3, 2), (2, 2, 2, 2), 1, ((3, 2), (0, 4))),
    *family("depthwise", (2, 7, 6, 5), (3, 3, 1, 5), 1, "same", 1, 5),
    *family("depthwise-stride2", (2, 8, 7, 4), (3, 3, 1, 4), 2, "same", 1, 4),
    *family("depthwise-multiplier2", (1, 6, 6, 3), (3, 3, 1, 6), 1, "valid", 1, 3),
    *family("groups2-stride2", (2, 9, 8, 4), (3, 3, 2, 6), 2, ((1, 1), (1, 1)), 1, 2),
    *family("groups3-window2-stride4-pad1", (2, 9, 9, 6), (2, 2, 2, 6), 4, ((1, 1), (1, 1)), 1, 3),
    *family("groups-dilation", (1, 9, 9, 4), (3, 3, 2, 4), 1, "same", 2, 2),
    *family("1d-causal", (2, 9, 3), (3, 3, 4), 1, "causal", 2),
    *family("1d-long-window", (1, 40, 2), (17, 2, 3)),
    *family("3d-same", (1, 5, 4, 3, 2), (3, 3, 3, 2, 3), 1, "same"),
    *family("3d-stride2", (1, 6, 5, 4, 3), (2, 2, 2, 3, 2), 2),
    *family("one-of-everything", (1, 1, 1, 1), (1, 1, 1, 1)),
    *family("one-channel", (3, 6, 6, 1), (3, 3, 1, 2)),
    *family("one-filter", (1, 5, 5, 7), (3, 3, 7, 1), 1, "same"),
    *family("17-channels-33-filters", (1, 4, 5, 17), (3, 3, 17, 33), 1, "same"),
    *family("winograd-edges", (1, 13, 11, 16), (3, 3, 16, 16), 1, "same"),
    *family("winograd-channel-tails", (2, 9, 10, 19), (3, 3, 19, 37), 1, "same"),
    *family("winograd-wide-pads", (1, 9, 7, 16), (3, 3, 16, 24), 1, ((4, 0), (1, 5))),
    *family("winograd-many-tiles", (4, 22, 21, 8), (3, 3, 8, 8)),
    *family("winograd-few-tiles", (1, 6, 6, 150), (3, 3, 150, 160), 1, "same"),
    *family("fft-tiles", (3, 21, 34, 9), (5, 4, 9, 19), 1, "same"),
    *family("fft-boxes", (1, 13, 30, 3), (2, 19, 3, 2), 1, ((0, 0), (20, 1))),
    *family("fft-one-axis", (2, 4, 25, 2), (1, 9, 2, 3), 1, "valid", 2),
    *family("empty-batch", (0, 4, 4, 2), (3, 3, 2, 3)),
]


def _with_epilogue(case: Case, activation: str, residual: bool) -> Case:
    op = Convolution(*case.op.family(), bias=True, residual=residual, activation=activation)
    bias = TensorType((case.inputs[1].shape[-1],), case.inputs[1].dtype)
    added = (bias, *case.outputs) if residual else (bias,)
    return Case(f"{case.label}-bias{'-residual' * residual}-{activation}", op, (*case.inputs, *added))


EPILOGUE_LABELS = (
    "1x1", "3x3-stride2-same", "depthwise", "3d-same", "1d-causal", "winograd-channel-tails", "winograd-few-tiles",
)  # fmt: skip

#: With bias, residual and activation, as the fuse pass makes them; these have no gradient of their own.
EPILOGUE_CASES = [
    _with_epilogue(case, activation, residual)
    for case in CASES
    if case.label in {f"{label}-forward" for label in EPILOGUE_LABELS}
    for activation in ("linear", "relu")
    for residual in (False, True)
]

#: Layers of well-known networks, their batch reduced, and odd sizes: for the rounding error of Winograd's algorithm.
WINOGRAD_CASES = [
    case
    for extent, channels, filters, images in (
        (224, 16, 16, 1),
        (112, 64, 128, 1),
        (56, 64, 64, 2),
        (56, 256, 256, 1),
        (28, 256, 512, 1),
        (14, 512, 512, 1),
        (7, 512, 512, 3),
        (32, 16, 16, 8),
        (16, 32, 32, 8),
        (8, 64, 64, 16),
        (13, 37, 19, 2),
    )
    for case in family(
        f"winograd-{extent}-{channels}-{filters}",
        (images, extent, extent, channels),
        (3, 3, channels, filters),
        1,
        "same",
    )
]

#: Layers of well-known networks, for speed only: too large for the references.
SPEED_CASES = [
    *family("lenet-conv1", (64, 28, 28, 1), (5, 5, 1, 6), 1, "same"),
    *family("lenet-conv2", (64, 14, 14, 6), (5, 5, 6, 16)),
    *family("mnist-convnet-conv1", (128, 28, 28, 1), (3, 3, 1, 32)),
    *family("mnist-convnet-conv2", (128, 13, 13, 32), (3, 3, 32, 64)),
    *family("alexnet-conv1", (16, 227, 227, 3), (11, 11, 3, 96), 4),
    *family("alexnet-conv2", (16, 27, 27, 96), (5, 5, 48, 256), 1, "same", 1, 2),
    *family("alexnet-conv3", (16, 13, 13, 256), (3, 3, 256, 384), 1, "same"),
    *family("vgg-conv1_1", (4, 224, 224, 3), (3, 3, 3, 64), 1, "same"),
    *family("vgg-conv1_2", (4, 224, 224, 64), (3, 3, 64, 64), 1, "same"),
    *family("vgg-conv3_2", (4, 56, 56, 256), (3, 3, 256, 256), 1, "same"),
    *family("vgg-conv5_1", (4, 14, 14, 512), (3, 3, 512, 512), 1, "same"),
    *family("resnet-conv1", (8, 224, 224, 3), (7, 7, 3, 64), 2, ((3, 3), (3, 3))),
    *family("resnet-conv2-1x1-reduce", (8, 56, 56, 256), (1, 1, 256, 64)),
    *family("resnet-conv2-3x3", (8, 56, 56, 64), (3, 3, 64, 64), 1, "same"),
    *family("resnet-conv3-3x3-stride2", (8, 56, 56, 128), (3, 3, 128, 128), 2, "same"),
    *family("resnet-conv3-shortcut", (8, 56, 56, 256), (1, 1, 256, 512), 2),
    *family("resnet-conv4-1x1-expand", (8, 14, 14, 256), (1, 1, 256, 1024)),
    *family("resnet-conv5-3x3", (8, 7, 7, 512), (3, 3, 512, 512), 1, "same"),
    *family("mobilenet-depthwise", (8, 56, 56, 128), (3, 3, 1, 128), 1, "same", 1, 128),
    *family("cosmoflow-conv1", (1, 128, 128, 128, 4), (3, 3, 3, 4, 16), 1, "same"),
    *family("cosmoflow-conv3", (1, 32, 32, 32, 32), (3, 3, 3, 32, 64), 1, "same"),
]
