"""Whole layers, forward and backward in training form, beside the peer: `magmadnn bench layers`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core, layers
from ..graph import Trace, gradients
from ..graph.variable import Variable
from ..layers import Layer
from ..layers.layer import training_mode
from ..runtime.program import Program
from . import peers
from .limit import Limit
from .rows import Row, graph_cost
from .timing import Contender, alternate, contender


@dataclass(frozen=True)
class LayerCase:
    """A layer on inputs of one shape, batch first and channels last.

    peer: PyTorch's layer, from the module `torch.nn`.
    """

    label: str
    shape: tuple[int, ...]
    make: Callable[[], Layer]
    peer: Callable


LAYERS = [
    LayerCase("lenet conv2", (128, 12, 12, 20), lambda: layers.Conv2D(50, 5), lambda nn: nn.Conv2d(20, 50, 5)),
    LayerCase("mnist-convnet conv1", (128, 28, 28, 1), lambda: layers.Conv2D(32, 3), lambda nn: nn.Conv2d(1, 32, 3)),
    LayerCase(
        "resnet conv1",
        (8, 224, 224, 3),
        lambda: layers.Conv2D(64, 7, 2, padding="same"),
        lambda nn: nn.Conv2d(3, 64, 7, 2, padding=3),
    ),
    LayerCase(
        "resnet conv2 3x3",
        (8, 56, 56, 64),
        lambda: layers.Conv2D(64, 3, padding="same"),
        lambda nn: nn.Conv2d(64, 64, 3, padding=1),
    ),
    LayerCase("resnet conv2 1x1", (8, 56, 56, 256), lambda: layers.Conv2D(64, 1), lambda nn: nn.Conv2d(256, 64, 1)),
    LayerCase(
        "vgg conv5",
        (4, 14, 14, 512),
        lambda: layers.Conv2D(512, 3, padding="same"),
        lambda nn: nn.Conv2d(512, 512, 3, padding=1),
    ),
    LayerCase(
        "mobilenet depthwise",
        (8, 56, 56, 128),
        lambda: layers.DepthwiseConv2D(3, padding="same"),
        lambda nn: nn.Conv2d(128, 128, 3, padding=1, groups=128),
    ),
    LayerCase(
        "cosmoflow conv3",
        (1, 32, 32, 32, 32),
        lambda: layers.Conv3D(64, 3, padding="same"),
        lambda nn: nn.Conv3d(32, 64, 3, padding=1),
    ),
    LayerCase("lenet dense1", (128, 800), lambda: layers.Dense(500), lambda nn: nn.Linear(800, 500)),
    LayerCase("alexnet dense1", (16, 9216), lambda: layers.Dense(4096), lambda nn: nn.Linear(9216, 4096)),
    LayerCase("resnet batch-norm", (8, 56, 56, 64), lambda: layers.BatchNormalization(), lambda nn: nn.BatchNorm2d(64)),
    LayerCase("vit layer-norm", (16, 196, 768), lambda: layers.LayerNormalization(), lambda nn: nn.LayerNorm(768)),
    LayerCase("vgg max-pool", (4, 112, 112, 64), lambda: layers.MaxPooling2D(2), lambda nn: nn.MaxPool2d(2)),
    LayerCase("average-pool", (4, 112, 112, 64), lambda: layers.AveragePooling2D(2), lambda nn: nn.AvgPool2d(2)),
    LayerCase(
        "global average-pool",
        (8, 7, 7, 2048),
        lambda: layers.GlobalAveragePooling2D(keepdims=True),
        lambda nn: nn.AdaptiveAvgPool2d(1),
    ),
    LayerCase("relu", (8, 56, 56, 64), lambda: layers.ReLU(), lambda nn: nn.ReLU()),
    LayerCase("dropout", (128, 4096), lambda: layers.Dropout(0.5), lambda nn: nn.Dropout(0.5)),
]


def measure_layer(case: LayerCase, limit: Limit, seconds: float) -> Row:
    """The row of one layer: outputs and the gradients of input and weights, in one program."""
    rng = np.random.default_rng(0)
    x = Variable(rng.standard_normal(case.shape, np.float32))
    layer = case.make()
    program, dy = _training_program(layer, x, rng)
    contenders = {"program": contender(program)}
    if peers.installed():
        contenders[peers.NAME] = _peer(case, x.numpy(), dy.numpy())
    timings = alternate(contenders, seconds)
    return Row(
        case.label,
        "layer",
        {"layer": type(layer).__name__},
        (x.type,),
        (dy.type,),
        _core.get_threads(),
        "program",
        timings["program"],
        graph_cost(program.graph),
        limit,
        timings.get(peers.NAME),
    )


def _training_program(layer: Layer, x: Variable, rng: np.random.Generator) -> tuple[Program, Variable]:
    """The program, and the gradient of the output that it starts from."""
    layer.build(x.shape)
    dy = Variable(rng.standard_normal(layer.compute_output_shape(x.shape), np.float32))
    with Trace() as trace:
        read = [trace.initial(variable) for variable in (x, *layer.trainable_variables)]
        with training_mode(True):
            y = layer(read[0])
        program = Program(trace.graph([y, *gradients([y], read, [trace.initial(dy)])]))
    return program, dy


def _peer(case: LayerCase, x: np.ndarray, dy: np.ndarray) -> Contender:
    import torch

    torch.set_num_threads(_core.get_threads())
    images = len(case.shape) > 3  # PyTorch has other layouts for these only
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    module = case.peer(torch.nn)
    if images:
        module = module.to(memory_format=formats[len(case.shape)])
    x, dy = (peers.channels_first(torch.from_numpy(a)) if images else torch.from_numpy(a) for a in (x, dy))
    x.requires_grad_()
    wanted = [x, *module.parameters()]

    def run(repeats: int) -> None:
        for _ in range(repeats):
            torch.autograd.grad(module(x), wanted, dy)

    return run
