"""Writes keras.npz: what Keras makes of the cases. Needs `pip install keras jax`; run in this folder."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import json  # noqa: E402

import keras  # noqa: E402
import numpy as np  # noqa: E402
from cases import CASES, inputs_of  # noqa: E402
from keras import layers  # noqa: E402, F401 (the cases name it)


def record(name: str) -> dict[str, np.ndarray]:
    """Weights before and (of training) after the call, output, and the config as JSON."""
    expression, shapes, training = CASES[name]
    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    inputs = inputs_of(name)
    layer = eval(expression)
    if not layer.built:
        layer.build(shapes if len(shapes) > 1 else shapes[0])
    result = {f"weight{i}": array for i, array in enumerate(layer.get_weights())}
    named = {"training": True} if training else {}
    result["output"] = np.asarray(layer(inputs if len(inputs) > 1 else inputs[0], **named))
    if training:
        result |= {f"weight{i} after": array for i, array in enumerate(layer.get_weights())}
    result["names"] = np.array([weight.name for weight in layer.weights])
    result["config"] = np.array(json.dumps(keras.saving.serialize_keras_object(layer)))
    return {f"{name}/{key}": value for key, value in result.items()}


if __name__ == "__main__":
    arrays: dict[str, np.ndarray] = {}
    for name in CASES:
        arrays |= record(name)
    np.savez_compressed("keras.npz", **arrays)
