"""Small inputs whose results are known: padding, pooling, transposed convolution, batch-norm."""

import numpy as np
import pytest

from magmadnn_py import layers


def image(values) -> np.ndarray:
    return np.asarray(values, "float32")[None, ..., None]


def signal(values) -> np.ndarray:
    return np.asarray(values, "float32").reshape(1, -1, 1)


def convolve(layer, x, kernel) -> np.ndarray:
    """The layer's output for one channel in and out."""
    layer.build(x.shape)
    layer.set_weights([np.asarray(kernel, "float32").reshape(layer.weights[0].shape)])
    return np.asarray(layer(x))[0, ..., 0]


def conv1d(x, kernel_size, **arguments):
    layer = layers.Conv1D(1, kernel_size, use_bias=False, **arguments)
    return convolve(layer, signal(x), np.ones(kernel_size)).tolist()


class TestSamePadding:
    @pytest.mark.parametrize(("side", "expected"), [(2, 8.0), (1, 4.0)])
    def test_stride_two_on_a_tiny_image(self, side, expected):
        layer = layers.Conv2D(1, 3, strides=2, padding="same", use_bias=False)
        assert convolve(layer, np.ones((1, side, side, 1), "float32"), np.arange(9)).tolist() == [[expected]]

    def test_even_kernels_put_the_odd_cell_at_the_end(self):
        assert conv1d([1, 2, 3, 4], 2, padding="same") == [3, 5, 7, 4]
        assert conv1d([1, 2, 3, 4], 4, padding="same") == [6, 10, 9, 7]

    def test_strides(self):
        assert conv1d(np.arange(7), 2, strides=3, padding="same") == [1, 7, 6]

    def test_stride_larger_than_the_kernel(self):
        assert conv1d([1.0, 1.1, 1.2], 1, strides=3, padding="same") == [1.0]

    def test_corners_of_the_first_layer_of_resnet(self):
        layer = layers.Conv2D(1, 7, strides=2, padding="same", use_bias=False)
        y = convolve(layer, np.ones((1, 224, 224, 1), "float32"), np.ones(49))
        assert (y[0, 0], y[-1, -1]) == (25, 16)

    def test_causal(self):
        assert conv1d([1, 2, 3, 4], 2, padding="causal") == [1, 3, 5, 7]
        assert conv1d([1, 2, 3, 4], 2, padding="causal", dilation_rate=2) == [1, 2, 4, 6]


class TestPooling:
    square = image(np.arange(1, 26).reshape(5, 5))

    def test_max(self):
        y = np.asarray(layers.MaxPooling2D(padding="same")(self.square))[0, ..., 0]
        assert y.tolist() == [[7, 9, 10], [17, 19, 20], [22, 24, 25]]

    def test_average_divides_by_the_real_cells(self):
        y = np.asarray(layers.AveragePooling2D(2, padding="same")(self.square))[0, ..., 0]
        assert y.tolist() == [[4, 6, 7.5], [14, 16, 17.5], [21.5, 23.5, 25]]
        y = np.asarray(layers.AveragePooling2D(3, 1, padding="same")(image([[1, 2], [3, 4]])))
        np.testing.assert_allclose(y, 2.5)

    def test_constant_image_stays_constant(self):
        y = np.asarray(layers.AveragePooling2D(3, 2, padding="same")(np.full((1, 7, 8, 2), 1.5, "float32")))
        np.testing.assert_allclose(y, 1.5, rtol=1e-6)

    def test_padding_is_never_the_maximum(self):
        y = np.asarray(layers.MaxPooling2D(3, 1, padding="same")(-np.ones((1, 4, 4, 1), "float32")))
        assert (y == -1).all()

    def test_nan_passes(self):
        y = np.asarray(layers.MaxPooling1D(2)(signal([1, np.nan, 2, 3])))
        np.testing.assert_array_equal(y, signal([np.nan, 3]))

    @pytest.mark.parametrize(
        ("side", "pool_size", "strides", "padding", "expected"),
        [(25, 2, 2, "valid", 12), (25, 2, 2, "same", 13), (8, 2, 2, "same", 4), (16, 2, 1, "same", 16)],
    )
    def test_extents(self, side, pool_size, strides, padding, expected):
        layer = layers.MaxPooling2D(pool_size, strides, padding)
        assert layer.compute_output_shape((None, side, side, 3)) == (None, expected, expected, 3)

    def test_keepdims(self):
        x = np.arange(24, dtype="float32").reshape(1, 2, 3, 4)
        assert layers.GlobalMaxPooling2D(keepdims=True)(x).shape == (1, 1, 1, 4)
        np.testing.assert_array_equal(np.asarray(layers.GlobalAveragePooling2D()(x)), x.mean((1, 2)))


class TestTransposedConvolution:
    def grow(self, kernel_size, **arguments):
        layer = layers.Conv2DTranspose(1, kernel_size, use_bias=False, **arguments)
        return convolve(layer, np.ones((1, 2, 2, 1), "float32"), np.ones(kernel_size**2))

    def test_odd_cell_at_the_end(self):
        assert self.grow(2, padding="same").tolist() == [[1, 2], [2, 4]]
        expected = [[1, 1, 2, 1], [1, 1, 2, 1], [2, 2, 4, 2], [1, 1, 2, 1]]
        assert self.grow(3, strides=2, padding="same").tolist() == expected

    def test_extents(self):
        assert self.grow(3, strides=2).shape == (5, 5)
        assert self.grow(1, strides=2).shape == (4, 4)
        assert self.grow(3, strides=2, output_padding=1).shape == (6, 6)
        assert self.grow(3, strides=2, padding="same", output_padding=0).shape == (3, 3)


class TestBatchNormalization:
    def train(self, x, **arguments):
        layer = layers.BatchNormalization(**arguments)
        y = np.asarray(layer(np.asarray(x, "float32"), training=True))
        return y, layer.moving_mean.numpy(), layer.moving_variance.numpy()

    def test_one_value_per_channel(self):
        y, mean, variance = self.train([[5, -2, 7]])
        assert y.tolist() == [[0, 0, 0]]
        np.testing.assert_allclose(mean, [0.05, -0.02, 0.07], rtol=1e-5)
        np.testing.assert_allclose(variance, 0.99, rtol=1e-6)

    def test_a_last_batch_of_one_sample(self):
        import magmadnn_py

        model = magmadnn_py.Sequential([layers.Dense(4), layers.BatchNormalization(), layers.Dense(1)])
        model.compile("sgd", "mse")
        history = model.fit(np.ones((33, 3), "float32"), np.ones((33, 1), "float32"), batch_size=32, verbose=0)
        assert np.isfinite(history.history["loss"]).all()

    def test_moving_variance_is_biased(self):
        x = [[1], [2], [3], [4]]
        y, mean, variance = self.train(x, momentum=0.0)
        assert (mean[0], variance[0]) == (2.5, 1.25)
        np.testing.assert_allclose(y[:, 0], (np.arange(1, 5) - 2.5) / np.sqrt(1.25 + 1e-3), rtol=1e-5)
        _, mean, variance = self.train(x)
        np.testing.assert_allclose([mean[0], variance[0]], [0.025, 1.0025], rtol=1e-6)

    def test_frozen_layer_uses_its_moving_statistics_in_training(self):
        layer = layers.BatchNormalization()
        layer.trainable = False
        y = np.asarray(layer(np.array([[1], [2], [3], [4]], "float32"), training=True))
        np.testing.assert_allclose(y[:, 0], [0.9995, 1.999, 2.9985, 3.998], rtol=1e-5)
        assert (layer.moving_mean.numpy()[0], layer.moving_variance.numpy()[0]) == (0, 1)
        assert len(layer.non_trainable_weights) == 4

    def test_order_of_weights(self):
        layer = layers.BatchNormalization()
        layer.build((None, 2))
        assert [w.name for w in layer.weights] == ["gamma", "beta", "moving_mean", "moving_variance"]
        assert [w.name for w in layer.trainable_weights] == ["gamma", "beta"]

    def test_shared_layer_moves_its_statistics_at_every_call(self):
        layer = layers.BatchNormalization(momentum=0.5)

        class Twice(layers.Layer):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def call(self, x):
                return self.layer(x) + self.layer(x + 4.0)

        Twice()(np.zeros((3, 1), "float32"), training=True)
        assert layer.moving_mean.numpy().tolist() == [2.0]

    def test_float64(self):
        x = np.random.default_rng(0).normal(size=(6, 3))
        layer = layers.BatchNormalization(dtype="float64", epsilon=0.0)
        y = np.asarray(layer(x, training=True))
        np.testing.assert_allclose(y.std(0), 1, rtol=1e-12)


def test_dilated_convolution_with_padding():
    x = np.arange(60, dtype="float32").reshape(1, 30, 1, 2)
    padded = layers.ZeroPadding2D(((2, 2), (0, 0)))(x)
    layer = layers.Conv2D(2, (3, 1), dilation_rate=(2, 1), groups=2, use_bias=False, kernel_initializer="ones")
    y = np.asarray(layer(np.asarray(padded)))[0, :, 0]
    assert y[0].tolist() == [4, 6]
    assert y[2].tolist() == [12, 15]


def test_leaky_relu_defaults_differ():
    from magmadnn_py import activations

    x = np.array([-1.0, 1.0], "float32")
    np.testing.assert_allclose(np.asarray(layers.LeakyReLU()(x)), [-0.3, 1], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(activations.leaky_relu(x)), [-0.2, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (lambda x: x[:, ::-1], "negative stride"),
        (lambda x: x[..., ::2], "stride"),
        (lambda x: np.asfortranarray(x), "Fortran order"),
        (lambda x: x.astype(">f4"), "big-endian"),
        (lambda x: x.astype("float64"), "float64"),
        (lambda x: x > 0, "bool"),
        (lambda x: (x * 10).astype("uint8"), "uint8"),
        (lambda x: (x * 10).astype("int64"), "int64"),
    ],
)
def test_any_array_is_taken_for_its_values(values, why):
    x = values(np.random.default_rng(0).uniform(size=(2, 6, 6, 4)).astype("float32"))
    layer = layers.Conv2D(3, 3)
    y = np.asarray(layer(x))
    np.testing.assert_allclose(y, np.asarray(layer(np.ascontiguousarray(x, "float32"))), rtol=1e-6, err_msg=why)
    assert y.dtype == "float32"
