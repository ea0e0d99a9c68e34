"""Whole training runs, step by step, against PyTorch: the same first weights, batches and rules."""

from __future__ import annotations

import numpy as np
import pytest

from magmadnn_py import Input, Sequential, config, layers, losses, optimizers, utils
from peer.step_losses import StepLosses

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (pip install '.[peers]'): training is not compared with it"
)
F = torch.nn.functional

STEPS, BATCH = 20, 16


# Networks: (model, function from the parameters, in the order of the model's trainable weights, and a batch to logits)


def mlp():
    model = Sequential(
        [Input((12,)), layers.Dense(16, activation="relu"), layers.Dense(8, activation="tanh"), layers.Dense(4)]
    )

    def forward(p, x):
        x = torch.relu(x @ p[0] + p[1])
        return torch.tanh(x @ p[2] + p[3]) @ p[4] + p[5]

    return model, forward, (12,), 4


def lenet():
    model = Sequential([
        Input((28, 28, 1)),
        layers.Conv2D(20, 5, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(50, 5, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(500, activation="relu"),
        layers.Dense(10),
    ])  # fmt: skip

    def forward(p, x):
        x = F.max_pool2d(torch.relu(convolve(x.permute(0, 3, 1, 2), p[0], p[1])), 2)
        x = F.max_pool2d(torch.relu(convolve(x, p[2], p[3])), 2)
        return torch.relu(flat(x) @ p[4] + p[5]) @ p[6] + p[7]

    return model, forward, (28, 28, 1), 10


def mnist_convnet():
    model = Sequential([
        Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    ])  # fmt: skip

    def forward(p, x):
        x = F.max_pool2d(torch.relu(convolve(x.permute(0, 3, 1, 2), p[0], p[1])), 2)
        x = F.max_pool2d(torch.relu(convolve(x, p[2], p[3])), 2)
        return flat(x) @ p[4] + p[5]

    return model, forward, (28, 28, 1), 10


def with_batch_norm(statistics=None):
    """Strided convolutions; `statistics` receives the mean and the biased variance of each batch."""
    model = Sequential([
        Input((9, 9, 3)),
        layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.DepthwiseConv2D(3, padding="same"),
        layers.AveragePooling2D(2),
        layers.GlobalAveragePooling2D(),
        layers.Dense(5),
    ])  # fmt: skip

    def forward(p, x):
        # 9 cells, window 3, stride 2: one cell of padding on each side.
        x = F.conv2d(x.permute(0, 3, 1, 2), p[0].permute(3, 2, 0, 1), stride=2, padding=1)
        if statistics is not None:
            statistics.append((x.mean((0, 2, 3)).detach(), x.var((0, 2, 3), unbiased=False).detach()))
        x = torch.relu(F.batch_norm(x, None, None, p[1], p[2], training=True, eps=1e-3))
        x = F.conv2d(x, p[3].permute(2, 3, 0, 1), p[4], padding=1, groups=8)
        return F.avg_pool2d(x, 2).mean((2, 3)) @ p[5] + p[6]

    return model, forward, (9, 9, 3), 5


def convolve(x, kernel, bias):
    return F.conv2d(x, kernel.permute(3, 2, 0, 1), bias)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)


# Update rules as Keras defines them, where those of torch.optim differ (in where epsilon stands)


class Rule:
    def __init__(self, parameters, update):
        self.parameters, self.update = parameters, update
        self.state = [{} for _ in parameters]
        self.count = 0

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        self.count += 1
        for parameter, state in zip(self.parameters, self.state, strict=True):
            self.update(parameter, parameter.grad, state, self.count)


def adam(rate, decay=0.0):
    def update(w, g, state, t):
        m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
        v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
        w -= w * rate * decay
        w -= rate * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t) * m / (v.sqrt() + 1e-7)

    return lambda parameters: Rule(parameters, update)


def rmsprop(rate, momentum):
    def update(w, g, state, t):
        v = state["v"] = 0.9 * state.get("v", 0) + 0.1 * g * g
        state["m"] = momentum * state.get("m", 0) + rate * g / (v + 1e-7).sqrt()
        w -= state["m"]

    return lambda parameters: Rule(parameters, update)


def sgd(rate, **arguments):
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, **arguments)


# The comparison


def compare(network, optimizer, peer_optimizer, loss_bound=1e-4, weight_bound=2e-5):
    """Trains both for 20 steps; their losses and weights must agree. Returns the model."""
    utils.set_random_seed(1)
    model, forward, shape, classes = network()
    model.compile(optimizer, losses.SparseCategoricalCrossentropy(from_logits=True))
    dtype = config.floatx()
    random = np.random.default_rng(0)
    x = random.normal(size=(STEPS * BATCH, *shape)).astype(dtype)
    y = random.integers(0, classes, STEPS * BATCH)

    parameters = [torch.tensor(w.numpy(), requires_grad=True) for w in model.trainable_weights]
    peer = peer_optimizer(parameters)
    wanted = []
    for first in range(0, STEPS * BATCH, BATCH):
        rows = slice(first, first + BATCH)
        loss = F.cross_entropy(forward(parameters, torch.from_numpy(x[rows])), torch.from_numpy(y[rows]))
        peer.zero_grad()
        loss.backward()
        peer.step()
        wanted.append(loss.item())
    watch = StepLosses()
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[watch])
    np.testing.assert_allclose(watch.losses, wanted, rtol=loss_bound)
    for variable, parameter in zip(model.trainable_weights, parameters, strict=True):
        np.testing.assert_allclose(
            variable.numpy(), parameter.detach().numpy(), rtol=0, atol=weight_bound, err_msg=variable.path
        )
    return model


@pytest.mark.parametrize("arguments", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
def test_mlp_with_sgd(arguments):
    compare(mlp, optimizers.SGD(0.05, **arguments), sgd(0.05, **arguments))


def test_lenet_with_momentum():
    compare(lenet, optimizers.SGD(0.01, momentum=0.9), sgd(0.01, momentum=0.9))


def test_mnist_convnet_with_adam():
    compare(mnist_convnet, optimizers.Adam(0.001), adam(0.001), weight_bound=2e-4)


def test_mlp_with_adamw():
    compare(mlp, optimizers.AdamW(0.01, weight_decay=0.1), adam(0.01, decay=0.1), weight_bound=1e-4)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_mlp_with_rmsprop(momentum):
    compare(mlp, optimizers.RMSprop(0.002, momentum=momentum), rmsprop(0.002, momentum), weight_bound=1e-4)


def test_batch_norm_with_momentum():
    statistics = []
    model = compare(lambda: with_batch_norm(statistics), optimizers.SGD(0.05, momentum=0.9), sgd(0.05, momentum=0.9))
    mean, variance = np.zeros(8), np.ones(8)
    for batch_mean, batch_variance in statistics:
        mean = 0.99 * mean + 0.01 * batch_mean.numpy()
        variance = 0.99 * variance + 0.01 * batch_variance.numpy()
    norm = model.layers[1]
    np.testing.assert_allclose(norm.moving_mean.numpy(), mean, atol=1e-5)
    np.testing.assert_allclose(norm.moving_variance.numpy(), variance, rtol=1e-4)


@pytest.fixture
def double_precision():
    config.set_floatx("float64")
    yield
    config.set_floatx("float32")


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("network", [mlp, with_batch_norm])
def test_double_precision(network):
    # The learning rate is kept in float32, so it is one that has no rounding error there.
    rule = optimizers.SGD(0.0625, momentum=0.9)
    model = compare(network, rule, sgd(0.0625, momentum=0.9), loss_bound=1e-9, weight_bound=1e-9)
    assert all(w.dtype == "float64" for w in model.weights)
