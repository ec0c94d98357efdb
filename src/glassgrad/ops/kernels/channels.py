"""Batch norm and the gradients of relu and hardtanh on large arrays, by native code that serves every size.

NumPy goes through memory seven times for a batch norm and as often for its gradient, and fills an array each time.
Native code reads a channel from memory once. Arrays of a million elements and more are shared among the cores. Whatever
is small, strided, of another dtype or another library's stays with NumPy, as does everything where llvmlite is missing
or ``GLASSGRAD_NATIVE`` is ``0``.
"""

from __future__ import annotations

import functools
import importlib
import math
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels import blocks, native, parallel, products

Array = Any

# Nanoseconds that NumPy takes for an element, and multiplications that native code would do in its own time for one.
_NS_TO_NORM, _NS_TO_CUT = 4.0, 4.0
_WORTH, _WORTH_TO_CUT = 10, 16
_INSIDE = {"f": ("inside_f32", struct.Struct("<5qf4xf4x")), "d": ("inside_f64", struct.Struct("<5q2d"))}


class Statistics(NamedTuple):
    """What the gradient of a batch norm needs of each channel besides the input."""

    mean: Array
    inverse: Array
    scale: Array


def batch_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Any, Statistics] | None:
    """Return ((y, mean, variance), statistics) for x (N, C, ...); None if NumPy should compute them."""
    run = _function("norm", x, _NS_TO_NORM) if x.ndim > 2 and x.flags.c_contiguous else None
    if run is None or not all(_fits(part, x.dtype) and part.flags.c_contiguous for part in (weight, bias)):
        return None
    y = np.empty(x.shape, x.dtype)
    mean, var, inverse, scale = np.empty((4, x.shape[1]), x.dtype)
    share = x.shape[1] / x.size
    _by_channel(run, x.shape, (x, weight, bias, y, mean, var, inverse, scale), share, eps)
    return (y, mean, var), Statistics(mean, inverse, scale)


def batch_norm_vjp(g: Array, x: Array, kept: Statistics) -> tuple[Array, Array, Array]:
    """Return the cotangents of input, weight and bias; `kept` is from `batch_norm` of the same input."""
    run = _functions()["norm_back", x.dtype.char]
    dx = np.empty(x.shape, x.dtype)
    dw, db = np.empty((2, x.shape[1]), x.dtype)
    _by_channel(run, x.shape, (np.ascontiguousarray(g, x.dtype), x, *kept, dx, dw, db), x.shape[1] / x.size)
    return dx, dw, db


def inside(g: Array, v: Array, low: float, high: float) -> Array | None:
    """Return g, with 0 where v is at most `low` or at least `high`; None if NumPy should. A bound of NaN is none."""
    if not _suits(v, _NS_TO_CUT) or not _fits(g, v.dtype) or g.shape != v.shape:
        return None
    if not v.flags.c_contiguous and v.strides != g.strides:
        return None
    if not v.flags.c_contiguous and not _is_dense(v):
        return None
    g = g if g.strides == v.strides else np.ascontiguousarray(g)
    found = np.empty_like(v)
    name, form = _INSIDE[v.dtype.char]
    if native.job(name, 1) is None:
        return None
    count = products.shares(_WORTH_TO_CUT * v.size)
    edges = [v.size * at // count for at in range(count + 1)]
    arrays = (id(g), id(v), id(found))
    native.job(name, count).run(form, [(*arrays, first, last - first, low, high) for first, last in pairwise(edges)])
    return found


def _by_channel(run: Callable[..., None], shape: tuple[int, ...], arrays: tuple[Array, ...], *numbers: float) -> None:
    n, c, *rest = shape
    places, length = [one.ctypes.data for one in arrays], math.prod(rest)

    def work(first: int, last: int) -> None:
        run(*places, n, c, length, first, last, *numbers)

    parallel.shares.run(work, c, _WORTH * n * c * length)


def _function(name: str, x: Array, ns: float) -> Callable[..., None] | None:
    return _functions().get((name, x.dtype.char)) if _suits(x, ns) else None


def _suits(x: Array, ns: float) -> bool:
    return type(x) is np.ndarray and native.pays(ns * x.size) and x.dtype.char in "fd" and bool(x.flags.aligned)


def _fits(array: Array, dtype: Any) -> bool:
    return type(array) is np.ndarray and array.dtype is dtype and bool(array.flags.aligned)


def _is_dense(array: Array) -> bool:
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    return bool(array.transpose(order).flags.c_contiguous)


@functools.cache
def _functions() -> dict[tuple[str, str], Callable[..., None]]:
    """Return the native functions, none where there is no compiler."""
    try:
        # By name: ops lie below the compiler, and eager mode loads it only here.
        made: dict[tuple[str, str], Callable[..., None]]
        made = importlib.import_module("glassgrad.compile.native.channels").functions()
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or one that cannot: NumPy computes everything
        return {}
    return made


blocks.inside = inside
