"""Graphs of PyTorch that grow from step to step, because variables and attributes hold more and more nodes."""

from __future__ import annotations

import dis
import linecache
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding

_MOST = 1_000_000


class _Variable(NamedTuple):
    """A variable or an attribute: its name, its place, its value before the steps, and a container's content."""

    name: str
    key: str
    place: Any  # a dictionary, or a cell
    value: Any
    content: Any

    def now(self) -> Any:
        if isinstance(self.place, dict):
            return self.place.get(self.key)
        return self.place.cell_contents if _holds(self.place) else None


class Variables:
    """The global and enclosing variables that a function uses, with the attributes of their objects and of `self`.

    Their values are saved and restored.

    Args:
        function: a step.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        owner, function = getattr(function, "__self__", None), getattr(function, "__func__", function)
        self._code = getattr(function, "__code__", None)
        self._before: list[_Variable] = []
        self._nodes: list[dict[str, int]] = []
        if not isinstance(function, FunctionType):
            return
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            if _holds(cell):
                self._add(name, name, cell, cell.cell_contents)
        for name in function.__code__.co_names:
            if name in function.__globals__:
                self._add(name, name, function.__globals__, function.__globals__[name])
        if owner is not None:
            self._add_attributes(function.__code__.co_varnames[0], owner)

    def _add(self, name: str, key: str, place: Any, value: Any) -> None:
        self._before.append(_Variable(name, key, place, value, _copy(value)))
        if "." not in name:
            self._add_attributes(name, value)

    def _add_attributes(self, name: str, value: Any) -> None:
        """Add the public attributes of an object; for a module, without its parameters, buffers and submodules."""
        if isinstance(value, FunctionType | ModuleType | type) or not isinstance(_attributes(value), dict):
            return
        for key, held in list(_attributes(value).items()):
            if not key.startswith("_"):
                self._add(f"{name}.{key}", key, _attributes(value), held)

    def look(self) -> None:
        """Count, after a step, the nodes behind the tensors that each variable holds."""
        self._nodes.append({one.name: _count(one.now()) for one in self._before})

    def growth(self) -> tuple[str, tuple[int, ...]] | None:
        """Return the variable whose graph has grown in every step, and the numbers of its nodes."""
        for name in self._nodes[0] if len(self._nodes) > 1 else ():
            counts = tuple(found[name] for found in self._nodes)
            if counts[0] and all(one < then for one, then in pairwise(counts)):
                return name, counts
        return None

    def finding(self) -> Finding | None:
        """Name the variable, and the line that writes it."""
        found = self.growth()
        if found is None:
            return None
        name, counts = found
        site = self._written(name.rpartition(".")[2])
        source = f" ({linecache.getline(*site).strip()})" if site else ""
        where = f"{provenance.shorten(site[0])}:{site[1]}" if site else ""
        return Finding(
            "graph grows",
            "warning",
            f"{name} is kept from step to step with its history{f', at {where}{source}' if where else ''}: "
            f"{counts[0]:,} nodes after the first step, {counts[-1]:,} after {len(counts)}",
            "Keep the number, not the tensor with its history.",
            where=where,
            value=float(counts[-1]),
            threshold=float(counts[0]),
            remedy=f"{name}.append(loss.item())"
            if ".append(" in source
            else f"{name}{self._index(name)} += loss.item()  # or .detach(), if a tensor is stored",
        )

    def _index(self, name: str) -> str:
        return "".join("[...]" for one in self._before if one.name == name and isinstance(one.now(), dict))

    def restore(self) -> None:
        """Restore the variables, and the content of lists and dictionaries."""
        for one in self._before:
            if isinstance(one.value, list):
                one.value[:] = one.content
            elif isinstance(one.value, dict) and one.content is not None:
                one.value.clear()
                one.value.update(one.content)
            if one.now() is one.value:
                continue
            if isinstance(one.place, dict):
                one.place[one.key] = one.value
            else:
                one.place.cell_contents = one.value

    def _written(self, name: str) -> tuple[str, int] | None:
        """Return file and line where the function writes a variable, else where it first reads it."""
        if self._code is None:
            return None
        line, read = self._code.co_firstlineno, None
        for one in dis.get_instructions(self._code):
            line = one.positions.lineno if one.positions and one.positions.lineno else line
            if one.argval == name and one.opname.startswith("STORE"):
                return self._code.co_filename, line
            if one.argval == name and one.opname.startswith("LOAD") and read is None:
                read = self._code.co_filename, line
        return read


def _holds(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # nothing is stored in it yet
        return False


def _attributes(value: Any) -> Any:
    """Return the attributes of an object; None of one without a dictionary of them."""
    return getattr(value, "__dict__", None)


def _copy(value: Any) -> Any:
    """Return the content of a list or a dictionary, and None for anything else."""
    return value.copy() if type(value) in {list, dict} else None


def _count(value: Any) -> int:
    """Return the number of nodes behind the tensors in a value."""
    seen: set[Any] = set()
    waiting = [tensor.grad_fn for tensor in _tensors(value)]
    while waiting and len(seen) < _MOST:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return len(seen)


def _tensors(value: Any) -> Iterator[Any]:
    if library.is_torch(value):
        if hasattr(value, "grad_fn"):
            yield value
    elif type(value) in {list, tuple, dict}:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)
