"""Run the changed text of a file in a process that has imported the file; values computed by the import change as well.

The text runs in the module's own namespace. Objects that other modules hold stay the same: functions get the new code
and defaults, primitives and classes the new contents. A constant is replaced in every module that imported it by its
name. This tries a table of ops in milliseconds; a new import would take seconds.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Hashable, Iterable
from pathlib import Path
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from tools.mutants import patching

_KEPT = {"__dict__", "__weakref__", "__doc__", "__module__"}
_CACHE = type(functools.lru_cache(lambda: None))


class _Declaring(dict[str, Any]):
    """Takes the place of the table of primitives, and lets each be declared a second time."""

    def __contains__(self, name: object) -> bool:
        return False


def run_again(path: Path, text: str) -> None:
    """Give a module that was imported from the file what another text of the file makes."""
    from glassgrad.ops import core

    module = next(one for one in sys.modules.values() if getattr(one, "__file__", None) == str(path))
    space = vars(module)
    before = dict(space)
    known = core.REGISTRY, core.PRIMITIVES
    declared = _Declaring(core.REGISTRY), _Declaring(core.PRIMITIVES)
    core.REGISTRY, core.PRIMITIVES = declared
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), space)  # noqa: S102 - a mutant is there to run
    finally:
        core.REGISTRY, core.PRIMITIVES = known
    merging = _Merging()
    for old, new in zip(known, declared, strict=True):
        for name, primitive in new.items():
            old[name] = merging.one_of(old.get(name), primitive)
    for name, new in list(space.items()):
        if name.startswith("__"):
            continue
        if name in {"REGISTRY", "PRIMITIVES"} and name in before:
            space[name] = before[name]
        elif name in before and new is not before[name]:
            space[name] = merging.one_of(before[name], new)
            _exchange(name, before[name], space[name])


class _Merging:
    """Puts the contents of new objects into those that others know, each once."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.kept: list[Any] = []  # so that no number of a new object is given to another

    def one_of(self, old: Any, new: Any) -> Any:
        """Return the old object with what the new one holds, or the new one where that cannot be."""
        if old is new or id(new) in self.known:
            return self.known.get(id(new), old)
        self.known[id(new)] = new
        self.kept.append(new)
        if type(old) is type(new) and self._merged(old, new):
            self.known[id(new)] = old
        return self.known[id(new)]

    def _merged(self, old: Any, new: Any) -> bool:
        from glassgrad.ops.core import Primitive

        if isinstance(old, FunctionType):
            return self._function(old, new)
        if isinstance(old, _CACHE):
            old.cache_clear()
            return self._function(old.__wrapped__, new.__wrapped__)
        if isinstance(old, Primitive):
            vars(old).clear()
            vars(old).update(vars(new))
            return True
        if isinstance(old, type):
            for name, value in [entry for entry in vars(new).items() if entry[0] not in _KEPT]:
                if vars(old).get(name) is not value and not isinstance(value, MemberDescriptorType):  # no slots
                    type.__setattr__(old, name, self.one_of(vars(old).get(name), value))
            return True
        return False

    def _function(self, old: FunctionType, new: FunctionType) -> bool:
        cells = old.__closure__ or (), new.__closure__ or ()
        if old.__code__.co_freevars != new.__code__.co_freevars:
            return False
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        for one, other in zip(*cells, strict=True):
            one.cell_contents = self.one_of(one.cell_contents, other.cell_contents)
        return True


def _exchange(name: str, old: Any, new: Any) -> None:
    """Let every module of the package and its tests that has the old object by this name have the new one."""
    if old is new:
        return
    for other in list(sys.modules.values()):
        if isinstance(other, ModuleType) and other.__name__.startswith(("glassgrad", "tests")):
            space = vars(other)
            if space.get(name) is old:
                space[name] = new


def concerned(path: Path, source: str, line: int) -> tuple[set[Hashable], set[str]] | None:
    """Return the functions that see a change of a module or class, and the names of primitives that it declares.

    These are the functions written inside the statement, and those of the files that name what it binds. None stands
    for every function of the file, where the statement binds nothing.
    """
    statement = next((one for one in reversed(ast.parse(source).body) if _first(one) <= line), None)
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign):
        return None
    nodes = list(ast.walk(statement))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {statement.name} if isinstance(statement, ast.FunctionDef | ast.ClassDef) else set()
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    found = set()
    for code in _codes(compile(source, str(path), "exec", dont_inherit=True)):
        inside = _first(statement) <= code.co_firstlineno <= (statement.end_lineno or line)
        if inside or bound & set(code.co_names):
            found.add(patching.name_of(code))
    return found, texts


def _first(statement: ast.stmt) -> int:
    return min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])


def _codes(code: CodeType) -> Iterable[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)
