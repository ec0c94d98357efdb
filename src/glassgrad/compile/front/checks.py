"""Checks at the end of a trace; if one failed, the compiled function would differ from eager mode."""

from __future__ import annotations

import gc
import itertools
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.captured import State
from glassgrad.compile.front.state.edges import Edge, is_constant
from glassgrad.compile.front.state.reach import Reach
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import Var
from glassgrad.engine.tensor import Tensor


def holder(left: Symbol) -> str:
    """Name the object that keeps a traced value alive, as far as the garbage collector knows."""
    referrers = gc.get_referrers(left)
    found = {
        _named(holder, tensor)
        for tensor in referrers
        if isinstance(tensor, Tensor)
        for holder in gc.get_referrers(tensor)
        if holder is not referrers
    }
    # Attributes and variables are the most helpful names; our own records hold tensors in tuples.
    ranked = sorted(found - {""}, key=lambda text: ("." not in text, "variable" not in text, "tuple" in text, text))
    return ranked[0] if ranked else "an object that outlives the function"


def _named(holder: object, tensor: Tensor) -> str:
    if isinstance(holder, types.CellType):
        return "a variable of the enclosing function"
    if isinstance(holder, Edge):  # our own record of its place
        return ""
    if isinstance(holder, list | set | tuple):
        return f"a {type(holder).__name__}"
    if not isinstance(holder, dict):
        # Since Python 3.13 objects hold their attributes inline, and `__dict__` is created on access.
        name = _key_of(getattr(holder, "__dict__", {}), tensor)
        return f"{type(holder).__name__}.{name}" if name else ""
    name = _key_of(holder, tensor)
    for owner in gc.get_referrers(holder):
        if getattr(owner, "__dict__", None) is holder:
            return f"{type(owner).__name__}.{name}"
    return f"a dictionary, under {name!r}"


def _key_of(holder: Mapping[Any, object], tensor: Tensor) -> str:
    return next((str(key) for key, value in holder.items() if value is tensor), "")


def short_path(path: str) -> str:
    """Name an optimizer's state by its parameter: ``optimizer.state[w]['exp_avg']`` is ``w.exp_avg``."""
    found = re.fullmatch(r".*\.state\[(.+)\]\['(\w+)'\]", path)
    return f"{found[1]}.{found[2]}" if found else path


def state_of(stream: Any) -> object:
    """Return the state of a random stream in a comparable form."""
    if hasattr(stream, "get_state") and not isinstance(stream, np.random.RandomState):
        return stream.get_state()
    if hasattr(stream, "getstate"):
        return stream.getstate()
    return _comparable(stream.bit_generator.state if hasattr(stream, "bit_generator") else stream.get_state())


def _comparable(state: object) -> object:
    """Return a state that compares to one bool: arrays become bytes."""
    if isinstance(state, dict):
        return {name: _comparable(part) for name, part in state.items()}
    if isinstance(state, tuple):
        return tuple(_comparable(part) for part in state)
    return state.tobytes() if isinstance(state, np.ndarray) else state


def check_streams(streams: list[tuple[str, object, object]]) -> None:
    """Refuse a function that drew from a stream that a call cannot replay."""
    for path, stream, before in streams:
        if state_of(stream) != before:
            raise errors.TRACE_RANDOM(what=f"{path} ({type(stream).__name__})")


def check_numbers(tracer: Tracer) -> None:
    """Raise when the function changed an option that is read in every call."""
    changed = [entry for entry in tracer.numbers.values() if entry[0][entry[1]] != entry[2]]
    told = [(name, before, options[name]) for options, name, before in changed]
    for options, name, before in changed:
        options[name] = before
    for name, before, after in told:
        raise errors.TRACE_NUMBER_CHANGED(name=name, before=before, after=after)


def check_overlap(state: list[State], updates: Mapping[Var, Var]) -> None:
    """Raise when two inputs share memory and one of them is written to."""
    spans = sorted(
        ((*np.lib.array_utils.byte_bounds(one.tensor.array), one) for one in state if one.tensor.array.size),
        key=lambda span: span[0],
    )
    for (_, end, first), (start, _, second) in itertools.pairwise(spans):
        written = next((one for one in (first, second) if one.var in updates), None)
        if start < end and written is not None and np.shares_memory(first.tensor.array, second.tensor.array):
            raise errors.TRACE_OVERLAP(first=first.path, second=second.path, written=written.path)


def settled(before: Reach, after: Reach, tracer: Tracer) -> tuple[list[Edge], list[tuple[Edge, object]]]:
    """Return the places to guard, and the Python values that the function itself changed."""
    fed = {(id(options), name) for options, name, _ in tracer.numbers.values()}
    changed = []
    unsteady = set()
    for edge in before.edges:
        if is_constant(edge.value) and edge.kind != "length" and not edge.holds():
            try:
                now = edge.now()
            except (LookupError, AttributeError):  # the function itself removed it
                continue
            if not is_constant(now):
                continue
            unsteady.add((id(edge.holder), edge.key))
            if (id(edge.holder), edge.key) not in fed:
                changed.append((edge, now))
    kept = {}
    replayed = {id(owner) for owner in tracer.owners}
    moving = tuple(f"{edge.path}{sign}" for edge in after.edges if id(edge.value) in replayed for sign in ".[")
    for edge in after.edges:
        place = (id(edge.holder), edge.key)
        if edge.path.startswith(moving) and is_constant(edge.value):
            continue
        if place not in fed and place not in unsteady:
            kept[(edge.kind, *place)] = edge
    return list(kept.values()), changed


_COMPARED = 1 << 16  # bytes of an array that are compared before each call; more would take longer than the call


def looked_at(before: Reach, tracer: Tracer) -> list[Edge]:
    """Return the places of arrays that no op reads but Python code may, as an index or for a decision."""
    return [
        Edge(path, "bytes", array, None, array.tobytes())
        for path, array in before.arrays
        if id(array) in tracer.live
        and id(array) not in tracer.used_arrays
        and array.nbytes <= _COMPARED
        and array.dtype != object
    ]
