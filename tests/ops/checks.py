"""What is checked of every op: its gradient, its kernels, its cost and its split rules, for a `Case`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from magmadnn_py.benchmarks.cases.case import Case
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.graph.node import AxisSplit, Constant
from magmadnn_py.graph.types import TensorType, is_floating

#: Elements of each input that a gradient test varies one by one.
PROBED_ELEMENTS = 40


def parametrize(cases, dtypes=None):
    """Decorator: the test runs with every `case`, and with every `dtype` if dtypes are given."""
    if dtypes is None:
        return pytest.mark.parametrize("case", cases, ids=str)
    pairs = list(itertools.product(cases, dtypes))
    return pytest.mark.parametrize("case,dtype", pairs, ids=[f"{case}-{dtype}" for case, dtype in pairs])


def apply(op, arrays) -> tuple:
    """The reference's outputs, always as a tuple."""
    results = op.reference(np, *arrays)
    return results if isinstance(results, tuple) else (results,)


def trace_op(case: Case):
    """A trace of the case's op alone, its inputs and its outputs."""
    with Trace() as trace:
        inputs = [trace.input(t.shape, t.dtype, f"input {i}") for i, t in enumerate(case.inputs)]
        result = case.op(*inputs)
    return trace, inputs, list(result) if isinstance(result, tuple) else [result]


def trace_on(function, *arrays):
    """`function` traced on graph values for the arrays: the graph, and whether it gave one value or several."""
    with Trace() as trace:
        result = function(*(trace.input(a.shape, a.dtype.name) for a in arrays))
    several = isinstance(result, list | tuple)
    return trace.graph(result if several else [result]), several


def evaluate(function, *arrays):
    """What `function`, written with `ops`, gives for arrays, by the references; a list where it gives several."""
    arrays = [np.asarray(a) for a in arrays]
    graph, several = trace_on(function, *arrays)
    outputs, _ = interpret(graph, arrays)
    return outputs if several else outputs[0]


def sum_gradients(function, *arrays) -> list:
    """The gradients of the sum of a function's result for each array, as nested lists of numbers."""
    found = evaluate(lambda *inputs: gradients(function(*inputs), inputs), *arrays)
    return [gradient.tolist() for gradient in found]


def op_names(function, *arrays) -> list[str]:
    """The names of the nodes that `function` makes for arrays, without inputs and constants."""
    graph, _ = trace_on(function, *(np.asarray(a) for a in arrays))
    return [node.op.name for node in graph.order if not node.op.is_leaf]


def check_gradient(function, *arrays, step: float = 1e-6, tolerance: float = 1e-6) -> None:
    """The gradient of a function of float64 arrays, of several ops perhaps, is that of central differences."""
    arrays = [np.asarray(a, np.float64) for a in arrays]
    with Trace() as trace:
        inputs = [trace.input(a.shape, "float64") for a in arrays]
        result = function(*inputs)
        rng = np.random.default_rng(1)
        weights = rng.standard_normal(result.shape)
        found = gradients([result], inputs, [Constant(weights)()])
    computed = interpret(trace.graph(found), arrays)[0]

    def projection(values) -> float:
        return float((interpret(trace.graph([result]), values)[0][0] * weights).sum())

    for position, gradient in enumerate(computed):
        _compare_differences(projection, arrays, position, gradient, step, tolerance, rng)


def check_reference(case: Case, expected=None, rtol=1e-6, atol=1e-6) -> None:
    """The reference's outputs have the types that `infer` promises, and the `expected` values if given."""
    outputs = apply(case.op, case.arrays())
    assert [(a.shape, a.dtype.name) for a in outputs] == [(t.shape, t.dtype) for t in case.outputs]
    for got, wanted in zip(outputs, expected or outputs, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def check_reference_gradient(case: Case, outputs=None, step: float = 1e-6, tolerance: float = 1e-6) -> None:
    """The gradient is that of central differences, in float64, of a random projection of the outputs.

    `outputs`: the outputs that take part; by default all floating ones.
    """
    case = case.retyped("float64")
    arrays = case.arrays()
    rng = np.random.default_rng(1)
    taken = [i for i, t in enumerate(case.outputs) if is_floating(t.dtype)] if outputs is None else list(outputs)
    weights = [rng.standard_normal(case.outputs[i].shape) for i in taken]

    def projection(values) -> float:
        results = apply(case.op, values)
        return float(sum((w * results[i]).sum() for w, i in zip(weights, taken, strict=True)))

    computed = _gradient_arrays(case, arrays, taken, weights)
    for position, (varied, gradient) in enumerate(zip(case.varied(), computed, strict=True)):
        if varied:
            _compare_differences(projection, arrays, position, gradient, step, tolerance, rng)


def _gradient_arrays(case: Case, arrays, taken, weights) -> list[np.ndarray]:
    """The op's own gradient of the projection for each input, evaluated by the references."""
    trace, inputs, results = trace_op(case)
    with trace:
        output_gradients = [Constant(w)() for w in weights]
        found = gradients([results[i] for i in taken], inputs, output_gradients)
    present = [value for value in found if value is not None]
    evaluated = iter(interpret(trace.graph(present), arrays)[0])
    return [
        np.zeros(array.shape) if value is None else next(evaluated) for array, value in zip(arrays, found, strict=True)
    ]


def _compare_differences(projection, arrays, position, gradient, step, tolerance, rng) -> None:
    array = arrays[position]
    size = array.size
    flat = range(size) if size <= PROBED_ELEMENTS else rng.choice(size, PROBED_ELEMENTS, replace=False)
    scale = max(1.0, np.abs(gradient).max(initial=0.0))
    for element in flat:
        index = np.unravel_index(element, array.shape)

        def moved(by, index=index):
            other = array.copy()
            other[index] += by
            return projection([*arrays[:position], other, *arrays[position + 1 :]])

        wanted = (moved(step) - moved(-step)) / (2 * step)
        error = abs(gradient[index] - wanted)
        assert error <= tolerance * max(scale, abs(wanted)), (
            f"gradient of input {position} at {tuple(map(int, index))}: got {gradient[index]}, wanted {wanted}"
        )


def check_kernel(case: Case, dtype: str = "float32", threads=(1, 2)) -> None:
    """Every algorithm that supports the case gives what the reference gives, and twice the same bits."""
    from magmadnn_py import _core
    from magmadnn_py.runtime.kernels import algorithms

    case = case.retyped(dtype)
    arrays = case.arrays()
    wanted = apply(case.op, arrays)
    _, _, outputs = trace_op(case)
    before = _core.get_threads()
    try:
        for count in threads:
            _core.set_threads(count)
            for algorithm in algorithms(outputs[0].node, count) or [None]:
                got, again = run_algorithm(case, arrays, algorithm)
                for a, b, reference in zip(got, again, wanted, strict=True):
                    assert a.tobytes() == b.tobytes(), f"{algorithm}: two runs with {count} threads differ"
                    assert_close(a, reference, case.tolerance)
    finally:
        _core.set_threads(before)


def run_algorithm(case: Case, arrays, algorithm: str | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The outputs of two runs of the case's op with an algorithm (None: the preferred one of every op)."""
    from magmadnn_py.runtime.kernels import best_algorithm
    from magmadnn_py.runtime.program import Program

    def choose(node, threads):
        return algorithm if algorithm and node.op == case.op else best_algorithm(node, threads)

    trace, _, outputs = trace_op(case)
    program = Program(trace.graph(outputs), choose=choose)
    return [np.array(a) for a in program.run(*arrays)], [np.array(a) for a in program.run(*arrays)]


def assert_close(got: np.ndarray, wanted: np.ndarray, tolerance: float | None = None) -> None:
    """Equal types and shapes; integers equal; floats equal up to `tolerance` times the largest element."""
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if not is_floating(wanted.dtype.name):
        np.testing.assert_array_equal(got, wanted)
        return
    relative = tolerance or 1e-5
    if wanted.dtype == np.float64:
        relative = min(relative, 1e-11)
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(got, wanted, rtol=relative, atol=relative * finite.max(initial=1e-30))


def check_cost_and_split(case: Case) -> None:
    """The cost is a pair of counts; every split rule fits the shapes and is right (by the references)."""
    outputs = case.outputs
    cost = case.op.cost(case.inputs, outputs)
    assert isinstance(cost.flops, int) and isinstance(cost.bytes, int), cost
    assert cost.flops >= 0 and cost.bytes >= 0, cost
    for split in case.op.split(case.inputs, outputs):
        assert split.needs in ("nothing", "halo", "reduction", "gather"), split
        _check_axes(split.inputs, case.inputs, split)
        _check_axes(split.outputs, outputs, split)
        if split.needs in ("nothing", "reduction"):
            _check_parts(case, split)


def _check_axes(axes, types: tuple[TensorType, ...], split: AxisSplit) -> None:
    assert len(axes) == len(types), split
    for axis, type_ in zip(axes, types, strict=True):
        assert axis is None or 0 <= axis < type_.rank, split


def _check_parts(case: Case, split: AxisSplit) -> None:
    """Runs the op on the parts and puts the results together."""
    pairs = list(zip(split.inputs, case.inputs, strict=True)) + list(zip(split.outputs, case.outputs, strict=True))
    common = math.gcd(*(t.shape[axis] for axis, t in pairs if axis is not None))
    parts = next((n for n in range(2, common + 1) if common % n == 0), None)
    if parts is None:
        return  # an empty axis, or one that cannot be cut evenly
    arrays = case.arrays()
    whole = apply(case.op, arrays)
    cut = [
        [array] * parts if axis is None else np.split(array, parts, axis)
        for array, axis in zip(arrays, split.inputs, strict=True)
    ]
    results = [apply(_part_op(case, split, parts), pieces) for pieces in zip(*cut, strict=True)]
    for position, (axis, wanted) in enumerate(zip(split.outputs, whole, strict=True)):
        pieces = [result[position] for result in results]
        replicated = axis is None and split.needs == "nothing"
        assert not replicated or all(np.array_equal(piece, pieces[0], equal_nan=True) for piece in pieces), split
        if axis is not None:
            got = np.concatenate(pieces, axis)
        elif split.needs == "reduction":
            got = np.sum(pieces, axis=0, dtype=wanted.dtype)
        else:
            got = pieces[0]  # every rank has the same
        assert got.shape == wanted.shape, split
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=str(split))


def _part_op(case: Case, split: AxisSplit, parts: int):
    """The op that a rank runs: where extents are attributes (`reshape`), they are those of the part."""
    resized = getattr(case.op, "resized", None)
    if resized is None:
        return case.op
    return resized(
        tuple(
            t
            if axis is None
            else TensorType(tuple(e // parts if i == axis else e for i, e in enumerate(t.shape)), t.dtype)
            for t, axis in zip(case.outputs, split.outputs, strict=True)
        )
    )
