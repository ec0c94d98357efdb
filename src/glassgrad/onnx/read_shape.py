"""ONNX operators as functions: shapes, slices, positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import glassgrad.nn.functional as F
from glassgrad.onnx.calls import Call, Operator, gg
from glassgrad.ops.core import Array

_FARTHEST = 1 << 40  # beyond the end of any axis


def _shape(call: Call, x: Array) -> Any:
    start, end = call.get("start", 0), call.get("end")
    return np.array(x.shape, np.int64)[slice(start, end)]


def _reshape(call: Call, x: Array, shape: Array = None) -> Array:
    dims = call.ints("shape", shape) or []
    if not call.get("allowzero", 0):
        dims = [x.shape[at] if dim == 0 else dim for at, dim in enumerate(dims)]
    return x.reshape(dims)


def _flatten(call: Call, x: Array) -> Array:
    axis = call.get("axis", 1)
    rows = math.prod(x.shape[: axis + x.ndim if axis < 0 else axis])
    return x.reshape(rows, math.prod(x.shape) // max(rows, 1))


def _squeeze(call: Call, x: Array, axes: Any = None) -> Array:
    chosen = call.ints("axes", axes)
    gone = {axis % x.ndim for axis in chosen} if chosen is not None else {at for at, n in enumerate(x.shape) if n == 1}
    return x.reshape([n for at, n in enumerate(x.shape) if at not in gone])


def _unsqueeze(call: Call, x: Array, axes: Any = None) -> Array:
    chosen = call.ints("axes", axes) or []
    rank = x.ndim + len(chosen)
    new = {axis % rank for axis in chosen}
    old = iter(x.shape)
    return x.reshape([1 if at in new else next(old) for at in range(rank)])


def _transpose(call: Call, x: Array) -> Array:
    axes = call.get("perm") or list(range(x.ndim))[::-1]
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(*axes) if axes else x


def _expand(call: Call, x: Array, shape: Array) -> Array:
    dims = np.broadcast_shapes(tuple(x.shape), tuple(call.ints("shape", shape) or ()))
    return gg.broadcast_to(x, dims)


def _split(call: Call, x: Array, sizes: Array = None) -> Any:
    axis = call.get("axis", 0)
    parts = call.ints("split", sizes)
    if parts is None:
        count = call.get("num_outputs", len(call.outputs))
        step = -(-x.shape[axis] // count)
        parts = [min(step, max(x.shape[axis] - at * step, 0)) for at in range(count)]
    ends = np.cumsum(parts).tolist()
    return tuple([_cut(x, axis, end - part, end, 1) for part, end in zip(parts, ends, strict=True)])


def _cut(x: Array, axis: int, start: int | None, stop: int | None, step: int) -> Any:
    index = [slice(None)] * (axis % x.ndim) + [slice(start, stop, step)]
    return x[tuple(index)]


def _slice(
    call: Call,
    x: Array,
    starts: Array = None,
    ends: Array = None,
    axes: Any = None,
    steps: Array = None,
) -> Array:
    begins, stops = call.ints("starts", starts) or [], call.ints("ends", ends) or []
    chosen = call.ints("axes", axes) or list(range(len(begins)))
    strides = call.ints("steps", steps) or [1] * len(begins)
    for axis, begin, stop, stride in zip(chosen, begins, stops, strides, strict=True):
        n = x.shape[axis]
        start: int | None = begin
        end: int | None = stop
        if stride < 0:
            start = None if begin >= n else begin
            end = None if stop < -n else stop
        x = _cut(x, axis, start, None if end is not None and end > _FARTHEST else end, stride)
    return x


def _gather(call: Call, x: Array, indices: Array) -> Any:
    axis = call.get("axis", 0) % x.ndim
    if isinstance(indices, np.ndarray) and indices.ndim == 0:
        found = x[(slice(None),) * axis + (int(indices),)]
        return np.asarray(found) if isinstance(x, np.ndarray) else found
    return x[(slice(None),) * axis + (indices,)]


def _gather_elements(call: Call, x: Array, indices: Array) -> Array:
    axis = call.get("axis", 0)
    n = x.shape[axis]
    return gg.take_along_dim(x, gg.where(indices < 0, indices + n, indices), axis)


def _gather_nd(call: Call, x: Array, indices: Array) -> Any:
    if call.get("batch_dims", 0):
        raise call.refused("has batch_dims")
    return x[tuple([indices[..., at] for at in range(indices.shape[-1])])]


def _scatter_elements(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    axis, how = call.get("axis", 0), call.get("reduction", "none")
    places = gg.where(indices < 0, indices + x.shape[axis], indices)
    if how == "none":
        return gg.scatter(x, axis, places, updates)
    if how == "add":
        return gg.scatter_add(x, axis, places, updates)
    names = {"max": "amax", "min": "amin", "mul": "prod"}
    return gg.scatter_reduce(x, axis, places, updates, names[how])


def _scatter_nd(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    key = tuple([indices[..., at] for at in range(indices.shape[-1])])
    how = call.get("reduction", "none")
    if how not in {"none", "add"}:
        raise call.refused(f"has reduction={how!r}")
    return gg.at_set(x, key, updates) if how == "none" else gg.at_add(x, key, updates)


def _pad(call: Call, x: Array, pads: Array = None, value: Array = None, axes: Any = None) -> Array:
    given = call.ints("pads", pads) or []
    chosen = call.ints("axes", axes) or list(range(x.ndim))
    half = len(given) // 2
    widths = [(0, 0)] * x.ndim
    for axis, before, after in zip(chosen, given[:half], given[half:], strict=True):
        widths[axis % x.ndim] = before, after
    flat = [width for pair in reversed(widths) for width in pair]
    while flat[-2:] == [0, 0]:
        del flat[-2:]
    fill = call.get("value", 0.0) if value is None else call.known(value, "value").item()
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        call.get("mode", "constant")
    ]
    if not flat:
        return x
    return F.pad(x, flat, mode, fill) if mode == "constant" else F.pad(x, flat, mode)


def _constant(call: Call) -> Any:
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype)
    if "value" not in call.attributes:
        raise call.refused("holds a constant that is no tensor of numbers")
    return call.attributes["value"]


def _constant_of_shape(call: Call, shape: Array) -> Array:
    value = call.get("value", np.zeros(1, np.float32))
    return np.full(call.known(shape, "shape").tolist(), value.reshape(-1)[0], value.dtype)


def _range(call: Call, start: Array, limit: Array, step: Array) -> Array:
    ends = [call.known(one, "ends") for one in (start, limit, step)]
    return np.arange(*[one.item() for one in ends], dtype=ends[0].dtype)


def _trilu(call: Call, x: Array, k: Array = None) -> Any:
    diagonal = 0 if k is None else int(call.known(k, "diagonal").reshape(()))
    return (gg.triu if call.get("upper", 1) else gg.tril)(x, diagonal)


def _tile(call: Call, x: Array, repeats: Array) -> Array:
    return gg.tile(x, tuple(call.ints("repeats", repeats) or ()))


def _one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    count = int(call.known(depth, "depth").reshape(()))
    off, on = call.known(values, "values").tolist()
    axis = call.get("axis", -1)
    hot = gg.expand_dims(indices, axis % (indices.ndim + 1))
    shape = [1] * (indices.ndim + 1)
    shape[axis % (indices.ndim + 1)] = count
    return gg.where(hot % count == np.arange(count).reshape(shape), np.float32(on), np.float32(off))


def _depth_to_space(call: Call, x: Array) -> Array:
    n, c, h, w = x.shape
    b = call.attributes["blocksize"]
    if call.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, b)
    return x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)


def _same(call: Call, x: Array, *_rest: Array) -> Array:
    return x


SHAPES: dict[str, Operator] = {
    "Size": lambda call, x: np.array(math.prod(x.shape), np.int64),
    "Concat": lambda call, *xs: gg.cat(xs, call.attributes["axis"]),
    "ArrayFeatureExtractor": lambda call, x, indices: x[..., indices.reshape(-1)],
    "Shape": _shape,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Pad": _pad,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Trilu": _trilu,
    "Tile": _tile,
    "OneHot": _one_hot,
    "DepthToSpace": _depth_to_space,
    "Identity": _same,
    "ZipMap": _same,
}
