"""Softmax, and the cross-entropy losses: from logits by one stable op, from probabilities by Keras's rules."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.node import AxisSplit, Cost, Op, Value, total_bytes
from ..graph.types import TensorType, is_floating, normalize_axis
from .elementwise import Elementwise, clip, exp, log, ones_like, softplus, to_floating
from .function import convert, function
from .movement import cast, expand_dims, moveaxis, squeeze
from .reduce import sum as reduce_sum

__all__ = [
    "LogSoftmax", "Softmax", "SoftmaxCrossEntropy", "SoftmaxCrossEntropyGradient", "binary_crossentropy",
    "categorical_crossentropy", "log_softmax", "softmax", "sparse_categorical_crossentropy",
]  # fmt: skip

#: Probabilities are kept this far from 0 and 1.
EPSILON = 1e-7

_EXP_FLOPS = 10


def _log_sum_exp(xp, x, axis: int):
    """x less its maximum over `axis`, and the logarithm of the sum of that one's exponentials (axis kept)."""
    shifted = x - x.max(axis, keepdims=True)
    return shifted, xp.log(xp.exp(shifted).sum(axis, keepdims=True))


@dataclass(frozen=True)
class SoftmaxFamily(Op):
    """Softmax and its logarithm over one axis (not negative)."""

    axis: int

    def infer(self, x):
        if not is_floating(x.dtype):
            self.fail("input", x.dtype, "a floating-point element type")
        if not 0 <= self.axis < x.rank:
            self.fail("axis", self.axis, f"an axis of shape {x.shape}")
        if x.shape[self.axis] == 0:
            self.fail("input", f"shape {x.shape}", f"at least one element along axis {self.axis}")
        return (x,)

    def cost(self, inputs, outputs):
        return Cost((_EXP_FLOPS + 4) * inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        axes = (axis for axis in range(inputs[0].rank) if axis != self.axis)
        return tuple(AxisSplit(f"axis{axis}", (axis,), (axis,)) for axis in axes)


@dataclass(frozen=True)
class Softmax(SoftmaxFamily):
    """exp(x) / sum(exp(x)) over `axis`, without overflow."""

    name = "softmax"

    def gradient(self, node, gradients):
        (g,), (y,) = gradients, node.outputs
        return (y * (g - reduce_sum(g * y, self.axis, keepdims=True)),)

    def reference(self, xp, x):
        shifted, log_sum = _log_sum_exp(xp, x, self.axis)
        return xp.exp(shifted - log_sum)


@dataclass(frozen=True)
class LogSoftmax(SoftmaxFamily):
    """x - log(sum(exp(x))) over `axis`, without overflow."""

    name = "log_softmax"

    def gradient(self, node, gradients):
        (g,), (y,) = gradients, node.outputs
        return (g - exp(y) * reduce_sum(g, self.axis, keepdims=True),)

    def reference(self, xp, x):
        shifted, log_sum = _log_sum_exp(xp, x, self.axis)
        return shifted - log_sum


@dataclass(frozen=True)
class CrossEntropyFamily(Op):
    """Cross-entropy of softmax(logits) over the last axis, and its gradient.

    Labels are class numbers (`sparse`, int32 or int64, one rank less than the logits), or weights of the logits'
    shape and type, which need not sum to 1.
    """

    sparse: bool

    def check(self, logits: TensorType, labels: TensorType) -> None:
        if not is_floating(logits.dtype):
            self.fail("logits", logits.dtype, "a floating-point element type")
        if logits.rank < 1 or logits.shape[-1] == 0:
            self.fail("logits", f"shape {logits.shape}", "[..., classes] with at least one class")
        if not self.sparse and labels != logits:
            self.fail("labels", labels, f"the type of the logits, {logits}")
        if self.sparse and (labels.shape != logits.shape[:-1] or labels.dtype not in ("int32", "int64")):
            self.fail("labels", labels, f"int32 or int64 of shape {logits.shape[:-1]}")

    def label_indices(self, xp, labels, classes: int):
        """Sparse labels as indices for `take_along_axis`. Raises ValueError for one that is no class."""
        wrong = labels[(labels < 0) | (labels >= classes)]
        if wrong.size:
            self.fail("labels", int(wrong[0]), f"class numbers from 0 to {classes - 1}")
        return xp.expand_dims(labels, -1)

    def leading_axes(self, logits: TensorType) -> range:
        return range(logits.rank - 1)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(CrossEntropyFamily):
    """logits[..., C], labels -> loss[...] = logsumexp(logits) * sum(labels) - sum(labels * logits).

    Raises (when run): ValueError if a sparse label is not in 0..C-1.
    """

    name = "softmax_cross_entropy"

    def infer(self, logits, labels):
        self.check(logits, labels)
        return (TensorType(logits.shape[:-1], logits.dtype),)

    def gradient(self, node, gradients):
        (g,), (logits, labels) = gradients, node.inputs
        dlogits = SoftmaxCrossEntropyGradient(self.sparse)(logits, labels, g)
        return dlogits, None if self.sparse else -log_softmax(logits) * expand_dims(g, -1)

    def cost(self, inputs, outputs):
        return Cost((_EXP_FLOPS + 5) * inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return tuple(AxisSplit(f"axis{a}", (a, a), (a,)) for a in self.leading_axes(inputs[0]))

    def reference(self, xp, logits, labels):
        shifted, log_sum = _log_sum_exp(xp, logits, -1)
        if self.sparse:
            indices = self.label_indices(xp, labels, logits.shape[-1])
            return (log_sum - xp.take_along_axis(shifted, indices, -1))[..., 0]
        return log_sum[..., 0] * labels.sum(-1) - (labels * shifted).sum(-1)


@dataclass(frozen=True)
class SoftmaxCrossEntropyGradient(CrossEntropyFamily):
    """logits, labels, dloss[...] -> dlogits = (softmax(logits) * sum(labels) - labels) * dloss."""

    name = "softmax_cross_entropy_gradient"

    def infer(self, logits, labels, dloss):
        self.check(logits, labels)
        if dloss != TensorType(logits.shape[:-1], logits.dtype):
            self.fail("dloss", dloss, TensorType(logits.shape[:-1], logits.dtype))
        return (logits,)

    def gradient(self, node, gradients):
        (h,), (logits, labels, dloss) = gradients, node.inputs
        p = softmax(logits)
        mean = reduce_sum(h * p, -1)
        weight = dloss if self.sparse else dloss * reduce_sum(labels, -1)
        dlogits = p * (h - expand_dims(mean, -1)) * expand_dims(weight, -1)
        # dlogits is linear in dloss: this is its slope.
        slope = SoftmaxCrossEntropyGradient(self.sparse)(logits, labels, ones_like(dloss))
        dlabels = None if self.sparse else (expand_dims(mean, -1) - h) * expand_dims(dloss, -1)
        return dlogits, dlabels, reduce_sum(h * slope, -1)

    def cost(self, inputs, outputs):
        return Cost((_EXP_FLOPS + 7) * inputs[0].size, total_bytes(inputs, outputs))

    def split(self, inputs, outputs):
        return tuple(AxisSplit(f"axis{a}", (a, a, a), (a,)) for a in self.leading_axes(inputs[0]))

    def reference(self, xp, logits, labels, dloss):
        shifted, log_sum = _log_sum_exp(xp, logits, -1)
        p = xp.exp(shifted - log_sum)
        if self.sparse:
            indices = self.label_indices(xp, labels, logits.shape[-1])
            difference = p - (xp.arange(logits.shape[-1], dtype=labels.dtype) == indices)
        else:
            difference = p * labels.sum(-1, keepdims=True) - labels
        return (difference * dloss[..., None]).astype(logits.dtype)


def _over_axis(op: type[SoftmaxFamily], x, axis: int) -> Value:
    """The op along the last axis, with `axis` moved there."""
    x = to_floating(convert(x))
    axis = normalize_axis(axis, x.ndim, op.name)
    last = x.ndim - 1
    if axis == last:
        return op(last)(x)
    return moveaxis(op(last)(moveaxis(x, axis, last)), last, axis)


@function
def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along `axis`, without overflow. The shape of x; integers as float32."""
    return _over_axis(Softmax, x, axis)


@function
def log_softmax(x, axis=-1):
    """The logarithm of softmax along `axis`, exact also where softmax is 0 or 1."""
    return _over_axis(LogSoftmax, x, axis)


def _clipped_probabilities(output: Value) -> Value:
    """Rows that sum to 1, kept off 0 and 1, as Keras does."""
    return clip(output / reduce_sum(output, -1, keepdims=True), EPSILON, 1.0 - EPSILON)


def _logits_of(output: Value) -> Value | None:
    """The logits that `output` is the softmax (over the last axis) of, if the graph says so."""
    node = output.node
    return node.inputs[0] if node.op == Softmax(output.ndim - 1) else None


def _class_axis_last(output, axis: int, owner: str) -> tuple[Value, int]:
    """The predictions with the axis of the classes moved last, and which one it was."""
    output = to_floating(convert(output))
    axis = normalize_axis(axis, output.ndim, owner)
    return moveaxis(output, axis, -1) if axis != output.ndim - 1 else output, axis


@function
def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """-sum(target * log(probability)) over `axis`.

    Args:
        target: weights of the classes, in the shape of `output`.
        output: logits (`from_logits`), or probabilities: these are divided by their sum and kept in
            [1e-7, 1 - 1e-7]. Where `output` is, in the graph, directly a softmax over the last axis, its logits are
            taken instead: this is faster, and the gradient does not vanish where the softmax saturates.
        axis: that of the classes.

    Returns:
        The shape of `output` without `axis`.

    Raises:
        ValueError: the shapes differ.
    """
    output, axis = _class_axis_last(output, axis, "categorical_crossentropy")
    target = cast(convert(target, output.dtype), output.dtype)
    target = moveaxis(target, axis, -1) if axis != target.ndim - 1 else target
    if target.shape != output.shape:
        raise ValueError(f"categorical_crossentropy: target: got shape {target.shape}, wanted {output.shape}")
    logits = output if from_logits else _logits_of(output)
    if logits is not None:
        return SoftmaxCrossEntropy(sparse=False)(logits, target)
    return -reduce_sum(target * log(_clipped_probabilities(output)), -1)


@function
def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """-log(probability of the target class).

    Args:
        target: class numbers, integers or whole floats, in the shape of `output` without `axis` (or with 1 there).
        output, axis: as in `categorical_crossentropy`.

    Returns:
        The shape of `output` without `axis`.

    Raises:
        ValueError: the shapes do not fit; when run: a target is not from 0 to classes - 1.
    """
    output, axis = _class_axis_last(output, axis, "sparse_categorical_crossentropy")
    target = convert(target)
    target = target if target.dtype in ("int32", "int64") else cast(target, "int32")
    if target.ndim == output.ndim and target.shape[axis] == 1:
        target = squeeze(target, axis)
    if target.shape != output.shape[:-1]:
        raise ValueError(
            f"sparse_categorical_crossentropy: target: got shape {target.shape}, wanted {output.shape[:-1]}"
        )
    logits = output if from_logits else _logits_of(output)
    if logits is not None:
        return SoftmaxCrossEntropy(sparse=True)(logits, target)
    # The op subtracts the logarithm of the row's sum, which clipping moved off 1: put it back.
    p = _clipped_probabilities(output)
    return SoftmaxCrossEntropy(sparse=True)(log(p), target) - log(reduce_sum(p, -1))


@function
def binary_crossentropy(target, output, from_logits=False):
    """-target * log(p) - (1 - target) * log(1 - p), elementwise.

    Args:
        target: in the shape of `output`.
        output: logits (`from_logits`), or probabilities p, kept in [1e-7, 1 - 1e-7]. Where `output` is, in the
            graph, directly a sigmoid, its logits are taken instead.

    Raises:
        ValueError: the shapes differ.
    """
    output = to_floating(convert(output))
    target = cast(convert(target, output.dtype), output.dtype)
    if target.shape != output.shape:
        raise ValueError(f"binary_crossentropy: target: got shape {target.shape}, wanted {output.shape}")
    op = output.node.op
    if not from_logits and isinstance(op, Elementwise) and op.functions == ("sigmoid",):
        from_logits, output = True, output.node.inputs[0]
    if from_logits:
        return target * softplus(-output) + (1.0 - target) * softplus(output)
    p = clip(output, EPSILON, 1.0 - EPSILON)
    return -(target * log(p) + (1.0 - target) * log(1.0 - p))
