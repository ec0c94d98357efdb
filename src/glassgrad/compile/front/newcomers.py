"""Which tensors were made since a trace began: the others are state, and inputs of its program.

A registry of all tensors would cost every one of them time, and a search through all objects of the process takes as
long as a small network takes to compile. Python's collector has sorted them already: what was made since its last run
is in the young generation.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from glassgrad.engine.tensor import Tensor

_YOUNG = 0
_MANY = 10_000  # young objects after which they are looked through once and sent on to the next generation


class Newcomers:
    """Tells tensors made since `start` from those that were there, while Python's own collections are switched off."""

    def __init__(self) -> None:
        self._known: dict[int, Tensor] = {}  # kept alive, so that no new tensor reuses their ids
        self._new: dict[int, weakref.ref[Tensor]] = {}

    def start(self) -> None:
        """Begin: what there is now is old."""
        if _has_generations():
            gc.collect(_YOUNG)
            gc.callbacks.append(self._before_collection)
        else:
            self._known = {id(one): one for one in gc.get_objects() if _is_tensor(one)}

    def stop(self) -> None:
        """Forget everything."""
        if self._before_collection in gc.callbacks:
            gc.callbacks.remove(self._before_collection)
        self._known.clear()
        self._new.clear()

    def greet(self, target: Tensor) -> None:
        """Count a tensor among those that were there, without looking."""
        self._known[id(target)] = target

    def have(self, target: Tensor) -> bool:
        """Tell whether a tensor was made since the start."""
        at = id(target)
        if at in self._known:
            return False
        if self._is_noted(target):
            return True
        if _has_generations():
            if self._note() > _MANY:
                gc.collect(_YOUNG)  # the next look has less to look through
            if not self._is_noted(target):
                self._known[at] = target
                return False
        return True

    def _is_noted(self, target: Tensor) -> bool:
        noted = self._new.get(id(target))
        return noted is not None and noted() is target

    def _note(self) -> int:
        """Take down the young tensors; return how many objects are young."""
        young = gc.get_objects(_YOUNG)
        self._new.update((id(one), weakref.ref(one)) for one in young if _is_tensor(one) and id(one) not in self._known)
        return len(young)

    def _before_collection(self, phase: str, info: dict[str, Any]) -> None:
        """Note what is young before a collection, which the traced function may ask for, makes it old."""
        if phase == "start":
            self._note()


def free(refs: Collection[Callable[[], Any]]) -> None:
    """Free what weak references lead to and only cycles hold; of what a trace made, these are young cycles mostly."""
    for generation in (1, 2):
        if not any(ref() is not None for ref in refs):
            return
        gc.collect(generation)


def _is_tensor(one: Any) -> bool:
    # type(), not isinstance: proxies of other libraries do things when they are asked for their __class__
    return issubclass(type(one), Tensor)


@cache
def _has_generations() -> bool:
    """Tell whether this Python's collector knows young objects from old ones; a free-threaded one need not."""
    old: list[Any] = []
    gc.collect(_YOUNG)
    new: list[Any] = []
    young = gc.get_objects(_YOUNG)
    return any(one is new for one in young) and not any(one is old for one in young)
