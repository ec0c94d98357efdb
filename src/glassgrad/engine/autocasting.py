"""The ops that run in bfloat16 under `amp.autocast`: PyTorch's lists for processors, by names of primitives.

Casts are ordinary ops. They are recorded, so the gradient of a float32 weight is float32, and traced, so a compiled
step contains them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

import numpy as np

from glassgrad.base.tables import words
from glassgrad.engine.mode import AUTOCAST, MODE
from glassgrad.ops import narrow
from glassgrad.ops.core import INTERPRETERS, Array, Primitive
from glassgrad.ops.shape import astype_p

# Products, which are most of the work: their terms are exact in float32, and the sums are computed in float32.
LOWER = narrow.PRODUCTS
# Ops whose result has few correct digits in bfloat16: losses, and ops with cancellation. Cross entropy is here although
# it is not in PyTorch's list: it is a sum, and sums are float32 here.
SINGLE = frozenset(
    words(
        """
        binary_cross_entropy binary_cross_entropy_with_logits mse_loss ctc_loss cross_entropy prod fft rfft
        rfft_back cholesky inv pinv det slogdet eig eigh svd qr lu solve solve_triangular matrix_exp kth
        sparse_product
        """
    )
)
_SINGLE = np.dtype(np.float32)


def cast_for(prim: Primitive, args: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the arguments of an op in the dtypes that the lists require; float64 is unchanged."""
    if prim.name in LOWER:
        # A constant operand comes from the library itself: means over parts and the like are products only here.
        if prim.name == "matmul" and any(isinstance(arg, np.ndarray) for arg in args):
            return args
        return tuple([_cast(arg, "f", narrow.bfloat16()) for arg in args])
    if prim.name in SINGLE:
        return tuple([_cast(arg, narrow.NARROW, _SINGLE) for arg in args])
    return args


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors, usually a loss, that runs in float32 under autocast."""

    @functools.wraps(function)
    def call(*args: Array, **kwargs: object) -> Any:
        flags = MODE.flags
        if not flags & AUTOCAST:
            return function(*args, **kwargs)
        args = tuple([_cast(arg, narrow.NARROW, _SINGLE) for arg in args])
        kwargs = {name: _cast(arg, narrow.NARROW, _SINGLE) for name, arg in kwargs.items()}
        MODE.flags = flags & ~AUTOCAST  # also applies to products inside
        try:
            return function(*args, **kwargs)
        finally:
            MODE.flags = flags

    return call


def all_in_single(module: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Replace functions of a module by those that run in float32 under autocast."""
    module.update({name: in_single(module[name]) for name in names})


def _cast(arg: Array, kind: str, dtype: np.dtype) -> Array:
    if type(arg) not in INTERPRETERS and not isinstance(arg, np.ndarray | np.generic):
        return arg
    if arg.dtype.kind != kind or arg.dtype.itemsize > _SINGLE.itemsize:
        return arg
    return astype_p(arg, dtype=dtype)
