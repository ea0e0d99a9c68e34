"""Cases of softmax and the cross-entropies."""

from __future__ import annotations

from ...graph.types import TensorType
from ...ops.loss import LogSoftmax, Softmax, SoftmaxCrossEntropy, SoftmaxCrossEntropyGradient
from .case import Case, random_array, types


def _with_classes(rng, types_):
    """Logits, class numbers, and perhaps the gradient of the loss."""
    logits, labels, *others = types_
    return [
        random_array(rng, logits),
        rng.integers(0, logits.shape[-1], labels.shape),
        *(random_array(rng, t) for t in others),
    ]


def cross_entropy(label, logits, label_dtype="int32") -> list[Case]:
    """The loss and its gradient, of weights and of class numbers."""
    logits_type, loss_type = types(logits, logits[:-1])
    classes = TensorType(logits[:-1], label_dtype)
    return [
        Case(f"{label}-dense", SoftmaxCrossEntropy(False), (logits_type, logits_type)),
        Case(f"{label}-dense-gradient", SoftmaxCrossEntropyGradient(False), (logits_type, logits_type, loss_type)),
        Case(f"{label}-sparse", SoftmaxCrossEntropy(True), (logits_type, classes), _with_classes),
        Case(
            f"{label}-sparse-gradient",
            SoftmaxCrossEntropyGradient(True),
            (logits_type, classes, loss_type),
            _with_classes,
        ),
    ]


def softmax(label, shape, axis=None) -> list[Case]:
    axis = len(shape) - 1 if axis is None else axis
    return [
        Case(f"{label}-softmax", Softmax(axis), types(shape)),
        Case(f"{label}-log-softmax", LogSoftmax(axis), types(shape)),
    ]


def _scaled(factor):
    return lambda rng, types_: [random_array(rng, t) * factor for t in types_]


SOFTMAX_CASES = [
    *softmax("matrix", (5, 10)),
    *softmax("vector", (7,)),
    *softmax("image", (2, 3, 4, 5)),
    *softmax("first-axis", (4, 3), 0),
    *softmax("middle-axis", (2, 5, 3), 1),
    *softmax("one-class", (4, 1)),
    *softmax("odd-classes", (3, 67)),
    *softmax("empty-batch", (0, 3)),
]

CROSS_ENTROPY_CASES = [
    *cross_entropy("matrix", (6, 10)),
    *cross_entropy("vector", (5,)),
    *cross_entropy("segmentation", (2, 3, 4, 5), "int64"),
    *cross_entropy("one-class", (4, 1)),
    *cross_entropy("odd-classes", (3, 67)),
    *cross_entropy("empty-batch", (0, 3)),
]

CASES = [*SOFTMAX_CASES, *CROSS_ENTROPY_CASES]

#: Logits so large that a naive form overflows; the differences of a gradient test would drown.
LARGE_CASES = [
    Case("large-softmax", Softmax(1), types((5, 10)), _scaled(1e3)),
    Case("large-log-softmax", LogSoftmax(1), types((5, 10)), _scaled(1e3)),
    Case("large-cross-entropy", SoftmaxCrossEntropy(False), types((5, 10), (5, 10)), _scaled(1e3)),
]

SPEED_CASES = [
    *softmax("imagenet", (256, 1000)),
    *cross_entropy("mnist", (128, 10)),
    *cross_entropy("imagenet", (256, 1000)),
    *cross_entropy("segmentation", (4, 256, 256, 21)),
]
