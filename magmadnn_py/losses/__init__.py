"""Losses: functions of per-sample values, and classes that weight and reduce them."""

from __future__ import annotations

from collections.abc import Callable

from ..saving import registry as _registry
from .crossentropy import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    SparseCategoricalCrossentropy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    sparse_categorical_crossentropy,
)
from .hinge import CategoricalHinge, Hinge, SquaredHinge, categorical_hinge, hinge, squared_hinge
from .loss import FunctionLoss, Loss
from .regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    cosine_similarity,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
)
from .segmentation import Dice, Tversky, dice, tversky

#: Keras's name of the class in configs.
LossFunctionWrapper = FunctionLoss

#: The class that reduces each function's values, and the short names.
_PAIRS: dict[Callable, tuple[type[Loss], tuple[str, ...]]] = {
    mean_squared_error: (MeanSquaredError, ("mse", "MSE")),
    mean_absolute_error: (MeanAbsoluteError, ("mae", "MAE")),
    mean_absolute_percentage_error: (MeanAbsolutePercentageError, ("mape", "MAPE")),
    mean_squared_logarithmic_error: (MeanSquaredLogarithmicError, ("msle", "MSLE")),
    huber: (Huber, ("huber_loss",)),
    log_cosh: (LogCosh, ("logcosh",)),
    cosine_similarity: (CosineSimilarity, ()),
    hinge: (Hinge, ()),
    squared_hinge: (SquaredHinge, ()),
    categorical_hinge: (CategoricalHinge, ()),
    kl_divergence: (KLDivergence, ("kld", "KLD", "kullback_leibler_divergence")),
    poisson: (Poisson, ()),
    binary_crossentropy: (BinaryCrossentropy, ("bce", "BCE")),
    binary_focal_crossentropy: (BinaryFocalCrossentropy, ()),
    categorical_crossentropy: (CategoricalCrossentropy, ()),
    categorical_focal_crossentropy: (CategoricalFocalCrossentropy, ()),
    sparse_categorical_crossentropy: (SparseCategoricalCrossentropy, ()),
    dice: (Dice, ()),
    tversky: (Tversky, ()),
}

_NAMES: dict[str, object] = {}
for _function, (_class, _short) in _PAIRS.items():
    _NAMES.update({name: _function for name in (_function.__name__, *_short)}, **{_class.__name__: _class})

__all__ = [
    "FunctionLoss", "Loss", "LossFunctionWrapper", "as_loss", "deserialize", "get", "serialize",
    *(function.__name__ for function in _PAIRS), *(cls.__name__ for cls, _ in _PAIRS.values()),
]  # fmt: skip


def get(identifier):
    """A loss from a name, a config, a class, a function or an object, as Keras does: the name of a function gives
    the function of per-sample values, the name of a class an object that reduces them. None gives None.

    Raises:
        ValueError: there is no loss of that name.
    """
    return _registry.lookup("loss", identifier, _NAMES)


def as_loss(identifier) -> Loss | None:
    """`get`, and functions wrapped: always an object that weights and reduces."""
    found = get(identifier)
    if found is None or isinstance(found, Loss):
        return found
    return _PAIRS[found][0]() if found in _PAIRS else FunctionLoss(found)


def serialize(loss):
    """The config of a loss object, or of a function."""
    return _registry.serialize(loss)


def deserialize(config, custom_objects=None):
    """The loss of a config or a name."""
    if isinstance(config, str):
        return get(config)
    return _registry.deserialize(config, custom_objects, module="keras.losses")
