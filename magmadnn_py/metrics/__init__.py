"""Metrics: states that batches update, and results computed from them."""

from __future__ import annotations

from .. import losses as _losses
from ..losses import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from ..saving import registry as _registry
from ..utils.naming import to_snake_case as _to_snake_case
from .accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from .confusion import AUC, FalseNegatives, FalsePositives, Precision, Recall, TrueNegatives, TruePositives
from .errors import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    cosine_similarity,
)
from .f_score import F1Score, FBetaScore
from .iou import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from .metric import Metric
from .reduction import Mean, MeanMetricWrapper, Sum

_CLASSES = (
    AUC, Accuracy, BinaryAccuracy, BinaryCrossentropy, BinaryIoU, CategoricalAccuracy, CategoricalCrossentropy,
    CategoricalHinge, CosineSimilarity, F1Score, FBetaScore, FalseNegatives, FalsePositives, Hinge, IoU, KLDivergence,
    LogCoshError, Mean, MeanAbsoluteError, MeanAbsolutePercentageError, MeanIoU, MeanMetricWrapper, MeanSquaredError,
    MeanSquaredLogarithmicError, OneHotIoU, OneHotMeanIoU, Poisson, Precision, Recall, RootMeanSquaredError,
    SparseCategoricalAccuracy, SparseCategoricalCrossentropy, SparseTopKCategoricalAccuracy, SquaredHinge, Sum,
    TopKCategoricalAccuracy, TrueNegatives, TruePositives,
)  # fmt: skip

_FUNCTIONS = (
    binary_accuracy, binary_crossentropy, binary_focal_crossentropy, categorical_accuracy, categorical_crossentropy,
    categorical_focal_crossentropy, categorical_hinge, cosine_similarity, hinge, huber, kl_divergence, log_cosh,
    mean_absolute_error, mean_absolute_percentage_error, mean_squared_error, mean_squared_logarithmic_error, poisson,
    sparse_categorical_accuracy, sparse_categorical_crossentropy, sparse_top_k_categorical_accuracy, squared_hinge,
    top_k_categorical_accuracy,
)  # fmt: skip

_NAMES: dict[str, type[Metric]] = {cls.__name__: cls for cls in _CLASSES}
_NAMES |= {_to_snake_case(cls.__name__): cls for cls in _CLASSES}
_NAMES |= {
    "mse": MeanSquaredError,
    "MSE": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "MAE": MeanAbsoluteError,
    "mape": MeanAbsolutePercentageError,
    "MAPE": MeanAbsolutePercentageError,
    "msle": MeanSquaredLogarithmicError,
    "MSLE": MeanSquaredLogarithmicError,
    "rmse": RootMeanSquaredError,
    "bce": BinaryCrossentropy,
    "BCE": BinaryCrossentropy,
    "logcosh": LogCoshError,
    "log_cosh": LogCoshError,
    "fbeta_score": FBetaScore,
    "mean_iou": MeanIoU,
}

__all__ = [
    "Metric", "deserialize", "get", "resolve", "serialize",
    *(cls.__name__ for cls in _CLASSES), *(function.__name__ for function in _FUNCTIONS),
]  # fmt: skip


def get(identifier):
    """A metric from a name, a config, a class, a function or an object; functions are returned as they are.

    Raises:
        ValueError: there is no metric of that name.
    """
    return _registry.lookup("metric", identifier, _NAMES)


def resolve(identifier, loss, y_true_shape: tuple[int, ...], y_pred_shape: tuple[int, ...]) -> Metric | None:
    """The metric object for what `compile(metrics=...)` was given.

    "accuracy" ("acc") and "crossentropy" ("ce") become binary where the last extent of `y_pred` is 1, sparse where
    `y_true` has no axis of classes, else categorical. "crossentropy" takes `from_logits` from `loss`.
    """
    if not isinstance(identifier, str) or identifier not in ("accuracy", "acc", "crossentropy", "ce"):
        found = get(identifier)
        return found if found is None or isinstance(found, Metric) else MeanMetricWrapper(found)
    kind = _kind(tuple(y_true_shape), tuple(y_pred_shape))
    if identifier in ("accuracy", "acc"):
        classes = {
            "binary": BinaryAccuracy,
            "sparse": SparseCategoricalAccuracy,
            "categorical": CategoricalAccuracy,
        }
        return classes[kind](name=identifier)
    classes = {
        "binary": BinaryCrossentropy,
        "sparse": SparseCategoricalCrossentropy,
        "categorical": CategoricalCrossentropy,
    }
    loss = _losses.as_loss(loss)
    from_logits = getattr(loss, "arguments", {}).get("from_logits", False)
    return classes[kind](name=identifier, from_logits=from_logits)


def _kind(y_true: tuple[int, ...], y_pred: tuple[int, ...]) -> str:
    if not y_pred or y_pred[-1] == 1:
        return "binary"
    if len(y_true) < len(y_pred) or y_true[-1] == 1:
        return "sparse"
    return "categorical"


def serialize(metric):
    """The config of a metric object, or of a function."""
    return _registry.serialize(metric)


def deserialize(config, custom_objects=None):
    """The metric of a config or a name."""
    if isinstance(config, str):
        return get(config)
    return _registry.deserialize(config, custom_objects, module="keras.metrics")
