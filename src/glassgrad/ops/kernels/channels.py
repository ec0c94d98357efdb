"""Batch norm and the gradients of relu and hardtanh on large arrays, in native code for all sizes.

NumPy makes seven passes over memory for a batch norm, as many for its gradient, and fills an array in each. Native code
reads a channel once. The cores share arrays of a million elements and more. NumPy computes arrays that are small or
strided or have another dtype, and all arrays if llvmlite is missing or ``GLASSGRAD_NATIVE`` is ``0``.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from glassgrad.ops.kernels import native, parallel, products
from glassgrad.ops.kernels.ways import Array, Dtype, least

Found = tuple[Array, Array, Array]  # result, mean and variance

NORM_FROM, STEP_FROM = least("batch norm"), least("step")
_WORTH, _WORTH_TO_CUT = 10, 16  # multiplications that native code does in the time of one element
_INSIDE = {"f": ("inside_f32", struct.Struct("<5qf4xf4x")), "d": ("inside_f64", struct.Struct("<5q2d"))}


class Statistics(NamedTuple):
    """The residuals of a batch norm for each channel, besides the input."""

    mean: Array
    inverse: Array
    scale: Array


def batch_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Found, Statistics] | None:
    """Return ((y, mean, variance), statistics) for x (N, C, ...); None if NumPy should compute them."""
    run = _function("norm", x) if x.ndim > 2 and x.flags.c_contiguous else None
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
    """Return g, with 0 where v is at most `low` or at least `high`; None if NumPy should. A NaN bound is ignored.

    It pays from `STEP_FROM` elements on.
    """
    if not _is_native(v) or not _fits(g, v.dtype) or g.shape != v.shape:
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


def _function(name: str, x: Array) -> Callable[..., None] | None:
    return _functions().get((name, x.dtype.char)) if _is_native(x) and x.size >= NORM_FROM else None


def _is_native(x: Array) -> bool:
    return type(x) is np.ndarray and x.dtype.char in "fd" and bool(x.flags.aligned) and not native.kernels.off


def _fits(array: Array, dtype: Dtype) -> bool:
    return type(array) is np.ndarray and array.dtype is dtype and bool(array.flags.aligned)


def _is_dense(array: Array) -> bool:
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    return bool(array.transpose(order).flags.c_contiguous)


@functools.cache
def _functions() -> dict[tuple[str, str], Callable[..., None]]:
    """Return the native functions; an empty dictionary without a compiler."""
    try:
        made: dict[tuple[str, str], Callable[..., None]]
        made = native.load("channels").functions()
    except (ImportError, OSError, RuntimeError):  # llvmlite is missing or does not work: NumPy computes everything
        return {}
    return made
