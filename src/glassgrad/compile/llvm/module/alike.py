"""Merge functions that differ only in numbers into one that takes the numbers as arguments.

The layers of a deep network differ in their number of channels, and their kernels in loop ends and distances. Most of
the compile time is the translation of kernels into machine code, so a network of many layers then compiles in the time
of its distinct ones. Numbers inside vectors and divisors stay constants, because as arguments they cost much more.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

# More arguments would be reloaded from memory again and again.
_MOST_ARGUMENTS = 12
_ROUNDS = 4  # callers of merged functions may become alike in the next round

# Operands that an argument can replace: of sums, products, comparisons and addresses, at the end of a line; of calls.
_AT_END = re.compile(
    r"  %\w+ = (?:(?:mul|add|sub)(?: nuw| nsw)* i64|getelementptr \w+, ptr %\w+, i64|icmp \w+ i64)"
    r"(?: [%\w]+,)? (-?\d+)$"
)
_IN_CALL = re.compile(r"(?<=i64 )-?\d+(?=[,)])")
_CALL = re.compile(r"call void @(kernel\d+)\(([^\n]*)\)$", re.MULTILINE)


@dataclass(frozen=True)
class _Shape:
    """A function's text split at its numbers; `pieces` are the text between them."""

    pieces: tuple[str, ...]
    numbers: tuple[str, ...]


def merged(definitions: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the definitions with alike functions among `names` merged, and with calls that pass the numbers."""
    found, mine = dict(definitions), list(names)
    cut = functools.cache(_cut)  # most texts are the same in every round
    for _ in range(_ROUNDS):
        calls: dict[str, tuple[str, tuple[str, ...]]] = {}
        for members in _families(found, mine, cut):
            calls |= _made_one(found, members)
        if not calls:
            break
        mine = [name for name in mine if name in found]
        found = {name: _calling(text, calls) for name, text in found.items()}
    return found


def _families(
    definitions: Mapping[str, str], names: list[str], cut: Callable[[str], _Shape]
) -> list[dict[str, _Shape]]:
    """Group functions by their text without numbers; groups of one are left out."""
    families: dict[tuple[str, ...], dict[str, _Shape]] = {}
    for name in names:
        shape = cut(definitions[name].replace(f"@{name}(", "@NAME(", 1))
        families.setdefault(shape.pieces, {})[name] = shape
    return [family for family in families.values() if len(family) > 1]


def _cut(text: str) -> _Shape:
    pieces, numbers, last, start = [], [], 0, 0
    for line in text.splitlines(keepends=True):
        for low, high in _places(line):
            pieces.append(text[last : start + low])
            numbers.append(line[low:high])
            last = start + high
        start += len(line)
    return _Shape((*pieces, text[last:]), tuple(numbers))


def _places(line: str) -> list[tuple[int, int]]:
    """Return the positions of numbers in a line that an argument can replace."""
    if " call " in line or line.startswith("  call "):
        return [] if " x i64>" in line else [match.span() for match in _IN_CALL.finditer(line)]
    found = _AT_END.match(line)
    return [] if found is None else [found.span(1)]


def _made_one(definitions: dict[str, str], members: Mapping[str, _Shape]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Write one function for a family, unless it needs too many arguments; map members to (callee, arguments).

    Positions with the same number in every member share an argument.
    """
    shapes = list(members.values())
    columns = list(zip(*(shape.numbers for shape in shapes), strict=True))
    arguments: dict[tuple[str, ...], str] = {}
    for column in columns:
        if len(set(column)) > 1 and column not in arguments:
            arguments[column] = f"%given{len(arguments)}"
    if len(arguments) > _MOST_ARGUMENTS:
        return {}
    first = next(iter(members))
    filled = [arguments.get(column, column[0]) for column in columns]
    parts = [part for pair in zip(shapes[0].pieces, filled, strict=False) for part in pair]
    text = "".join([*parts, shapes[0].pieces[-1]])
    head, rest = text.split("\n", 1)
    declared = "".join(f", i64 {name}" for name in arguments.values())
    closing = head.rindex(")")
    head = f"{head[:closing]}{declared}{head[closing:]}"
    definitions[first] = f"{head}\n{rest}".replace("@NAME(", f"@{first}(", 1)
    for name in list(members)[1:]:
        del definitions[name]
    values = list(zip(*arguments, strict=True)) or [()] * len(members)
    return {name: (first, given) for name, given in zip(members, values, strict=True)}


def _calling(text: str, calls: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """Return a text with calls of merged functions replaced by calls of their representatives, with the numbers."""

    def call(match: re.Match[str]) -> str:
        if match[1] not in calls:
            return match[0]
        name, given = calls[match[1]]
        return f"call void @{name}({match[2]}{''.join(f', i64 {number}' for number in given)})"

    return _CALL.sub(call, text)
