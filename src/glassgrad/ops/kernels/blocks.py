"""Formulas of several NumPy passes on large arrays, evaluated block after block while the block is in the cache.

Seven NumPy passes over four megabytes wait for memory seven times, and each fills a new array. `in_blocks` runs the
whole formula on 48,000 elements at a time instead, so that only the arguments and the result travel to and from
memory. Small, strided or broadcast arrays, and other array types, are computed in one piece.

Where NumPy takes milliseconds, a formula marked `native` runs as native code (`ops/kernels/native.py`). It is made for
one block, so it serves arrays of every size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Formula = Callable[..., Array]

# In float32 a block is a fifth of a megabyte: a handful of them fit the second-level cache, and NumPy's cost per call
# does not show. A power of two would make all blocks compete for the same cache sets.
BLOCK = 48_000
_FROM = BLOCK + BLOCK // 2


def compute_natively(*_: Any) -> bool:
    """Compute a formula marked `native`, or return False; `native`, which stands above, puts its function here."""
    return False


def inside(g: Array, v: Array, low: float, high: float) -> Array | None:
    """Return g where v is between two bounds, else 0; or None, until `channels`, which stands above, says otherwise."""
    return None


def in_native_blocks(formula: Formula) -> Formula:
    """Return a formula as `in_blocks` does, marked as one that is much faster in native code."""
    formula.native = True  # type: ignore[attr-defined]  # read in `_run`
    return in_blocks(formula)


def natively(evaluate: Formula, name: str) -> Formula:
    """Return a function on NumPy arrays that leaves large ones to the native code of an elementwise op."""
    formula = in_native_blocks(lambda _np, *x, **params: evaluate(*x, **params))
    entitle(formula, name)
    return functools.partial(formula, np)


def in_blocks(formula: Formula) -> Formula:
    """Return an elementwise formula ``(head, x, *rest, **params)`` that computes large arrays block after block.

    Written for forwards, whose head is the array namespace, and for local derivatives, whose head is the
    result. `Elementwise` puts the product with a cotangent into the same blocks.
    """

    @functools.wraps(formula)
    def run(head: Any, x: Array, *rest: Array, **params: Any) -> Array:
        if type(x) is not np.ndarray or x.size < _FROM:
            return formula(head, x, *rest, **params)
        return _run(formula, (head, x, *rest), params)

    run.formula = formula  # type: ignore[attr-defined]  # how `product_in_blocks` finds it
    return run


def product_in_blocks(partial: Formula, arity: int, reads_x: bool = True) -> Formula | None:
    """Return ``(c, y, *x) -> c * partial(y, *x)`` in blocks if `in_blocks` made `partial`; None otherwise.

    A rule that does not read x is given something in its place, such as the node that x came from: it is left out.
    """
    formula = getattr(partial, "formula", None)
    if formula is None:
        return None

    def one(c: Array, y: Array, x: Array, **params: Any) -> Array:
        if type(c) is not np.ndarray or c.size < _FROM:
            return c * formula(y, x, **params)
        return _run(formula, (y, x if reads_x else None), params, c)

    def several(c: Array, y: Array, *x: Array, **params: Any) -> Array:
        if type(c) is not np.ndarray or c.size < _FROM:
            return c * formula(y, *x, **params)
        return _run(formula, (y, *(x if reads_x else (None,) * len(x))), params, c)

    return one if arity == 1 else several


def _run(formula: Formula, args: tuple[Any, ...], params: dict[str, Any], factor: Any = None) -> Array:
    model = next((arg for arg in args if type(arg) is np.ndarray and any(arg.strides)), None)
    if model is None:
        return _whole(formula, args, params, factor)
    order = sorted(range(model.ndim), key=lambda axis: -model.strides[axis])
    factor_part, *parts = (_flat(arg, model.shape, order) for arg in (factor, *args))
    if factor_part is NotImplemented or any(part is NotImplemented for part in parts):
        return _whole(formula, args, params, factor)
    if hasattr(formula, "native"):
        whole = np.empty_like(model)
        given = parts if factor is None else [factor_part, *parts]
        if compute_natively(formula, params, given, _flat(whole, model.shape, order), factor is not None):
            return whole
    result: Any = None
    for start in range(0, model.size, BLOCK):
        stop = start + BLOCK
        value = formula(*[_cut(part, start, stop) for part in parts], **params)
        if result is None:
            result = np.empty_like(model, value.dtype if factor is None else np.result_type(value, factor))
            flat = _flat(result, model.shape, order)
        if factor is None:
            flat[start:stop] = value
        else:
            np.multiply(_cut(factor_part, start, stop), value, out=flat[start:stop])
    return result


def entitle(forward: Any, name: str) -> None:
    """Note the name of the op that a formula is the forward of, by which native code is asked for."""
    formula = getattr(forward, "formula", None)
    if formula is not None:
        formula.op = name


def _whole(formula: Formula, args: tuple[Any, ...], params: dict[str, Any], factor: Any) -> Array:
    value = formula(*args, **params)
    return value if factor is None else factor * value


def _cut(part: Any, start: int, stop: int) -> Any:
    return part[start:stop] if type(part) is np.ndarray and part.ndim else part


def _flat(arg: Any, shape: tuple[int, ...], order: list[int]) -> Any:
    """Return an array flattened in memory order, and anything else unchanged.

    Dense is enough, in whatever order of axes: convolutions leave their channels innermost. An array that
    repeats one element, like the cotangent below a sum, becomes that element. `NotImplemented` means that
    blocks are not possible.
    """
    if type(arg) is not np.ndarray:
        # The placeholder of an unsaved argument is never read; a class with a priority belongs to an interpreter.
        return NotImplemented if hasattr(arg, "__array_priority__") and not isinstance(arg, np.generic) else arg
    if not arg.ndim:
        return arg
    if arg.shape != shape:
        return NotImplemented
    if not any(arg.strides):
        return arg[(slice(0, 1),) * arg.ndim].reshape(())
    turned = arg.transpose(order)
    return turned.reshape(-1) if turned.flags.c_contiguous else NotImplemented
