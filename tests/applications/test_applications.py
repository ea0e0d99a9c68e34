"""Networks by name: published parameter counts, shapes, arguments, and a training step."""

import numpy as np
import pytest

from magmadnn_py import Input, applications, initializers, models, optimizers

#: Trainable parameters as published (by the papers, or torchvision's and Keras's listings), and output units.
PUBLISHED = {
    "AlexNet": (61_100_840, 1000),
    "CosmoFlow": (2_131_252, 4),
    "LeNet5": (431_080, 10),
    "MLP": (669_706, 10),
    "ResNet18": (11_689_512, 1000),
    "ResNet34": (21_797_672, 1000),
    "ResNet50": (25_557_032, 1000),
    "ResNet101": (44_549_160, 1000),
    "ResNet152": (60_192_808, 1000),
    "ResNet20": (269_722, 10),
    "ResNet32": (464_154, 10),
    "ResNet44": (658_586, 10),
    "ResNet56": (853_018, 10),
    "VGG16": (138_357_544, 1000),
    "VGG19": (143_667_240, 1000),
    "mnist_convnet": (34_826, 10),
}


@pytest.fixture
def quick_weights(monkeypatch):
    """Zeros for random numbers: drawing hundreds of millions takes minutes."""
    monkeypatch.setattr(
        initializers.VarianceScaling, "draw", lambda self, generator, shape, dtype: np.zeros(shape, dtype)
    )


def trainable_count(model) -> int:
    return sum(weight.type.size for weight in model.trainable_weights)


def test_every_network_is_tested():
    assert set(applications.__all__) == set(PUBLISHED)


@pytest.mark.usefixtures("quick_weights")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts(name):
    parameters, units = PUBLISHED[name]
    model = getattr(applications, name)()
    assert trainable_count(model) == parameters
    assert model.output_shape == (None, units)


@pytest.mark.usefixtures("quick_weights")
@pytest.mark.parametrize(
    ("name", "arguments", "parameters"),
    [
        ("AlexNet", {"filters": (96, 256, 384, 384, 256)}, 62_378_344),
        ("AlexNet", {"filters": (96, 256, 384, 384, 256), "groups": 2}, 60_965_224),
        ("ResNet20", {"shortcut": "B"}, 272_474),
        ("VGG16", {"include_top": False}, 14_714_688),
    ],
)
def test_variants(name, arguments, parameters):
    assert trainable_count(getattr(applications, name)(**arguments)) == parameters


@pytest.mark.usefixtures("quick_weights")
def test_cosmoflow_is_the_variant_of_the_paradl_study():
    model = applications.CosmoFlow((512, 512, 512, 4))
    extents = [layer.output.shape[1] for layer in model.layers if layer.name.startswith("conv")]
    assert extents == [510, 253, 62, 29, 13, 5, 1]
    kernels = [layer.kernel for layer in model.layers if hasattr(layer, "kernel")]
    assert sum(kernel.type.size for kernel in kernels) == 2_128_064
    assert applications.CosmoFlow((256, 256, 256, 4)).count_params() == model.count_params()


SMALL = {
    "AlexNet": {"input_shape": (63, 63, 3)},
    "ResNet18": {"input_shape": (32, 32, 3)},
    "ResNet50": {"input_shape": (64, 64, 3)},
    "ResNet20": {"shortcut": "B"},
    "ResNet32": {},
    "VGG16": {"input_shape": (32, 32, 3)},
}


@pytest.mark.parametrize("name", SMALL)
def test_a_training_step(name):
    model = getattr(applications, name)(classes=10, **SMALL[name])
    model.compile(optimizers.SGD(1e-4), "sparse_categorical_crossentropy")
    before = [weight.numpy() for weight in model.trainable_weights]
    x = np.random.default_rng(0).random((2, *model.input_shape[1:]), dtype=np.float32)
    assert np.isfinite(model.train_on_batch(x, np.array([3, 7])))
    changed = [(a != w.numpy()).any() for a, w in zip(before, model.trainable_weights, strict=True)]
    assert sum(changed) >= 0.9 * len(changed)
    assert not [name for program in model._programs.values() for name in program.references]
    y = model.predict(x, verbose=0)
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-5)


def test_a_residual_network_is_saved_and_loaded(tmp_path):
    model = applications.ResNet20()
    x = np.random.default_rng(0).random((2, 32, 32, 3), dtype=np.float32)
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        models.load_model(tmp_path / "m.keras").predict(x, verbose=0), model.predict(x, verbose=0)
    )
    model.save_weights(tmp_path / "m.weights.h5")
    again = applications.ResNet20(weights=str(tmp_path / "m.weights.h5"))
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


@pytest.mark.parametrize(("pooling", "shape"), [(None, (None, 8, 8, 64)), ("avg", (None, 64)), ("max", (None, 64))])
def test_without_a_top(pooling, shape):
    assert applications.ResNet20(include_top=False, pooling=pooling).output_shape == shape


def test_an_input_of_the_callers():
    image = Input((32, 32, 3), name="picture")
    assert applications.ResNet20(input_tensor=image).input is image


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("VGG16", {"weights": "imagenet"}, "VGG16: weights: got 'imagenet'"),
        ("ResNet20", {"pooling": "sum"}, "pooling: got 'sum', wanted None, 'avg' or 'max'"),
        ("ResNet20", {"shortcut": "C"}, "shortcut: got 'C'"),
        ("ResNet50", {"input_shape": (224, 224)}, r"input_shape: got \(224, 224\)"),
        ("ResNet50", {"input_tensor": np.zeros(3)}, "input_tensor: got ndarray"),
        ("AlexNet", {"filters": (64, 64)}, "filters: got"),
        ("CosmoFlow", {"input_shape": (100, 100, 100, 4)}, "CosmoFlow: input_shape"),
    ],
)
def test_wrong_arguments(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(applications, name)(**arguments)


@pytest.mark.parametrize("name", ["AlexNet", "VGG16"])
def test_images_that_are_too_small(name):
    with pytest.raises(ValueError, match="got a window of"):
        getattr(applications, name)(input_shape=(16, 16, 3))
