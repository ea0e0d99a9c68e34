import json

import numpy as np
import pytest

from magmadnn_py import initializers

SHAPE = (3, 3, 3, 8)
RANDOM = ["random_uniform", "random_normal", "truncated_normal", "variance_scaling", "glorot_uniform",
          "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal", "orthogonal"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("glorot_uniform", np.sqrt(6 / (27 + 72))),
        ("he_uniform", np.sqrt(6 / 27)),
        ("lecun_uniform", np.sqrt(3 / 27)),
        ("random_uniform", 0.05),
    ],
)
def test_uniform_limits(name, limit):
    values = initializers.get(name)((3, 3, 3, 8))
    assert 0.9 * limit < np.abs(values).max() <= limit
    assert abs(values.mean()) < limit / 4


def test_glorot_limit_of_a_convolution():
    assert np.abs(initializers.GlorotUniform(seed=1)(SHAPE)).max() == pytest.approx(0.246183, rel=0.02)


@pytest.mark.parametrize(
    ("name", "variance"), [("glorot_normal", 2 / 500), ("he_normal", 2 / 200), ("lecun_normal", 1 / 200)]
)
def test_normal_variance_and_truncation(name, variance):
    values = initializers.get(name)((200, 300)).astype("float64")
    assert values.std() == pytest.approx(np.sqrt(variance), rel=0.02)
    assert np.abs(values).max() <= 2 * np.sqrt(variance) / 0.87962566103423978 * 1.0001


def test_plain_normals():
    assert initializers.RandomNormal()((200, 200)).std() == pytest.approx(0.05, rel=0.02)
    values = initializers.TruncatedNormal(1.0, 0.5)((200, 200))
    assert (np.abs(values - 1) <= 1).all()
    assert values.std() == pytest.approx(0.5 * 0.87962566, rel=0.02)
    untruncated = initializers.VarianceScaling(distribution="untruncated_normal")((100, 400))
    assert untruncated.std() == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (3, 3, 2, 5)])
def test_orthogonal(shape):
    matrix = initializers.Orthogonal(gain=2.0)(shape).reshape(-1, shape[-1]).astype("float64")
    product = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_constants():
    np.testing.assert_array_equal(initializers.Constant(3)((2, 2)), np.full((2, 2), 3, "float32"))
    np.testing.assert_array_equal(initializers.get(np.arange(3.0))((2, 3)), [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(initializers.Identity(2)((2, 3)), [[2, 0, 0], [0, 2, 0]])
    assert initializers.Ones()((2,), "int32").dtype == "int32"
    assert initializers.Zeros()(()).shape == ()


@pytest.mark.parametrize(
    ("shape", "fans"), [((), (1, 1)), ((5,), (5, 5)), ((5, 7), (5, 7)), (SHAPE, (27, 72)), ((2, 4, 6), (8, 12))]
)
def test_fans(shape, fans):
    assert initializers.compute_fans(shape) == fans


@pytest.mark.parametrize("name", RANDOM)
class TestSeeds:
    def make(self, name, **arguments):
        return initializers._NAMES[name](**arguments)

    def test_seeded_gives_the_same_each_time(self, name):
        initializer = self.make(name, seed=5)
        np.testing.assert_array_equal(initializer((4, 5)), initializer((4, 5)))

    def test_unseeded_never_gives_the_same(self, name):
        initializer = self.make(name)
        assert not np.array_equal(initializer((4, 5)), initializer((4, 5)))
        assert not np.array_equal(self.make(name)((4, 5)), self.make(name)((4, 5)))

    def test_set_seed_repeats_all(self, name):
        initializers.set_seed(3)
        first = [self.make(name)((4, 5)) for _ in range(2)]
        initializers.set_seed(3)
        np.testing.assert_array_equal(first, [self.make(name)((4, 5)) for _ in range(2)])
        initializers.set_seed(None)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_element_type(self, name, dtype):
        assert self.make(name)((4, 5), dtype).dtype == dtype

    def test_config(self, name):
        config = json.loads(json.dumps(initializers.serialize(self.make(name, seed=9))))
        again = initializers.deserialize(config)
        np.testing.assert_array_equal(again((4, 5)), self.make(name, seed=9)((4, 5)))


def test_get():
    assert isinstance(initializers.get("HeNormal"), initializers.HeNormal)
    assert isinstance(initializers.get(initializers.Ones), initializers.Ones)
    assert isinstance(initializers.get({"class_name": "Ones", "config": {}}), initializers.Ones)
    assert initializers.get(None) is None
    function = lambda shape, dtype: np.ones(shape, dtype)  # noqa: E731
    assert initializers.get(function) is function
    with pytest.raises(ValueError, match="did you mean 'glorot_uniform'"):
        initializers.get("glorot_unifrom")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: initializers.VarianceScaling(scale=0), "scale"),
        (lambda: initializers.VarianceScaling(mode="fan"), "mode"),
        (lambda: initializers.VarianceScaling(distribution="cauchy"), "distribution"),
        (lambda: initializers.Identity()((2, 2, 2)), "rank 2"),
        (lambda: initializers.Orthogonal()((2,)), "rank 2 or more"),
        (lambda: initializers.RandomNormal(seed="x"), "seed"),
        (lambda: initializers.RandomNormal()((2,), "int32"), "dtype"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
