"""Effects on Python objects that every call repeats: stored tensors, incremented numbers.

A trace runs the function's Python once. When the trace ends, its changes (see `places.py`) are undone and become a
list of `Effect`s, each with the value for a place: an output of the program, an argument, or an existing object.
Guards ensure that the places which the function reads are unchanged, so the values are right.

A function may read a tensor from a place and replace it there (``self.h = cell(x, self.h)``), so the next call finds
another tensor. Such a place is `Moved`; the program reads whatever tensor is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

from glassgrad.base import provenance
from glassgrad.compile.front.calls.parameters import Leaves
from glassgrad.compile.front.state.bytecode_reads import stored_at
from glassgrad.compile.front.state.edges import Edge, is_constant, same
from glassgrad.compile.front.state.places import MISSING, Change, Holder, name_in
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor

if TYPE_CHECKING:
    from glassgrad.compile.front.calls.captured import State
    from glassgrad.compile.front.state.reach import Reach

SET, ADD, EXTEND = "set", "add", "extend"


@dataclass(frozen=True)
class Kept:
    """An existing object, stored unchanged."""

    value: object


@dataclass(frozen=True)
class Entry:
    """A tensor that was in a moved place before the call: leaf number `leaf` of the content."""

    moved: Moved
    leaf: int


@dataclass(frozen=True)
class Effect:
    """A call's change of one place: set it to a value, add a number to it, or extend a list."""

    holder: Holder
    key: Any
    action: str
    value: Any
    codes: Sequence[CodeType] = ()

    @property
    def path(self) -> str:
        """The place as the user would write it."""
        return self.holder.place(self.key)

    @property
    def where(self) -> str:
        """The user's line that makes the change, if known."""
        name = self.holder.name(self.key)
        found = None if name is None else stored_at(self.codes, name)
        return "" if found is None else f" at {provenance.resolve(*found)}"


@dataclass(eq=False)
class Moved:
    """A place whose tensors are read, and replaced by others.

    Attributes:
        holder, key: the place.
        value: the content while the function was traced.
        structure: the structure of the content, without its leaves.
        kinds: the kind of each leaf: type, shape and dtype of a tensor, or the object itself.
        leaves: the current leaves.
        state: leaf number -> its input of the program.
    """

    holder: Holder
    key: Any
    value: Any
    structure: str = ""
    kinds: list[object] = field(default_factory=list)
    leaves: Leaves = field(default_factory=list)
    state: dict[int, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leaves = tree.every_leaf(self.value)
        self.structure = _structure(self.value)
        self.kinds = [_kind(leaf) for leaf in self.leaves]

    @property
    def path(self) -> str:
        """The place as the user would write it."""
        return self.holder.place(self.key)

    def read(self) -> bool:
        """Read the current content; tell whether it is of the same kind."""
        value = self.holder.get(self.key)
        leaves = [value] if type(value) is Tensor else tree.every_leaf(value)
        if len(leaves) != len(self.kinds) or not all(map(_fits, leaves, self.kinds)):
            return False
        if type(value) is not Tensor and _structure(value) != self.structure:
            return False
        self.leaves = leaves
        for at, one in self.state.items():
            one.tensor = leaves[at]
        return True


def _structure(value: object) -> str:
    shape = tree.map_tree(lambda leaf, path: None, value)
    return f"{type(value).__name__} {shape!r}"


def _kind(leaf: object) -> object:
    if isinstance(leaf, Tensor):
        return type(leaf), leaf.array.shape, leaf.array.dtype, leaf._tracks, leaf.node is None
    return Kept(leaf)


def _fits(leaf: object, kind: object) -> bool:
    if type(kind) is Kept:
        return same(leaf, kind.value)
    return isinstance(leaf, Tensor) and _kind(leaf) == kind


# --- in a call ------------------------------------------------------------------------------------


def apply(effects: Sequence[Effect], build: Callable[[object], Any]) -> None:
    """Apply all effects; `build` turns a description into a value."""
    for effect in [(effect, build(effect.value)) for effect in effects]:
        _apply(*effect)


def _apply(effect: Effect, value: Any) -> None:
    holder, key = effect.holder, effect.key
    match effect.action:
        case "add":
            before = holder.get(key)
            holder.set(key, (getattr(holder.owner, key) if before is MISSING else before) + value)
        case "extend":
            holder.target.extend(value)
        case _:
            holder.set(key, value)


# --- at the end of a trace ------------------------------------------------------------------------


class Sorted:
    """The changes of a trace, sorted by how calls treat them.

    Attributes:
        effects: the changes that every call repeats.
        moved: places that every call reads again.
        dropped: places, and containers in them, that need no guard, by the ids of their holders, and keys.
        guards: places that must be unchanged.
        lengths: ids of objects and dictionaries that got new entries that no code reads -> the new entries.
    """

    def __init__(self, changes: list[Change], found: Reach) -> None:
        self.names = found.names
        self.paths = found.paths
        self.codes = found.codes
        self.changes = changes
        self.effects: list[Effect] = []
        self.guards: list[Edge] = []
        self.dropped: set[tuple[int, object]] = set()
        self.containers: set[int] = set()
        self.lengths: dict[int, list[object]] = {}
        self.moved: list[Moved] = []
        self._homes = _homes(found.edges)
        for change in changes:
            if self.counts(change) is None and not self.is_unread(change):
                self._guard(change.holder, change.key, change.before)
        self.entries = {
            id(leaf): Entry(moved, at)
            for moved in self.moved
            for at, leaf in enumerate(moved.leaves)
            if isinstance(leaf, Tensor)
        }

    def _names(self, change: Change) -> list[str | None]:
        """Return all names that code loads to reach a place."""
        paths = self.paths.get(id(change.holder.target))
        return [change.holder.name(change.key)] if paths is None else [name_in(path) for path in paths]

    def is_unread(self, change: Change) -> bool:
        """Tell whether the function only writes to a place."""
        written = all(name is not None and self.names.is_only_written(name) for name in self._names(change))
        one = change.key is not None or change.holder.kind in {"cell", "context"}
        return written and (one or appended(change) is not None)

    def counts(self, change: Change) -> Any:
        """Return the increment of a number that is only incremented."""
        counters = all(name is not None and self.names.is_counter(name) for name in self._names(change))
        if not counters or type(change.now) is not int:
            return None
        before = change.before
        if before is MISSING and change.holder.kind == "object":
            before = getattr(type(change.holder.owner), change.key, MISSING)
        return change.now - before if type(before) is int else None

    def _guard(self, holder: Holder, key: object, before: object) -> None:
        parts = tree.every_leaf(before) if before is not MISSING else []
        tensors = [part for part in parts if isinstance(part, Tensor)]
        mine = _counted(tensors)
        alone = bool(tensors) and all(self._homes.get(key, 0) <= count for key, count in mine.items())
        if alone:
            self.moved.append(Moved(holder, key, before))
            self._drop(holder, key)
            self.containers.update(_containers(before))
        else:
            self.guards += must_hold(holder, key, before)

    def _drop(self, holder: Holder, key: object) -> None:
        if holder.kind in {"list", "set"} and key is None:
            self.containers.add(id(holder.target))
        else:
            self.dropped.add((id(holder.target), key))

    def add(self, change: Change, spec: Callable[[object], Any]) -> None:
        """Turn a change into an effect; `spec` describes a value."""
        holder, key, before, now = change
        step = self.counts(change)
        if step is not None:
            self._drop(holder, key)
            self.effects.append(Effect(holder, key, ADD, Kept(step)))
            return
        if self.is_unread(change):
            self._drop(holder, key)
            if before is MISSING:
                self.lengths.setdefault(id(holder.target), []).append(key)
            added = appended(change)
            if added is not None:
                self.effects.append(Effect(holder, None, EXTEND, spec(added)))
                return
        value = Kept(MISSING) if now is MISSING else spec(now)
        self.effects.append(Effect(holder, key, SET, value, self.codes))

    def keeps(self, edge: Edge) -> bool:
        """Tell whether a place that was read still needs a guard."""
        return id(edge.holder) not in self.containers and (id(edge.holder), edge.key) not in self.dropped

    def settled(self, edge: Edge) -> Edge:
        """Return an edge with the content that it must have from the second call on."""
        new = self.lengths.get(id(edge.holder))
        if new is None:
            return edge
        if edge.kind == "length":
            return edge._replace(value=edge.value + len(new))
        return edge._replace(value=(*edge.value, *new)) if edge.kind == "keys" else edge


def must_hold(holder: Holder, key: object, before: object) -> list[Edge]:
    """Return the guards of a place; each element of a list has its own."""
    path = holder.place(key)
    if holder.kind in {"object", "dict", "names"}:
        missing = before is MISSING
        return [Edge(path, "absent" if missing else "item", holder.target, key, None if missing else before)]
    if holder.kind in {"cell", "context", "class", "slot"} and before is not MISSING:
        kind = holder.kind if holder.kind in {"cell", "context"} else "attribute"
        return [Edge(path, kind, holder.target, key, before)]
    return []


def appended(change: Change) -> list[object] | None:
    """Return the elements appended to a list; None for any other change."""
    holder, key, before, now = change
    if holder.kind != "list" or key is not None or len(now) <= len(before) or getattr(holder.target, "maxlen", None):
        return None
    kept = all(one is other or (is_constant(one) and same(other, one)) for one, other in zip(before, now, strict=False))
    return now[len(before) :] if kept else None


def _containers(value: object) -> set[int]:
    """Return the ids of a container and of those in it."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(_containers, value.values()))
    if isinstance(value, list | tuple):
        return {id(value)}.union(*map(_containers, value))
    return set()


def _counted(tensors: Iterable[Tensor]) -> Counter[int]:
    """Count the tensors that share each memory, by the id of the object that represents it."""
    return Counter(id(one.array) for one in tensors)


def _homes(found: Sequence[Edge]) -> Counter[int]:
    """Count the places of each memory."""
    places = {(id(edge.holder), edge.key): edge.value for edge in found if isinstance(edge.value, Tensor)}
    return _counted(places.values())
