"""A guard in native code: one call tells whether many slots of Python objects hold what they held.

A fast path asks for each tensor of its state whether the array in it is the known one, whether it requires a gradient,
whether it has hooks. In Python each question takes some 17 nanoseconds, as long as all of them take here: a slot is a
pointer at a place in its object that never changes, and what it holds is told by its address.
"""

from __future__ import annotations

import ctypes
import inspect
import types
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.native.builtin import NO_ARGUMENTS, BuiltIn
from glassgrad.compile.native.executable import object_layout

_MEMBER_AT, _OFFSET_AT, _ITEMS_AT = 40, 16, 24
"""Offsets in CPython: of a member descriptor's PyMemberDef, of the slot's offset in that, of the items in a list."""
_HEADER = 16
"""Bytes before what an object has of its own. Other builds, such as the free-threaded one, have more."""
_HEAD = 4

Slot = tuple[Any, str, Any]
"""An object, the name of a slot, and what is to be in it."""


def holder(fixed: Iterable[Slot], listed: Iterable[tuple[Any, str]], items: list[Any]) -> Callable[[], bool] | None:
    """Return a function that tells whether every slot holds what it held; None where they cannot be found.

    Args:
        fixed: slots with what they hold. The caller keeps the objects and the values alive.
        listed: slots that hold `items[0]`, `items[1]` and so on, whatever is in that list at the time; it is as long.
        items: a list, kept alive by the caller.
    """
    if object.__basicsize__ != _HEADER:
        return None
    fixed, listed = list(fixed), list(listed)
    places = [_place(thing, name) for thing, name in [*((thing, name) for thing, name, _ in fixed), *listed]]
    found = [place for place in places if place is not None]
    if len(found) < len(places) or len(listed) != len(items) or not _is_list(items):
        return None
    pairs = [part for place, (_, _, value) in zip(found, fixed, strict=False) for part in (place, id(value))]
    made = ctypes.cast(ctypes.pythonapi.PyBool_FromLong, ctypes.c_void_p).value or 0
    head = [made, len(fixed), len(listed), id(items) + _ITEMS_AT]
    table = np.array([*head, *pairs, *found[len(fixed) :]], np.int64)
    return _held().of(table)


def _place(thing: Any, name: str) -> int | None:
    """Return the address of a slot, if what is in it is there."""
    member = inspect.getattr_static(type(thing), name, None)
    if not isinstance(member, types.MemberDescriptorType):
        return None
    place = id(thing) + _offset(member)
    return place if ctypes.c_size_t.from_address(place).value == id(member.__get__(thing)) else None


@lru_cache(maxsize=64)
def _offset(member: Any) -> int:
    described = ctypes.c_size_t.from_address(id(member) + _MEMBER_AT).value
    return ctypes.c_ssize_t.from_address(described + _OFFSET_AT).value


def _is_list(items: list[Any]) -> bool:
    """Tell whether the items of a list are where they are looked for."""
    start = ctypes.c_size_t.from_address(id(items) + _ITEMS_AT).value
    return [ctypes.c_size_t.from_address(start + 8 * at).value for at in range(len(items))] == list(map(id, items))


@lru_cache(maxsize=1)
def _held() -> BuiltIn:
    text = "\n".join([host().header(), _TEXT.replace("DATA_AT", str(object_layout()[1]))])
    return BuiltIn(text, "held", NO_ARGUMENTS, "Whether every slot holds what it held.")


_TEXT = f"""
define ptr @held(ptr %self, ptr %nothing) {{
entry:
  %data.p = getelementptr i8, ptr %self, i64 DATA_AT
  %table = load ptr, ptr %data.p, align 8
  %made = load ptr, ptr %table, align 8
  %fixed.p = getelementptr i64, ptr %table, i64 1
  %fixed.count = load i64, ptr %fixed.p, align 8
  %listed.p = getelementptr i64, ptr %table, i64 2
  %listed.count = load i64, ptr %listed.p, align 8
  %items.p.p = getelementptr i64, ptr %table, i64 3
  %items.p = load ptr, ptr %items.p.p, align 8
  %items = load ptr, ptr %items.p, align 8
  %pairs = getelementptr i64, ptr %table, i64 {_HEAD}
  %twice = shl i64 %fixed.count, 1
  %slots = getelementptr i64, ptr %pairs, i64 %twice
  br label %fixed
fixed:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fixed.one ]
  %fixed.more = icmp ult i64 %i, %twice
  br i1 %fixed.more, label %fixed.one, label %listed
fixed.one:
  %place.p = getelementptr ptr, ptr %pairs, i64 %i
  %place = load ptr, ptr %place.p, align 8
  %value.at = add i64 %i, 1
  %value.p = getelementptr i64, ptr %pairs, i64 %value.at
  %value = load i64, ptr %value.p, align 8
  %now = load i64, ptr %place, align 8
  %i.next = add i64 %i, 2
  %same = icmp eq i64 %now, %value
  br i1 %same, label %fixed, label %told
listed:
  %j = phi i64 [ 0, %fixed ], [ %j.next, %listed.one ]
  %listed.more = icmp ult i64 %j, %listed.count
  br i1 %listed.more, label %listed.one, label %told
listed.one:
  %slot.p = getelementptr ptr, ptr %slots, i64 %j
  %slot = load ptr, ptr %slot.p, align 8
  %item.p = getelementptr i64, ptr %items, i64 %j
  %item = load i64, ptr %item.p, align 8
  %there = load i64, ptr %slot, align 8
  %j.next = add i64 %j, 1
  %listed.same = icmp eq i64 %there, %item
  br i1 %listed.same, label %listed, label %told
told:
  %all = phi i64 [ 0, %fixed.one ], [ 1, %listed ], [ 0, %listed.one ]
  %result = call ptr %made(i64 %all)
  ret ptr %result
}}
"""

__all__ = ["holder"]
