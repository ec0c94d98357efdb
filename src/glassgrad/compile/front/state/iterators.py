"""Iterators that a function advances. A trace must not advance them, or every call would see the same element."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.state.edges import Edge
from glassgrad.engine.mode import MODE, TRACING


class StandIn:
    """Replaces an iterator while a function is traced, and refuses to advance.

    Other threads, which may share the iterator, still advance it.
    """

    def __init__(self, inner: Any, path: str) -> None:
        self.inner = inner
        self.path = path

    def __iter__(self) -> StandIn:
        return self

    def __next__(self) -> Any:
        if MODE.flags & TRACING:
            raise errors.TRACE_ITERATOR(what=self.path, kind=type(self.inner).__name__, where=provenance.here())
        return next(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def is_iterator(value: object) -> bool:
    """Tell whether an object is a one-shot iterator; objects of user classes are walked instead."""
    kind = type(value)
    if not hasattr(kind, "__next__") or kind is StandIn:
        return False
    own = isinstance(kind.__next__, types.FunctionType)
    return not own or provenance.is_internal(kind.__next__.__code__.co_filename)


@contextmanager
def watched(edges: Iterable[Edge]) -> Iterator[None]:
    """Replace iterators by stand-ins until the block ends."""
    replaced = [edge for edge in edges if edge.kind in {"cell", "item", "attribute"} and is_iterator(edge.value)]
    replaced = [edge for edge in replaced if not isinstance(edge.holder, tuple)]
    try:
        for edge in replaced:
            _put(edge, StandIn(edge.value, edge.path))
        yield
    finally:
        for edge in replaced:
            try:
                now = edge.now()
            except (LookupError, AttributeError):  # the function removed it
                continue
            if type(now) is StandIn:
                _put(edge, now.inner)


def _put(edge: Edge, value: object) -> None:
    match edge.kind:
        case "cell":
            edge.holder.cell_contents = value
        case "attribute":
            setattr(edge.holder, edge.key, value)
        case _:
            edge.holder[edge.key] = value
