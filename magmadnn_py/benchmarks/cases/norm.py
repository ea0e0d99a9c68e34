"""Cases of normalisation: batch, layer, group and instance normalisation as axes and shapes of the one op."""

from __future__ import annotations

import numpy as np

from ...ops.norm import Normalize, NormalizeGradient
from .case import Case, random_array, types


def _with_statistics(op: Normalize):
    """dy, x, scale and the mean and variance that belong to x."""

    def make(rng, types_):
        dy, x, scale = (random_array(rng, t) for t in types_[:3])
        _, mean, variance = op.reference(np, x, scale, scale)
        return [dy, x, scale, mean, variance]

    return make


def family(label, x, axes, scale, epsilon=1e-3) -> list[Case]:
    """The op and its gradient for an input of shape x, statistics over `axes`, and a scale of shape `scale`."""
    op = Normalize(axes, epsilon)
    inputs = types(x, scale, scale)
    _, mean, variance = op.infer(*inputs)
    gradient = NormalizeGradient(axes, epsilon)
    x_type, scale_type, _ = inputs
    return [
        Case(label, op, inputs),
        Case(f"{label}-gradient", gradient, (x_type, x_type, scale_type, mean, variance), _with_statistics(op)),
    ]


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
]

#: Layers of well-known networks, for speed only.
SPEED_CASES = [
    *family("resnet-conv1", (8, 112, 112, 64), (0, 1, 2), (1, 1, 1, 64)),
    *family("resnet-conv2", (8, 56, 56, 256), (0, 1, 2), (1, 1, 1, 256)),
    *family("resnet-conv5", (8, 7, 7, 2048), (0, 1, 2), (1, 1, 1, 2048)),
    *family("vit-layer", (16, 196, 768), (2,), (1, 1, 768)),
    *family("group32", (8, 3136, 32, 8), (1, 3), (1, 1, 32, 8)),
]
