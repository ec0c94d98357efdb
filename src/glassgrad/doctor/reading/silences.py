"""Comments that silence a rule for a line: `# glassgrad: allow softmax-twice because it is a teacher`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT = re.compile(r"#\s*glassgrad:\s*allow\b(?P<rest>.*)")
_REASON = re.compile(r"\bbecause\b")


@dataclass
class Silence:
    """One comment.

    Attributes:
        line, column: its place; `covers` is the line that it speaks of.
        names: the rules that it silences; `reason`: the words behind "because".
        used: the names that silenced something.
    """

    line: int
    column: int
    covers: int
    names: tuple[str, ...]
    reason: str
    used: set[str] = field(default_factory=set)


def silences(text: str) -> list[Silence]:
    """Return the comments of a text that silence rules.

    A comment at the end of a line speaks of this line; one on a line of its own speaks of the next line of code.

    Example:
        >>> found = silences("x = f(y)  # glassgrad: allow softmax-twice because it is a teacher")
        >>> found[0].covers, found[0].names, found[0].reason
        (1, ('softmax-twice',), 'it is a teacher')
    """
    return list(_found(text)) if "glassgrad:" in text else []


def _found(text: str) -> Iterator[Silence]:
    lines = text.splitlines()
    try:
        tokens = [one for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.type == tokenize.COMMENT]
    except (tokenize.TokenError, IndentationError):  # the tree is readable: nothing else can go wrong
        return
    for token in tokens:
        match = _COMMENT.match(token.string)
        if match is None:
            continue
        line, column = token.start
        named, reason = _parts(match["rest"])
        alone = not lines[line - 1][:column].strip()
        yield Silence(line, column + 1, _next_code(lines, line) if alone else line, named, reason)


def _parts(rest: str) -> tuple[tuple[str, ...], str]:
    match = _REASON.search(rest)
    named, reason = (rest, "") if match is None else (rest[: match.start()], rest[match.end() :])
    return tuple(re.findall(r"[\w-]+", named)), reason.strip()


def _next_code(lines: list[str], line: int) -> int:
    for number in range(line, len(lines)):
        text = lines[number].strip()
        if text and not text.startswith("#"):
            return number + 1
    return line
