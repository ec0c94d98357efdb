"""A generated program as a file: docstring, helpers, the function, and a check of itself."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.ir.generated import executed
from glassgrad.compile.numpy.text import Text, Token
from glassgrad.compile.source.functions import definitions
from glassgrad.compile.source.layout import WIDTH, filled, placed
from glassgrad.compile.source.lines import Body, Line
from glassgrad.compile.source.rewriting.repeats import index_text, pattern
from glassgrad.ops.core import Array


class Source(str):
    """A program in NumPy as text, with the numbers that it is checked against.

    Attributes:
        data: the inputs and the recorded results, by name; also list arguments, by the name of the list.
        arguments: the names of its function's arguments, in order.
        notes: which simplifications were made.
        entry: the name of its function.
    """

    data: dict[str, Array]
    arguments: tuple[str, ...]
    notes: tuple[str, ...]
    entry: str

    __slots__ = ("arguments", "data", "entry", "notes")

    def __new__(
        cls, text: str, data: Mapping[str, Array], arguments: Iterable[str], notes: Iterable[str], entry: str
    ) -> Self:
        made = super().__new__(cls, text)
        made.data = dict(data)
        made.arguments = tuple(arguments)
        made.notes = tuple(notes)
        made.entry = entry
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, and its numbers beside it as an .npz of the same name; then ``python path`` checks it."""
        path = Path(path)
        path.write_text(self, encoding="utf-8", newline="\n")
        arrays = {name: value for name, value in self.data.items() if not isinstance(value, list)}
        np.savez(path.with_suffix(".npz"), **arrays)

    def function(self) -> Function:
        """Return the program's function: it takes the inputs in the order of its signature."""
        made: Function = executed(str(self), "<glassgrad source>", {"__name__": "glassgrad_source"})[self.entry]
        return made


def dictionary(name: str, items: Mapping[str, Text]) -> list[str]:
    """Return the lines of an assignment of a dictionary; entries of one list are written as a comprehension."""
    listed = _comprehended(items)
    line = f"    {name} = {{{', '.join(listed)}}}"
    if len(line) <= WIDTH:
        return [line]
    return [f"    {name} = {{", *(f"        {one}," for one in listed), "    }"]


def _comprehended(items: Mapping[str, Text]) -> list[str]:
    """Return the entries of a dictionary, those of one list together."""
    lists: dict[Token, dict[str, Token]] = {}  # the index of each key whose value is an entry of a list
    for key, value in items.items():
        if len(value.tokens) == 2:
            name, at = value.tokens
            lists.setdefault(name, {})[key] = at
    whole: dict[Token, str] = {}
    for name, places in lists.items():
        keys = _numbered([*places])
        if keys is not None and [*places.values()] == [*range(len(places))]:
            whole[name] = f'**{{f"{keys}": {name}[i] for i in range({len(places)})}}'
    listed: dict[str, None] = {}
    for key, value in items.items():
        together = whole.get(value.tokens[0]) if len(value.tokens) == 2 else None
        listed[together or f'"{key}": {value.code}'] = None
    return [*listed]


def _numbered(names: Sequence[str]) -> str | None:
    """Write names that differ in one number as the text of an f-string that counts i from 0 up."""
    found = pattern(names)
    if found is None:
        return None
    front, after, slope, first = found
    return f"{front}{{{index_text('i', slope, first)}}}{after}"


def signature(name: str, arguments: Sequence[str]) -> list[str]:
    """Return the first line of a function, or several if it is long."""
    line = f"def {name}({', '.join(arguments)}):"
    return [line] if len(line) <= WIDTH else [f"def {name}(", *filled(arguments, "    "), "):"]


def head(title: str, notes: Sequence[str], body: Body) -> list[str]:
    """Return everything in front of the function: docstring, imports, helpers."""
    lines = [f'"""{title}"""'] if not notes else [f'"""{title}', "", *(f"    {note}" for note in notes), '"""']
    helpers = definitions(body.helpers).rstrip() if body.helpers else ""
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
    """Return lines of Python under headings; each section begins with the lines that `first` gives for it."""
    return [text for text, _ in placed_sections(lines, first)]


def placed_sections(lines: Sequence[Line], first: Mapping[str, Sequence[str]]) -> list[tuple[str, Line | None]]:
    """Return the same lines, each with the line of the program it shows, or None."""
    found: list[tuple[str, Line | None]] = []
    for section, grouped in itertools.groupby(lines, key=lambda line: line.section):
        found += [(text, None) for text in ("", f"    # {_HEADINGS[section]}", *first.get(section, ()))]
        found += placed(grouped)
    return [*found[1:], ("", None)]


_MAIN = '''

def main():
    """Compute everything again and compare it with what was recorded."""
    data = np.load(Path(__file__).with_suffix(".npz"))
    {arguments}
    {results} = {entry}({call})
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
    entry: str, inputs: Mapping[str, Sequence[str]], results: str, found: str, names: Sequence[str], tolerance: float
) -> str:
    """Return the part of a program that checks it.

    `inputs` gives for each argument the names under which it was recorded: its own name, or those of a list's entries.
    """
    width = max(map(len, names))
    lists = {name: one for name, one in inputs.items() if list(one) != [name]}
    listed = [f'"{name}"' for name in inputs if name not in lists]
    line = f"names = [{', '.join(listed)}]"
    lines = [line] if len(line) < WIDTH else ["names = [", *filled(listed, "        "), "    ]"]
    call = "*(data[name] for name in names)"
    if lists:
        lines.append("    inputs = {name: data[name] for name in names}")
        # Only names that differ in one number become a list.
        for name, of in lists.items():
            lines.append(f'    inputs["{name}"] = [data[f"{_numbered(of)}"] for i in range({len(of)})]')
        call = "**inputs"
    return _MAIN.format(
        entry=entry,
        arguments="\n".join(lines),
        call=call,
        results=results,
        found=found,
        width=width,
        tolerance=tolerance,
    )
