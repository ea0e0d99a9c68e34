"""Every algorithm on the real layers of the case lists, beside the peer: `magmadnn bench kernels`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence

from .. import _core
from ..graph import Trace
from ..graph.node import Input, Node, Op
from ..graph.variable import Variable
from ..runtime.kernels import algorithms, best_algorithm, instruction_set, no_algorithm
from ..runtime.program import Choice, Program, SharedMemory
from . import cases as case_lists
from . import peers
from .cases.case import Case
from .limit import Limit
from .rows import Row
from .timing import alternate, contender


def op_program(
    op: Op, variables: Sequence[Variable], choose: Choice = best_algorithm, memory: SharedMemory | None = None
) -> Program:
    """A program of one op on variables: nothing is loaded at a run, and no result overwrites an input."""
    with Trace() as trace:
        result = op(*(trace.read(variable) for variable in variables))
    return Program(trace.graph(result if isinstance(result, tuple) else (result,)), memory, choose)


def families() -> dict[str, list[Case]]:
    """The case lists for speed by op family."""
    names = [module.name for module in pkgutil.iter_modules(case_lists.__path__)]
    modules = {name: importlib.import_module(f"{case_lists.__name__}.{name}") for name in names}
    return {name: module.SPEED_CASES for name, module in modules.items() if hasattr(module, "SPEED_CASES")}


def select(wanted: Sequence[str], text: str) -> dict[str, list[Case]]:
    """The cases of the wanted families (none named: all) whose label or op's name holds `text`.

    Raises:
        ValueError: a family has no such list.
    """
    known = families()
    for name in wanted:
        if name not in known:
            raise ValueError(f"bench kernels: families: got '{name}', wanted some of {', '.join(known)}")
    chosen = {
        name: [case for case in known[name] if text in case.label or text in case.op.name] for name in wanted or known
    }
    return {name: found for name, found in chosen.items() if found}


def check_algorithms(wanted: Sequence[str]) -> None:
    """Raises ValueError if no kernel here has an algorithm of that name."""
    instruction_set()
    known = {algorithm for _, algorithm in _core.kernels()} | {"reference"}
    for name in wanted:
        if name not in known:
            raise ValueError(f"bench kernels: algorithms: got '{name}', wanted some of {', '.join(sorted(known))}")


def measure_case(case: Case, limit: Limit, seconds: float, wanted: Sequence[str] = ()) -> Iterator[Row]:
    """One row per algorithm that can run the case, the preferred one first; only the wanted ones, if any are named.

    An op without a kernel runs its NumPy reference. All algorithms and the peer take turns within `seconds`.
    """
    threads = _core.get_threads()
    node = Node(case.op, [Input(type_)() for type_ in case.inputs])
    names = [name for name in algorithms(node, threads) or ["reference"] if not wanted or name in wanted]
    if not names:
        return
    arrays = case.arrays()
    variables = [Variable(array, array.dtype) for array in arrays]
    memory = SharedMemory()
    contenders = {
        name: contender(op_program(case.op, variables, _choice(case.op.name, name), memory)) for name in names
    }
    peer = peers.op_contender(case.op, arrays, threads)
    if peer:
        contenders[peers.NAME] = peer
    timings = alternate(contenders, seconds)
    cost = case.op.cost(case.inputs, case.outputs)
    for name in names:
        yield Row(
            case.label,
            case.op.name,
            case.op.attributes(),
            case.inputs,
            case.outputs,
            threads,
            name,
            timings[name],
            cost,
            limit,
            timings.get(peers.NAME),
        )


def _choice(op_name: str, algorithm: str) -> Choice:
    """That algorithm for that op; the preferred one for what else a program needs."""
    if algorithm == "reference":
        return no_algorithm
    return lambda node, threads: algorithm if node.op.name == op_name else best_algorithm(node, threads)
