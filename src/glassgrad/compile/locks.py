"""Locks of the compiler. Tracing replaces the arrays of shared tensors, so one function at a time is traced."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def free_in_children(lock: Any) -> Any:
    """Return a lock that is released in a forked child, whichever thread of the parent held it."""
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)

TRACING_LOCK = free_in_children(threading.RLock())
