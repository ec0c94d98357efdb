"""Which tensors were made since a trace began: the others are state, and inputs of its program.

A registry of all tensors would cost every one of them time, and a search through all objects of the process takes as
long as a small network takes to compile. Python's collector has sorted them already: what was made since its last run
is in the young generation.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Collection

from glassgrad import errors
from glassgrad.compile.front.state import alive
from glassgrad.engine.tensor import Tensor

_YOUNG = 0
_MANY = 1_000  # young objects after which they are sent on to the next generation: each look goes through all of them

_TRIES = 50


class Newcomers:
    """Tells tensors made since `start` from those that were there, while Python's own collections are switched off."""

    def __init__(self) -> None:
        self._known: dict[int, Tensor] = {}  # kept alive, so that no new tensor reuses their ids
        self._new: dict[int, weakref.ref[Tensor]] = {}
        self._by_age = False
        # Collections of the young since the last one of the others: `gc.freeze` sets them back. Python counts what is
        # frozen one by one, which takes long where there is much.
        self._collections = 0
        self._turns = 0  # how often a collection began or ended
        self._froze = False
        self._guessed = False  # whether a tensor was counted as old for its age alone

    def start(self) -> None:
        """Begin: what there is now is old."""
        self._by_age = _collects()
        if self._by_age:
            self._collections = gc.get_count()[1]  # at least the one of `_collects`
            gc.callbacks.append(self._around_collection)
        else:
            self._known = {id(one): one for one in alive.tensors()}

    def stop(self) -> None:
        """Forget everything."""
        if self._around_collection in gc.callbacks:
            gc.callbacks.remove(self._around_collection)
        self._known.clear()
        self._new.clear()

    def check(self) -> None:
        """Raise where young tensors may have been taken for old ones.

        Raises:
            CompileError: `gc.freeze` has hidden young objects.
        """
        self._look_for_freeze()
        if self._guessed and self._froze:
            raise errors.TRACE_FREEZE(count=gc.get_freeze_count())

    def greet(self, target: Tensor) -> None:
        """Count a tensor among those that were there, without looking."""
        self._known[id(target)] = target

    def welcome(self, target: Tensor) -> None:
        """Count a tensor that was just made among the new ones, without looking."""
        self._new[id(target)] = weakref.ref(target)

    def have(self, target: Tensor) -> bool:
        """Tell whether a tensor was made since the start."""
        at = id(target)
        if at in self._known:
            return False
        if self._is_noted(target):
            return True
        if self._by_age:
            self._note()
            if gc.get_count()[_YOUNG] > _MANY:
                gc.collect(_YOUNG)  # the next look has less to look through
            if not self._is_noted(target):
                self._known[at] = target
                self._guessed = True
                return False
        return True

    def _is_noted(self, target: Tensor) -> bool:
        noted = self._new.get(id(target))
        return noted is not None and noted() is target

    def _note(self) -> None:
        """Take down the young tensors."""
        self._new.update((id(one), weakref.ref(one)) for one in alive.tensors(_YOUNG) if id(one) not in self._known)

    def _around_collection(self, phase: str, info: dict[str, int]) -> None:
        """Note what is young before a collection, which the traced function may ask for, makes it old."""
        self._turns += 1
        if phase == "start":
            self._note()
            self._look_for_freeze()
        # One of older objects begins to count anew; another thread may look before its end is told.
        self._collections = 0 if phase == "start" and info["generation"] else gc.get_count()[1]

    def _look_for_freeze(self) -> None:
        while self._by_age:
            turns, collections = self._turns, self._collections
            if gc.get_count()[1] >= collections:
                return
            if turns == self._turns:  # else another thread has collected between the two looks
                self._froze = True
                return


def free(refs: Collection[Callable[[], object]]) -> None:
    """Free what weak references lead to and only cycles hold; of what a trace made, these are young cycles mostly.

    Another thread may look at this one's frames, as profilers and the guard of ranks do, and hold the variables of the
    traced function for a moment after its end: that is waited for.
    """
    for generation in (1, 2):
        if not any(ref() is not None for ref in refs):
            return
        _collect(generation)
    for _ in range(_TRIES if threading.active_count() > 1 else 0):
        if not any(ref() is not None for ref in refs):
            return
        time.sleep(0.001)


class _Cycle:
    def __init__(self) -> None:
        self.me = self


def _collect(generation: int) -> None:
    """Collect; wait a little where the collector is at work in another thread, since it does nothing else then."""
    for _ in range(_TRIES):
        freed = weakref.ref(_Cycle())
        gc.collect(generation)
        if freed() is None:
            return
        time.sleep(0.001)


def _collects() -> bool:
    """Make young objects old; tell whether that worked.

    It does not while the collector is at work already, in another thread or in the finalizer that traces, nor where it
    knows no generations, as in a free-threaded Python.
    """
    old: list[object] = []
    gc.collect(_YOUNG)
    new: list[object] = []
    young = alive.ids(_YOUNG)
    return id(new) in young and id(old) not in young
