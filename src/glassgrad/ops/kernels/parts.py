"""Formulas with independent rows, computed in native code a few rows at a time.

NumPy makes a pass over memory for each operation of a softmax or a layer norm. Native code makes one or two passes, on
as many rows as fit in the cache. One kernel per row width serves arrays of every length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.ops.kernels import native, products
from glassgrad.ops.kernels.ways import Array, Params, least

Formula = Callable[..., tuple[Array, ...]]

ELEMENTS = 8_192  # elements in one part, unless a row is longer: small, so that threads share the parts evenly
FROM = least("rows")  # a pass of NumPy takes about 10 us here
_PRODUCTS = 32  # multiplications of matrices that take as long as an element


def source() -> native.Kernels | None:
    """Return the store of kernels; None if NumPy computes everything."""
    return None if native.kernels.off else native.kernels


def pays(x: Array, size: int | None = None) -> bool:
    """Tell whether native code pays for a formula of the array of rows `x`, or of `size` elements of its kind."""
    if type(x) is not np.ndarray or (x.size if size is None else size) < FROM:
        return False
    return x.dtype.char in "fd" and source() is not None


def in_parts(
    formula: Formula,
    cut: Sequence[Array],
    whole: Sequence[Array],
    results: Sequence[Array],
    sums: Sequence[Array] = (),
    **params: Any,
) -> bool:
    """Compute ``formula(*cut, *whole, **params)`` into arrays, some rows at a time; return False if NumPy has to do it.

    Args:
        formula: a function of terms, written in ops; returns a tuple with a term for each of `results` and `sums`.
            It must be defined at the top of a module, since it is the key of its kernels. Rows of zeros must add
            nothing to the sums.
        cut: arrays of equal length along axis 0, which are cut into parts. `pays` holds for the first.
        whole: arrays that every part needs.
        results: C-contiguous arrays that receive the results, as long as `cut`.
        sums: arrays that receive the sums over all parts.
        params: hashable parameters, part of the kernel's key.
    """
    length = len(cut[0])
    # A power of two divides most batches.
    count = 1 << max(0, (ELEMENTS * length // cut[0].size).bit_length() - 1)
    kernel = _kernel(formula, count, cut, whole, params)
    if kernel is None:
        return False
    cut, whole = [_in_order(one) for one in cut], [_in_order(one) for one in whole]
    chunks, rest = divmod(length, count)
    added = [np.empty((chunks, *one.shape), one.dtype) for one in sums]
    steps = [count * one.strides[0] for one in cut] + [0] * len(whole) + [count * one.strides[0] for one in results]
    steps += [one.strides[0] for one in added]
    kernel.along([*cut, *whole, *results, *added], steps, chunks, products.shares(_PRODUCTS * cut[0].size))
    for one, parts in zip(sums, added, strict=True):
        np.add.reduce(parts, axis=0, out=one)
    return not rest or _last(kernel, cut, whole, results, sums, rest, count)


def _last(
    kernel: native.Kernel,
    cut: Sequence[Array],
    whole: Sequence[Array],
    results: Sequence[Array],
    sums: Sequence[Array],
    rest: int,
    count: int,
) -> bool:
    """Pad the last rows, fewer than a kernel takes, with zeros and compute them; return whether that was possible."""
    given = [_padded(one[-rest:], count) for one in cut]
    taken = [np.empty((count, *one.shape[1:]), one.dtype) for one in results]
    added = [np.empty_like(one) for one in sums]
    if not kernel.into((*given, *whole), (*taken, *added)):
        return False
    for one, part in zip(results, taken, strict=True):
        one[-rest:] = part[:rest]
    for one, part in zip(sums, added, strict=True):
        one += part
    return True


def along_last(formula: Formula, axis: int, *arrays: Array) -> Array | None:
    """Return a formula of matrices for arrays whose last axis is `axis`; None if NumPy should compute it.

    `pays` must hold for the first array.
    """
    x = arrays[0]
    if axis != x.ndim - 1 or any(type(one) is not np.ndarray or one.shape != x.shape for one in arrays):
        return None
    rows = [one.reshape(-1, x.shape[-1]) for one in arrays]
    y = np.empty(rows[0].shape, x.dtype)
    return y.reshape(x.shape) if in_parts(formula, rows, (), (y,)) else None


def _kernel(
    formula: Formula, count: int, cut: Sequence[Array], whole: Sequence[Array], params: Params
) -> native.Kernel | None:
    """Return the kernel for `count` rows; None for arrays of mixed dtypes (except masks) or without native code."""
    dtype = cut[0].dtype
    for one in (*cut, *whole):
        if type(one) is not np.ndarray or (one.dtype is not dtype and one.dtype.kind != "b"):
            return None
    types = [((count, *one.shape[1:]), one.dtype) for one in cut] + [(one.shape, one.dtype) for one in whole]
    kernels = source()
    return None if kernels is None else kernels.find(formula, tuple(types), (), params, 1)


def _in_order(x: Array) -> Array:
    """Return an array in the layout of native code; usually the given array itself."""
    flags = x.flags
    return x if flags.c_contiguous and flags.aligned else np.require(x, requirements=["C", "A"])


def _padded(rows: Array, count: int) -> Array:
    padded = np.zeros((count, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
