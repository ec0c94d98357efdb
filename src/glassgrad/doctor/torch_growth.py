"""Graphs of PyTorch's that grow from step to step: variables of a step that hold more and more nodes."""

from __future__ import annotations

import dis
import linecache
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import FunctionType
from typing import Any

from glassgrad import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding

_MOST = 1_000_000


class Variables:
    """The global and enclosing variables that a function names, kept and put back.

    Args:
        function: a step.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._code = getattr(function, "__code__", None)
        self._before: list[tuple[str, Any, Any, Any]] = []
        self._nodes: list[dict[str, int]] = []
        if not isinstance(function, FunctionType):
            return
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            if _holds(cell):
                self._before.append((name, cell, cell.cell_contents, _copy(cell.cell_contents)))
        for name in function.__code__.co_names:
            if name in function.__globals__:
                value = function.__globals__[name]
                self._before.append((name, function.__globals__, value, _copy(value)))

    def look(self) -> None:
        """Count, after a step, the nodes behind the tensors that each variable holds."""
        self._nodes.append({name: _count(_now(name, place)) for name, place, _, _ in self._before})

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
        site = self._written(name)
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
            else f"{name} += loss.item()  # or .detach(), where a tensor is kept",
        )

    def restore(self) -> None:
        """Put the variables back, and what was in lists and dictionaries."""
        for name, place, value, content in self._before:
            if isinstance(value, list):
                value[:] = content
            elif isinstance(value, dict) and content is not None:
                value.clear()
                value.update(content)
            if _now(name, place) is value:
                continue
            if isinstance(place, dict):
                place[name] = value
            else:
                place.cell_contents = value

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
    except ValueError:  # nothing was put into it yet
        return False


def _now(name: str, place: Any) -> Any:
    return place.get(name) if isinstance(place, dict) else place.cell_contents if _holds(place) else None


def _copy(value: Any) -> Any:
    """Return what is in a list or a dictionary; None of anything else."""
    return value.copy() if type(value) in {list, dict} else None


def _count(value: Any) -> int:
    """Return how many nodes are behind the tensors in a value."""
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
