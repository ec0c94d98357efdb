"""Tensors that a trace has touched: the Symbols that replace their arrays, and the arrays to restore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.ir.graph import Var
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array


@dataclass(eq=False)
class Lifted:
    """A Tensor whose array is a Symbol during the trace.

    `existed` distinguishes state from tensors that the function made. A tensor made inside that outlives the trace
    (an optimizer's first buffers) is also state. `by_function`: made by the user's code, not by an optimizer of ours,
    whose update rule is the same in later calls.
    """

    ref: Callable[[], Tensor | None]
    array: Array
    symbol: Symbol | None
    var: Var
    path: str
    tracks: bool
    existed: bool
    by_function: bool = False

    def give_back(self) -> None:
        """Restore the Tensor's array; calling it again has no effect."""
        target = self.ref()
        if target is not None:
            target.array = self.array
            target._tracks = self.tracks
