"""Places in Python objects that a function may change: attributes, entries, elements, variables.

While a function is traced, the values that it stores contain Symbols. The places are recorded before, compared
afterwards, and restored; `effects.py` turns the differences into the effects of every call.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from glassgrad.compile.front.state.edges import is_constant, same
from glassgrad.compile.front.state.iterators import StandIn


class _Missing:
    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


class Holder(NamedTuple):
    """An object that has places.

    Attributes:
        path: the expression with which the user would write it.
        kind: "object" (the attributes of `owner`), "dict", "names" (some entries of a dictionary), "class", "slot" (an
            attribute without a dictionary), "cell", "context", "list" or "set".
        target: the dictionary, class, object, cell, context variable, list, deque or set.
        owner: the object that has these attributes.
        names: the relevant entries, if not all are.
    """

    path: str
    kind: str
    target: Any
    owner: Any = None
    names: frozenset[str] = frozenset()

    def contents(self) -> Any:
        """Return a shallow copy of the current content."""
        match self.kind:
            case "names":
                return {name: self.target[name] for name in self.names if name in self.target}
            case "class":
                return {name: value for name, value in vars(self.target).items() if not name.startswith("__")}
            case "slot":
                return {name: getattr(self.target, name, MISSING) for name in self.names}
            case "cell" | "context":
                return {None: self.get(None)}
            case "list":
                return list(self.target)
        return self.target.copy() if type(self.target) in {dict, set} else type(self.target).copy(self.target)

    def get(self, key: Any) -> Any:
        """Return the content of a place, or MISSING; for a list and the key None, the list itself."""
        match self.kind:
            case "class" | "slot":
                return getattr(self.target, key, MISSING)
            case "cell":
                return cell_contents(self.target)
            case "context":
                return self.target.get(None)
            case "list" | "set":
                return list(self.target) if key is None else self.target[key]
        return self.target.get(key, MISSING)

    def set(self, key: Any, value: Any) -> None:
        """Put a value into a place; MISSING deletes the entry."""
        match self.kind:
            case "class" | "slot":
                delattr(self.target, key) if value is MISSING else setattr(self.target, key, value)
            case "cell":
                if value is MISSING:
                    del self.target.cell_contents
                else:
                    self.target.cell_contents = value
            case "context":
                self.target.set(value)
            case "list":
                if key is None:
                    self.replace(value)
                else:
                    self.target[key] = value
            case "set":
                self.replace(value)
            case _:
                if value is MISSING:
                    self.target.pop(key, None)
                else:
                    self.target[key] = value

    def replace(self, items: Iterable[object]) -> None:
        """Replace the contents of a list, deque or set."""
        items = list(items)
        self.target.clear()
        (self.target.update if self.kind == "set" else self.target.extend)(items)

    def name(self, key: object) -> str | None:
        """Return the name that code loads to reach a place, or None."""
        return str(key) if self.kind in {"object", "names", "class", "slot"} else name_in(self.path)

    def place(self, key: object) -> str:
        """Write a place as the user would."""
        match self.kind:
            case "object" | "class" | "slot":
                return f"{self.path}.{key}"
            case "names":
                return f"{self.path}.{key}" if self.path else str(key)
            case "dict" | "list":
                return self.path if key is None else f"{self.path}[{key!r}]"
        return self.path


def name_in(path: str) -> str | None:
    """Return the last variable or attribute of a path; for a path to an entry, that of its container."""
    name = (path.partition("[")[0] if path.endswith("]") else path).rpartition(".")[2]
    return name if name.isidentifier() and not name.startswith("__") else None


def cell_contents(cell: Any) -> Any:
    """Return the value of a variable of an enclosing function."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Change(NamedTuple):
    """A place whose content changed. `key` is None for sets, and for lists that grew or shrank."""

    holder: Holder
    key: Any
    before: Any
    now: Any

    @property
    def path(self) -> str:
        """The place as the user would write it."""
        return self.holder.place(self.key)


class Places:
    """A record of the contents of all holders at the time it was made."""

    def __init__(self, holders: Iterable[Holder]) -> None:
        self.before = [(holder, holder.contents()) for holder in holders]

    def changes(self) -> Iterator[Change]:
        """Yield the changes since then."""
        for holder, before in self.before:
            match holder.kind:
                case "list":
                    yield from _changes_of_list(holder, before)
                case "set":
                    if before != holder.target:
                        yield Change(holder, None, before, set(holder.target))
                case _:
                    now = holder.contents()
                    for key in [*before, *(key for key in now if key not in before)]:
                        one, other = before.get(key, MISSING), now.get(key, MISSING)
                        if not _equal(one, other):
                            yield Change(holder, key, one, other)

    def restore(self) -> None:
        """Restore the content."""
        for change in list(self.changes()):
            change.holder.set(change.key, change.before)


def _changes_of_list(holder: Holder, before: list[object]) -> Iterator[Change]:
    now = holder.target
    if len(now) == len(before):
        if all(map(operator.is_, now, before)):
            return
        pairs = enumerate(zip(before, now, strict=True))
        moved = [(at, one, other) for at, (one, other) in pairs if not _equal(one, other)]
        constant = all(is_constant(one) and is_constant(other) for _, one, other in moved)
        if constant:
            yield from (Change(holder, at, one, other) for at, one, other in moved)
            return
        if not moved:
            return
    yield Change(holder, None, before, list(now))


def _equal(one: object, other: object) -> bool:
    if type(other) is StandIn:
        other = other.inner
    return one is other or (is_constant(one) and same(other, one))
