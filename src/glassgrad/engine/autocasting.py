"""The ops that run in bfloat16 under `amp.autocast`: PyTorch's lists for processors, by names of primitives.

Casts are ops like others: they are recorded, so that the gradient of a float32 weight is float32, and traced, so that a
compiled step holds them.
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

# Products, by far most of the work: each of their terms is exact in float32, in which they are summed.
LOWER = narrow.PRODUCTS
# Ops whose result has few digits left in bfloat16: losses, and what cancels. Cross entropy is here and not in PyTorch's
# list: it is a sum, and sums are float32 here.
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
    """Return the arguments of an op in the dtypes that the lists ask for; float64 stays as it is."""
    if prim.name in LOWER:
        # A constant is the library's own: means over parts and the like are products here only.
        if prim.name == "matmul" and any(isinstance(arg, np.ndarray) for arg in args):
            return args
        return tuple([_cast(arg, "f", narrow.bfloat16()) for arg in args])
    if prim.name in SINGLE:
        return tuple([_cast(arg, narrow.NARROW, _SINGLE) for arg in args])
    return args


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors, a loss as a rule, that runs in float32 under autocast."""

    @functools.wraps(function)
    def call(*args: Array, **kwargs: object) -> Any:
        flags = MODE.flags
        if not flags & AUTOCAST:
            return function(*args, **kwargs)
        args = tuple([_cast(arg, narrow.NARROW, _SINGLE) for arg in args])
        kwargs = {name: _cast(arg, narrow.NARROW, _SINGLE) for name, arg in kwargs.items()}
        MODE.flags = flags & ~AUTOCAST  # for products inside of it as well
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
