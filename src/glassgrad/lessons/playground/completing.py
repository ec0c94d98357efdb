"""Completions and signatures by jedi, if it is installed: `pip install 'glassgrad[playground]'`.

jedi reads programs without running them, and the library's stubs tell it of names that are made at run time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from glassgrad import errors
from glassgrad.errors.packages import needed

if TYPE_CHECKING:
    from glassgrad.ops.core import Array

Data = dict[str, object]
_MOST, _DESCRIBED = 60, 15
_LONG = 600
_LOCK = threading.Lock()  # jedi's caches are not made for several threads


def complete(text: str, line: int, column: int) -> Data:
    r"""Return the names that fit at a place; the line counts from 1, the column from 0.

    Example:
        >>> found = complete("import math\nmath.flo", 2, 8)
        >>> [one["name"] for one in found["completions"]]
        ['floor']
    """
    return _answer("completions", text, lambda script: _completions(script, line, column))


def signatures(text: str, line: int, column: int) -> Data:
    """Return the signatures of the call around a place, and which of its parameters is being written."""
    return _answer("signatures", text, lambda script: _signatures(script, line, column))


def _answer(name: str, text: str, make: Callable[[Array], list[Data]]) -> Data:
    try:
        with needed("jedi", "the completions of the playground", extra="playground"):
            import jedi
    except errors.PackageError as error:
        return {name: [], "message": str(error)}
    with _LOCK, suppress(ValueError, RecursionError):  # a place outside of the text, or a text nested too deeply
        return {name: make(jedi.Script(text, environment=jedi.InterpreterEnvironment()))}
    return {name: []}


def _completions(script: Array, line: int, column: int) -> list[Data]:
    found = script.complete(line, column)
    shown = sorted(found, key=lambda one: (one.name.startswith("_"), one.name))[:_MOST]
    return [_described(one, whole=at < _DESCRIBED) for at, one in enumerate(shown)]


def _described(one: Array, *, whole: bool) -> Data:
    lines = one.docstring().strip() if whole else ""  # reading one takes a millisecond
    first, _, rest = lines.partition("\n")
    signature, told = (first, rest) if "(" in first and one.type in {"function", "class"} else ("", lines)
    return {"name": one.name, "type": one.type, "signature": signature, "doc": told.strip()[:_LONG]}


def _signatures(script: Array, line: int, column: int) -> list[Data]:
    found: Iterable[Array] = script.get_signatures(line, column)
    return [
        {
            "label": one.to_string(),
            "params": [parameter.to_string() for parameter in one.params],
            "index": one.index if one.index is not None else -1,
            "doc": one.docstring(raw=True).strip()[:_LONG],
        }
        for one in found
    ]
