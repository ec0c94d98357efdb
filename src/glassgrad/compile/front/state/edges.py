"""A guarded place: where a compiled function read a value, and how its current content is compared."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable
from operator import is_
from typing import Any, NamedTuple

import numpy as np

LONG = 64  # containers of more constants than this are compared whole
_BUILTIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_CONSTANTS = (*_BUILTIN, np.generic, np.dtype, enum.Enum)
# The most common types, tested first.
_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})
_OTHERS = frozenset({dict, list, set, tuple, types.FunctionType, types.MethodType, types.CodeType, np.ndarray})


class Edge(NamedTuple):
    """One place that was read: `kind` tells how, `key` where in `holder`.

    Kinds: cell, item, attribute, context (a context variable); absent (a missing entry), length (`key` holds a
    dictionary's keys), keys (of a dictionary, in order), content (all constants of a container), bytes (the numbers
    of a NumPy array or an `array.array`).
    """

    path: str
    kind: str
    holder: Any
    key: Any
    value: Any

    def now(self) -> Any:
        """Return the current content; raise `LookupError` or `AttributeError` if there is none."""
        match self.kind:
            case "cell":
                try:
                    return self.holder.cell_contents
                except ValueError:
                    raise LookupError from None
            case "context":
                return self.holder.get(None)
            case "keys":
                return tuple(self.holder)
            case "attribute":
                return getattr(self.holder, self.key)
            case "length":
                return len(self.holder)
            case "content":
                return self.holder
            case "bytes":
                return self.holder.tobytes()
        return self.holder[self.key]

    def holds(self) -> bool:
        """Tell whether the place is unchanged."""
        if self.kind == "absent":
            return self.key not in self.holder
        try:
            now = self.now()
        except (LookupError, AttributeError):
            return False
        if self.kind == "content":
            return same_content(now, self.value)
        return bool(now == self.value) if self.kind == "keys" else same(now, self.value)


def is_constant(value: object) -> bool:
    """Tell whether a value is a Python constant, compared by value."""
    kind = type(value)
    if kind in _PLAIN or (kind not in _OTHERS and isinstance(value, _CONSTANTS)):
        return True
    if isinstance(value, tuple | frozenset):
        return len(value) <= LONG and all(is_constant(part) for part in value)
    return False


def same(now: Any, before: Any) -> bool:
    """Compare a place's current and earlier content: constants by value, everything else by identity."""
    if now is before:
        return True
    if type(now) is not type(before) or not is_constant(before):
        return False
    if isinstance(before, tuple | frozenset):
        return same_content(now, before)
    if isinstance(before, slice):
        return same((now.start, now.stop, now.step), (before.start, before.stop, before.step))
    equal = bool(now == before)
    if equal and before:
        return True
    # 0.0 == -0.0, and NaN != NaN.
    return (equal or bool(before != before)) and repr(now) == repr(before)  # noqa: PLR0124 - how NaN is told


def same_content(now: Any, before: Any) -> bool:
    """Compare a container of constants with an earlier copy; 1, 1.0 and True differ."""
    if len(now) != len(before):
        return False
    if isinstance(before, dict) and not same_content(now.values(), before.values()):
        return False
    # Usually they hold identical objects, which is the fastest test.
    if all(map(is_, now, before)):
        return True
    if isinstance(before, set | frozenset):
        return set(map(_told_apart, now)) == set(map(_told_apart, before))
    return all(map(same, now, before))


def is_text(container: Iterable[object]) -> bool:
    """Tell whether == suffices to compare a container: it holds only strings and is no dictionary."""
    return not isinstance(container, dict) and {*map(type, container)} <= {str}


def _told_apart(value: object) -> tuple[object, ...]:
    """Return a hashable key that is equal only for the same constant."""
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_told_apart, value))
    return type(value), repr(value)
