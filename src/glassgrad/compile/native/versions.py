"""Whether dictionaries are unchanged, by one call of native code.

The guards of a trace ask many dictionaries, of modules, of layers, of an optimizer, whether they hold what they held.
Each question takes Python some 15 nanoseconds, and even a small network has a hundred. CPython 3.11 and 3.12 give a
dictionary a new number whenever it changes (PEP 509): while all numbers are those that were seen before all questions
were last answered, the answers are the same. Later versions of CPython have no such numbers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.compile.llvm.target import host
from glassgrad.compile.native.builtin import NO_ARGUMENTS, BuiltIn
from glassgrad.compile.native.executable import object_layout

_HEADER, _VERSION_AT = 16, 24
"""Of CPython's objects, the bytes before what an object has of its own; of a dictionary, where its number is."""
_WITH_VERSIONS = frozenset({(3, 11), (3, 12)})
_MADE, _COUNT, _SETTLED, _HEAD = range(4)  # words of a table before its pairs of an address and the number seen there


def watcher(watched: Sequence[dict[Any, Any]]) -> tuple[Callable[[], bool], Callable[[], bool]] | None:
    """Return what tells whether dictionaries are unchanged, and what says that they are as wanted; None elsewhere.

    The first function notes the numbers that it finds, and gives False where one is new to it, or while the second one
    has not been called since. So whoever looks at the dictionaries after the first and then calls the second, which
    gives True, misses no change, nor one by another thread meanwhile. The caller keeps the dictionaries alive.
    """
    if not has_versions() or any(type(one) is not dict for one in watched):
        return None
    made = ctypes.cast(ctypes.pythonapi.PyBool_FromLong, ctypes.c_void_p).value or 0
    pairs = [part for one in watched for part in (id(one) + _VERSION_AT, 0)]
    table = np.array([made, len(watched), 0, *pairs], np.int64)

    def settle() -> bool:
        table[_SETTLED] = 1
        return True

    return _unchanged().of(table), settle


@lru_cache(maxsize=1)
def has_versions() -> bool:
    """Tell whether dictionaries of this interpreter have numbers that tell of every change."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in _WITH_VERSIONS:
        return False
    return object.__basicsize__ == _HEADER and all(map(_is_told, _CHANGES))


def _is_told(change: Callable[[_Changed], Any]) -> bool:
    for _ in range(64):  # the interpreter replaces bytecode that has run some times
        thing = _Changed()
        thing.one, thing.two = 1, 2
        before = version(vars(thing))
        change(thing)
        if version(vars(thing)) == before:
            return False
    return True


class _Changed:
    one: Any
    two: Any


def _set(thing: _Changed) -> None:
    thing.one = thing


_CHANGES: tuple[Callable[[_Changed], Any], ...] = (
    _set,
    lambda thing: vars(thing).__setitem__("one", 3),
    lambda thing: vars(thing).update(one=4),
    lambda thing: vars(thing).pop("one"),
    lambda thing: delattr(thing, "two"),
    lambda thing: setattr(thing, "three", 5),
    lambda thing: vars(thing).clear(),
)


def version(one: dict[Any, Any]) -> int:
    """Return a dictionary's number."""
    return ctypes.c_uint64.from_address(id(one) + _VERSION_AT).value


@lru_cache(maxsize=1)
def _unchanged() -> BuiltIn:
    text = "\n".join([host().header(), _TEXT.replace("DATA_AT", str(object_layout()[1]))])
    return BuiltIn(text, "unchanged", NO_ARGUMENTS, "Whether every dictionary is unchanged.")


_TEXT = f"""
define ptr @unchanged(ptr %self, ptr %nothing) {{
entry:
  %data.p = getelementptr i8, ptr %self, i64 DATA_AT
  %table = load ptr, ptr %data.p, align 8
  %made = load ptr, ptr %table, align 8
  %count.p = getelementptr i64, ptr %table, i64 {_COUNT}
  %count = load i64, ptr %count.p, align 8
  %settled.p = getelementptr i64, ptr %table, i64 {_SETTLED}
  %settled = load i64, ptr %settled.p, align 8
  %pairs = getelementptr i64, ptr %table, i64 {_HEAD}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %all = phi i64 [ %settled, %entry ], [ %all.next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %told
one:
  %at = shl i64 %i, 1
  %place.p = getelementptr ptr, ptr %pairs, i64 %at
  %place = load ptr, ptr %place.p, align 8
  %seen.at = add i64 %at, 1
  %seen.p = getelementptr i64, ptr %pairs, i64 %seen.at
  %seen = load i64, ptr %seen.p, align 8
  %now = load i64, ptr %place, align 8
  store i64 %now, ptr %seen.p, align 8
  %same = icmp eq i64 %now, %seen
  %all.next = select i1 %same, i64 %all, i64 0
  %i.next = add i64 %i, 1
  br label %head
told:
  store i64 %all, ptr %settled.p, align 8
  %result = call ptr %made(i64 %all)
  ret ptr %result
}}
"""

__all__ = ["has_versions", "version", "watcher"]
