"""Python's operators on arrays: one table for all array-like classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.tables import pairs
from glassgrad.ops import elementwise, linalg  # noqa: F401 - importing them fills the registry

# Python's name of an operator -> the op in the table.
BINARY = pairs("""
    add=add sub=subtract mul=multiply truediv=divide floordiv=floor_divide mod=remainder pow=power matmul=matmul
    and=bitwise_and or=bitwise_or xor=bitwise_xor lshift=left_shift rshift=right_shift
    """)
COMPARISONS = pairs("lt=less le=less_equal gt=greater ge=greater_equal eq=equal ne=not_equal")
UNARY = {"neg": "negative", "abs": "abs", "invert": "bitwise_not"}


def attach(cls: type, function_of: Callable[[str], Callable[..., Any]]) -> None:
    """Give a class every operator; `function_of` returns the method that computes an op."""

    def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda b, a: function(a, b)

    for name, op in {**BINARY, **COMPARISONS, **UNARY}.items():
        setattr(cls, f"__{name}__", function_of(op))
    for name, op in BINARY.items():
        setattr(cls, f"__r{name}__", reflected(function_of(op)))
