"""The graph that is traced, differentiated, optimised, split, costed and executed."""

from .expression import evaluate, show, text
from .gradient import gradients
from .graph import Graph, reachable, rewrite
from .node import AxisSplit, Constant, Cost, Input, Node, Op, ReadVariable, Value, op_class, op_classes
from .symbolic import Symbol
from .trace import Trace, current_trace, scope
from .types import TensorType
from .variable import Variable

__all__ = [
    "AxisSplit", "Constant", "Cost", "Graph", "Input", "Node", "Op", "ReadVariable", "Symbol", "TensorType", "Trace",
    "Value", "Variable", "current_trace", "evaluate", "gradients", "op_class", "op_classes", "reachable", "rewrite",
    "scope", "show", "text",
]  # fmt: skip
