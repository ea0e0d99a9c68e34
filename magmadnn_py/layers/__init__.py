"""Layers, with Keras's names."""

from ..models.input import Input, InputLayer
