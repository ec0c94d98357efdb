"""Every public name, the page that describes it, and where it is written."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import glassgrad as gg
from glassgrad.ops import names as op_names
from glassgrad.ops.core import REGISTRY, Primitive

SOURCE = Path(gg.__file__).resolve().parent


@dataclass
class Entry:
    """A public object under its first name, and its other names in the same module."""

    module: str
    name: str
    value: Any
    aliases: list[str] = field(default_factory=list)

    @property
    def full(self) -> str:
        """The name that a program writes."""
        return f"{self.module}.{self.name}"


def modules() -> list[str]:
    """Return the modules that users import, `glassgrad` first, each followed by those below it."""
    found = ["glassgrad"]
    tables = {home.rpartition(".")[2] for home in gg._HOMES}  # PyTorch's modules: names of `glassgrad` itself
    for name in sorted(gg._modules()):
        if name not in tables and _is_there(gg, name):
            found += _below(f"glassgrad.{name}")
    return found


def _below(name: str) -> list[str]:
    module = importlib.import_module(name)
    inner = [f"{name}.{one}" for one in listed(module) if inspect.ismodule(getattr(module, one))]
    return [name, *(one for path in inner if _own(path) for one in _below(path))]


def _own(path: str) -> bool:
    return getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2]).__name__ == path


def listed(module: ModuleType) -> list[str]:
    """Return the names that a module offers."""
    if module is gg:
        below = set(gg._modules()) - {"checkpoint", "compile"}
        return [name for name in dir(gg) if not name.startswith("_") and name not in below]
    offered = getattr(module, "__all__", None)
    if offered is None:
        offered = [name for name in dir(module) if _ours(getattr(module, name), module.__name__)]
    return [name for name in offered if not name.startswith("_") and _is_there(module, name)]


def _is_there(module: ModuleType, name: str) -> bool:
    """Tell whether a name can be had; some need a package of an extra that may not be installed."""
    try:
        getattr(module, name)
    except ImportError:
        return False
    return True


def _ours(value: Any, module: str) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).startswith(module)


@cache
def entries(module: str) -> tuple[Entry, ...]:
    """Return what a module offers, other names of the same object together under the best of them."""
    found: dict[Any, Entry] = {}
    holder = importlib.import_module(module)
    for name in sorted(listed(holder), key=lambda name: (name in op_names.ALIASES, name.lower())):
        value = getattr(holder, name)
        if inspect.ismodule(value) and value.__name__.startswith("glassgrad.") and not callable(value):
            continue  # it has pages of its own
        if inspect.ismodule(value) and callable(value):
            value = getattr(value, name, value)  # `gg.compile(step)` is `gg.compile.compile(step)`
        known = found.setdefault(_identity(name, value), Entry(module, name, value))
        if known.name != name:
            known.aliases.append(name)
    return tuple(found.values())


def _identity(name: str, value: Any) -> Any:
    """Return what names of the same thing have in common; constants and dtypes are described one by one."""
    if name.endswith("_") and f"{name[:-1]}" in op_names.ALIASES:
        return (op_names.ALIASES[name[:-1]] + "_",) if hasattr(gg, op_names.ALIASES[name[:-1]] + "_") else name
    if name.endswith("_") and inspect.isfunction(value):
        return (name,)
    return id(value) if callable(value) else name


# --- where an object is written ---------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A line of a file below the package."""

    file: Path
    line: int


def place_of(entry: Entry) -> Place | None:
    """Return where an object is defined; of an op made as the library runs, its entry in the table."""
    prim = getattr(entry.value, "primitive", None)
    if prim is None and getattr(entry.value, "__module__", "") == "glassgrad":
        prim = REGISTRY.get(op_names.ALIASES.get(entry.name.rstrip("_"), entry.name.rstrip("_")))
    return _of_primitive(prim) if isinstance(prim, Primitive) else place_of_value(entry.value)


def place_of_value(value: Any) -> Place | None:
    """Return the line that a function or class begins in."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    plain = inspect.unwrap(value) if callable(value) else value
    code = getattr(plain, "__code__", None)
    if code is not None:
        return _inside(Path(code.co_filename), code.co_firstlineno)
    if "__file__" in getattr(plain, "__dict__", ()):  # a module that can be called
        return _inside(Path(plain.__file__), 1)
    plain = plain if inspect.isclass(plain) else type(plain)  # an object that can be called: its class
    module = importlib.import_module(plain.__module__)
    if not getattr(module, "__file__", None):
        return None
    file = Path(str(module.__file__))
    line = _lines(file).get(plain.__qualname__)
    return _inside(file, line) if line else None


def _inside(file: Path, line: int) -> Place | None:
    return Place(file.resolve(), line) if file.resolve().is_relative_to(SOURCE) else None


@cache
def _homes() -> dict[int, tuple[Path, str]]:
    """Return the file and the name of every primitive that a module of ops assigns."""
    found: dict[int, tuple[Path, str]] = {}
    for module in [one for name, one in sys.modules.items() if name.startswith("glassgrad.ops.")]:
        written = _lines(Path(str(module.__file__)))
        for name, value in vars(module).items():
            if isinstance(value, Primitive) and name in written:
                found.setdefault(id(value), (Path(str(module.__file__)), name))
    return found


def _of_primitive(prim: Primitive) -> Place | None:
    file, name = _homes().get(id(prim), (None, ""))
    return _inside(file, _lines(file)[name]) if file else None


@cache
def _lines(file: Path) -> dict[str, int]:
    """Return the line of every class, function and assignment of a file, by its name in it."""
    return dict(_named(ast.parse(file.read_text(encoding="utf-8")).body, ""))


def _named(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name, node.lineno
            if isinstance(node, ast.ClassDef):
                yield from _named(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((prefix + target.id, node.lineno) for target in targets if isinstance(target, ast.Name))


__all__ = ["SOURCE", "Entry", "Place", "entries", "listed", "modules", "place_of", "place_of_value"]
