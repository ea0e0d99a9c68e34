"""Cases of normalisation: batch, layer, group and instance normalisation as axes and shapes of the one op."""

from __future__ import annotations

import numpy as np

from ...ops.norm import Normalize, NormalizeGradient
from .case import Case, random_array, types


def _with_statistics(op: Normalize):
    """dy, x, scale, the mean and variance that belong to x, and perhaps some y or offset."""

    def make(rng, types_):
        dy, x, scale, _, _, *y_or_offset = (random_array(rng, t) for t in types_)
        _, mean, variance = Normalize(op.axes, op.epsilon).reference(np, x, scale, scale)
        return [dy, x, scale, mean, variance, *y_or_offset]

    return make


def family(label, x, axes, scale, epsilon=1e-3, residual=False, activation="linear") -> list[Case]:
    """The op and its gradient for an input of shape x, statistics over `axes`, and a scale of shape `scale`."""
    op = Normalize(axes, epsilon, residual, activation)
    x_type, scale_type = types(x, scale)
    inputs = (x_type, scale_type, scale_type, *(x_type,) * residual)
    _, mean, variance = op.infer(*inputs)
    gradient = NormalizeGradient(axes, epsilon, residual, activation)
    if residual and activation == "linear":  # the residual's gradient is dy itself
        return [Case(label, op, inputs)]
    y_or_offset = (x_type if residual else scale_type,) if activation == "relu" else ()
    gradient_inputs = (x_type, x_type, scale_type, mean, variance, *y_or_offset)
    return [
        Case(label, op, inputs),
        Case(f"{label}-gradient", gradient, gradient_inputs, _with_statistics(op)),
    ]


def _fused_families():
    """As the fuse pass makes them: with a residual, a ReLU or both, for each way in which a kernel walks."""
    for label, x, axes, scale in (
        ("batch", (4, 5, 6, 3), (0, 1, 2), (1, 1, 1, 3)),
        ("batch-folded", (2, 7, 11, 9), (0, 1, 2), (1, 1, 1, 9)),
        ("batch-41-channels", (3, 5, 5, 41), (0, 1, 2), (1, 1, 1, 41)),
        ("layer", (3, 4, 9), (2,), (1, 1, 9)),
        ("group", (2, 12, 3, 4), (1, 3), (1, 1, 3, 4)),
        ("empty-batch", (0, 4, 3), (0, 1), (1, 1, 3)),
    ):
        for residual, activation in ((True, "linear"), (False, "relu"), (True, "relu")):
            name = f"{label}{'-residual' * residual}-{activation}"
            yield from family(name, x, axes, scale, residual=residual, activation=activation)


CASES = [
    *family("batch-2d", (4, 5, 6, 3), (0, 1, 2), (1, 1, 1, 3)),
    *family("batch-dense", (9, 7), (0,), (1, 7)),
    *family("batch-1d", (3, 8, 5), (0, 1), (1, 1, 5)),
    *family("batch-3d", (2, 3, 4, 3, 2), (0, 1, 2, 3), (1, 1, 1, 1, 2)),
    *family("batch-no-scale", (4, 5, 6, 3), (0, 1, 2), (1, 1, 1, 1)),
    *family("batch-channels-first", (2, 3, 4, 5), (0, 2, 3), (1, 3, 1, 1)),
    *family("batch-of-one", (1, 3), (0,), (1, 3)),
    *family("batch-17-channels", (5, 3, 2, 17), (0, 1, 2), (1, 1, 1, 17)),
    *family("layer", (3, 4, 9), (2,), (1, 1, 9)),
    *family("layer-two-axes", (3, 4, 5), (1, 2), (1, 4, 5)),
    *family("group", (2, 12, 3, 4), (1, 3), (1, 1, 3, 4)),
    *family("instance", (2, 12, 5, 1), (1, 3), (1, 1, 5, 1)),
    *family("full-scale", (3, 4), (0,), (3, 4)),
    *family("all-axes", (3, 4), (0, 1), (1, 1)),
    *family("one-element", (1, 1), (0,), (1, 1)),
    *family("empty-batch", (0, 4, 3), (0, 1), (1, 1, 3)),
    *family("empty-layer-batch", (0, 4), (1,), (1, 4)),
    *_fused_families(),
]

#: Layers of well-known networks, for speed only.
SPEED_CASES = [
    *family("resnet-conv1", (8, 112, 112, 64), (0, 1, 2), (1, 1, 1, 64)),
    *family("resnet-conv2", (8, 56, 56, 256), (0, 1, 2), (1, 1, 1, 256)),
    *family("resnet-conv5", (8, 7, 7, 2048), (0, 1, 2), (1, 1, 1, 2048)),
    *family("vit-layer", (16, 196, 768), (2,), (1, 1, 768)),
    *family("group32", (8, 3136, 32, 8), (1, 3), (1, 1, 32, 8)),
]
