"""Lower-case merging functions, Lambda, and layers around layers."""

import numpy as np
import pytest

from magmadnn_py import layers, ops, saving
from magmadnn_py.graph import Symbol

A = np.arange(6, dtype="float32").reshape(2, 3)
B = A[::-1] * 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (layers.add, A + B),
        (layers.subtract, A - B),
        (layers.multiply, A * B),
        (layers.average, (A + B) / 2),
        (layers.maximum, np.maximum(A, B)),
        (layers.minimum, np.minimum(A, B)),
        (layers.concatenate, np.concatenate([A, B], -1)),
        (layers.dot, (A * B).sum(-1, keepdims=True)),
    ],
)
def test_functions(function, expected):
    np.testing.assert_allclose(np.asarray(function([A, B])), expected, rtol=1e-6)
    symbol = function([Symbol((None, 3)), Symbol((None, 3))], name="named")
    assert symbol.shape == (None, *expected.shape[1:])
    assert symbol.call.function.name == "named"


def test_broadcasting():
    assert layers.add([np.ones((2, 3, 4), "float32"), A[:, :1]]).shape == (2, 3, 4)
    assert layers.Multiply()([Symbol((None, 5, 5, 8)), Symbol((None, 1, 1, 8))]).shape == (None, 5, 5, 8)


def scaled_square(x, factor=1.0):
    return ops.square(x) * factor


class TestLambda:
    def test_call(self):
        layer = layers.Lambda(scaled_square, arguments={"factor": 3.0})
        np.testing.assert_allclose(np.asarray(layer(A)), 3 * A * A)
        assert layer(Symbol((None, 3))).shape == (None, 3)

    def test_several_inputs(self):
        distance = layers.Lambda(lambda pair: ops.sqrt(ops.sum(ops.square(pair[0] - pair[1]), axis=1)))
        np.testing.assert_allclose(np.asarray(distance([A, B])), np.linalg.norm(A - B, axis=1), rtol=1e-6)

    def test_training(self):
        layer = layers.Lambda(lambda x, training: x * (2.0 if training else 1.0))
        np.testing.assert_array_equal(np.asarray(layer(A, training=True)), 2 * A)

    def test_public_and_registered_functions_can_be_saved(self):
        saving.register_keras_serializable("tests")(scaled_square)
        for function in (ops.tanh, scaled_square):
            again = saving.deserialize(saving.serialize(layers.Lambda(function)))
            assert again.function is function

    def test_python_lambdas_are_neither_written_nor_run(self):
        with pytest.raises(TypeError, match="register_keras_serializable"):
            saving.serialize(layers.Lambda(lambda x: x))
        config = saving.serialize(layers.Lambda(ops.tanh))
        config["config"]["function"] = {"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}
        with pytest.raises(ValueError, match="never run"):
            saving.deserialize(config)


def test_embedding():
    layer = layers.Embedding(5, 2)
    indices = np.array([[0, 4], [1, 1]])
    y = np.asarray(layer(indices))
    np.testing.assert_array_equal(y, layer.get_weights()[0][indices])
    assert layer.compute_output_shape((None, 7)) == (None, 7, 2)
