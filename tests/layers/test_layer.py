"""The base class: building, tracking, naming, training mode, losses, configs."""

import numpy as np
import pytest

from magmadnn_py import layers, ops
from magmadnn_py.graph import Symbol, Trace, Variable
from magmadnn_py.layers.layer import training_mode
from magmadnn_py.utils.naming import auto_name, clear_session, to_snake_case


class Scale(layers.Layer):
    """Multiplies by a trained number for each feature."""

    def __init__(self, start=1.0, **kwargs):
        super().__init__(**kwargs)
        self.start = start

    def build(self, input_shape):
        self.factor = self.add_weight((input_shape[-1],), "ones", name="factor")
        self.factor.assign(np.full(input_shape[-1], self.start))

    def call(self, x):
        return x * self.factor


class Block(layers.Layer):
    """Layers in an attribute, a list that is appended to, and a dict."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Dense(4)
        self.more = []
        for units in (3, 2):
            self.more.append(layers.Dense(units))
        self.named = {"last": layers.Dense(1, use_bias=False)}
        self.offset = Variable(np.zeros(1, "float32"), name="offset")

    def call(self, x):
        x = self.first(x)
        for layer in self.more:
            x = layer(x)
        return self.named["last"](x) + self.offset


X = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")


class TestNames:
    def test_snake_case(self):
        names = ["Conv2DTranspose", "ReLU", "PReLU", "BatchNormalization", "MaxPooling2D", "GlobalAveragePooling2D"]
        expected = ["conv2d_transpose", "re_lu", "p_re_lu", "batch_normalization", "max_pooling2d",
                    "global_average_pooling2d"]  # fmt: skip
        assert [to_snake_case(name) for name in names] == expected

    def test_numbers_begin_anew_after_clear_session(self):
        clear_session()
        assert [layers.Conv2D(1, 1).name for _ in range(3)] == ["conv2d", "conv2d_1", "conv2d_2"]
        clear_session()
        assert auto_name("Conv2D") == "conv2d"

    def test_weights_know_their_layer(self):
        layer = layers.Dense(2, name="head")
        layer.build((None, 3))
        assert [weight.path for weight in layer.weights] == ["head/kernel", "head/bias"]


class TestCalls:
    def test_arrays(self):
        layer = layers.Dense(3)
        y = np.asarray(layer(X))
        kernel, bias = layer.get_weights()
        np.testing.assert_allclose(y, X @ kernel + bias, rtol=1e-5)

    def test_nested_lists_of_numbers(self):
        assert layers.Dense(3)([[1.0, 2.0]]).shape == (1, 3)

    def test_symbols_are_recorded(self):
        layer = layers.Dense(3)
        y = layer(Symbol((None, 6)))
        assert y.shape == (None, 3)
        assert y.call.function is layer
        assert layer.output is y

    def test_shared_layer_has_one_set_of_weights(self):
        layer = layers.Dense(3)
        first, second = layer(Symbol((None, 6))), layer(Symbol((2, 6)))
        assert (first.shape, second.shape) == ((None, 3), (2, 3))
        assert len(layer.weights) == 2
        assert layer.output is first

    def test_no_output_before_a_symbolic_call(self):
        with pytest.raises(AttributeError, match="never been called"):
            layers.Dense(3).output  # noqa: B018

    def test_unknown_extents_stay_unknown(self):
        layer = layers.Conv2D(4, 3, padding="same")
        assert layer.compute_output_shape((None, None, None, 3)) == (None, None, None, 4)

    def test_nodes_carry_the_names_of_nested_layers(self):
        block = Block(name="block")
        with Trace() as trace:
            y = block(trace.input(X.shape))
        scopes = {node.scope for node in trace.graph([y]).order}
        assert f"block/{block.first.name}" in scopes

    def test_inputs_are_cast_to_the_layers_type(self):
        assert layers.Dense(2)(X.astype("float64")).dtype == "float32"
        assert layers.Dense(2, dtype="float64")(X).dtype == "float64"

    def test_several_inputs(self):
        class Attend(layers.Layer):
            def build(self, first, second):
                self.shapes = first, second

            def call(self, first, second):
                return first * second

        layer = Attend()
        assert layer(X, np.ones((5, 1), "float32")).shape == (5, 6)
        assert layer.shapes == ((5, 6), (5, 1))

    def test_build_takes_place_outside_of_the_trace(self):
        with Trace() as trace:
            layer = Scale(3.0)
            layer(trace.input(X.shape))
        assert layer.factor.numpy().tolist() == [3.0] * 6
        assert not trace.graph([]).updates

    def test_errors_from_inside_name_the_layer(self):
        layer = layers.Dense(3, name="head")
        layer(X)
        with pytest.raises(ValueError, match=r"layer 'head' \(Dense\).*inner extents"):
            layer(np.ones((2, 5), "float32"))


class TestTrainingMode:
    class Spy(layers.Layer):
        def call(self, x, training=None):
            self.seen = training
            return x

    def test_default_is_false(self):
        spy = self.Spy()
        spy(X)
        assert spy.seen is False

    def test_enclosing_layer_decides(self):
        spy = self.Spy()
        layers.TimeDistributed(spy)(X[None], training=True)
        assert spy.seen is True
        with training_mode(True):
            spy(X)
        assert spy.seen is True

    def test_own_argument_wins(self):
        spy = self.Spy()
        with training_mode(True):
            spy(X, training=False)
        assert spy.seen is False

    def test_recorded_argument_is_kept(self):
        spy = self.Spy()
        y = spy(Symbol((None, 2)), training=True)
        assert y.call.kwargs == {"training": True}


class TestWeights:
    def test_tracking(self):
        block = Block()
        block(X)
        assert [layer.units for layer in block._sublayers()] == [4, 3, 2, 1]
        shapes = [weight.shape for weight in block.weights]
        assert shapes == [(1,), (6, 4), (4,), (4, 3), (3,), (3, 2), (2,), (2, 1)]
        assert block.count_params() == sum(np.prod(shape) for shape in shapes)
        assert block.variables == block.weights

    def test_trainable_reaches_all_layers_inside(self):
        block = Block()
        block(X)
        block.trainable = False
        assert not block.trainable_weights
        assert not block.first.trainable
        block.trainable = True
        block.first.trainable = False
        assert len(block.trainable_weights) == 6
        assert [w.shape for w in block.non_trainable_weights] == [(6, 4), (4,)]

    def test_get_and_set(self):
        first, second = Block(), Block()
        first(X), second(X)
        second.set_weights(first.get_weights())
        np.testing.assert_array_equal(np.asarray(first(X)), np.asarray(second(X)))

    def test_set_weights_errors(self):
        layer = layers.Dense(3, name="head")
        layer.build((None, 6))
        before = layer.get_weights()
        with pytest.raises(ValueError, match=r"'head'.*got 1 arrays, wanted 2"):
            layer.set_weights(before[:1])
        with pytest.raises(ValueError, match=r"'head/bias': got shape \(4,\), wanted \(3,\)"):
            layer.set_weights([np.zeros((6, 3)), np.zeros(4)])
        np.testing.assert_array_equal(layer.get_weights()[0], before[0])

    def test_count_params_needs_a_built_layer(self):
        with pytest.raises(ValueError, match="count_params"):
            layers.Dense(3).count_params()

    def test_two_layers_never_begin_alike(self):
        first, second = layers.Dense(3), layers.Dense(3)
        first(X), second(X)
        assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])

    def test_initializer_of_ops(self):
        class Odd(layers.Layer):
            def build(self, shape):
                self.w = self.add_weight((2,), lambda shape, dtype: ops.ones(shape, dtype) * 3.0)

            def call(self, x):
                return x + ops.sum(self.w)

        np.testing.assert_allclose(np.asarray(Odd()(X)), X + 6, rtol=1e-6)

    def test_initializer_of_another_shape(self):
        layer = layers.Dense(3, kernel_initializer=lambda shape, dtype: np.zeros((2, 2)))
        with pytest.raises(ValueError, match=r"weight 'kernel'.*\(2, 2\)"):
            layer.build((None, 6))


class TestLosses:
    def test_activity_regularizer(self):
        layer = layers.Dense(2, activity_regularizer="l2", kernel_initializer="ones")
        with Trace() as trace:
            layer(trace.input((3, 2)))
        assert [loss.shape for loss in trace.losses] == [()]

    def test_weight_regularizer(self):
        layer = layers.Dense(2, kernel_regularizer="l2", kernel_initializer="ones")
        layer.build((None, 3))
        (penalty,) = layer.losses
        np.testing.assert_allclose(np.asarray(penalty), 0.06, rtol=1e-6)
        layer.trainable = False
        assert layer.losses == []

    def test_add_loss(self):
        class Penalised(layers.Layer):
            def call(self, x):
                self.add_loss(ops.square(x))
                return x

        with Trace() as trace:
            Penalised()(trace.input((3, 2)))
        assert [loss.shape for loss in trace.losses] == [()]
        with pytest.raises(RuntimeError, match="add_loss"):
            Penalised().add_loss(1.0)


class TestConfigs:
    def test_attributes_named_like_arguments(self):
        config = Scale(2.0, name="twice").get_config()
        assert config["start"] == 2.0
        again = Scale.from_config(config)
        assert (again.start, again.name) == (2.0, "twice")

    def test_inherited_arguments(self):
        class Wide(layers.Dense):
            def __init__(self, factor, **kwargs):
                super().__init__(**kwargs)
                self.factor = factor

        again = Wide.from_config(Wide(3, units=5, activation="relu").get_config())
        assert (again.factor, again.units) == (3, 5)

    def test_unknown_arguments(self):
        with pytest.raises(ValueError, match=r"layer 'dense.*\(Dense\).*colour"):
            layers.Dense(3, colour="red")

    def test_neutral_entries_of_keras_files(self):
        layers.Dense(3, quantization_config=None)
        layers.BatchNormalization(renorm=False)
        with pytest.raises(ValueError, match="renorm"):
            layers.BatchNormalization(renorm=True)

    def test_older_ways_to_give_the_input_shape(self):
        assert layers.Dense(3, input_shape=(4,)).batch_input_shape == (None, 4)
        assert layers.Dense(3, input_dim=4).batch_input_shape == (None, 4)

    def test_build_config(self):
        layer = layers.Dense(3)
        layer.build((None, 4))
        again = layers.Dense.from_config(layer.get_config())
        again.build_from_config({"input_shape": [None, 4]})
        assert [weight.shape for weight in again.weights] == [(4, 3), (3,)]

    def test_element_type(self):
        config = layers.Dense(3, dtype="float64").get_config()
        assert config["dtype"]["config"] == {"name": "float64"}
        assert layers.Dense.from_config(config).dtype == "float64"
        with pytest.raises(TypeError, match="dtype"):
            layers.Dense(3, dtype="float8")
