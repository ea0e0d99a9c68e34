"""Networks by name, untrained."""

from .small import MLP, LeNet5, mnist_convnet

__all__ = ["MLP", "LeNet5", "mnist_convnet"]
