"""Observe every op of a call, with its arguments and its result, as it is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glassgrad.engine.node import Node
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.ops.core import Array, Primitive


@dataclass
class Applied:
    """A recorded op, with its arguments and its result."""

    node: Node
    args: tuple[Array, ...]
    value: Array


class Spy(Watcher):
    """Observes every recorded op with its arguments and result."""

    def __init__(self) -> None:
        self.applied: list[Applied] = []
        self._latest: tuple[tuple[Array, ...], Array] = ((), None)

    def stand_in(self, prim: Primitive) -> Primitive:
        def evaluate(*args: Any, **params: Any) -> Any:
            result = prim.evaluate(*args, **params)
            self._latest = (args, result[0] if prim.decompose is not None else result)
            return result

        return computed_by(prim, evaluate)

    def note(self, node: Node) -> None:
        args, value = self._latest
        self.applied.append(Applied(node, args, value))
