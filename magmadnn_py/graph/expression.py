"""Expressions by hand: variables as leaves, values on demand, and text.

>>> x, c = Variable(3.0, name="x"), Variable(1.0, name="c")
>>> y = x.leaf**2 + c
>>> text(y)
'((x ** 2) + c)'
>>> evaluate(y)
Tensor(10., dtype=float32)
>>> x.assign(1.0)
>>> evaluate(y), evaluate(gradients(y, [x.leaf]))
(Tensor(2., dtype=float32), [Tensor(2., dtype=float32)])

An operation on variables and numbers alone runs at once (`x * c` is a tensor); one that has a leaf in it makes a node.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import count

from .graph import Graph, reachable
from .node import Constant, Input, Node, ReadVariable, Value

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip

#: Programs of the expressions that were evaluated last.
_CACHE_SIZE = 64
_programs: OrderedDict[tuple, object] = OrderedDict()


def evaluate(values: Value | Sequence[Value], inputs: Mapping[Value, object] | None = None):
    """The numbers of an expression, with what the variables hold now.

    Args:
        values: a graph value, or a list or tuple of them, computed together.
        inputs: arrays for the graph inputs (`Trace.input`) that the expression depends on.

    Returns:
        A tensor, or a list of tensors.

    Raises:
        TypeError: one of the values is no graph value.
        ValueError: there is no array for an input, or its shape is wrong.
    """
    from ..runtime.tensor import Tensor

    several = isinstance(values, list | tuple)
    wanted = tuple(values) if several else (values,)
    for value in wanted:
        if not isinstance(value, Value):
            raise TypeError(f"evaluate: values: got {type(value).__name__}, wanted graph values")
    program = _program(wanted)
    given = inputs or {}
    for value in program.graph.inputs:
        if value not in given:
            raise ValueError(f"evaluate: inputs: got no array for '{value.node.op.label}' {value.type}")
    results = [Tensor.from_array(array) for array in program.run(*(given[value] for value in program.graph.inputs))]
    return results if several else results[0]


def _program(values: tuple[Value, ...]):
    """The program of the values, kept for the next time: it reads variables at each run."""
    from .. import _core
    from ..runtime.program import Program

    key = (values, _core.get_threads())
    if key not in _programs:
        leaves = [node.outputs[0] for node in reachable(values) if isinstance(node.op, Input)]
        _programs[key] = Program(Graph(tuple(leaves), values))
    _programs.move_to_end(key)
    while len(_programs) > _CACHE_SIZE:
        _programs.popitem(last=False)
    return _programs[key]


def text(value: Value) -> str:
    """The expression of a value in Python's notation. Parts that are used several times are written out each time."""
    known: dict[Value, str] = {}
    for node in reachable([value]):
        for output, written in zip(node.outputs, _texts(node, [known[v] for v in node.inputs]), strict=True):
            known[output] = written
    return known[value]


def show(graph: Graph | Value | Sequence[Value]) -> str:
    """A listing of a graph, or of all that some values depend on: one line for each node, then what it returns and
    what it assigns to variables."""
    if not isinstance(graph, Graph):
        graph = Graph((), (graph,) if isinstance(graph, Value) else tuple(graph))
    names: dict[Value, str] = {}
    lines = []
    numbers = count(1)
    for node in graph.order:
        written = _texts(node, [names[v] for v in node.inputs])
        if isinstance(node.op, ReadVariable) or _is_number(node.op):
            names[node.outputs[0]] = written[0]
            continue
        for output, expression in zip(node.outputs, written, strict=True):
            names[output] = f"%{next(numbers)}"
            scope = f"  # {node.scope}" if node.scope else ""
            lines.append(f"{names[output]}: {output.type} = {expression}{scope}")
    if graph.outputs:
        lines.append(f"return {', '.join(names[value] for value in graph.outputs)}")
    lines += [f"{variable.name} <- {names[value]}" for variable, value in graph.updates]
    return "\n".join(lines)


def _texts(node: Node, inputs: list[str]) -> list[str]:
    """Each output of the node, in terms of its inputs."""
    op = node.op
    match op:
        case ReadVariable(variable):
            return [variable.name]
        case Input():
            return [op.label]
        case Constant(array):
            return [_number(array.item()) if array.size == 1 else f"constant {node.outputs[0].type}"]
    if op.name == "elementwise":
        return _program_texts(op, inputs)
    if op.name == "matmul" and not op.bias and op.activation == "linear":
        a, b = (f"{x}.T" if t else x for x, t in zip(inputs, (op.transpose_a, op.transpose_b), strict=True))
        return [f"({a} @ {b})"]
    attributes = op.attributes()
    function = attributes.pop("function", op.name)  # which reduction
    settings = [f"{name}={_setting(value)}" for name, value in attributes.items()]
    called = f"{function}({', '.join(inputs + settings)})"
    return [called] if len(node.outputs) == 1 else [f"{called}[{i}]" for i in range(len(node.outputs))]


def _program_texts(op, inputs: list[str]) -> list[str]:
    registers = list(inputs)
    for name, operands in zip(op.functions, op.operands, strict=True):
        arguments = [registers[r] for r in operands if r >= 0]
        if name in _INFIX:
            registers.append(f"({arguments[0]} {_INFIX[name]} {arguments[1]})")
        elif name == "negative":
            registers.append(f"(-{arguments[0]})")
        else:
            registers.append(f"{name}({', '.join(arguments)})")
    return [registers[r] for r in op.results]


def _is_number(op) -> bool:
    return isinstance(op, Constant) and op.array.size == 1


def _number(value) -> str:
    return str(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _setting(value) -> str:
    return _number(value) if isinstance(value, int | float) else str(value)
