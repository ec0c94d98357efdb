"""Dataclasses that are made quickly: a program that compiles a step loads some eighty of them before it runs.

`dataclasses.dataclass` writes and compiles up to six functions for a class, in a third of a millisecond. Here only
``__init__`` is written; comparing, hashing and printing are the same functions for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # to a type checker they are the same
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, **options: Any) -> Any:
        """Make a class a dataclass, as `dataclasses.dataclass` does.

        That nobody assigns to a frozen one is left to type checkers: such classes are for this package alone, and
        attributes that may be assigned are set faster.

        Args:
            cls: the class; without it a decorator is returned.
            frozen: instances with equal fields have equal hashes.
            eq: instances with equal fields are equal.
            options: as for `dataclasses.dataclass`.
        """
        if cls is None:
            return lambda given: dataclass(given, frozen=frozen, eq=eq, **options)
        made = dataclasses.dataclass(repr=False, eq=False, **options)(cls)
        own = vars(made)
        if "__repr__" not in own:
            made.__repr__ = _shown
        if eq:
            _compare(made, own, frozen)
        return made


def _compare(cls: Any, own: Any, frozen: bool) -> None:
    values = _values(tuple(field.name for field in dataclasses.fields(cls) if field.compare))

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    if "__eq__" not in own:
        cls.__eq__ = equal
    if own.get("__hash__") is None:
        cls.__hash__ = (lambda self: hash(values(self))) if frozen else None


def _values(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _self: ()


def _shown(self: Any) -> str:
    parts = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


__all__ = ["dataclass"]
