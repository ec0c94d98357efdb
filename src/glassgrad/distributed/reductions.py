"""The MPI op and the dtype of each reduction."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance


class ReduceOp(enum.Enum):
    """How the values of the ranks are combined: SUM, AVG, PRODUCT, MIN, MAX, and BAND, BOR, BXOR of integers."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


_ARITHMETIC = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.AVG)
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_OPS = {ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD"}
# Booleans travel as bytes of 0 and 1; their sum is true if one of them is.
_LOGICAL = {ReduceOp.SUM: "MAX", ReduceOp.BOR: "MAX", ReduceOp.MAX: "MAX", ReduceOp.BXOR: "BXOR"}
_LOGICAL |= {ReduceOp.PRODUCT: "MIN", ReduceOp.BAND: "MIN", ReduceOp.MIN: "MIN"}


class Reduction(NamedTuple):
    """A reduction for MPI: its dtype, the name of its op, and whether the sum is divided."""

    dtype: np.dtype
    op: str
    divide: bool

    def packed(self, elements: np.ndarray) -> np.ndarray:
        """Return contiguous elements as MPI receives them: the same memory unless the dtype has to change."""
        return elements.view(self.dtype) if elements.dtype.kind == "b" else elements.astype(self.dtype, copy=False)

    def unpacked(self, elements: np.ndarray, ranks: int, dtype: np.dtype) -> np.ndarray:
        """Return the received elements in their final dtype, divided by the number of ranks for a mean."""
        if self.divide:
            elements /= ranks
        return elements.view(dtype) if dtype.kind == "b" else elements


def reduction(call: str, op: Any, dtype: np.dtype) -> Reduction:
    """Return how MPI reduces values of a dtype.

    16-bit floats are summed in float32 and rounded once.

    Raises:
        KindError: the op is not defined for the dtype.
    """
    kind = "f" if dtype.name == "bfloat16" else dtype.kind
    hint = ""
    if not isinstance(op, ReduceOp):
        hint = "take one of ReduceOp: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR"
    elif op is ReduceOp.AVG and kind in "biu":
        hint = "take ReduceOp.SUM, or convert to floating point first"
    elif op in _BITS and kind in "fc":
        hint = "take a tensor of integers or truth values"
    elif kind == "c" and op not in _ARITHMETIC:
        hint = "complex numbers have no order; reduce x.abs(), or x.real and x.imag"
    if hint:
        raise errors.REDUCTION_DTYPE(call=call, op=op, dtype=dtype, hint=hint, where=provenance.here())
    if kind == "b":
        return Reduction(np.dtype(np.uint8), _LOGICAL[op], divide=False)
    travels = np.dtype(np.float32) if kind == "f" and dtype.itemsize == 2 else dtype
    return Reduction(travels, _OPS.get(op, op.name), op is ReduceOp.AVG)


__all__ = ["ReduceOp"]
