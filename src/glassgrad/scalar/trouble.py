"""Errors of ops on Values where a float would raise: op, value, name and line, and the correction."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast

from glassgrad import errors
from glassgrad.errors.kinds import Message
from glassgrad.errors.missing import missing

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = str(Path(__file__).parents[1])

# What to write instead of names that Value and this module lack.
_OF_VALUE = {
    "sqrt": "x ** 0.5",
    "square": "x ** 2",
    "item": "x.data",
    "detach": "Value(x.data), a new leaf",
    "zero_grad": "x.grad = 0.0, or zero_grad() of the module",
    "requires_grad": "nothing: every Value has a gradient",
    "sum": "sum(values): a Value is one number; glassgrad.tensor makes arrays",
    "mean": "sum(values) / len(values): a Value is one number; glassgrad.tensor makes arrays",
    "shape": "a Value is one number; glassgrad.tensor makes arrays",
    "softmax": "exp() of each value over their sum, with the largest subtracted first",
}
INSTEAD = {
    "Tensor": "scalar.Value, one number; glassgrad.tensor for arrays",
    "tensor": "scalar.Value(2.0); glassgrad.tensor for arrays",
    "gradcheck": "glassgrad.verify.gradcheck(f, Value(2.0)), which takes functions of Values",
    "explain": "glassgrad.explain(f, Value(2.0)), which takes functions of Values",
    "draw_dot": "scalar.draw(value)",
    "trace": "scalar.draw(value).graph: its nodes and edges as data",
    "SGD": "a loop over net.parameters(): p.data -= rate * p.grad",
}

_DOMAIN = {
    "log": ("it has a value above 0 only", "keep it above 0, as (x + 1e-9).log() or x.max(1e-9) do"),
    "sin": ("infinity has no sine", "look for where the value became infinite"),
    "cos": ("infinity has no cosine", "look for where the value became infinite"),
}
_POWER = ("a negative number has no real power that is not whole", "an exponent that is whole, or abs(x) ** k")
_NEXT = {
    "exp": "subtract the largest before exp(), as a stable softmax does; exp() of more than 709.78 is infinite",
    "**": "a smaller number, or its logarithm: k * x.log()",
    "/": "add a small number to the denominator, or leave out the case where it is 0",
}


def named(op: str) -> Callable[[Function], Function]:
    """Return a decorator: an op that raises like a float names itself, its arguments and the user's line."""

    def decorate(method: Function) -> Function:
        @functools.wraps(method)
        def watched(*args: object) -> Any:
            try:
                return method(*args)
            except (ArithmeticError, ValueError) as error:
                if isinstance(error, errors.GlassgradError) or not all(map(_is_number, args)):
                    raise
                raise _error(error, op, args) from None

        return cast("Function", watched)

    return decorate


def _is_number(arg: object) -> bool:
    return isinstance(getattr(arg, "data", arg), int | float)


def absent(value: Any, name: str) -> Any:
    """Raise for an attribute that Values lack, naming the replacement."""
    raise missing("scalar.Value", name, dir(type(value)), _OF_VALUE)


def no_slopes(value: Any) -> Sequence[float]:
    """Raise when backward() reaches an op without slopes."""
    raise errors.SCALAR_NO_SLOPES(op=value._op, children=len(value._args))


def _error(error: Exception, op: str, args: tuple[object, ...]) -> Exception:
    frame = user_frame()
    names = variables(frame)
    facts = {"what": _what(op, args, names), "where": f"{frame.f_code.co_filename}:{frame.f_lineno}"}
    if isinstance(error, ZeroDivisionError):
        return errors.SCALAR_DIVISION(**facts, next=_NEXT["/"])
    if isinstance(error, OverflowError):
        return errors.SCALAR_OVERFLOW(**facts, next=_NEXT.get(op, "smaller numbers"))
    why, following = _DOMAIN.get(op, _POWER if op == "**" else (str(error), "another number"))
    raised: Message = errors.SCALAR_DOMAIN
    return raised(**facts, why=why, next=following)


def _what(op: str, args: tuple[Any, ...], names: dict[int, str]) -> str:
    """Return the source form of an op, and the value of every name in it."""
    shown: list[str] = []
    known: list[str] = []
    for arg in args:
        number = getattr(arg, "data", arg)
        name = getattr(arg, "label", "") or names.get(id(arg), "")
        shown.append(
            name or (f"({_number(number)})" if number < 0 and len(args) == 2 and not shown else _number(number))
        )
        if name:
            known.append(f"{name} = {_number(number)}")
    written = f" {op} ".join(shown) if len(shown) == 2 else f"{op}({shown[0]})"
    return f"{written}, where {' and '.join(dict.fromkeys(known))}," if known else written


def _number(number: float) -> str:
    return repr(float(number)) if math.isfinite(number) else str(number)


def user_frame() -> FrameType:
    """Return the nearest frame outside of the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def variables(frame: FrameType) -> dict[int, str]:
    """Return the names of the Values among a frame's own variables, by id."""
    seen = {**frame.f_globals, **frame.f_locals}
    return {id(value): name for name, value in seen.items() if name.isidentifier() and hasattr(type(value), "_slopes")}
