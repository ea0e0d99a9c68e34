"""Convolutions: references against a direct loop, gradients of first and second order, Keras's values, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases.case import types
from magmadnn_py.benchmarks.cases.conv import CASES, EPILOGUE_CASES, PRODUCT_CASES, WINOGRAD_CASES, family
from magmadnn_py.graph import gradients
from magmadnn_py.ops.conv import Convolution, ConvolutionInputGradient, ConvolutionWeightGradient, transposed_extent
from magmadnn_py.ops.window import same_padding
from magmadnn_py.runtime.kernels import instruction_set
from ops.checks import (
    apply,
    check_cost_and_split,
    check_gradient,
    check_kernel,
    check_reference,
    check_reference_gradient,
    parametrize,
    run_algorithm,
)
from ops.evaluate import differentiate, evaluate, image

FORWARD_CASES = [case for case in PRODUCT_CASES + CASES if isinstance(case.op, Convolution)]
GRADIENT_CASES = [case for case in PRODUCT_CASES + CASES if not isinstance(case.op, Convolution)]


def direct_convolution(op, x, w) -> np.ndarray:
    """One output at a time, from the definition."""
    (y_type,) = op.infer(*types(x.shape, w.shape, dtype=x.dtype.name))
    y = np.zeros(y_type.shape, x.dtype)
    per_group, filters = w.shape[-2:]
    for n, *position, f in np.ndindex(*y.shape):
        first = f // (filters // op.groups) * per_group
        for cell in np.ndindex(*w.shape[:-2]):
            place = tuple(
                p * s - low + k * d
                for p, s, (low, _), k, d in zip(position, op.strides, op.padding, cell, op.dilation, strict=True)
            )
            if all(0 <= i < extent for i, extent in zip(place, x.shape[1:-1], strict=True)):
                y[(n, *position, f)] += x[(n, *place)][first : first + per_group] @ w[cell][:, f]
    return y


@parametrize(FORWARD_CASES)
def test_forward_is_the_definition(case):
    case = case.retyped("float64")
    check_reference(case, [direct_convolution(case.op, *case.arrays())], rtol=1e-12, atol=1e-12)


@parametrize(GRADIENT_CASES)
def test_gradient_ops_are_adjoint_to_the_forward(case):
    """<dy, conv(x, w)> = <input gradient(dy, w), x> = <weight gradient(x, dy), w>: the ops are linear."""
    case = case.retyped("float64")
    check_reference(case)
    first, second = case.arrays()
    forward = Convolution(*case.op.family())
    (result,) = apply(case.op, (first, second))
    other = np.random.default_rng(2).standard_normal(result.shape)
    if isinstance(case.op, ConvolutionInputGradient):
        pair = first, apply(forward, (other, second))[0]
    else:
        pair = second, apply(forward, (first, other))[0]
    np.testing.assert_allclose(np.vdot(*pair), np.vdot(result, other), rtol=1e-10, atol=1e-10)


@parametrize(CASES)
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(PRODUCT_CASES + CASES + EPILOGUE_CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(EPILOGUE_CASES)
def test_epilogue(case):
    plain = Convolution(*case.op.family())
    x, w, *added = case.arrays()
    wanted = sum(added, apply(plain, (x, w))[0])
    check_reference(case, [np.maximum(wanted, 0) if case.op.activation == "relu" else wanted])


@parametrize(PRODUCT_CASES + CASES + EPILOGUE_CASES, dtypes=["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@parametrize(WINOGRAD_CASES)
def test_winograd_error(case):
    """Transforms enlarge rounding errors; still, no error against float64 is above 5e-6 of the largest element."""
    instruction_set()
    arrays = case.arrays()
    (wanted,) = apply(case.op, [array.astype("float64") for array in arrays])
    for algorithm in ("winograd2", "winograd4"):
        (got,), _ = run_algorithm(case, arrays, algorithm)
        assert np.abs(got - wanted).max() <= 5e-6 * np.abs(wanted).max(), algorithm


@parametrize(family("many-tiles", (1, 40000, 12), (9, 12, 10), 1, "same"))
def test_kernel_of_many_tiles(case):
    """More than the spectra of one group of tiles hold."""
    check_kernel(case)


@pytest.mark.parametrize("groups", [1, 2])
def test_second_derivative(groups):
    """The gradient of a function of a gradient."""
    rng = np.random.default_rng(0)
    op = Convolution((2, 1), ((1, 1), (0, 1)), (1, 2), groups)

    def squared_gradient(x, w):
        return ops.square(gradients(ops.square(op(x, w)), [x])[0])

    check_gradient(squared_gradient, rng.standard_normal((1, 5, 4, 4)), rng.standard_normal((3, 2, 4 // groups, 2)))


def test_cost_is_exact():
    op = Convolution((1, 1), ((1, 1), (1, 1)), (1, 1), 2)
    inputs = types((2, 5, 6, 4), (3, 3, 2, 8))
    cost = op.cost(inputs, op.infer(*inputs))
    assert cost.flops == 2 * (2 * 5 * 6 * 8) * (3 * 3 * 2)
    assert cost.bytes == 4 * (2 * 5 * 6 * 4 + 3 * 3 * 2 * 8 + 2 * 5 * 6 * 8)


@pytest.mark.parametrize("stride,window,dilation,size", [(1, 3, 1, 12), (2, 3, 1, 12), (1, 3, 2, 12), (2, 5, 2, 16)])
def test_spatial_halo_suffices(stride, window, dilation, size):
    """Two ranks, each with its half and the halo, compute the halves of the result."""
    padding = same_padding(size, window, stride, dilation)
    op = Convolution((stride,), (padding,), (dilation,), 1)
    x, w = (np.random.default_rng(0).standard_normal(s) for s in [(1, size, 2), (window, 2, 3)])
    (y,) = apply(op, (x, w))
    inputs, outputs = types(x.shape, w.shape), types(y.shape)
    forward = next(s for s in op.split(inputs, outputs) if s.name == "spatial0")
    _check_halves(
        x, y, forward, padding, lambda part: apply(Convolution((stride,), ((0, 0),), (dilation,), 1), (part, w))[0]
    )


def _check_halves(x, y, split, padding, run):
    before, after = split.halo
    half = x.shape[1] // 2
    padded = np.pad(x, ((0, 0), (before, after), (0, 0)))
    assert before == padding[0]
    for rank in range(2):
        part = padded[:, rank * half : rank * half + before + half + after]
        wanted = np.split(y, 2, 1)[rank]
        np.testing.assert_allclose(run(part)[:, : wanted.shape[1]], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride,window,dilation,size", [(1, 3, 1, 12), (2, 3, 1, 12), (1, 3, 2, 12), (2, 5, 2, 16)])
def test_halo_of_the_input_gradient_suffices(stride, window, dilation, size):
    """Windows beyond a part and its halo do not touch the part's input cells."""
    padding = same_padding(size, window, stride, dilation)
    op = ConvolutionInputGradient((stride,), (padding,), (dilation,), 1, (size,))
    w = np.random.default_rng(0).standard_normal((window, 2, 3))
    windows = size // stride
    dy = np.random.default_rng(1).standard_normal((1, windows, 3))
    (dx,) = apply(op, (dy, w))
    split = next(s for s in op.split(types(dy.shape, w.shape), types(dx.shape)) if s.name == "spatial0")
    before, after = split.halo
    for start in (0, windows // 2):
        kept = np.zeros_like(dy)
        part = slice(max(start - before, 0), start + windows // 2 + after)
        kept[:, part] = dy[:, part]
        cells = slice(start * stride, (start + windows // 2) * stride)
        np.testing.assert_allclose(apply(op, (kept, w))[0][:, cells], dx[:, cells], rtol=1e-12, atol=1e-12)


# What the op's rules refuse.


@pytest.mark.parametrize(
    "x,w,groups,message",
    [
        ((1, 5, 5, 3), (3, 3, 2, 4), 1, "convolution: kernel: .*3 channels"),
        ((1, 5, 5, 4), (3, 3, 2, 3), 2, "convolution: filters: got 3, wanted a multiple of the 2 groups"),
        ((1, 5, 5, 4), (3, 4, 4), 1, "convolution: inputs: .*rank"),
        ((5, 4), (4, 4), 1, "convolution: inputs: .*rank"),
        ((1, 2, 5, 4), (3, 3, 4, 4), 1, r"convolution: input: .*\(2, 5\).*wanted at least the window \(3, 3\)"),
    ],
)
def test_shape_errors(x, w, groups, message):
    rank = len(x) - 2
    op = Convolution((1,) * rank, ((0, 0),) * rank, (1,) * rank, groups)
    with pytest.raises(ValueError, match=message):
        op.infer(*types(x, w))


def test_type_errors():
    op = Convolution((1,), ((0, 0),), (1,), 1)
    x, w = types((1, 5, 2), (3, 2, 4))
    with pytest.raises(ValueError, match="convolution: inputs: got float32, float64, wanted one floating"):
        op.infer(x, *types((3, 2, 4), dtype="float64"))
    with pytest.raises(ValueError, match="convolution_input_gradient: inputs: got shape"):
        ConvolutionInputGradient(*op.family(), (6,)).infer(*types((1, 3, 4), (3, 2, 4)))
    with pytest.raises(ValueError, match="convolution_weight_gradient: gradient: got shape"):
        ConvolutionWeightGradient(*op.family(), (3,)).infer(x, *types((1, 4, 4)))
    with pytest.raises(ValueError, match="strides: got"):
        Convolution((1, 1), ((0, 0),), (1,), 1).infer(x, w)


@pytest.mark.parametrize(
    "arguments,message",
    [
        ({"padding": "full"}, "conv: padding: got 'full'"),
        ({"padding": ((0, 0),)}, "conv: padding: got"),
        ({"padding": ((0, -1), (0, 0))}, "conv: padding: got"),
        ({"padding": "causal"}, "conv: padding: got 'causal'"),
        ({"strides": 0}, "conv: strides: got 0"),
        ({"strides": (1, 1, 1)}, "conv: strides: got"),
        ({"dilation_rate": (1,)}, "conv: dilation_rate: got"),
        ({"data_format": "NCHW"}, "conv: data_format: got 'NCHW'"),
    ],
)
def test_argument_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(ops.conv, np.ones((1, 5, 5, 2)), np.ones((3, 3, 2, 2)), **arguments)


def test_kernel_shape_errors():
    x = np.ones((1, 5, 5, 3))
    with pytest.raises(ValueError, match="conv: kernel: got shape"):
        evaluate(ops.conv, x, np.ones((3, 3, 2, 2)))
    with pytest.raises(ValueError, match="conv: kernel: got shape .* wanted rank 4"):
        evaluate(ops.conv, x, np.ones((3, 3, 2)))
    with pytest.raises(ValueError, match="depthwise_conv: kernel: got shape"):
        evaluate(ops.depthwise_conv, x, np.ones((3, 3, 2, 2)))
    with pytest.raises(ValueError, match="conv_transpose: kernel: got shape"):
        evaluate(ops.conv_transpose, x, np.ones((3, 3, 2, 2)))


# Values that Keras gives.


def ones_kernel(*window):
    return np.ones((*window, 1, 1), "float32")


def test_behaviour_4_same_on_images_smaller_than_the_window():
    kernel = np.arange(9, dtype="float32").reshape(3, 3, 1, 1)
    arguments = {"strides": 2, "padding": "same"}
    assert evaluate(ops.conv, image(np.ones((2, 2))), kernel, **arguments).item() == 8
    assert evaluate(ops.conv, image(np.ones((1, 1))), kernel, **arguments).item() == 4


def test_behaviour_5_stride_above_window():
    x, w = image([1, 1.1, 1.2]), ones_kernel(1)
    np.testing.assert_array_equal(evaluate(ops.conv, x, w, strides=3, padding="same").ravel(), [1])
    dx, _ = differentiate(ops.conv, x, w, strides=3, padding="same")
    np.testing.assert_array_equal(dx.ravel(), [1, 0, 0])


@pytest.mark.parametrize("window,wanted", [(2, [3, 5, 7, 4]), (4, [6, 10, 9, 7])])
def test_behaviour_6_even_windows_pad_more_at_the_end(window, wanted):
    y = evaluate(ops.conv, image([1, 2, 3, 4]), ones_kernel(window), padding="same")
    np.testing.assert_array_equal(y.ravel(), wanted)


def test_same_with_stride_3():
    y = evaluate(ops.conv, image(np.arange(7)), ones_kernel(2), strides=3, padding="same")
    np.testing.assert_array_equal(y.ravel(), [1, 7, 6])


def test_same_corners_of_a_large_image():
    y = evaluate(ops.conv, image(np.ones((224, 224))), ones_kernel(7, 7), strides=2, padding="same")
    assert (y.shape, y[0, 0, 0, 0], y[0, -1, -1, 0]) == ((1, 112, 112, 1), 25, 16)


def test_behaviour_8_transposed_same():
    x = image(np.ones((2, 2)))
    y = evaluate(ops.conv_transpose, x, ones_kernel(2, 2), strides=1, padding="same")
    np.testing.assert_array_equal(y[0, ..., 0], [[1, 2], [2, 4]])
    y = evaluate(ops.conv_transpose, x, ones_kernel(3, 3), strides=2, padding="same")
    np.testing.assert_array_equal(y[0, ..., 0], [[1, 1, 2, 1], [1, 1, 2, 1], [2, 2, 4, 2], [1, 1, 2, 1]])


@pytest.mark.parametrize(
    "window,stride,padding,extra,wanted",
    [
        (3, 2, "valid", None, 5),
        (1, 2, "valid", None, 4),
        (3, 2, "valid", 1, 6),
        (3, 2, "same", None, 4),
        (3, 2, "same", 0, 3),
        (4, 2, "same", 1, 3),
        (3, 2, (1, 1), 1, 4),
        (2, 4, "same", None, 8),
    ],
)
def test_transposed_extents(window, stride, padding, extra, wanted):
    if not isinstance(padding, str):
        padding = (padding, padding)
    y = evaluate(
        ops.conv_transpose,
        np.ones((1, 2, 2, 3)),
        np.ones((window, window, 5, 3)),
        strides=stride,
        padding=padding,
        output_padding=extra,
    )
    assert y.shape == (1, wanted, wanted, 5)


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_transposed_is_a_convolution_of_the_zero_stuffed_input(padding):
    """Keras's definition: zeros between the cells, its own padding at the rim, and a flipped kernel."""
    rng = np.random.default_rng(0)
    for n, k, stride, extra in itertools.product((1, 2, 5), (1, 2, 3, 4), (1, 2, 3), (None, 0, 1)):
        if extra is not None and extra >= stride:
            continue
        x, w = rng.standard_normal(n), rng.standard_normal(k)
        extent, _ = transposed_extent(n, k, stride, padding, extra)
        stuffed = np.zeros((n - 1) * stride + 1)
        stuffed[::stride] = x
        total = extent - len(stuffed) + k - 1
        left = k - 1 if padding == "valid" else min(-(-total // 2), k - 1)
        stuffed = np.pad(stuffed, (left, max(total - left, 0)))
        wanted = [stuffed[i : i + k] @ w[::-1] for i in range(extent)]
        y = evaluate(
            ops.conv_transpose,
            image(x, "float64"),
            w.reshape(k, 1, 1),
            strides=stride,
            padding=padding,
            output_padding=extra,
        )
        np.testing.assert_allclose(y.ravel(), wanted, rtol=1e-12, atol=1e-12)


def test_output_padding_is_less_than_the_stride():
    with pytest.raises(ValueError, match="output_padding: got 2, wanted from 0 to stride - 1 = 1"):
        evaluate(ops.conv_transpose, np.ones((1, 4, 1)), np.ones((3, 1, 1)), strides=2, output_padding=2)


def test_behaviour_14_dilation():
    x = image(np.arange(60).reshape(30, 2))
    y = evaluate(ops.conv, x, ones_kernel(3, 1), padding=((2, 2), (0, 0)), dilation_rate=(2, 1))
    np.testing.assert_array_equal(y[0, 0, :, 0], [4, 6])
    np.testing.assert_array_equal(y[0, 2, :, 0], [12, 15])


def relative_error_of_float32(case) -> float:
    """Greatest error of the reference in float32 against float64, relative to the largest element."""
    (single,) = apply(case.op, case.arrays())
    (double,) = apply(case.op, case.retyped("float64").arrays())
    return np.abs(single - double).max() / np.abs(double).max()


@parametrize([case for case in CASES if case.label.startswith(("depthwise-stride2", "groups2-stride2"))])
def test_behaviour_13_grouped_and_strided(case):
    assert relative_error_of_float32(case) < 1e-5
    check_reference_gradient(case)


@parametrize([case for case in CASES if case.label.startswith("groups3-window2-stride4-pad1")])
def test_behaviour_15_stride_above_window_with_groups(case):
    assert relative_error_of_float32(case) < 1e-5
    check_reference_gradient(case)


def test_causal_sees_only_the_past():
    y = evaluate(ops.conv, image([1, 2, 3, 4]), ones_kernel(2), padding="causal", dilation_rate=2)
    np.testing.assert_array_equal(y.ravel(), [1, 2, 4, 6])


def test_depthwise_channel_order():
    """Output channel c * multiplier + m is channel c under kernel[..., c, m]."""
    x = np.ones((1, 1, 3), "float32") * [1, 10, 100]
    w = np.arange(1.0, 7.0).reshape(1, 3, 2)
    np.testing.assert_array_equal(evaluate(ops.depthwise_conv, x, w).ravel(), [1, 2, 30, 40, 500, 600])


def test_separable_is_depthwise_then_pointwise():
    rng = np.random.default_rng(0)
    x, depthwise, pointwise = (rng.standard_normal(s) for s in [(2, 6, 5, 3), (3, 3, 3, 2), (1, 1, 6, 4)])
    arguments = {"strides": 2, "padding": "same"}
    y = evaluate(ops.separable_conv, x, depthwise, pointwise, **arguments)
    inner = evaluate(ops.depthwise_conv, x, depthwise, **arguments)
    np.testing.assert_allclose(y, inner @ pointwise[0, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["conv", "depthwise_conv", "conv_transpose"])
def test_channels_first(name):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 6, 3)), rng.standard_normal((3, 2, 3, 3))
    wanted = evaluate(getattr(ops, name), x, w, strides=2, padding="same")
    got = evaluate(
        getattr(ops, name), np.moveaxis(x, -1, 1), w, strides=2, padding="same", data_format="channels_first"
    )
    np.testing.assert_array_equal(got, np.moveaxis(wanted, -1, 1))


def test_groups_follow_from_the_shapes():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 6, 4)), rng.standard_normal((3, 2, 6))
    halves = [evaluate(ops.conv, x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3]) for g in range(2)]
    np.testing.assert_allclose(evaluate(ops.conv, x, w), np.concatenate(halves, -1), rtol=1e-12)


def test_integers_convolve_as_floats():
    y = evaluate(ops.conv, np.ones((1, 4, 1), "uint8"), ones_kernel(2))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.ravel(), [2, 2, 2])
