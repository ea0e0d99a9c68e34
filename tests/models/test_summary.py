"""model.summary()."""

import numpy as np

from magmadnn_py import Input, Sequential, layers
from models.networks import X, Y, regressor, two_outputs


def text_of(model, **arguments) -> str:
    lines = []
    model.summary(print_fn=lines.append, **arguments)
    return "\n".join(lines)


def test_shapes_and_counts():
    model = Sequential(
        [Input((28, 28, 1)), layers.Conv2D(8, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(10)]
    )
    text = text_of(model)
    assert "conv2d" in text and "(Conv2D)" in text
    assert "(None, 26, 26, 8)" in text
    assert "Total params: 54,202" in text
    assert "Trainable params: 54,186" in text
    assert "Non-trainable params: 16" in text
    assert "Optimizer" not in text


def test_the_optimizer_once_it_has_state():
    model = regressor(optimizer="adam")
    model.fit(X, Y, verbose=0)
    assert "Optimizer params: 12" in text_of(model)


def test_before_it_is_built(capsys):
    Sequential([layers.Dense(3)]).summary()
    assert "dense" in capsys.readouterr().out


def test_nested_and_trainable():
    inner = Sequential([layers.Dense(3, name="inside")], name="inner")
    inner.trainable = False
    model = Sequential([Input((4,)), inner, layers.Dense(1)])
    assert "inside" not in text_of(model)
    text = text_of(model, expand_nested=True, show_trainable=True)
    assert "inside" in text
    assert "Trainable" in text
    assert "Trainable params: 4 " in text


def test_several_outputs_and_line_length():
    text = text_of(two_outputs(), line_length=60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "(None, 3)" in text


def test_a_subclass():
    from models.test_subclassing import Net

    model = Net()
    assert "dense" in text_of(model)
    model.predict(np.ones((1, 4)), verbose=0)
    assert "Total params: 49" in text_of(model)
