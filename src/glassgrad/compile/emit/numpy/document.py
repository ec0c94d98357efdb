"""A generated program as a file: docstring, helpers, the function, and a check of itself."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from glassgrad.compile.emit.numpy.source import Body, Line
from glassgrad.compile.emit.numpy.templates import helper_text

_WIDTH = 110  # of code; comments may stand behind it
_COMMENT = 64  # the column where comments begin, where the code leaves room


class Source(str):
    """A program in NumPy as text, with the numbers that it is checked against.

    Attributes:
        data: the inputs and the recorded results, by name.
        arguments: the names of its function's arguments, in order.
        notes: which simplifications were made.
        entry: the name of its function.
    """

    data: dict[str, Any]
    arguments: tuple[str, ...]
    notes: tuple[str, ...]
    entry: str

    __slots__ = ("arguments", "data", "entry", "notes")

    def __new__(
        cls, text: str, data: Mapping[str, Any], arguments: Iterable[str], notes: Iterable[str], entry: str
    ) -> Self:
        made = super().__new__(cls, text)
        made.data = dict(data)
        made.arguments = tuple(arguments)
        made.notes = tuple(notes)
        made.entry = entry
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, and its numbers beside it as an .npz of the same name; then ``python path`` checks it."""
        path = os.fspath(path)
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a plain text file
            file.write(self)
        np.savez(os.path.splitext(path)[0] + ".npz", **self.data)  # noqa: PTH122 - beside the name above

    def function(self) -> Callable[..., Any]:
        """Return the program's function: it takes the inputs in the order of its signature."""
        space: dict[str, Any] = {"__name__": "glassgrad_source"}
        exec(compile(str(self), "<glassgrad source>", "exec"), space)  # noqa: S102 - our own text
        made: Callable[..., Any] = space[self.entry]
        return made


def laid_out(lines: Sequence[Line], indent: str = "    ") -> list[str]:
    """Return lines of Python with their comments aligned."""
    text = []
    for line in lines:
        for number, code in enumerate(line.code):
            parts = wrapped(indent + code)
            comment = line.comment if number == len(line.code) - 1 else ""
            if not comment:
                text += parts
                continue
            text += parts[:-1]
            text.append(f"{parts[-1]:<{_COMMENT}}  # {comment}")
    return text


def wrapped(code: str, width: int = _WIDTH) -> list[str]:
    """Break a long assignment after its equals sign, in brackets, in front of operators that bind least."""
    if len(code) <= width:
        return [code]
    indent = code[: len(code) - len(code.lstrip())]
    target, equals, value = code.partition(" = ")
    if not equals:
        return [code]
    for pieces in (_pieces(value, 0), _pieces(value, 1), _pieces(value, 2), _listed(value)):
        lines = _broken(pieces, indent + "    ", width)
        if max(map(len, lines)) <= width:
            break
    return [f"{target} = (", *lines, f"{indent})"]


def _broken(pieces: list[str], indent: str, width: int) -> list[str]:
    lines, current = [], indent
    for piece in pieces:
        if len(current) + len(piece.rstrip()) > width and current.strip():
            lines.append(current.rstrip())
            current = indent
        current += piece
    return [*lines, current.rstrip()]


def _pieces(value: str, least: int) -> list[str]:
    """Cut an expression in front of the operators that stand inside of at most `least` brackets."""
    depth, start, pieces = 0, 0, []
    for at, sign in enumerate(value):
        depth += (sign in "([{") - (sign in ")]}")
        if depth <= least and sign in "+-*/@" and value[at - 1 : at] == value[at + 1 : at + 2] == " ":
            pieces.append(value[start:at])
            start = at
    return [*pieces, value[start:]]


def _listed(value: str) -> list[str]:
    """Cut after the commas of arguments and items."""
    parts = value.split(", ")
    return [*(f"{part}, " for part in parts[:-1]), parts[-1]]


def dictionary(name: str, items: Mapping[str, str], indent: str = "    ") -> list[str]:
    """Return the lines of an assignment of a dictionary."""
    line = f"{indent}{name} = {{{', '.join(f'{key!r}: {value}' for key, value in items.items())}}}".replace("'", '"')
    if len(line) <= _WIDTH:
        return [line]
    return [f"{indent}{name} = {{", *(f'{indent}    "{key}": {value},' for key, value in items.items()), f"{indent}}}"]


def signature(name: str, arguments: Sequence[str]) -> list[str]:
    """Return the first line of a function, or several if it is long."""
    line = f"def {name}({', '.join(arguments)}):"
    if len(line) <= _WIDTH:
        return [line]
    lines, current = [f"def {name}("], "   "
    for argument in arguments:
        if len(current) + len(argument) + 2 > _WIDTH:
            lines.append(current)
            current = "   "
        current += f" {argument},"
    return [*lines, current, "):"]


def head(title: str, notes: Sequence[str], body: Body) -> list[str]:
    """Return everything in front of the function: docstring, imports, helpers."""
    lines = [f'"""{title}"""'] if not notes else [f'"""{title}', "", *(f"    {note}" for note in notes), '"""']
    helpers = helper_text(body.helpers).rstrip() if body.helpers else ""
    imports = ["import math"] if "math." in helpers else []
    imports.append("from pathlib import Path")
    return [*lines, "", *imports, "", "import numpy as np", "", "", *([helpers, "", ""] if helpers else [])]


_HEADINGS = {
    "forward": "forward",
    "backward": "backward: the forward line, and [the rule of its op]",
    "update": "after the backward pass",
    "write back": "new values of the state",
}


def sections(lines: Sequence[Line], first: Mapping[str, Sequence[str]]) -> list[str]:
    """Return lines of Python under headings, each section with the lines it has to begin with."""
    text: list[str] = []
    for section, grouped in itertools.groupby(lines, key=lambda line: line.section):
        text += ["", f"    # {_HEADINGS[section]}", *first.get(section, ()), *laid_out(list(grouped))]
    return [*text[1:], ""]


_MAIN = '''

def main():
    """Compute everything again and compare it with what was recorded."""
    data = np.load(Path(__file__).with_suffix(".npz"))
    {arguments}
    {results} = {entry}(*(data[name] for name in names))
    found = {found}
    # A gradient that is nothing but rounding errors is measured by the largest of all.
    least = max(float(np.abs(data[name]).max(initial=0.0)) for name in found) / 100
    worst = 0.0
    for name, value in found.items():
        scale = max(float(np.abs(data[name]).max(initial=0.0)), least)
        error = float(np.abs(value - data[name]).max(initial=0.0)) / scale
        worst = max(worst, error)
        print(f"{{name:{width}}} {{str(np.shape(value)):>16}}  error {{error:.1e}}")
    if worst > {tolerance}:
        raise SystemExit("the results differ from the recorded ones")
    print("everything agrees with what was recorded")


if __name__ == "__main__":
    main()
'''


def main_text(
    entry: str, inputs: Sequence[str], results: str, found: str, names: Sequence[str], tolerance: float
) -> str:
    """Return the part of a program that checks it."""
    width = max(map(len, names))
    listed = [f'"{name}"' for name in inputs]
    rows = _broken([f"{name}, " for name in listed], "        ", _WIDTH)
    short = f"names = [{', '.join(listed)}]"
    arguments = short if len(short) < _WIDTH else "\n".join(["names = [", *rows, "    ]"])
    return _MAIN.format(
        entry=entry, arguments=arguments, results=results, found=found, width=width, tolerance=tolerance
    )
