"""Caches in memory: one bounded kind of cache, and a list of all its instances.

They hold traces of compiled functions, kernels and jobs of eager mode, and source and code of native functions.
`compile/kept` is the cache on disk, shared between processes. A pure function of a few sizes uses
`functools.lru_cache` with a bound, which evicts in the same order.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_caches: weakref.WeakSet[Cache[Any, Any]] = weakref.WeakSet()


class Cache(Generic[Key, Value]):
    """A bounded map that evicts the least recently used entry; thread-safe.

    Args:
        name: a description of its entries, for `kept`.
        most: the maximum number of entries, or a function that returns it, called before each eviction.
        in_children: whether entries stay valid in a forked process. If not, the child starts with an empty cache.

    Attributes:
        evicted: how many entries were dropped to make room.

    Example:
        >>> from glassgrad.base.kept import Cache
        >>> squares = Cache("squares", 2)
        >>> [squares.found(n, lambda n=n: n * n) for n in (2, 3, 2, 4)], 3 in squares
        ([4, 9, 4, 16], False)
    """

    def __init__(self, name: str, most: int | Callable[[], int], *, in_children: bool = True) -> None:
        self.name, self.in_children = name, in_children
        self.evicted = 0
        self._most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = free_in_children(threading.Lock())
        _caches.add(self)

    @property
    def most(self) -> int:
        """The maximum number of entries."""
        return self._most if isinstance(self._most, int) else self._most()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        """Return the value of a key and mark it as used; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: Key, value: Value) -> None:
        """Store a value, and evict the least recently used ones beyond the bound."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > max(1, self.most):
                self._entries.popitem(last=False)
                self.evicted += 1

    def found(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key; make it if it is missing. If two threads make one, the first is kept."""
        value = self.get(key)
        if value is None:
            made = make()
            value = self.get(key)
            if value is None:
                self.put(key, value := made)
        return value

    def drop(self, key: Key) -> None:
        """Remove a key if present."""
        with self._lock:
            self._entries.pop(key, None)

    def values(self) -> list[Value]:
        """Return all values, least recently used first."""
        with self._lock:
            return list(self._entries.values())

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()


def kept() -> dict[str, tuple[int, int]]:
    """Return for each cache name the numbers of entries and of evictions; caches of the same name are summed."""
    found: dict[str, tuple[int, int]] = {}
    for cache in sorted(_caches, key=lambda one: one.name):
        held, dropped = found.get(cache.name, (0, 0))
        found[cache.name] = held + len(cache), dropped + cache.evicted
    return found


def free_in_children(lock: Any) -> Any:
    """Return a lock that is released in a forked child, whichever thread of the parent held it."""
    _locks.add(lock)
    return lock


def _begin_in_child() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()
    for cache in list(_caches):
        if not cache.in_children:
            cache.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)

__all__ = ["Cache", "free_in_children", "kept"]
