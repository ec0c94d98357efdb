"""Copying and pickling of compiled functions: the function and its options are copied, programs are made again.

A program holds addresses in this process's memory and of the state that its function reads; a copy of a model has its
own state. The copy traces at its first call and finds its native code on the disk.
"""

from __future__ import annotations

import copy
import sys
from types import FrameType
from typing import Any, Self, SupportsIndex, TypeVar

Made = TypeVar("Made")


class Portable:
    """How a compiled function is copied and pickled."""

    function: Any
    backend: str
    threads: int | None
    keep_grads: bool
    memory: int | None
    strict: bool
    _verify: bool

    def options(self) -> dict[str, Any]:
        """Return the options it was made with, without the function."""
        return {
            "backend": self.backend,
            "verify": self._verify,
            "threads": self.threads,
            "keep_grads": self.keep_grads,
            "memory": self.memory,
            "strict": self.strict,
        }

    def __copy__(self) -> Self:
        return _begun(object.__new__(type(self)), self.function, self.options())

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # A model may hold a function compiled from its own method, so the copy is registered before it is filled.
        twin = memo[id(self)] = object.__new__(type(self))
        return _begun(twin, copy.deepcopy(self.function, memo), self.options())

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        name = getattr(self.function, "__qualname__", "")
        if self is _named(getattr(self.function, "__module__", None), name) and not _by_value(sys._getframe(1)):
            return str(name)  # pickle finds a decorated function by its name, like any function
        return _unfinished, (type(self),), (self.function, self.options())

    def __setstate__(self, state: tuple[Any, dict[str, Any]]) -> None:
        _begun(self, *state)


def _begun(made: Made, function: Any, options: dict[str, Any]) -> Made:
    """Initialise an object of a subclass, which takes a function and these options."""
    anew: Any = made
    anew.__init__(function, **options)
    return made


def _unfinished(kind: type[object]) -> Any:
    return object.__new__(kind)


def _named(module: str | None, name: str) -> Any:
    """Return the object that a module holds under a dotted name; the dots lead into classes."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _by_value(frame: FrameType) -> bool:
    """Tell whether the caller is a pickler that stores functions by value: cloudpickle, a copy of it, or dill.

    The function alone does not show this: in a script both kinds of pickler see the same function of `__main__`.
    Another process finds it under that name if it runs the same script, and does not if it runs another.
    """
    asking = str(frame.f_globals.get("__name__", ""))
    return "cloudpickle" in asking or asking.split(".", maxsplit=1)[0] == "dill"
