"""Dropout, noise and random images: what they do in training, that they do nothing else, and seeds."""

import numpy as np
import pytest

from magmadnn_py import layers, ops
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.runtime.program import Program

ONES = np.ones((64, 8, 8, 4), "float32")
IMAGES = np.random.default_rng(0).uniform(0, 255, (16, 9, 8, 3)).astype("float32")


@pytest.fixture(autouse=True)
def seed():
    ops.random.set_seed(7)


def train(layer, x=ONES):
    return np.asarray(layer(x, training=True))


class TestDropout:
    def test_share_and_scale(self):
        y = train(layers.Dropout(0.25))
        assert set(np.unique(y)) == {0, np.float32(4 / 3)}
        assert abs((y == 0).mean() - 0.25) < 0.02

    @pytest.mark.parametrize(("rate", "expected"), [(1.0, 0), (0.0, 1)])
    def test_ends(self, rate, expected):
        assert (train(layers.Dropout(rate)) == expected).all()

    @pytest.mark.parametrize(
        "layer",
        [layers.Dropout(0.5), layers.SpatialDropout2D(0.5), layers.GaussianNoise(1.0), layers.GaussianDropout(0.5),
         layers.AlphaDropout(0.5), layers.RandomFlip(), layers.RandomRotation(0.2)],
        ids=lambda layer: type(layer).__name__,
    )  # fmt: skip
    def test_inactive_outside_of_training(self, layer):
        np.testing.assert_array_equal(np.asarray(layer(ONES)), ONES)

    def test_noise_shape(self):
        y = train(layers.Dropout(0.5, noise_shape=(None, 1, 1, None)))
        assert (y == y[:, :1, :1]).all()
        assert 0.3 < (y == 0).mean() < 0.7

    @pytest.mark.parametrize(
        ("layer", "axes"),
        [
            (layers.SpatialDropout2D(0.5), (1, 2)),
            (layers.SpatialDropout2D(0.5, data_format="channels_first"), (2, 3)),
        ],
    )
    def test_whole_channels(self, layer, axes):
        y = train(layer)
        assert set(np.unique(y.std(axes))) == {0}
        assert 0.3 < (y == 0).mean() < 0.7

    def test_two_steps_differ(self):
        layer = layers.Dropout(0.5)
        assert not np.array_equal(train(layer), train(layer))

    def test_two_calls_in_one_step_differ(self):
        layer = layers.Dropout(0.5)
        with Trace() as trace:
            x = trace.input(ONES.shape)
            first, second = layer(x, training=True), layer(x, training=True)
        first, second = Program(trace.graph([first, second])).run(ONES)
        assert not np.array_equal(first, second)

    def test_same_seed_of_the_process_same_choices(self):
        layer = layers.Dropout(0.5)
        ops.random.set_seed(3)
        first = train(layer)
        ops.random.set_seed(3)
        np.testing.assert_array_equal(first, train(layer))

    def test_gradient_passes_where_the_input_does(self):
        layer = layers.Dropout(0.5)
        with Trace() as trace:
            x = trace.input((20, 20))
            y = layer(x, training=True)
            (dx,) = gradients(ops.sum(y), [x])
        y, dx = Program(trace.graph([y, dx])).run(np.ones((20, 20), "float32"))
        np.testing.assert_array_equal(y, dx)


class TestNoise:
    def test_gaussian_noise(self):
        y = train(layers.GaussianNoise(2.0))
        assert abs(y.mean() - 1) < 0.1
        assert abs(y.std() - 2) < 0.1

    def test_gaussian_dropout(self):
        y = train(layers.GaussianDropout(0.2))
        assert abs(y.mean() - 1) < 0.05
        assert abs(y.std() - 0.5) < 0.05

    def test_alpha_dropout_keeps_mean_and_variance(self):
        x = np.random.default_rng(0).normal(size=(100, 1000)).astype("float32")
        y = train(layers.AlphaDropout(0.3), x)
        assert abs(y.mean()) < 0.02
        assert abs(y.std() - 1) < 0.02


class TestImages:
    def test_flip_chooses_for_each_image(self):
        y = train(layers.RandomFlip("horizontal"), IMAGES)
        kept = [np.array_equal(a, b) for a, b in zip(y, IMAGES, strict=True)]
        turned = [np.array_equal(a, b[:, ::-1]) for a, b in zip(y, IMAGES, strict=True)]
        assert all(a != b for a, b in zip(kept, turned, strict=True))
        assert 0 < sum(kept) < len(IMAGES)

    def test_vertical_flip_of_channels_first(self):
        x = IMAGES.transpose(0, 3, 1, 2)
        y = train(layers.RandomFlip("vertical", data_format="channels_first"), x)
        assert all(np.array_equal(a, b) or np.array_equal(a, b[:, ::-1]) for a, b in zip(y, x, strict=True))

    def test_crop(self):
        y = train(layers.RandomCrop(5, 6), IMAGES)
        for cut, image in zip(y, IMAGES, strict=True):
            windows = np.lib.stride_tricks.sliding_window_view(image, (5, 6, 3)).reshape(-1, 5, 6, 3)
            assert (windows == cut).all((1, 2, 3)).any()
        assert layers.RandomCrop(5, 6)(IMAGES).shape == (16, 5, 6, 3)

    def test_no_motion_is_the_image_itself(self):
        for layer in (layers.RandomRotation(0.0), layers.RandomZoom(0.0), layers.RandomTranslation(0.0, 0.0)):
            np.testing.assert_allclose(train(layer, IMAGES), IMAGES, rtol=1e-4, atol=1e-2)

    def test_whole_shift_wraps(self):
        layer = layers.RandomTranslation((1 / 9, 1 / 9), (-0.25, -0.25), fill_mode="wrap", interpolation="nearest")
        np.testing.assert_array_equal(train(layer, IMAGES), np.roll(IMAGES, (1, -2), (1, 2)))

    def test_quarter_turn(self):
        x = IMAGES[:, :8]
        layer = layers.RandomRotation((0.25, 0.25), interpolation="nearest")
        np.testing.assert_array_equal(train(layer, x), np.rot90(x, 1, (1, 2)))

    def test_contrast_and_brightness_stay_in_their_range(self):
        for layer in (layers.RandomContrast(0.9), layers.RandomBrightness(0.9)):
            y = train(layer, IMAGES)
            assert y.min() >= 0
            assert y.max() <= 255
            assert not np.array_equal(y, IMAGES)

    def test_one_image_and_whole_numbers(self):
        y = layers.RandomFlip()(IMAGES[0].astype("uint8"), training=True)
        assert (y.shape, y.dtype) == ((9, 8, 3), "float32")


class TestNormalization:
    def test_adapt(self):
        x = np.random.default_rng(0).normal(3, 2, (50, 4, 3)).astype("float32")
        layer = layers.Normalization()
        layer.adapt(x)
        y = np.asarray(layer(x))
        np.testing.assert_allclose(y.mean((0, 1)), 0, atol=1e-5)
        np.testing.assert_allclose(y.std((0, 1)), 1, rtol=1e-5)
        in_parts = layers.Normalization()
        in_parts.adapt([x[:7], x[7:30], x[30:]])
        for whole, parts in zip(layer.get_weights(), in_parts.get_weights(), strict=True):
            np.testing.assert_allclose(whole, parts, rtol=1e-6)

    def test_one_value_for_all(self):
        layer = layers.Normalization(axis=None)
        layer.adapt(np.arange(6, dtype="float32").reshape(2, 3))
        assert [w.shape for w in layer.weights] == [(), (), ()]
        np.testing.assert_allclose(layer.weights[0].numpy(), 2.5)

    def test_nothing_to_adapt_to(self):
        with pytest.raises(ValueError, match="no data"):
            layers.Normalization().adapt([])
        with pytest.raises(ValueError, match="were given"):
            layers.Normalization(mean=0.0, variance=1.0).adapt(np.ones((3, 3)))
