"""Random graphs whose arithmetic is exact, so that every way to run them must give the same numbers.

All elements are small whole numbers (results are clipped), in float32, float64 or int32; the order of additions, fused
multiply-adds and the like then change nothing.
"""

from __future__ import annotations

import numpy as np

from magmadnn_py import ops
from magmadnn_py.graph import Graph, Trace, Value, Variable
from magmadnn_py.graph.interpret import interpret

DTYPES = ("float32", "float64", "int32")
LARGEST = 8


def small_numbers(rng, shape, dtype="float32") -> np.ndarray:
    return rng.integers(-LARGEST, LARGEST + 1, shape).astype(dtype)


class RandomGraph:
    """A graph, arrays for its inputs, and the first contents of its variables."""

    def __init__(self, seed: int, nodes: int = 20):
        self.rng = np.random.default_rng(seed)
        self.extents = [1, 2, 3, 4, 3, 0] if seed % 10 == 9 else [1, 2, 3, 4]
        self.variables = self._make_variables()
        with Trace() as trace:
            self.pool: list[Value] = [
                trace.input(self._shape(), self.rng.choice(DTYPES)) for _ in range(self.rng.integers(1, 4))
            ]
            self.pool += [trace.read(variable) for variable in self.variables]
            while len(self.pool) < nodes:
                made = self._step()
                if made is not None and made.type.size <= 256:
                    self.pool.append(made)
            self._assign()
            outputs = [self._pick() for _ in range(self.rng.integers(1, 5))]
            self.graph: Graph = trace.graph([*outputs, self.pool[-1], self.pool[-1]])
        self.arrays = [small_numbers(self.rng, value.shape, value.dtype) for value in self.graph.inputs]
        self.first = [variable.numpy() for variable in self.variables]

    def _make_variables(self) -> list[Variable]:
        shared = self._shape()
        shapes = [shared, shared, self._shape()]
        free = [Variable(small_numbers(self.rng, shape), name=f"v{i}") for i, shape in enumerate(shapes)]
        flat = Variable(small_numbers(self.rng, 12), name="flat")
        parts = [Variable(small_numbers(self.rng, shape), name=f"part{shape}") for shape in ((2, 3), (3,), (3,))]
        for part, offset in zip(parts, (0, 6, 9), strict=True):
            part.move_into(flat, offset)
        return [*free, flat, *parts]

    def expected(self, steps: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Outputs of the last of `steps` runs and the variables after it, by the references."""
        self.reset()
        for _ in range(steps):
            outputs, updates = interpret(self.graph, self.arrays)
            updates = {variable: np.array(array) for variable, array in updates.items()}
            outputs = [np.array(array) for array in outputs]
            for variable, array in updates.items():
                variable.assign(array)
        return outputs, [variable.numpy() for variable in self.variables]

    def reset(self) -> None:
        for variable, array in zip(self.variables, self.first, strict=True):
            variable.assign(array)

    # Choices

    def _shape(self) -> tuple[int, ...]:
        return tuple(int(e) for e in self.rng.choice(self.extents, self.rng.integers(0, 4)))

    def _pick(self, condition=lambda value: True) -> Value | None:
        # Old values as often as new ones, so that some live long.
        found = [value for value in self.pool if condition(value)]
        return found[self.rng.integers(len(found))] if found else None

    def _coin(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def _step(self) -> Value | None:
        steps = [
            self._unary, self._binary, self._binary, self._binary, self._choose, self._cast, self._reshape,
            self._slice, self._slice, self._concatenate, self._concatenate, self._transpose, self._reduce,
            self._matmul, self._row_of_itself, self._constant,
        ]  # fmt: skip
        return steps[self.rng.integers(len(steps))]()

    # Nodes

    def _unary(self):
        names = ("negative", "relu", "absolute", "square", "copy", "stop_gradient", "sign")
        return clip(getattr(ops, self.rng.choice(names))(self._pick()))

    def _binary(self):
        a = self._pick()
        b = self._pick(lambda value: broadcasts(a.shape, value.shape))
        names = ("add", "subtract", "multiply", "maximum", "minimum")
        result = getattr(ops, self.rng.choice(names))(a, b)
        return clip(result) if self._coin(0.7) else ops.minimum(ops.maximum(result, -LARGEST), LARGEST)

    def _choose(self):
        a = self._pick()
        b = self._pick(lambda value: broadcasts(a.shape, value.shape))
        condition = ops.greater(a, b) if self._coin() else ops.equal(b, 1)
        return ops.where(condition, a, b)

    def _cast(self):
        return ops.cast(self._pick(), self.rng.choice(DTYPES))

    def _reshape(self):
        value = self._pick()
        shapes = [(value.type.size,), value.shape[::-1], (1, *value.shape), (*value.shape, 1)]
        return ops.reshape(value, shapes[self.rng.integers(4)])

    def _slice(self):
        value = self._pick(lambda value: value.ndim > 0)
        key = []
        for axis, extent in enumerate(value.shape):
            start = int(self.rng.integers(0, max(extent, 1)))
            stop = int(self.rng.integers(start, extent + 1))
            whole = self._coin(0.3 if axis == 0 else 0.7)
            step = -1 if self._coin(0.15) else 2 if self._coin(0.15) else 1
            key.append(slice(None, None, step) if whole else slice(start, stop))
        return value[tuple(key)]

    def _concatenate(self):
        first = self._pick(lambda value: value.ndim > 0)
        axis = 0 if self._coin(0.7) else int(self.rng.integers(first.ndim))

        def fits(value):
            rest = [e for i, e in enumerate(value.shape) if i != axis]
            return value.ndim == first.ndim and rest == [e for i, e in enumerate(first.shape) if i != axis]

        others = [self._pick(fits) for _ in range(self.rng.integers(1, 4))]
        return ops.concatenate([first, *others] if self._coin() else [*others, first], axis)

    def _transpose(self):
        value = self._pick()
        return ops.transpose(value, self.rng.permutation(value.ndim).tolist())

    def _reduce(self):
        value = self._pick(lambda value: value.type.size > 0)
        axes = [axis for axis in range(value.ndim) if self._coin()]
        return clip(getattr(ops, self.rng.choice(["sum", "max", "min"]))(value, axes, keepdims=self._coin()))

    def _matmul(self):
        a = self._pick(lambda value: value.ndim == 2 and value.dtype != "int32")
        if a is None:
            return None
        b = self._pick(lambda value: value.ndim == 2 and value.dtype == a.dtype and value.shape[0] == a.shape[1])
        if b is None:
            b = ops.convert(small_numbers(self.rng, (a.shape[1], 3), a.dtype))
        y = ops.matmul(a, b)
        if self._coin(0.7):
            y = y + ops.convert(small_numbers(self.rng, (y.shape[1],), a.dtype))
        return clip(ops.relu(y) if self._coin() else y)

    def _row_of_itself(self):
        """A value read once whole and once in part by one node."""
        value = self._binary()
        return None if value.ndim == 0 or value.shape[0] == 0 else clip(value - value[:1])

    def _constant(self):
        return ops.convert(small_numbers(self.rng, self._shape(), self.rng.choice(DTYPES)))

    def _assign(self):
        """Some variables get values of their type; parts of the flat one are assigned after it."""
        for variable in self.variables:
            if self._coin(0.7):
                same = self._pick(lambda value, v=variable: value.type == v.type)
                many = self._pick(lambda value, v=variable: value.type.size == v.type.size)
                value = same if self._coin() else many
                variable.assign(ops.reshape(value, variable.shape))


def clip(value: Value) -> Value:
    return ops.clip(value, -LARGEST, LARGEST)


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return int(np.prod(shape)) <= 256
