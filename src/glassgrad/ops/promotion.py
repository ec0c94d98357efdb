"""The dtypes of results: NumPy's (docs/adr/005), unless another rule is in force.

Glassgrad under the name torch puts PyTorch's rule here (`compat/promotion.py`). It decides where calls on Tensors
compute; plain arrays, and so derivative rules, stay with NumPy. Primitives keep their function in `traits`: while no
rule is in force, nothing is asked per call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from glassgrad.ops.kernels.ways import Array

if TYPE_CHECKING:
    from glassgrad.ops.core import Primitive


class Rule(Protocol):
    """The rules that decide instead of NumPy."""

    def around(self, prim: Primitive) -> Callable[..., Array]:
        """Return what evaluates a primitive on the arrays of Tensors."""

    def compute(self, prim: Primitive, *args: Array, **params: Array) -> Array:
        """Compute on what stands for arrays in a transformation."""

    def fits(self, given: np.dtype, expected: np.dtype) -> bool:
        """Tell whether a result may be written into a tensor of another dtype."""

    def float_of(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of what an op with fractions makes of this dtype."""


class _Now:
    rule: Rule | None = None


NOW = _Now()


def use(rule: Rule | None, primitives: Iterable[Primitive]) -> None:
    """Put a rule in force, or None for NumPy's; the primitives forget what they evaluate with."""
    NOW.rule = rule
    for prim in primitives:
        prim.__dict__.pop("traits", None)


def evaluate_of(prim: Primitive) -> Callable[..., Array]:
    """Return what evaluates a primitive on the arrays of Tensors."""
    return prim.evaluate if NOW.rule is None else NOW.rule.around(prim)


def lift(prim: Primitive) -> Callable[..., Array]:
    """Return what computes a primitive on the arrays of Tensors some of which are none of NumPy's."""
    return prim if NOW.rule is None else functools.partial(NOW.rule.compute, prim)


def fits(given: np.dtype, expected: np.dtype) -> bool:
    """Tell whether a result may be written into a tensor of another dtype."""
    return np.can_cast(given, expected, "same_kind") if NOW.rule is None else NOW.rule.fits(given, expected)


def float_of(dtype: np.dtype, natively: np.dtype) -> np.dtype:
    """Return the dtype that an op with fractions computes integers in; of floats it is their own."""
    if dtype.kind in "fcV":
        return dtype
    return natively if NOW.rule is None else NOW.rule.float_of(dtype)
