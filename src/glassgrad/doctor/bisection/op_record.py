"""Everything that a run computes: the result of each op and each cotangent of its backward passes, in order."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor.restoring.step_aside import arrays_in, eagerly
from glassgrad.doctor.run import here
from glassgrad.engine.mode import MODE
from glassgrad.engine.node import Node
from glassgrad.engine.random import get_states
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.engine.tape import Observer, unwrap
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.views import memory_owner


@dataclass(frozen=True)
class Event:
    """One array that a run computed.

    Attributes:
        phase: "forward" for the result of an op, "backward" for a cotangent that an op's rule made, "arriving" for the
            gradient of an op's result, "update" for an op of an optimizer's rule.
        op: the name of the op.
        value: a copy of the array.
        operands: copies of its inputs; in the backward pass, the cotangent of the op's result.
        outside: for each operand whether it comes from outside the run's ops: weights, data, constants, random numbers.
        drew: whether random numbers were drawn since the previous op.
        params: the other arguments of the op, as text.
        site: code object and instruction of the user's call.
        paths: for each operand the path of the tensor that owns its memory, such as "model.0.weight"; "" where unknown.
    """

    phase: str
    op: str
    value: Array
    operands: tuple[Array, ...]
    outside: tuple[bool, ...]
    drew: bool
    params: str
    site: tuple[CodeType, int]
    paths: tuple[str, ...] = ()

    @property
    def place(self) -> provenance.Place:
        """The user's line."""
        return provenance.resolve(*self.site)

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """The key that an event of each run must share for the two to be compared."""
        return self.phase, self.op, self.value.shape


def record_run(
    run: Callable[..., Any],
    args: Sequence[Any],
    backward: Callable[[list[Event]], Observer] | None = None,
    witness: Any = None,
    paths: Mapping[int, str] | None = None,
) -> tuple[list[Event], Any]:
    """Run a function once, eagerly; return everything computed, in order, and its result.

    `backward` makes the observer of the backward passes; without it all cotangents are copied. `witness` is called at
    the steps of optimizers. `paths` maps ids of memory owners to the paths of tensors.
    """
    recorder = _Recorder(paths or {})
    before, MODE.witness = MODE.witness, witness
    try:
        with recorder, eagerly((backward or _Cotangents)(recorder.events)):
            result = run(*args)
    finally:
        MODE.witness = before
    return recorder.events, result


class _Recorder(Watcher):
    """Copies the result of every op."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self.events: list[Event] = []
        self._paths = paths
        self._made: dict[int, Any] = {}  # owners of memory, kept alive so that their ids are not reused
        self._randoms = _random_state()

    def stand_in(self, prim: Primitive) -> Primitive:
        return computed_by(prim, functools.partial(self._evaluate, prim))

    def _evaluate(self, prim: Primitive, *arrays: Any, **params: Any) -> Any:
        before = [_copy(array) for array in arrays]
        owners = [id(memory_owner(array)) for array in arrays]
        outside = tuple(owner not in self._made for owner in owners)
        paths = tuple(self._paths.get(owner, "") for owner in owners)
        y = prim.evaluate(*arrays, **params)
        randoms = _random_state()
        drew, self._randoms = randoms != self._randoms, randoms
        site = here()
        for part in _results(prim, y):
            self._made[id(memory_owner(part))] = memory_owner(part)
            self.events.append(
                Event("forward", prim.name, _copy(part), tuple(before), outside, drew, repr(params), site, paths)
            )
        return y


class _Cotangents(Observer):
    """Copies every cotangent that a rule sends on."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._node: Node | None = None
        self._given: tuple[Array, ...] = ()

    def rule(self, node: Node, g: Array, saved: tuple[Any, ...], position: int | None) -> None:
        if position is None:
            self._node = node
            self._given = tuple(_copy(part) for part in arrays_in((g,)))

    def sent(self, target: Any, c: Array) -> None:
        node = self._node
        if node is not None and isinstance(unwrap(c), np.ndarray | np.generic):
            value, given = _copy(unwrap(c)), self._given
            self._events.append(
                Event("backward", node.name, value, given, (False,) * len(given), False, "", (node.code, node.lasti))
            )

    def left(self, node: Node) -> None:
        self._node = None


def _copy(array: Array) -> Array:
    return np.array(array)


def _results(prim: Primitive, y: Any) -> list[Any]:
    """Return the arrays that an op returns to its caller, without those it only saves."""
    if prim.decompose is not None:
        y = y[0]
        if prim.companions:
            y = y[0]
    parts = list(y) if isinstance(y, tuple | list) else [y]
    return [part for part in parts if isinstance(part, np.ndarray | np.generic)]


def _random_state() -> tuple[Any, ...]:
    """Return the random states of our engine, NumPy and Python, which change with every draw."""
    ours = tuple((id(generator), repr(state)) for generator, state in get_states().items())
    _, key, position, *rest = np.random.get_state()  # noqa: NPY002 - a user's model may draw from the global one
    return ours, np.asarray(key).tobytes(), position, tuple(rest), hash(random.getstate())
