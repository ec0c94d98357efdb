"""Change functions of a running process as if their file had been changed before it was imported.

An existing function gets new code; a function made later gets it from the surrounding code. Values that a module or a
class computed during the import stay, so a change there needs another import.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

Functions = dict[Hashable, list[FunctionType]]


def name_of(code: CodeType) -> Hashable:
    """Return what tells a code object from all others of its file, whoever compiled it."""
    return code.co_filename, code.co_qualname, tuple(code.co_positions())


def functions_of(files: set[str]) -> Functions:
    """Return the functions that the files made, by the names of their code."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # what tests have taken out of the collector's searches would not be found
    found: Functions = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in files:
            found.setdefault(name_of(one.__code__), []).append(one)
    if frozen:
        gc.freeze()
    return found


@dataclass(frozen=True)
class Change:
    """What differs between a file's code before and after a change.

    Attributes:
        replaced: the code of functions that becomes another, innermost last.
        places: those of them whose own instructions differ, by name.
        imported: whether a module or a class does something else while it is imported.
    """

    replaced: list[tuple[CodeType, CodeType]]
    places: list[Hashable]
    imported: bool

    def apply(self, functions: Functions) -> None:
        """Give the functions that exist their new code. Raises `ValueError` where one cannot have it."""
        for before, after in self.replaced:
            for function in functions.get(name_of(before), ()):
                function.__code__ = after


def change(path: Path, source: str, text: str) -> Change:
    """Compare the code of two texts of a file. Raises `SyntaxError` for a text that is no Python."""
    before, after = (compile(one, str(path), "exec", dont_inherit=True) for one in (source, text))
    pairs = list(_differing(before, after))
    return Change(
        replaced=[pair for pair, _ in pairs if _is_function(pair[0])],
        places=[name_of(pair[0]) for pair, own in pairs if own and _is_function(pair[0])],
        imported=any(own and not _is_function(pair[0]) for pair, own in pairs),
    )


def _differing(before: CodeType, after: CodeType) -> Iterator[tuple[tuple[CodeType, CodeType], bool]]:
    """Yield the pairs of code objects that differ, and whether more than the code inside of them does."""
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)]
    own = _instructions(before) != _instructions(after)
    below = (
        []
        if len(inner[0]) != len(inner[1])
        else [found for pair in zip(*inner, strict=True) for found in _differing(*pair)]
    )
    if own or below:
        yield (before, after), own
    yield from below


def _instructions(code: CodeType) -> tuple[object, ...]:
    """Return what a code object does itself, without the lines that it stands on."""
    constants = [type(one).__name__ if isinstance(one, CodeType) else (type(one), repr(one)) for one in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, constants, names, counts, code.co_exceptiontable


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)
