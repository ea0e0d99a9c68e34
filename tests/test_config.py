import pytest

from magmadnn_py import config, layers


@pytest.fixture(autouse=True)
def restore():
    before = dict(config._settings)
    yield
    config._settings.update(before)


def test_defaults():
    assert (config.floatx(), config.epsilon(), config.image_data_format()) == ("float32", 1e-7, "channels_last")


def test_layers_follow():
    config.set_floatx("float64")
    config.set_image_data_format("channels_first")
    layer = layers.Conv2D(4, 3)
    assert (layer.dtype, layer.data_format) == ("float64", "channels_first")
    assert layer.compute_output_shape((None, 3, 8, 9)) == (None, 4, 6, 7)


def test_errors():
    with pytest.raises(ValueError, match="int32"):
        config.set_floatx("int32")
    with pytest.raises(ValueError, match="NCHW"):
        config.set_image_data_format("NCHW")
