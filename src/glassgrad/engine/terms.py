"""Terms and numbers: the operands in the equations of an update rule.

A rule is written as in its paper, ``m = b1 * m + (1 - b1) * g``: a `Term` represents an array, a `Number` an option or
a count of steps. An evaluator decides what an operator does: compute at once, on arrays or on the Symbols of a trace,
or record the computation. Numbers are weak: an array combined with one keeps its dtype.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import INTERPRETERS, REGISTRY, Array, Interpreter, Primitive
from glassgrad.ops.operators import attach
from glassgrad.ops.shape import astype

# The equivalents of primitives for plain numbers: as text, and as a function.
PLAIN: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("{} + {}", operator.add),
    "subtract": ("{} - {}", operator.sub),
    "multiply": ("{} * {}", operator.mul),
    "divide": ("{} / {}", operator.truediv),
    "power": ("{} ** {}", operator.pow),
    "negative": ("-{}", operator.neg),
    "equal": ("{} == {}", operator.eq),
    "not_equal": ("{} != {}", operator.ne),
    "abs": ("abs({})", abs),
    "less": ("{} < {}", operator.lt),
    "less_equal": ("{} <= {}", operator.le),
    "greater": ("{} > {}", operator.gt),
    "greater_equal": ("{} >= {}", operator.ge),
    "minimum": ("min({}, {})", min),
    "maximum": ("max({}, {})", max),
    "sqrt": ("sqrt({})", math.sqrt),
    "where": ("{1} if {0} else {2}", lambda condition, a, b: a if condition else b),
}


class Evaluator:
    """Defines the operators of terms and numbers."""

    def compute(self, prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
        """Return the term that a primitive computes from terms, numbers and literals."""
        raise NotImplementedError  # terms are computed at once, or written into a kernel

    def number(self, name: str, args: tuple[Array, ...]) -> Array:
        """Return the number that an entry of `PLAIN` computes from numbers and literals."""
        raise NotImplementedError  # terms are computed at once, or written into a kernel

    def truth(self, number: Number) -> bool:
        """Tell whether a number is not 0, for an `if` of the rule."""
        raise NotImplementedError  # terms are computed at once, or written into a kernel

    def shape(self, term: Term) -> tuple[int, ...]:
        """Return the shape of a term."""
        shape: tuple[int, ...] = term.what.shape
        return shape


class Term:
    """An array in an equation.

    Attributes:
        by: the evaluator that it belongs to.
        what: the array, or the evaluator's representation of it.
    """

    __slots__ = ("by", "what")

    def __init__(self, by: Evaluator, what: Any) -> None:
        self.by = by
        self.what = what

    if TYPE_CHECKING:
        # Operators are attached from the table.
        def __neg__(self) -> Array: ...

    __array_ufunc__ = None  # NumPy then leaves operators to this class
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise errors.RULE_NEEDS_NUMBERS(where=provenance.here())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.by.shape(self)

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.what.dtype
        return dtype


class Number:
    """A number in an equation.

    Attributes:
        by: the evaluator that it belongs to.
        what: its value, a Symbol, or the text that computes it.
        known: its value, if it is known while the rule runs.
    """

    __slots__ = ("by", "known", "what")

    def __init__(self, by: Evaluator, what: Any, known: Any = None) -> None:
        self.by = by
        self.what = what
        self.known = known

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self.by.truth(self)


def _computed(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
    for arg in args:
        if type(arg) not in _OPERANDS:
            raise errors.RULE_OPERAND(given=f"a {type(arg).__name__}", where=provenance.here())
    term = next(arg for arg in args if type(arg) is Term)
    return term.by.compute(prim, args, params)


def _counted(prim: Primitive, args: tuple[Array, ...], _params: dict[str, Any]) -> Array:
    number = next(arg for arg in args if type(arg) is Number)
    return number.by.number(prim.name, args)


_OPERANDS = frozenset({Term, Number, bool, int, float, np.float64})


def _of_terms(name: str) -> Callable[..., Any]:
    prim = REGISTRY[name]

    def operate(*args: Array) -> Array:
        if name in {"add", "multiply"} and type(args[0]) is not Term:
            args = args[::-1]  # the array first, as in an in-place update
        if name == "multiply" and type(args[1]) is int and args[1] == 1:
            return args[0]
        if name == "power" and type(args[1]) is int and args[1] == 2 and type(args[0]) is Term:
            return _computed(REGISTRY["multiply"], (args[0], args[0]), {})
        return _computed(prim, args, {})

    return operate


def _of_numbers(name: str) -> Callable[..., Any]:
    prim = REGISTRY[name]
    return lambda *args: NotImplemented if Term in map(type, args) else _counted(prim, args, {})


class Immediate(Evaluator):
    """Computes at once.

    It is in this folder, not beside the rules, so that an instruction's origin is the line of the rule.
    """

    def compute(self, prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
        dtypes = [arg.dtype for arg in args if type(arg) is Term]
        dtype = next((one for one in dtypes if one.kind in "fV"), dtypes[0])
        given = [
            arg.what if type(arg) is Term else weak(arg.what, dtype) if type(arg) is Number else literal(arg)
            for arg in args
        ]
        if prim.name == "where" and type(args[0]) is Number:
            given[0] = args[0].what  # a boolean
        return Term(self, prim(*given, **params))

    def number(self, name: str, args: tuple[Array, ...]) -> Array:
        given = [arg.what if type(arg) is Number else arg for arg in args]
        plain = all(isinstance(arg, bool | int | float) for arg in given)
        return Number(self, PLAIN[name][1](*given) if plain else REGISTRY[name](*given))

    def truth(self, number: Number) -> bool:
        return bool(number.what if number.known is None else number.known)


def literal(number: Array) -> Array:
    """Return a literal as a Python number: a NumPy float would widen an array."""
    return float(number) if isinstance(number, float) else number


def weak(value: Array, dtype: np.dtype) -> Array:
    """Return a number that does not widen an array of a dtype: a float unchanged, a Symbol cast to that dtype."""
    return value if isinstance(value, float | int) else astype(value, dtype)


attach(Term, _of_terms)
attach(Number, _of_numbers)
# Lets functions such as `sqrt` and `where` take both.
INTERPRETERS[Term] = Interpreter(rank=60, apply=_computed)
INTERPRETERS[Number] = Interpreter(rank=59, apply=_counted)
