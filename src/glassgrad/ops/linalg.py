"""Products of vectors, matrices and tensors; factorisations are in `factorise`, `lu` and `eigen`."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import conj
from glassgrad.ops.core import Array, Linear, bad_option, canonical_axis, linear
from glassgrad.ops.kernels import products
from glassgrad.ops.narrow import beside
from glassgrad.ops.reduce import max_p, sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import permute_p, reshape_p, roll_p

Shape = tuple[int, ...]


def _matmul_shape(a: Array, b: Array) -> Shape:
    if len(a.shape) == 1 and len(b.shape) == 1:
        return ()
    if len(a.shape) == 1:
        return (*b.shape[:-2], b.shape[-1])
    if len(b.shape) == 1:
        return tuple(a.shape[:-1])
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _matmul_left(g: Array, a: Array, b: Array) -> Array:
    if len(b.shape) == 1:
        return g * b if len(a.shape) == 1 else reshape_p(g, shape=(*g.shape, 1)) * b
    if len(a.shape) == 1:
        g = reshape_p(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
        full = matmul(g, swap_last(b))
        return reshape_p(full, shape=(*full.shape[:-2], full.shape[-1]))
    return matmul(g, swap_last(b))


def _matmul_right(g: Array, a: Array, b: Array) -> Array:
    if len(a.shape) == 1:
        if len(b.shape) == 1:
            return g * a
        return reshape_p(a, shape=(a.shape[0], 1)) * reshape_p(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    if len(b.shape) == 1:
        full = matmul(swap_last(a), reshape_p(g, shape=(*g.shape, 1)))
        return reshape_p(full, shape=full.shape[:-1])
    if len(b.shape) == 2 and len(a.shape) > 2:
        # One product over all rows instead of one per matrix and a sum over the batch.
        rows = math.prod(a.shape[:-1])
        a, g = reshape_p(a, shape=(rows, a.shape[-1])), reshape_p(g, shape=(rows, g.shape[-1]))
    return matmul(swap_last(a), g)


def _matmul(xp: ModuleType, a: Array, b: Array) -> Array:
    if xp is np and a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        # NumPy would run one small product per matrix; the rows of all of them share b.
        rows = _matmul(np, a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b)
        return rows.reshape(*a.shape[:-1], b.shape[-1])
    if xp is np and a.size * b.shape[-1] >= products.SUMMED_FROM:
        return products.matmul(a, b)
    return xp.matmul(a, b)


matmul: Linear = linear("matmul", _matmul, (_matmul_left, _matmul_right), saves="x", shape=_matmul_shape)
matmul.describe("a @ b", "g @ bT, aT @ g")
matmul.samples = [
    S((2, 3), (3, 4)),
    S((3,), (3,)),
    S((3,), (3, 2)),
    S((2, 3), (3,)),
    S((2, 2, 3), (3, 2)),
    S((2, 1, 2, 3), (3, 3, 2)),
    S((2, 2, 3), (3,)),
    S((3,), (2, 3, 2)),
]


def mm(a: Array, b: Array) -> Array:
    """Product of two matrices."""
    _check_dims("mm", a, b, (2, 2))
    return matmul(a, b)


def bmm(a: Array, b: Array) -> Array:
    """Products of matrices: (batch, n, k) and (batch, k, m) to (batch, n, m)."""
    _check_dims("bmm", a, b, (3, 3))
    if a.shape[0] != b.shape[0]:
        raise bad_option("bmm", "b", f"a batch of {b.shape[0]}", f"as many matrices as a has: {a.shape[0]}")
    return matmul(a, b)


def mv(a: Array, b: Array) -> Array:
    """Product of a matrix and a vector."""
    _check_dims("mv", a, b, (2, 1))
    return matmul(a, b)


def _added(x: Array, product: Array, beta: float, alpha: float) -> Array:
    """beta x + alpha product; a `beta` of 0 drops NaN in x, as in PyTorch."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        x = ew.where(False, x, 0)
    if np.broadcast_shapes(tuple(x.shape), tuple(product.shape)) != tuple(product.shape):
        raise bad_option(
            "a product with a sum",
            "x",
            f"an array of shape {tuple(x.shape)}",
            f"one that broadcasts to {tuple(product.shape)}",
        )
    x = beside(x, product)
    return (x if beta in {0, 1} else x * beta) + product


def addmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta x + alpha (a @ b) for two matrices."""
    _check_dims("addmm", a, b, (2, 2))
    return _added(x, matmul(a, b), beta, alpha)


def addmv(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta x + alpha (a @ b) for a matrix a and a vector b."""
    return _added(x, mv(a, b), beta, alpha)


def addr(x: Array, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta x + alpha times the outer product of two vectors."""
    return _added(x, outer(vec1, vec2), beta, alpha)


def baddbmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta x + alpha (a @ b) for batches of matrices (batch, n, k) and (batch, k, m)."""
    return _added(x, bmm(a, b), beta, alpha)


def addbmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta x + alpha times the sum of the products of a batch: (batch, n, k) and (batch, k, m) to (n, m)."""
    return _added(x, sum_p(bmm(a, b), axis=(0,), keepdims=False), beta, alpha)


def vdot(a: Array, b: Array) -> Array:
    """Inner product of two vectors, with the complex conjugate of the first."""
    _check_dims("vdot", a, b, (1, 1))
    return matmul(conj(a), b)


def dot(a: Array, b: Array) -> Array:
    """Inner product of two vectors. NumPy's `np.dot` also multiplies matrices; here `matmul` does."""
    _check_dims("dot", a, b, (1, 1))
    return matmul(a, b)


def inner(a: Array, b: Array) -> Array:
    """Sum of products over the last dimensions: shape (*a.shape[:-1], *b.shape[:-1])."""
    if not a.shape or not b.shape:
        return a * b
    return tensordot(a, b, ([len(a.shape) - 1], [len(b.shape) - 1]))


def outer(a: Array, b: Array) -> Array:
    """Outer product of two vectors: shape (n, m)."""
    _check_dims("outer", a, b, (1, 1))
    return reshape_p(a, shape=(math.prod(a.shape), 1)) * reshape_p(b, shape=(1, math.prod(b.shape)))


def vecdot(a: Array, b: Array, dim: int = -1) -> Array:
    """Sum of products along `dim`, with the conjugate of a; the other dimensions broadcast."""
    axis = dim if dim < 0 else dim - max(len(a.shape), len(b.shape))
    product = conj(a) * b
    return sum_p(product, axis=(canonical_axis(axis, len(product.shape)),), keepdims=False)


def tensordot(a: Array, b: Array, dims: Any = 2) -> Array:
    """Sum of products over several dimensions: the last `dims` of a and the first of b, or pairs of lists.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensordot(gg.ones(2, 3, 4), gg.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
        (2, 5)
    """
    ndim = len(a.shape), len(b.shape)
    if isinstance(dims, int | np.integer):
        if not 0 <= dims <= min(ndim):
            raise bad_option("tensordot", "dims", dims, f"between 0 and {min(ndim)}")
        over_a, over_b = list(range(ndim[0] - int(dims), ndim[0])), list(range(int(dims)))
    else:
        pairs = [[side] if isinstance(side, int) else list(side) for side in dims]
        over_a, over_b = ([canonical_axis(int(axis), n) for axis in side] for side, n in zip(pairs, ndim, strict=True))
    # A size of 1 is broadcast: the other side may be summed first.
    a = _summed(a, [axis for axis, other in zip(over_a, over_b, strict=True) if a.shape[axis] > b.shape[other] == 1])
    b = _summed(b, [axis for axis, other in zip(over_b, over_a, strict=True) if b.shape[axis] > a.shape[other] == 1])
    sizes = [a.shape[axis] for axis in over_a], [b.shape[axis] for axis in over_b]
    if sizes[0] != sizes[1]:
        raise errors.CONTRACTED_SIZES(op="tensordot", left=sizes[0], right=sizes[1], where=provenance.here())
    free_a = [axis for axis in range(ndim[0]) if axis not in over_a]
    free_b = [axis for axis in range(ndim[1]) if axis not in over_b]
    together = math.prod(sizes[0])
    shape_a, shape_b = [a.shape[axis] for axis in free_a], [b.shape[axis] for axis in free_b]
    left = reshape_p(_ordered(a, free_a + over_a), shape=(math.prod(shape_a), together))
    right = reshape_p(_ordered(b, over_b + free_b), shape=(together, math.prod(shape_b)))
    return reshape_p(matmul(left, right), shape=(*shape_a, *shape_b))


def _summed(x: Array, axes: list[int]) -> Array:
    return sum_p(x, axis=tuple(axes), keepdims=True) if axes else x


def _ordered(x: Array, axes: list[int]) -> Array:
    return x if axes == list(range(len(axes))) else permute_p(x, axes=tuple(axes))


def kron(a: Array, b: Array) -> Array:
    """Kronecker product: every element of a times all of b. Shapes multiply from the right."""
    ndim = max(len(a.shape), len(b.shape))
    first = (1,) * (ndim - len(a.shape)) + tuple(a.shape)
    second = (1,) * (ndim - len(b.shape)) + tuple(b.shape)
    wide = reshape_p(a, shape=tuple(n for size in first for n in (size, 1)))
    product = wide * reshape_p(b, shape=tuple(n for size in second for n in (1, size)))
    return reshape_p(product, shape=tuple(n * m for n, m in zip(first, second, strict=True)))


def cross(a: Array, b: Array, dim: int = -1) -> Array:
    """Cross product of vectors of 3 along `dim`."""
    axis = (canonical_axis(dim, max(len(a.shape), len(b.shape))),)
    sizes = {x.shape[dim] for x in (a, b)}
    if sizes != {3}:
        raise errors.CONTRACTED_SIZES(op="cross (of 3)", left=a.shape[dim], right=b.shape[dim], where=provenance.here())

    def turned(x: Array, steps: int) -> Array:
        return roll_p(x, shift=(-steps,), axis=axis)

    return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)


def trace(x: Array) -> Array:
    """Sum of the diagonal of a matrix (n, m)."""
    if len(x.shape) != 2:
        raise bad_option("trace", "x", f"an array of shape {tuple(x.shape)}", "two dimensions")
    size = min(x.shape[-2:])
    square = x if x.shape[-2] == x.shape[-1] else x[..., :size, :size]
    flat = reshape_p(square, shape=(*x.shape[:-2], size * size))
    # Every (size + 1)th element of the flattened matrix.
    diagonal = flat[..., :: size + 1]
    return sum_p(diagonal, axis=(len(x.shape) - 2,), keepdims=False)


def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: str | None = None) -> Array:
    """Distances between rows: (..., n, d) and (..., m, d) to (..., n, m), in the norm `p`.

    The distances come from the differences: PyTorch's `compute_mode` is accepted but ignored. The gradient at distance
    0 is 0.
    """
    for x in (x1, x2):
        if len(x.shape) < 2 or x.shape[-1] != x1.shape[-1]:
            raise errors.CONTRACTED_SIZES(op="cdist", left=x1.shape, right=x2.shape, where=provenance.here())
    rows = reshape_p(x1, shape=(*x1.shape[:-1], 1, x1.shape[-1]))
    columns = reshape_p(x2, shape=(*x2.shape[:-2], 1, *x2.shape[-2:]))
    difference = rows - columns
    axis = (len(difference.shape) - 1,)
    if p == 2:
        squares = sum_p(ew.square(difference), axis=axis, keepdims=False)
        # sqrt has no slope at 0, so zeros are replaced before it.
        apart = squares > 0
        return ew.where(apart, ew.sqrt(ew.where(apart, squares, 1)), 0)
    size = ew.abs(difference)
    if p == 1:
        return sum_p(size, axis=axis, keepdims=False)
    if p == math.inf:
        return max_p(size, axis=axis, keepdims=False)
    if p == 0:
        return sum_p(ew.sign(size), axis=axis, keepdims=False)
    total = sum_p(size**p, axis=axis, keepdims=False)
    apart = total > 0
    return ew.where(apart, ew.where(apart, total, 1) ** (1 / p), 0)


def _check_dims(op: str, a: Array, b: Array, expected: tuple[int, int]) -> None:
    given = (len(a.shape), len(b.shape))
    if given != expected:
        raise errors.PRODUCT_DIMS(op=op, given=given, expected=expected, where=provenance.here())


all_take_complex(globals(), but=("cdist",))
