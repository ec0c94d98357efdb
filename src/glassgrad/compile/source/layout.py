"""Python text in lines of a readable width: long expressions broken as a formatter breaks them, with their comments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from glassgrad.compile.source.lines import Code, Line

WIDTH = 100  # of code
_TOTAL = 120  # of code with a comment after it
_COMMENT = 64  # the column where comments begin, where the code leaves room
_BINDING = (("==", "!=", "<=", ">=", "<", ">"), ("|", "^", "&"), ("+", "-"), ("*", "/", "@", "//", "%"))


def placed(lines: Iterable[Line]) -> list[tuple[str, Line]]:
    """Return lines of Python, each with the line of the program that it shows or describes.

    A line's own comment and the user's statement follow the code if there is room; otherwise lines of the same
    statement have it above them, once.
    """
    found: list[tuple[str, Line]] = []
    for (source, inside), grouped in itertools.groupby(lines, key=lambda one: (one.source, one.inside)):
        indent = "        " if inside else "    "
        group = list(grouped)
        parts = [([part for one in line.code for part in wrapped(one, indent)], line.comment) for line in group]
        whole = [f"{source}   {about}" if source else about for _, about in parts]
        fits = all(len(_beside(part[-1], one)) <= _TOTAL for (part, _), one in zip(parts, whole, strict=True))
        if source and not fits:
            found.append((shortened(f"{indent}# {source}"), group[0]))
            whole = [about for _, about in parts]
        for line, (part, _), comment in zip(group, parts, whole, strict=True):
            if comment and len(_beside(part[-1], comment)) > _TOTAL:
                text = [shortened(f"{indent}# {comment}"), *part]
            else:
                text = [*part[:-1], _beside(part[-1], comment) if comment else part[-1]]
            found += [(one, line) for one in text]
    return found


def _beside(code: str, comment: str) -> str:
    return f"{code:<{_COMMENT}}  # {comment}"


def shortened(line: str, width: int = _TOTAL) -> str:
    """Return a comment that is cut off if it is too long."""
    return line if len(line) <= width else f"{line[: width - 4].rstrip()} ..."


def wrapped(code: Code, indent: str, width: int = WIDTH) -> list[str]:
    """Break a long statement: before operators of the lowest precedence, then after the commas of a call."""
    target = f"{code.left.code} {code.sign} " if code.sign else ""
    value = code.right.code
    if len(indent) + len(target) + len(value) <= width:
        return [f"{indent}{target}{value}"]
    if not target:
        return _broken(value, indent, width, "")
    hugged = _call(value, indent, width, "", target)
    if hugged is not None and (not _operators(value) or _ends_wide(value)):
        return hugged
    return [f"{indent}{target}(", *_broken(value, f"{indent}    ", width, ""), f"{indent})"]


def _broken(value: str, indent: str, width: int, after: str) -> list[str]:
    """Break an expression that is already in brackets."""
    if len(indent) + len(value) + len(after) <= width:
        return [f"{indent}{value}{after}"]
    places = _operators(value)
    hugged = _call(value, indent, width, after, "") if _ends_wide(value) else None
    if hugged is not None:
        return hugged
    if places:
        pieces = [value[a:b].strip() for a, b in zip([0, *places], [*places, len(value)], strict=True)]
        ends = ["" for _ in pieces[1:]] + [after]
        return [line for piece, end in zip(pieces, ends, strict=True) for line in _broken(piece, indent, width, end)]
    return _call(value, indent, width, after, "") or [f"{indent}{value}{after}"]


def _call(value: str, indent: str, width: int, after: str, front: str) -> list[str] | None:
    """Put the content of the widest brackets on separate lines."""
    pair = max(_pairs(value), key=lambda one: one[1] - one[0], default=None)
    if pair is None or pair[1] - pair[0] < 2:
        return None
    start, stop = pair
    inner = value[start + 1 : stop]
    first, last = f"{indent}{front}{value[: start + 1]}", f"{indent}{value[stop:]}{after}"
    if len(first) > width or len(last) > width:
        return None
    items = _items(inner)
    more = f"{indent}    "
    if len(items) == 1:
        return [first, *_broken(inner, more, width, ""), last]
    if len(more) + len(inner) <= width:
        return [first, f"{more}{inner}", last]
    return [first, *(line for item in items for line in _broken(item, more, width, ",")), last]


def _ends_wide(value: str) -> bool:
    """Tell whether most of an expression is inside its last brackets."""
    pairs = _pairs(value)
    return bool(pairs) and pairs[-1][1] == len(value) - 1 and 2 * (pairs[-1][1] - pairs[-1][0]) > len(value)


def _depths(value: str) -> list[int]:
    depth, found = 0, []
    for sign in value:
        depth -= sign in ")]}"
        found.append(depth)
        depth += sign in "([{"
    return found


def _operators(value: str) -> list[int]:
    """Return the positions of the operators of lowest precedence outside of brackets."""
    depths = _depths(value)
    words = []
    for at in range(1, len(value) - 1):
        if depths[at] == 0 and value[at - 1] == " " and value[at] not in " ,":
            word = value[at:].split(" ", 1)[0]
            words.append((at, word))
    for signs in _BINDING:
        places = [at for at, word in words if word in signs]
        if places:
            return places
    return []


def _pairs(value: str) -> list[tuple[int, int]]:
    """Return the positions of outermost brackets."""
    depths = _depths(value)
    starts = [at for at, sign in enumerate(value) if depths[at] == 0 and sign in "([{"]
    stops = [at for at, sign in enumerate(value) if depths[at] == 0 and sign in ")]}"]
    return list(zip(starts, stops, strict=True))


def _items(value: str) -> list[str]:
    """Split at the commas outside of brackets."""
    depths = _depths(value)
    cuts = [at for at, sign in enumerate(value) if sign == "," and depths[at] == 0]
    pieces = [value[a:b].strip(", ") for a, b in zip([0, *cuts], [*cuts, len(value)], strict=True)]
    return [piece for piece in pieces if piece]


def filled(items: Sequence[str], indent: str, width: int = WIDTH) -> list[str]:
    """Return items followed by commas, as many per line as fit."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= width:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{indent}{item},")
    return lines
