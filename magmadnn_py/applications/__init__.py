"""Networks by name, untrained."""

from .alexnet import AlexNet
from .cosmoflow import CosmoFlow
from .resnet import ResNet18, ResNet34, ResNet50, ResNet101, ResNet152
from .resnet_cifar import ResNet20, ResNet32, ResNet44, ResNet56
from .small import MLP, LeNet5, mnist_convnet
from .vgg import VGG16, VGG19

__all__ = [
    "AlexNet", "CosmoFlow", "LeNet5", "MLP", "ResNet101", "ResNet152", "ResNet18", "ResNet20", "ResNet32", "ResNet34",
    "ResNet44", "ResNet50", "ResNet56", "VGG16", "VGG19", "mnist_convnet",
]  # fmt: skip
