"""Environment variables that a function reads while it is traced; the trace is valid while they are unchanged.

`os.getenv`, `get` and `in` all end in an item access of ``os.environ``, whatever the user's code calls it. So reads are
recorded on its class, which also covers third-party libraries and computed keys.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from glassgrad.base import provenance
from glassgrad.base.kept import free_in_children
from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.front.state.edges import Edge

Reads = dict[tuple[int, object], Edge]

_BETWEEN = frozenset({"os", "posixpath", "ntpath", "_collections_abc", __name__})  # modules that lead to an entry
_KIND = type(os.environ)
_PLAIN: dict[str, Function] = {name: getattr(_KIND, name) for name in ("__getitem__", "__iter__", "__len__")}
_lock = free_in_children(threading.Lock())
_traces: list[tuple[int, Reads]] = []  # threads that trace, and what each has read


@contextmanager
def noted() -> Iterator[Reads]:
    """Record this thread's reads of the environment until the block ends."""
    mine: tuple[int, Reads] = threading.get_ident(), {}
    with _lock:
        if not _traces:
            _put(_WATCHING)
        _traces.append(mine)
    try:
        yield mine[1]
    finally:
        with _lock:
            _traces[:] = [one for one in _traces if one is not mine]
            if not _traces:
                _put(_PLAIN)


def _put(functions: Mapping[str, Function]) -> None:
    for name, function in functions.items():
        setattr(_KIND, name, function)


def _entry(self: Any, key: object) -> Any:
    try:
        value = _PLAIN["__getitem__"](self, key)
    except KeyError:
        _note(self, "absent", key, None)
        raise
    _note(self, "item", key, value)
    return value


def _names(self: Any) -> Iterator[Any]:
    _note(self, "keys", None, tuple(_PLAIN["__iter__"](self)))
    names: Iterator[str] = _PLAIN["__iter__"](self)
    return names


def _count(self: Any) -> int:
    _note(self, "keys", None, tuple(_PLAIN["__iter__"](self)))
    return int(_PLAIN["__len__"](self))


_WATCHING: dict[str, Function] = {"__getitem__": _entry, "__iter__": _names, "__len__": _count}


def _note(holder: Any, kind: str, key: object, value: object) -> None:
    """Record the first read of a place by each trace of this thread."""
    thread = threading.get_ident()
    traces = [reads for owner, reads in tuple(_traces) if owner == thread]
    if not traces or _is_ours(sys._getframe(2)):
        return
    name = "os.environ" if holder is os.environ else "os.environb"
    path = f"the keys of {name}" if kind == "keys" else f"{name}[{key!r}]"
    for reads in traces:
        reads.setdefault((id(holder), key), Edge(path, kind, holder, key, value))


def _is_ours(frame: FrameType | None) -> bool:
    """Tell whether the library reads its own settings."""
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame is not None and provenance.is_internal(frame.f_code.co_filename)
