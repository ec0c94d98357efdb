"""Small parts of the writer of nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import BITS
from glassgrad.compile.plan.nests import Expr, operands

_LINE = 64  # bytes; every array of the arena begins at a multiple of it


@dataclass(frozen=True)
class Room:
    """An array of scratch memory that a kernel needs."""

    name: str
    kind: str
    elements: int


def rounded(elements: int, of: str) -> int:
    """Return a number of elements, rounded up to whole cache lines."""
    per = _LINE * 8 // max(BITS[of], 8)
    return -(-max(elements, 1) // per) * per


def position_of(name: str) -> str:
    """Return the name of the place that belongs to the best value so far."""
    stem, bracket, rest = name.partition("[")
    return f"{stem}_at{bracket}{rest}"


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines one level further in."""
    return [f"    {line}" for line in lines]


def below(roots: Sequence[Expr], known: Callable[[Expr], bool]) -> list[Expr]:
    """Return every expression that the roots need, users before their operands, without what is behind known ones."""
    seen: dict[Expr, None] = {}
    stack = list(reversed(roots))
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen[expr] = None
        if not known(expr) and expr.op != "reduced":
            stack += operands(expr)
    return list(seen)
