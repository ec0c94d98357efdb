"""Text of elementwise ops from their forwards: `prim.forward(TextSpace(), *terms)` writes the formula.

A forward is written against an array namespace. `TextSpace` is one whose arrays are expressions of a program, so that
an op's formula is stated only in its entry. A forward that needs more than operators and elementwise functions has no
text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Params
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text
from glassgrad.ops.core import Elementwise, Primitive
from glassgrad.ops.operators import attach

Writer = Callable[..., Text]


class Term:
    """An expression with the operators of an array.

    It has no truth value and no array attributes: a forward that needs either has no text.

    Attributes:
        write: builds its text from the texts of its parts.
        parts: its operands: terms and numbers.
    """

    __slots__ = ("parts", "write")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # `==` makes a comparison term, so terms cannot be keys

    def __init__(self, write: Writer, *parts: object) -> None:
        self.write = write
        self.parts = parts

    def __getattr__(self, name: str) -> Any:
        # With an AttributeError, getattr(x, "dtype", None) would continue with a formula for another dtype.
        raise TypeError(f"its forward reads the attribute {name!r} of an array, which is text here")

    def __bool__(self) -> bool:
        raise TypeError("its forward asks for the truth value of an array, which is text here")


def _infix(sign: str, level: int) -> Writer:
    return lambda a, b: text.binary(a, sign, b, level)


_SIGNS = {
    "add": ("+", text.SUM),
    "subtract": ("-", text.SUM),
    "multiply": ("*", text.PRODUCT),
    "divide": ("/", text.PRODUCT),
    "floor_divide": ("//", text.PRODUCT),
    "remainder": ("%", text.PRODUCT),
    "matmul": ("@", text.PRODUCT),
    "left_shift": ("<<", text.SHIFT),
    "right_shift": (">>", text.SHIFT),
    "bitwise_and": ("&", text.AND),
    "bitwise_xor": ("^", text.XOR),
    "bitwise_or": ("|", text.OR),
    "less": ("<", text.COMPARISON),
    "less_equal": ("<=", text.COMPARISON),
    "greater": (">", text.COMPARISON),
    "greater_equal": (">=", text.COMPARISON),
    "equal": ("==", text.COMPARISON),
    "not_equal": ("!=", text.COMPARISON),
}
OPERATORS: dict[str, Writer] = {
    **{op: _infix(sign, level) for op, (sign, level) in _SIGNS.items()},
    "power": text.power,
    "square": lambda x: text.power(x, Text("2")),
    "negative": partial(text.prefix, "-"),
    "bitwise_not": partial(text.prefix, "~"),
    "invert": partial(text.prefix, "~"),
    "abs": partial(text.call, "np.abs"),
}
# Elementwise functions of NumPy that are not ufuncs.
_NO_UFUNCS = {"where", "clip", "round", "sinc", "nan_to_num"}


class TextSpace:
    """An array namespace whose arrays are `Term`s: operators, and functions of NumPy or of the program."""

    def __init__(self, defines: Callable[[str], bool] = lambda name: False) -> None:
        self.defines = defines

    def __getattr__(self, name: str) -> Callable[..., Term]:
        if name in OPERATORS:
            return partial(Term, OPERATORS[name])
        if name in _NO_UFUNCS or isinstance(getattr(np, name, None), np.ufunc):
            return _calling(f"np.{name}")
        if self.defines(name):
            return _calling(name)
        # After an AttributeError, a forward would fall back to SciPy's function.
        raise TypeError(f"its forward calls {name}, which is no elementwise function of NumPy")


def _calling(name: str) -> Callable[..., Term]:
    def function(*args: object, **options: object) -> Term:
        def write(*parts: Text) -> Text:
            named = zip(options, parts[len(args) :], strict=True)
            return text.call(name, *parts[: len(args)], **dict(named))

        return Term(write, *args, *options.values())

    return function


attach(Term, lambda op: lambda *operands: Term(OPERATORS[op], *operands))


def term(written: Text) -> Term:
    """Return a piece of text as a term."""
    return Term(lambda: written)


def formula(prim: Primitive | None, operands: Sequence[Term], params: Params, space: TextSpace) -> Any:
    """Apply an elementwise op's forward to terms; return None if it is not a formula (see `why_no_formula`)."""
    found = _computed(prim, operands, params, space)
    return found if isinstance(found, Term) else None


def why_no_formula(prim: Primitive | None, operands: Sequence[Term], params: Params, space: TextSpace) -> str:
    """Return the reason why `formula` returns None."""
    found = _computed(prim, operands, params, space)
    return str(found) if isinstance(found, Exception) else f"its forward returns a {type(found).__name__}"


def _computed(prim: Primitive | None, operands: Sequence[Term], params: Params, space: TextSpace) -> object:
    """Return the result of a forward on terms, or the error that it raises."""
    if not isinstance(prim, Elementwise):
        return TypeError("it is not elementwise, and compile/source/reading.py has no template for it")
    try:
        return prim.compute_in(space, tuple(operands), params)
    except (TypeError, AttributeError, ValueError) as error:
        return error


def _used(result: Term) -> Iterator[Term]:
    """Yield the parts of a term, once per use."""
    stack, seen = [result], set()
    while stack:
        for part in stack.pop().parts:
            if isinstance(part, Term):
                yield part
                if id(part) not in seen:
                    seen.add(id(part))
                    stack.append(part)


def is_short(result: Term) -> bool:
    """Tell whether a term is short enough to inline: at most two operations, and every operand once."""
    used = list(_used(result))
    return len(set(map(id, used))) == len(used) and sum(bool(part.parts) for part in used) < 2


def written(result: Term) -> Text:
    """Return a term as one expression."""
    return _render(result, lambda part, code: code)


def statements(result: Term, taken: Collection[str]) -> list[str]:
    """Return the lines of a function that returns a term; parts that are used twice get their own lines."""
    uses = Counter(map(id, _used(result)))
    lines: list[str] = []
    names: dict[int, Text] = {}

    def named(part: Term, code: Text) -> Text:
        if uses[id(part)] < 2 or not part.parts:
            return code
        if id(part) not in names:
            # The first letter of a function, as in e = np.exp(x).
            letters = f"{code.code[3]}uvwst" if code.code.startswith("np.") else "uvwst"
            gone = {*taken, *(one.code for one in names.values())}
            names[id(part)] = Text(next(letter for letter in letters if letter not in gone))
            lines.append(f"{names[id(part)].code} = {code.code}")
        return names[id(part)]

    returned = _render(result, named)
    return [*lines, f"return {returned.code}"]


def _render(part: object, named: Callable[[Term, Text], Text]) -> Text:
    if not isinstance(part, Term):
        return _number(part)
    return named(part, part.write(*[_render(one, named) for one in part.parts]))


def _number(value: object) -> Text:
    """Write a number, as a square root if it is one."""
    for root, code in ((math.sqrt(0.5), "math.sqrt(0.5)"), (math.sqrt(2 / math.pi), "math.sqrt(2 / math.pi)")):
        if isinstance(value, float) and abs(value) == root:
            return Text(code) if value > 0 else text.prefix("-", Text(code))
    return text.number(value)
