"""The ops of a program, each with its arguments and with the user's call that applied it."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from types import CodeType, FrameType

import numpy as np

from glassgrad.base.provenance import INTERNAL
from glassgrad.engine.node import PICK, Node
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array, Primitive
from glassgrad.verify.spy import Spy

_MOST = 20_000  # ops of one round


@dataclass(eq=False)
class Op:
    """A recorded op.

    Attributes:
        args: its arguments as arrays and numbers; None where they are not known, as inside `vmap`.
        sources: for each argument the op or leaf that it comes from, and which of its results it is; a backward pass
            takes them from the node.
        call: ops that one call of the user's applied have the same number.
        place: the user's instruction in the program itself, which may call functions of other files.
        leaves: the values of leaves when an op of this round first read them; an optimizer changes them afterwards.
    """

    node: Node
    args: tuple[Array, ...] | None
    call: int
    sources: list[tuple[Node | Tensor | None, int | None]]
    place: tuple[CodeType, int]
    leaves: dict[int, tuple[Tensor, Array]] = field(default_factory=dict)


def source_of(parent: Array) -> tuple[Node | Tensor | None, int | None]:
    """Return the op or leaf that a parent stands for, and the position among the op's results if it has several."""
    if isinstance(parent, Node) and parent.prim is PICK and parent.parents:
        return parent.parents[0], int(parent.params["index"])
    return parent, None


def unseen(node: Node, call: int) -> Op:
    """Return an op whose arguments were not seen; they are known if each has a node or is a leaf."""
    known = bool(node.parents) and all(parent is not None for parent in node.parents)
    args = (None,) * len(node.parents) if known else None
    return Op(node, args, call, [*map(source_of, node.parents)], (node.code, node.lasti))


class Recorder(Spy):
    """Records the ops of the two latest rounds; a round ends with an optimizer's step.

    A loop of a thousand steps would otherwise keep the values of all of them. Two rounds are kept, since a program may
    evaluate its model after the last step.
    """

    def __init__(self, file: str = "") -> None:
        super().__init__()
        self.file = file
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
        number, frame = self._call()
        op = unseen(node, number)
        op.leaves = self._leaves
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        if frame is not None:
            op.place = frame.f_code, frame.f_lasti
        if self._computed is not None and self._computed.name == node.name:
            op.args = self._latest[0]
        self.rounds[-1][node] = op
        for (parent, _), array in zip(op.sources, op.args or (), strict=False):
            if isinstance(parent, Tensor) and id(parent) not in self._leaves:
                self._leaves[id(parent)] = parent, np.array(parent.array if array is None else array)

    def find(self, node: Node) -> Op | None:
        """Return the op of a node, if it is still kept."""
        return next((found for one in self.rounds if (found := one.get(node)) is not None), None)

    def _call(self) -> tuple[int, FrameType | None]:
        """Return the number of the user's call, and its frame. The frame that it entered identifies it."""
        frame: FrameType | None = sys._getframe(2)
        entry = frame
        while frame is not None and INTERNAL[frame.f_code.co_filename]:
            entry, frame = frame, frame.f_back
        if entry is not self._entry:
            self._entry, self._number = entry, self._number + 1
        return self._number, frame
