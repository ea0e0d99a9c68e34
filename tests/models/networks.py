"""Small networks and data for the tests of models."""

import numpy as np

from magmadnn_py import Input, Model, Sequential, layers

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(50, 4)).astype("float32")
LABELS = RANDOM.integers(0, 3, 50)
Y = (X @ RANDOM.normal(size=(4, 1)) + 0.3).astype("float32")


def classifier(**compile_arguments) -> Sequential:
    model = Sequential([Input((4,)), layers.Dense(6, activation="relu"), layers.Dense(3, activation="softmax")])
    given = {"optimizer": "adam", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    model.compile(**{**given, **compile_arguments})
    return model


def regressor(**compile_arguments) -> Sequential:
    model = Sequential([Input((4,)), layers.Dense(1)])
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compile_arguments})
    return model


def identity(**compile_arguments) -> Sequential:
    """Predicts its input of one number times a weight of 1."""
    model = Sequential([Input((1,)), layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(**{"optimizer": "sgd", "loss": "mae", **compile_arguments})
    return model


def two_outputs() -> Model:
    x = Input((4,), name="x")
    hidden = layers.Dense(5, activation="relu")(x)
    return Model(x, [layers.Dense(3, activation="softmax", name="kind")(hidden), layers.Dense(1, name="size")(hidden)])
