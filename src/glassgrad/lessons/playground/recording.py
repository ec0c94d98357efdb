"""The ops of a program, each with its arguments and with the user's call that applied it."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from types import FrameType

import numpy as np

from glassgrad.base.provenance import INTERNAL
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array, Primitive
from glassgrad.verify.spy import Spy

_MOST = 20_000  # ops of one round


@dataclass(eq=False)
class Op:
    """A recorded op.

    Attributes:
        args: its arguments as arrays and numbers; None where they are not known, as inside `vmap`.
        call: ops that one call of the user's applied have the same number.
        leaves: the values of leaves when an op of this round first read them; an optimizer changes them afterwards.
    """

    node: Node
    args: tuple[Array, ...] | None
    call: int
    leaves: dict[int, tuple[Tensor, Array]] = field(default_factory=dict)


def unknown(node: Node) -> tuple[Array, ...] | None:
    """Return placeholders for the arguments of an op that was not seen, if each has a node or is a leaf."""
    return tuple(None for _ in node.parents) if all(parent is not None for parent in node.parents) else None


class Recorder(Spy):
    """Records the ops of the two latest rounds; a round ends with an optimizer's step.

    A loop of a thousand steps would otherwise keep the values of all of them. Two rounds are kept, since a program may
    evaluate its model after the last step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rounds: deque[dict[Node, Op]] = deque([{}], maxlen=2)
        self._leaves: dict[int, tuple[Tensor, Array]] = {}
        self._over = False
        self._computed: Primitive | None = None
        self._entry: FrameType | None = None
        self._number = 0

    def end_round(self) -> None:
        """Start a new round with the next op."""
        self._over = True

    def close(self) -> None:
        """Release the last frame."""
        self._entry = None

    def stand_in(self, prim: Primitive) -> Primitive:
        """Note the arguments of an op."""
        self._computed = prim
        return super().stand_in(prim)

    def computed(self, prim: Primitive, args: tuple[Array, ...], result: Array) -> None:
        """Note an op inside `vmap`, whose arguments are batches."""
        del prim, args, result
        self._computed = None

    def note(self, node: Node) -> None:
        """Record an op."""
        if self._over or len(self.rounds[-1]) >= _MOST:
            self._over = False
            self.rounds.append({})
            self._leaves = {}
        known = self._computed is not None and self._computed.name == node.name
        self.rounds[-1][node] = op = Op(node, self._latest[0] if known else unknown(node), self._call(), self._leaves)
        for parent, array in zip(node.parents, op.args or (), strict=False):
            if isinstance(parent, Tensor) and id(parent) not in self._leaves:
                self._leaves[id(parent)] = parent, np.array(parent.array if array is None else array)

    def find(self, node: Node) -> Op | None:
        """Return the op of a node, if it is still kept."""
        return next((found for one in self.rounds if (found := one.get(node)) is not None), None)

    def _call(self) -> int:
        """Return the number of the user's call; the frame that it entered identifies it while the frame is kept."""
        frame: FrameType | None = sys._getframe(2)
        entry = frame
        while frame is not None and INTERNAL[frame.f_code.co_filename]:
            entry, frame = frame, frame.f_back
        if entry is not self._entry:
            self._entry, self._number = entry, self._number + 1
        return self._number

