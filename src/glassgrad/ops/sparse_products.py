"""The product of a sparse matrix, given by entries and their places, with a dense one, computed by SciPy."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.errors.packages import needed
from glassgrad.ops.core import Array, Aval, Linear, linear
from glassgrad.ops.index import index_select
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import permute_p, reshape_p
from glassgrad.ops.vmap.rules import all_expanded, expanded

_KINDS = "fdFD"  # dtypes that SciPy multiplies without conversion


def _sparse_product(xp: ModuleType, values: Array, dense: Array, rows: Array, columns: Array, *, size: int) -> Array:
    dtype = np.result_type(values, dense)
    if len(rows) and not (min(rows.min(), columns.min()) >= 0 and rows.max() < size and columns.max() < len(dense)):
        raise IndexError(f"an entry lies outside of the matrix ({size}, {len(dense)})")
    if dtype.char not in _KINDS:
        out = np.zeros((size, dense.shape[1]), dtype)
        np.add.at(out, rows, (values[:, None] * dense[columns]).astype(dtype, copy=False))
        return out
    with needed("scipy", "sparse products"):
        from scipy.sparse import coo_array

    matrix = coo_array((values.astype(dtype, copy=False), (rows, columns)), shape=(size, len(dense)))
    return np.asarray(matrix.tocsr() @ dense.astype(dtype, copy=False))


def _entries(g: Array, values: Array, dense: Array, rows: Array, columns: Array, *, size: int) -> Array:
    """g @ dense.T, only at the places of the entries."""
    return sum_p(index_select(g, 0, rows) * index_select(dense, 0, columns), axis=(1,), keepdims=False)


def _batch(prim: Any, count: int, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Array:
    """If only `dense` has a batch, join its columns; else make one block-diagonal matrix of the examples."""
    values, dense, rows, columns = arrays
    size = params["size"]
    high, width = dense.shape[-2:]
    if batched == [False, True, False, False]:
        beside = reshape_p(permute_p(dense, axes=(1, 0, 2)), shape=(high, count * width))
        y = reshape_p(prim(values, beside, rows, columns, size=size), shape=(size, count, width))
        return permute_p(y, axes=(1, 0, 2))
    values, rows, columns = all_expanded([values, rows, columns], [batched[0], *batched[2:]], count)
    block = np.arange(count)[:, None]
    columns = columns + block * high
    if not batched[1]:
        dense = expanded(dense, count)
    entries = [reshape_p(v, shape=(count * v.shape[1],)) for v in (values, rows + block * size, columns)]
    y = prim(entries[0], reshape_p(dense, shape=(count * high, width)), *entries[1:], size=count * size)
    return reshape_p(y, shape=(count, size, width))


def _places(high: int) -> Any:
    """Draw places of five entries, two of them equal."""
    return lambda rng: np.array([0, high - 1, 1, 0, high - 1])


sparse_product_p: Linear = linear(
    "sparse_product",
    _sparse_product,
    (
        _entries,
        lambda g, values, dense, rows, columns, *, size: sparse_product_p(
            values, g, columns, rows, size=dense.shape[0]
        ),
        None,
        None,
    ),
    saves="x",
    takes_complex=False,
    shape=lambda values, dense, rows, columns, *, size: Aval(
        (size, dense.shape[1]), np.result_type(values.dtype, dense.dtype)
    ),
    batch=_batch,
)
sparse_product_p.describe(
    "y[rows[e]] = sum of values[e] * dense[columns[e]] over the entries e",
    "g[rows] . dense[columns], values[e] * g[rows[e]] added at columns[e]",
)
sparse_product_p.samples = [
    S((5,), (4, 3), _places(3), _places(4), size=3),
    S((5,), (2, 1), _places(3), _places(2), size=4),
]
