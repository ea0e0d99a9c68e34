"""Steps of whole networks, beside the peer: `magmadnn bench models`.

The peer takes part where it has a twin of the network; `benchmarks/compare.py` compares whole trainings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core, applications, optimizers
from ..graph.types import TensorType
from . import peers
from .limit import Limit
from .rows import Row, graph_cost
from .timing import Contender, alternate

_MNIST = (28, 28, 1)
_CIFAR = (32, 32, 3)
_IMAGENET = (224, 224, 3)


@dataclass(frozen=True)
class NetworkCase:
    """A network of `magmadnn_py.applications` on a batch.

    classes: of the softmax at its end; None where it ends in numbers to regress.
    peer: its PyTorch twin in torch_networks.py.
    """

    name: str
    batch: int
    shape: tuple[int, ...]
    classes: int | None = 10
    peer: str | None = None


_KNOWN = [
    NetworkCase("LeNet5", 128, _MNIST, peer="lenet5"),
    NetworkCase("mnist_convnet", 128, _MNIST, peer="mnist_convnet"),
    NetworkCase("MLP", 128, _MNIST, peer="mlp"),
    NetworkCase("ResNet20", 128, _CIFAR, peer="resnet20"),
    NetworkCase("AlexNet", 16, _IMAGENET, 1000, "alexnet"),
    NetworkCase("VGG16", 4, _IMAGENET, 1000, "vgg16"),
    NetworkCase("ResNet18", 8, _IMAGENET, 1000),
    NetworkCase("ResNet50", 8, _IMAGENET, 1000, "resnet50"),
    NetworkCase("CosmoFlow", 1, (128, 128, 128, 4), None),
]
NETWORKS = [case for case in _KNOWN if case.name in applications.__all__]


def measure_model(case: NetworkCase, limit: Limit, seconds: float) -> Iterator[Row]:
    """Two rows: a training step and a prediction, each called from Python with a batch in memory."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, *case.shape), np.float32)
    model = getattr(applications, case.name)()
    loss = "sparse_categorical_crossentropy" if case.classes else "mse"
    model.compile(optimizers.SGD(0.01, momentum=0.9), loss)
    predicted = model.predict_on_batch(x)
    y = rng.integers(0, case.classes, case.batch) if case.classes else np.zeros_like(predicted)
    peer = _Peer(case, x, y) if case.peer and peers.installed() else None
    steps = {"train": lambda: model.train_on_batch(x, y), "predict": lambda: model.predict_on_batch(x)}
    for step, call in steps.items():
        contenders = {"program": _repeated(call)}
        if peer:
            contenders[peers.NAME] = _repeated(getattr(peer, step))
        timings = alternate(contenders, seconds)
        program = next(program for key, program in model._programs.items() if key[0] == step)
        yield Row(
            f"{case.name} {step}",
            "model",
            {"network": case.name, "step": step},
            (TensorType(x.shape),),
            (TensorType(predicted.shape),),
            _core.get_threads(),
            "program",
            timings["program"],
            graph_cost(program.graph),
            limit,
            timings.get(peers.NAME),
        )


def _repeated(call: Callable[[], object]) -> Contender:
    def run(repeats: int) -> None:
        for _ in range(repeats):
            call()

    return run


class _Peer:
    """PyTorch's network in channels-last, trained by the same rule."""

    def __init__(self, case: NetworkCase, x: np.ndarray, y: np.ndarray):
        import torch

        from . import torch_networks

        torch.set_num_threads(_core.get_threads())
        self.torch = torch
        self.model = getattr(torch_networks, case.peer)().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9)
        self.x = peers.channels_first(torch.from_numpy(x))
        self.y = torch.from_numpy(y)

    def train(self) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.torch.nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        loss.item()

    def predict(self) -> None:
        self.model.eval()
        with self.torch.no_grad():
            self.model(self.x).softmax(-1)
