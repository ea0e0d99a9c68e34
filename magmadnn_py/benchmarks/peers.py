"""PyTorch's counterpart of each op, on the same numbers: channels-last where PyTorch has that layout.

Where low and high padding differ, which PyTorch's ops do not know, the padding is done beforehand and not timed.
Gradients are timed through autograd, on a graph recorded once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..graph.node import Op
from .timing import Contender

NAME = "torch"

Call = Callable[[], object]


def installed() -> bool:
    return importlib.util.find_spec(NAME) is not None


def op_contender(op: Op, arrays: Sequence[np.ndarray], threads: int) -> Contender | None:
    """PyTorch's op on the arrays; None where there is none, or no PyTorch."""
    if not installed():
        return None
    import torch

    torch.set_num_threads(threads)
    call = op_call(op, arrays)
    if call is None:
        return None

    def run(repeats: int) -> None:
        with torch.no_grad():
            for _ in range(repeats):
                call()

    return run


def op_call(op: Op, arrays: Sequence[np.ndarray]) -> Call | None:
    """One call of PyTorch's op on the arrays, which share their memory with it; None where there is none."""
    import torch

    make = _PEERS.get(op.name)
    return make and make(op, *(torch.from_numpy(array) for array in arrays))


def gradient_call(y, wanted, dy) -> Call:
    import torch

    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)


def channels_first(x):
    """The same memory, N C ... by index: what PyTorch calls channels-last."""
    return x.movedim(-1, 1)


def _channels_last(x):
    """x[N, C, ...] in PyTorch's channels-last memory, where it has one for that rank."""
    import torch

    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats.get(x.ndim, torch.contiguous_format))


def _spatial(name: str, rank: int):
    """`name` followed by the rank, of torch.nn.functional."""
    import torch

    return getattr(torch.nn.functional, f"{name}{rank}d")


def _padding(op, x, greatest: Sequence[int] | None = None, value: float = 0.0):
    """What PyTorch's op is told of padding, and x, padded here where that cannot be told."""
    import torch

    lows = [low for low, _ in op.padding]
    fits = greatest is None or all(low <= most for low, most in zip(lows, greatest, strict=True))
    if fits and all(low == high for low, high in op.padding):
        return lows, x
    flat = [amount for pair in reversed(op.padding) for amount in pair]
    return [0] * len(lows), _channels_last(torch.nn.functional.pad(x, flat, value=value))


def _convolve(op, x):
    """PyTorch's convolution as a function of x and filters, and x for it."""
    padding, x = _padding(op, x)
    function = _spatial("conv", len(op.strides))
    return partial(function, stride=op.strides, padding=padding, dilation=op.dilation, groups=op.groups), x


def _filters(w):
    """w[*K, C, F] as PyTorch has it: F C *K."""
    return _channels_last(w.movedim((-1, -2), (0, 1)))


def _convolution(op, x, w, *added) -> Call:
    convolve, x = _convolve(op, channels_first(x))
    w, bias = _filters(w), added[0] if op.bias else None
    residual = channels_first(added[-1]) if op.residual else None

    def call():
        y = convolve(x, w, bias)
        if op.residual:
            y += residual
        return y.relu_() if op.activation == "relu" else y

    return call


def _convolution_input_gradient(op, dy, w) -> Call:
    convolve, x = _convolve(op, channels_first(dy.new_zeros(dy.shape[0], *op.spatial, w.shape[-2] * op.groups)))
    x.requires_grad_()
    return gradient_call(convolve(x, _filters(w)), x, channels_first(dy))


def _convolution_weight_gradient(op, x, dy) -> Call:
    convolve, padded = _convolve(op, channels_first(x))
    w = _filters(x.new_zeros(*op.kernel, x.shape[-1] // op.groups, dy.shape[-1])).requires_grad_()
    return gradient_call(convolve(padded, w), w, channels_first(dy))


def _matmul(op, a, b, *bias) -> Call:
    import torch

    a = a.mT if op.transpose_a else a
    b = b.mT if op.transpose_b else b
    flat = bias and a.ndim == b.ndim == 2

    def call():
        y = torch.addmm(bias[0], a, b) if flat else torch.matmul(a, b)
        if bias and not flat:
            y += bias[0]
        return y.relu_() if op.activation == "relu" else y

    return call


def _pool(op, kind: str, x):
    """PyTorch's pooling as a function of x, and x for it."""
    greatest = [extent // 2 for extent in op.window]
    padding, x = _padding(op, x, greatest, float("-inf") if kind == "max_pool" else 0.0)
    options = {} if kind == "max_pool" else {"count_include_pad": op.count_include_padding}
    return partial(
        _spatial(kind, len(op.window)), kernel_size=op.window, stride=op.strides, padding=padding, **options
    ), x


def _max_pool(op, x) -> Call:
    pool, x = _pool(op, "max_pool", channels_first(x))
    return lambda: pool(x, return_indices=True)


def _average_pool(op, x) -> Call:
    pool, x = _pool(op, "avg_pool", channels_first(x))
    return lambda: pool(x)


def _pool_gradient(kind: str, op, dy, positions=None) -> Call:
    import torch

    x = torch.randn(dy.shape[0], *op.spatial, dy.shape[-1], dtype=dy.dtype)
    pool, x = _pool(op, kind, channels_first(x))
    x.requires_grad_()
    return gradient_call(pool(x), x, channels_first(dy))


def _normalization(op, x, scale):
    """The function of x, scale and offset, and how it wants x and scale to be viewed; None where PyTorch has none."""
    import torch

    functional, rank = torch.nn.functional, x.ndim
    free = tuple(axis for axis in range(rank) if axis not in op.axes)
    if free == (rank - 1,) and scale.shape[-1] == x.shape[-1]:

        def batch(x, scale, offset):
            return functional.batch_norm(x, None, None, scale, offset, training=True, eps=op.epsilon)

        return batch, channels_first if rank > 2 else lambda x: x, lambda s: s.flatten()
    if op.axes == tuple(range(op.axes[0], rank)) and scale.shape[op.axes[0] :] == x.shape[op.axes[0] :]:
        extents = x.shape[op.axes[0] :]

        def layer(x, scale, offset):
            return functional.layer_norm(x, extents, scale, offset, op.epsilon)

        return layer, lambda x: x, lambda s: s.reshape(extents)
    if rank == 4 and op.axes == (1, 3) and scale.shape[2:] == x.shape[2:]:

        def group(x, scale, offset):
            return functional.group_norm(x, scale.numel() // extent, scale, offset, op.epsilon)

        extent = x.shape[3]
        # As an image of one column, because group_norm knows the channels-last layout of images only.
        return group, lambda x: channels_first(x.flatten(2).unsqueeze(2)), lambda s: s.flatten()
    return None


def _normalize(op, x, scale, offset) -> Call | None:
    found = _normalization(op, x, scale)
    if found is None:
        return None
    function, view_x, view_scale = found
    x, scale, offset = view_x(x), view_scale(scale), view_scale(offset)
    return lambda: function(x, scale, offset)


def _normalize_gradient(op, dy, x, scale, mean, variance) -> Call | None:
    found = _normalization(op, x, scale)
    if found is None:
        return None
    function, view_x, view_scale = found
    wanted = [view_x(x), view_scale(scale), view_scale(scale).clone()]
    for tensor in wanted:
        tensor.requires_grad_()
    return gradient_call(function(*wanted), wanted, view_x(dy))


def _softmax(op, x) -> Call:
    return lambda: x.softmax(op.axis)


def _log_softmax(op, x) -> Call:
    return lambda: x.log_softmax(op.axis)


def _cross_entropy(op, logits, labels):
    """PyTorch's loss per row, and the logits for it."""
    import torch

    classes = logits.shape[-1]
    logits = logits.reshape(-1, classes)
    labels = labels.reshape(-1).long() if op.sparse else labels.reshape(-1, classes)
    return partial(torch.nn.functional.cross_entropy, target=labels, reduction="none"), logits


def _softmax_cross_entropy(op, logits, labels) -> Call:
    loss, logits = _cross_entropy(op, logits, labels)
    return lambda: loss(logits)


def _softmax_cross_entropy_gradient(op, logits, labels, dloss) -> Call:
    loss, logits = _cross_entropy(op, logits, labels)
    logits.requires_grad_()
    return gradient_call(loss(logits), logits, dloss.reshape(-1))


def _reduce(op, x) -> Call | None:
    import torch

    functions = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
    function = functions.get(op.function)
    return function and (lambda: function(x, dim=op.axes, keepdim=op.keepdims))


def _transpose(op, x) -> Call:
    return lambda: x.permute(op.permutation).contiguous()


def _copy(op, x) -> Call:
    return lambda: x.clone()


def _dropout(op, x, state) -> Call:
    import torch

    return lambda: torch.nn.functional.dropout(x, op.rate, training=True)


_PEERS: dict[str, Callable[..., Call | None]] = {
    "average_pool": _average_pool,
    "average_pool_gradient": partial(_pool_gradient, "avg_pool"),
    "convolution": _convolution,
    "convolution_input_gradient": _convolution_input_gradient,
    "convolution_weight_gradient": _convolution_weight_gradient,
    "copy": _copy,
    "dropout": _dropout,
    "log_softmax": _log_softmax,
    "matmul": _matmul,
    "max_pool": _max_pool,
    "max_pool_gradient": partial(_pool_gradient, "max_pool"),
    "normalize": _normalize,
    "normalize_gradient": _normalize_gradient,
    "reduce": _reduce,
    "softmax": _softmax,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "softmax_cross_entropy_gradient": _softmax_cross_entropy_gradient,
    "transpose": _transpose,
}
