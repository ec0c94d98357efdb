"""Find the tensors made since a trace began; all others are state, i.e. inputs of its program.

A registry of all tensors would slow down the creation of each, and a search through all objects of the process takes
as long as compiling a small network. Python's garbage collector has sorted them already: objects made since its last
run are in the young generation.
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
_MANY = 1_000  # limit on young objects, after which they are promoted, because each search visits all of them

_TRIES = 50


class Newcomers:
    """Distinguishes tensors made since `start` from older ones, while Python's automatic collections are off."""

    def __init__(self) -> None:
        self._known: dict[int, Tensor] = {}  # kept alive, so that no new tensor reuses their ids
        self._new: dict[int, weakref.ref[Tensor]] = {}
        self._by_age = False
        # Young collections since the last older one. `gc.freeze` resets this count, which reveals it;
        # `gc.get_freeze_count` would take time proportional to the frozen objects.
        self._collections = 0
        self._turns = 0  # number of begins and ends of collections
        self._froze = False
        self._guessed = False  # whether a tensor was classified as old only by its age

    def start(self) -> None:
        """Begin: all existing tensors are old."""
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
        """Raise if young tensors may have been mistaken for old ones.

        Raises:
            CompileError: `gc.freeze` has hidden young objects.
        """
        self._look_for_freeze()
        if self._guessed and self._froze:
            raise errors.TRACE_FREEZE(count=gc.get_freeze_count())

    def greet(self, target: Tensor) -> None:
        """Record a tensor as old, without a search."""
        self._known[id(target)] = target

    def welcome(self, target: Tensor) -> None:
        """Record a tensor that was just made as new, without a search."""
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
                gc.collect(_YOUNG)  # shortens the next search
            if not self._is_noted(target):
                self._known[at] = target
                self._guessed = True
                return False
        return True

    def _is_noted(self, target: Tensor) -> bool:
        noted = self._new.get(id(target))
        return noted is not None and noted() is target

    def _note(self) -> None:
        """Record the young tensors."""
        self._new.update((id(one), weakref.ref(one)) for one in alive.tensors(_YOUNG) if id(one) not in self._known)

    def _around_collection(self, phase: str, info: dict[str, int]) -> None:
        """Record the young tensors before a collection, which the traced function may request, makes them old."""
        self._turns += 1
        if phase == "start":
            self._note()
            self._look_for_freeze()
        # A collection of older objects restarts the count; another thread may check before its end is reported.
        self._collections = 0 if phase == "start" and info["generation"] else gc.get_count()[1]

    def _look_for_freeze(self) -> None:
        while self._by_age:
            turns, collections = self._turns, self._collections
            if gc.get_count()[1] >= collections:
                return
            if turns == self._turns:  # else another thread has collected between the two reads
                self._froze = True
                return


def free(refs: Collection[Callable[[], object]]) -> None:
    """Free the referents of weak references that only cycles keep alive; those of a trace are mostly young cycles.

    Another thread may inspect this thread's frames (e.g. a profiler or the guard of ranks) and so keep the variables of
    the traced function alive for a moment after its end; wait for that.
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
    """Collect; wait a little if another thread is collecting, because the collector then ignores the call."""
    for _ in range(_TRIES):
        freed = weakref.ref(_Cycle())
        gc.collect(generation)
        if freed() is None:
            return
        time.sleep(0.001)


def _collects() -> bool:
    """Promote young objects; tell whether that worked.

    It fails while the collector is already running, in another thread or in a finalizer that traces, and where the
    collector has no generations, as in a free-threaded Python.
    """
    old: list[object] = []
    gc.collect(_YOUNG)
    new: list[object] = []
    young = alive.ids(_YOUNG)
    return id(new) in young and id(old) not in young
