"""Formulas of several NumPy passes on large arrays, evaluated block after block while the block is in the cache.

Seven NumPy passes over four megabytes wait for memory seven times, and each fills a new array. `in_blocks` runs the
whole formula on 48,000 elements at a time instead, so that only the arguments and the result travel to and from
memory. Small, strided or broadcast arrays, and other array types, are computed in one piece.

A formula marked `native` runs as native code from a few thousand elements on. A kernel is made for one small block, so
it serves arrays of every size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.ops.kernels import native, products, ways
from glassgrad.ops.kernels.ways import Array, Params

Formula = Callable[..., Array]

# In float32 a block is a fifth of a megabyte: a handful of them fit the second-level cache, and NumPy's cost per call
# does not show. A power of two would make all blocks compete for the same cache sets.
BLOCK = 48_000
_FROM = ways.least("formula in passes")
NATIVE_BLOCK = 4_096  # elements that a kernel is made for, which goes over larger arrays in one call
_NUMBERS = (int, float, np.floating)
# About how many nanoseconds an element takes NumPy, in a formula that calls one of these functions and in any other.
_NS_OF_FUNCTIONS, _NS = 6, 1
_FUNCTIONS = {"exp", "expm1", "log", "log1p", "tanh", "sinh", "cosh", "rsqrt", "sigmoid", "erf", "erfc"}
_FUNCTIONS |= {"softplus_p", "_softmax2", "_ratio", "_scipy", "evaluate"}
_PRODUCTS = 48  # multiplications of a matrix product that take as long as an element in native code

FORMULAS: dict[Formula, Formula] = {}  # result of `in_blocks` -> its formula
NATIVE: set[Formula] = set()  # formulas that are much faster in native code
OPS: dict[Formula, str] = {}  # formula of a forward -> its op


def in_native_blocks(formula: Formula) -> Formula:
    """Apply `in_blocks` to a formula, and mark it as much faster in native code."""
    NATIVE.add(formula)
    return in_blocks(formula)


def natively(evaluate: Formula, name: str) -> Formula:
    """Return a function on NumPy arrays that leaves large ones to the native code of an elementwise op."""
    formula = in_native_blocks(lambda _np, *x, **params: evaluate(*x, **params))
    entitle(formula, name)
    return functools.partial(formula, np)


def in_blocks(formula: Formula) -> Formula:
    """Return an elementwise formula ``(head, x, *rest, **params)`` that computes large arrays block after block.

    The head of a forward is the array namespace; the head of a local derivative is the result. `Elementwise` computes
    the product with a cotangent in the same blocks.
    """

    @functools.wraps(formula)
    def run(head: Any, x: Array, *rest: Array, **params: Any) -> Array:
        if type(x) is not np.ndarray or x.size < NATIVE_BLOCK or _is_small(formula, x.size):
            return formula(head, x, *rest, **params)
        return _run(formula, (head, x, *rest), params)

    FORMULAS[run] = formula
    return run


def product_in_blocks(partial: Formula, arity: int, reads_x: bool = True) -> Formula | None:
    """Return ``(c, y, *x) -> c * partial(y, *x)`` in blocks if `in_blocks` made `partial`; None otherwise.

    A rule that does not read x gets a placeholder for it, such as the node of x, which is left out here.
    """
    formula = FORMULAS.get(partial)
    if formula is None:
        return None

    def one(c: Array, y: Array, x: Array, **params: Any) -> Array:
        if type(c) is not np.ndarray or c.size < NATIVE_BLOCK or _is_small(formula, c.size):
            return c * formula(y, x, **params)
        return _run(formula, (y, x if reads_x else None), params, c)

    def several(c: Array, y: Array, *x: Array, **params: Any) -> Array:
        if type(c) is not np.ndarray or c.size < NATIVE_BLOCK or _is_small(formula, c.size):
            return c * formula(y, *x, **params)
        return _run(formula, (y, *(x if reads_x else (None,) * len(x))), params, c)

    return one if arity == 1 else several


def _is_small(formula: Formula, size: int) -> bool:
    """Tell whether NumPy computes `size` elements, at least `NATIVE_BLOCK`, in one piece."""
    return size < _FROM and (formula not in NATIVE or not native.pays(_ns(formula) * size))


@functools.cache
def _ns(formula: Formula) -> int:
    code = getattr(formula, "__code__", None)
    if code is None:
        return _NS_OF_FUNCTIONS
    return _NS if _FUNCTIONS.isdisjoint((*code.co_names, *code.co_freevars)) else _NS_OF_FUNCTIONS


def _run(formula: Formula, args: tuple[Array, ...], params: Params, factor: Array = None) -> Array:
    model = next((arg for arg in args if type(arg) is np.ndarray and any(arg.strides)), None)
    if model is None:
        return _whole(formula, args, params, factor)
    order = None if model.flags.c_contiguous else sorted(range(model.ndim), key=lambda axis: -model.strides[axis])
    parts = [_flat(arg, model.shape, order) for arg in (factor, *args)]
    if any(part is NotImplemented for part in parts):
        return _whole(formula, args, params, factor)
    given = parts[1:] if factor is None else parts
    if formula in NATIVE:
        whole = np.empty_like(model)
        if compute_natively(formula, params, given, _flat(whole, model.shape, order), factor is not None):
            return whole
    if model.size < _FROM:
        return _whole(formula, args, params, factor)
    return _in_passes(formula, parts[1:], params, None if factor is None else parts[0], (model, order))


def _in_passes(
    formula: Formula, parts: list[Array], params: Params, factor: Array, like: tuple[Array, list[int] | None]
) -> Array:
    """Compute a formula of flat arrays block after block by NumPy; the result is laid out like an array."""
    model, order = like
    result: Array = None
    for start in range(0, model.size, BLOCK):
        stop = start + BLOCK
        value = formula(*[_cut(part, start, stop) for part in parts], **params)
        if result is None:
            result = np.empty_like(model, value.dtype if factor is None else np.result_type(value, factor))
            flat = _flat(result, model.shape, order)
        if factor is None:
            flat[start:stop] = value
        else:
            np.multiply(_cut(factor, start, stop), value, out=flat[start:stop])
    return result


def compute_natively(formula: Formula, params: Params, parts: list[Array], out: Array, product: bool) -> bool:
    """Compute a formula of flat arrays into `out`, times the first with `product`; return False if NumPy should."""
    if out.size < NATIVE_BLOCK or not native.pays(_ns(formula) * out.size) or out.dtype.char not in "fd":
        return False
    what: str | Formula
    if parts[0] is np:  # the forward of an op, for which the compiler has code
        what, parts = OPS[formula], parts[1:]
    else:
        what = _product(formula) if product else formula
    # Pass a number like an array; otherwise every new number would need a new kernel.
    parts = [np.asarray(part, out.dtype) if isinstance(part, _NUMBERS) else part for part in parts]
    given = [part for part in parts if type(part) is np.ndarray]
    if any(part.dtype is not out.dtype for part in given):
        return False
    # Arguments that the formula does not read are placeholders, such as nodes. None stands for them in the kernel's
    # key, which must not keep them alive.
    types = tuple([((NATIVE_BLOCK,), part.dtype) if type(part) is np.ndarray else None for part in parts])
    kernel = native.kernels.find(what, types, (NATIVE_BLOCK,), params, 1)
    if kernel is None or not all(part.flags.aligned for part in given):
        return False
    arrays = [part if part.ndim else np.full(NATIVE_BLOCK, part) for part in given]
    step = NATIVE_BLOCK * out.itemsize
    steps = [part.ndim * step for part in given]
    count = -(-out.size // NATIVE_BLOCK)
    kernel.along([*arrays, out], [*steps, step], count, products.shares(_PRODUCTS * out.size))
    return True


@functools.lru_cache(maxsize=1024)
def _product(formula: Formula) -> Formula:
    def product(c: Array, *args: Array, **params: Any) -> Array:
        return c * formula(*args, **params)

    return product


def entitle(forward: str | Formula, name: str) -> None:
    """Record the name of a forward's op, under which native code is found."""
    if not isinstance(forward, str) and forward in FORMULAS:
        OPS[FORMULAS[forward]] = name


def _whole(formula: Formula, args: tuple[Array, ...], params: Params, factor: Array) -> Array:
    value = formula(*args, **params)
    return value if factor is None else factor * value


def _cut(part: Array, start: int, stop: int) -> Array:
    return part[start:stop] if type(part) is np.ndarray and part.ndim else part


def _flat(arg: Array, shape: tuple[int, ...], order: list[int] | None) -> Array:
    """Return an array flattened in memory order, and anything else unchanged.

    The array must be dense, in any order of axes: convolutions leave their channels innermost. `order` is None for C's.
    An array that repeats one element, such as the cotangent of a sum's input, becomes that element. `NotImplemented`
    means that blocks are not possible.
    """
    if type(arg) is not np.ndarray:
        # The placeholder of an unsaved argument is never read; a class with a priority belongs to an interpreter.
        if arg is np or arg is None:
            return arg
        return NotImplemented if hasattr(arg, "__array_priority__") and not isinstance(arg, np.generic) else arg
    if not arg.ndim:
        return arg
    if arg.shape != shape:
        return NotImplemented
    if arg.flags.c_contiguous and order is None:
        return arg.reshape(-1)
    if not any(arg.strides):
        return arg[(slice(0, 1),) * arg.ndim].reshape(())
    turned = arg if order is None else arg.transpose(order)
    return turned.reshape(-1) if turned.flags.c_contiguous else NotImplemented
