"""Operators of a number class that derive from others: with a number on the left, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operator = Callable[[Any, Any], Any]
Comparison = Callable[[Any, Any], bool]


def reflected(op: Operator) -> Operator:
    """Return the operator for `2 - value`, where the number on the left becomes a value."""
    return lambda self, other: op(type(self)(other), self)


def comparison(compare: Comparison) -> Comparison:
    """Return a comparison of the numbers of two values, or of a value and a number."""
    return lambda self, other: compare(self.data, other.data if isinstance(other, type(self)) else other)
