"""The functions that the op table reaches: forwards, derivative rules, shape and batching rules, and their helpers.

The search follows an entry of the table to its functions, through closures, partials and tuples, and from a function to
those of `ops` that it names. It leaves out the rest of a file of ops, which checks and rewrites the arguments of a
call.
"""

from __future__ import annotations

import functools
import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Hashable, Iterable
from functools import cache
from types import CodeType, FunctionType, MethodType
from typing import Any

from tools.mutants import patching
from tools.mutants.making import Mutant
from tools.mutants.pieces import PACKAGE, ROOT


def only(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return those mutants that change a function that the table reaches, or one written inside of it."""
    names = reached()
    found = []
    for mutant in mutants:
        path = ROOT / PACKAGE / mutant.file
        try:
            places = patching.change(path, mutant.source, mutant.text).places
        except SyntaxError:
            continue
        if not names.isdisjoint(places):
            found.append(mutant)
    return found


@cache
def reached() -> set[Hashable]:
    """Return the names of the code that the table reaches, found in a process of its own that imports the package."""
    program = "from tools.mutants import rules; rules.tell()"
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(ROOT / 'src'), str(ROOT)]}; {program}"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip  # one argument a line says no more
    return {(file, name, tuple(map(tuple, places))) for file, name, places in json.loads(said.stdout)}


def tell() -> None:
    """Write the names of what the table reaches to the output."""
    from glassgrad import ops
    from glassgrad.ops import core

    for module in pkgutil.walk_packages(ops.__path__, "glassgrad.ops."):
        importlib.import_module(module.name)
    walk = _Walk(ops.__path__[0])
    for primitive in core.PRIMITIVES.values():
        walk.follow([value for name, value in vars(primitive).items() if name != "samples"])
    json.dump([patching.name_of(code) for code in walk.codes()], sys.stdout)


class _Walk:
    """Collects functions of some files, starting from what an entry holds."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.seen: dict[int, Any] = {}  # the objects too, so that no number is given again
        self.functions: list[FunctionType] = []

    def follow(self, first: Iterable[Any]) -> None:
        """Note the functions among some objects and behind them."""
        stack = list(first)
        while stack:
            one = stack.pop()
            if id(one) not in self.seen:
                self.seen[id(one)] = one
                stack += self._behind(one)

    def _behind(self, one: Any) -> list[Any]:
        from glassgrad.ops.core import select

        if isinstance(one, functools.partial):
            return [one.func, *one.args, *one.keywords.values()]
        if isinstance(one, tuple | list):
            return list(one)
        if isinstance(one, dict):
            return list(one.values())
        if isinstance(one, MethodType):
            return [one.__func__]
        if isinstance(one, select):
            return [one.mask, one.natively]
        if not isinstance(one, FunctionType):
            return [one.__wrapped__] if hasattr(one, "__wrapped__") else []
        if not one.__code__.co_filename.startswith(self.folder):
            return []
        self.functions.append(one)
        named = [value for name, value in one.__globals__.items() if name in one.__code__.co_names]
        held = [cell.cell_contents for cell in one.__closure__ or () if cell.cell_contents is not one]
        return held + [value for value in named if isinstance(value, FunctionType | functools.partial)]

    def codes(self) -> set[CodeType]:
        """Return the code of the functions and of those written inside of them."""
        found = set()
        stack = [function.__code__ for function in self.functions]
        while stack:
            code = stack.pop()
            found.add(code)
            stack += [one for one in code.co_consts if isinstance(one, CodeType)]
        return found
