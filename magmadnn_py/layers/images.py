"""Resampling of images: by matrices along each axis, and at places that differ from image to image."""

from __future__ import annotations

import numpy as np

from .. import ops

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
FILL_MODES = ("constant", "nearest", "reflect", "wrap")


def interpolation_matrix(extent: int, new_extent: int, interpolation: str) -> np.ndarray:
    """[new_extent, extent]: the share of each old cell in each new one. Cells are squares around half-integers."""
    places = (np.arange(new_extent) + 0.5) * extent / new_extent
    if interpolation == "nearest":
        return np.eye(extent)[np.minimum(np.floor(places).astype(int), extent - 1)]
    distance = np.abs((places - 0.5)[:, None] - np.arange(extent)[None, :])
    if interpolation == "bilinear":
        weights = np.maximum(1 - distance, 0)
    else:  # Keys' cubic with a = -1/2
        near = (1.5 * distance - 2.5) * distance**2 + 1
        far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    return weights / weights.sum(axis=1, keepdims=True)


def resize(x, height: int, width: int, interpolation: str, data_format: str = "channels_last"):
    """Images [N, H, W, C] (or [N, C, H, W]) at another height and width, without smoothing before they shrink."""
    first_axis = 1 if data_format == "channels_last" else 2
    for axis, extent in ((first_axis, height), (first_axis + 1, width)):
        x = _resample(x, axis, extent, interpolation)
    return x


def _resample(x, axis: int, new_extent: int, interpolation: str):
    lead, extent, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if extent == new_extent:
        return x
    matrix = interpolation_matrix(extent, new_extent, interpolation).astype(x.dtype)
    rows = ops.reshape(x, (int(np.prod(lead)), extent, int(np.prod(rest))))
    return ops.reshape(ops.matmul(matrix, rows), (*lead, new_extent, *rest))


def affine(x, transform: tuple, interpolation: str, fill_mode: str, fill_value: float):
    """Images [N, H, W, C], each seen through a map of its own.

    Args:
        transform: (a, b, c, d, e, f), each [N] or a number: the new cell of row i and column j shows the old place
            of column a*j + b*i + c and row d*j + e*i + f.
        interpolation: "nearest" or "bilinear".
        fill_mode: what lies outside: "constant" (fill_value), "nearest" (the edge), "reflect" (mirrored, the edge
            doubled) or "wrap".
    """
    batch, height, width, _ = x.shape
    i = np.arange(height, dtype="float32").reshape(1, height, 1) + np.zeros((1, 1, width), "float32")
    j = np.arange(width, dtype="float32").reshape(1, 1, width) + np.zeros((1, height, 1), "float32")
    a, b, c, d, e, f = (v if isinstance(v, float) else ops.reshape(v, (batch, 1, 1)) for v in transform)
    columns, rows = a * j + b * i + c, d * j + e * i + f

    def cell(row, column):
        return cells_at(x, row, column, fill_mode, fill_value)

    if interpolation == "nearest":
        return cell(ops.round(rows), ops.round(columns))
    row, column = ops.floor(rows), ops.floor(columns)
    down, right = (ops.expand_dims(part, -1) for part in (rows - row, columns - column))
    above = cell(row, column) * (1.0 - right) + cell(row, column + 1.0) * right
    below = cell(row + 1.0, column) * (1.0 - right) + cell(row + 1.0, column + 1.0) * right
    return above * (1.0 - down) + below * down


def cells_at(x, rows, columns, fill_mode: str, fill_value: float):
    """The cells of images [N, H, W, C] at whole-numbered float places [N, H', W'] -> [N, H', W', C]."""
    batch, height, width, channels = x.shape
    row, column = _inside(rows, height, fill_mode), _inside(columns, width, fill_mode)
    image = np.arange(batch, dtype="int32").reshape(batch, 1, 1) * (height * width)
    index = image + ops.cast(row, "int32") * width + ops.cast(column, "int32")
    cells = ops.take(ops.reshape(x, (batch * height * width, channels)), index, axis=0)
    if fill_mode != "constant":
        return cells
    outside = ops.logical_or(ops.not_equal(row, rows), ops.not_equal(column, columns))
    return ops.where(ops.expand_dims(outside, -1), fill_value, cells)


def _inside(places, extent: int, fill_mode: str):
    """Places brought into 0 .. extent - 1."""
    if fill_mode == "wrap":
        places = ops.mod(places, float(extent))
    elif fill_mode == "reflect":  # d c b a | a b c d | d c b a
        places = ops.mod(places, 2.0 * extent)
        places = ops.minimum(places, (2.0 * extent - 1.0) - places)
    return ops.clip(places, 0.0, extent - 1.0)
