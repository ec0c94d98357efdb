"""What an emitter can do, as data: the plan reads this description and never calls the emitter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from glassgrad.compile.ir.graph import DType, Instr
from glassgrad.compile.plan.build_nest import LoopLowering
from glassgrad.compile.plan.view_chains import Strided, only_moves


class Solid(Protocol):
    """An op that is a kernel by itself, such as a matrix product."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        """Tell whether this instruction has a form that can be emitted."""

    @staticmethod
    def accepts(instr: Instr, position: int, strided: Strided) -> bool:
        """Tell whether an operand can be read in its present layout."""


@dataclass(frozen=True)
class Target:
    """What an emitter can do on the present machine. The host computes everything else with NumPy.

    Attributes:
        loops: the ops that run as (part of) a loop nest.
        solids: the ops that are a kernel by themselves.
        kinds: the element kinds of dtypes, which are named as in ``"f4"``.
        only_copied: the kinds among them that the machine stores but cannot compute with.
        costs: the cost of an elementwise op relative to an addition.
    """

    loops: Mapping[str, LoopLowering]
    solids: Mapping[str, type[Solid]]
    kinds: Mapping[str, str]
    only_copied: frozenset[str]
    costs: Mapping[str, int]

    def stored_kind(self, dtype: DType) -> str | None:
        """Return the element kind of a dtype that can be copied."""
        return self.kinds.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None

    def kind_of(self, dtype: DType) -> str | None:
        """Return the element kind of a dtype that can be computed with."""
        kind = self.stored_kind(dtype)
        return None if kind in self.only_copied else kind

    def has_kinds(self, instr: Instr) -> bool:
        """Tell whether all dtypes of an instruction can be computed with, and its index has no booleans."""
        if "spec" in instr.params and any(isinstance(part, bool) for part in instr.params["spec"]):
            return False  # NumPy places the dimensions of a boolean index by its own rules
        dtypes = [var.dtype for var in (*instr.reads(), *instr.outputs)]
        return all(self.kind_of(dtype) is not None for dtype in dtypes)

    def takes_product(self, instr: Instr) -> bool:
        """Tell whether a matrix product has native code for its dtype."""
        return self.solids["matmul"].takes(instr)

    def is_loop(self, instr: Instr) -> bool:
        """Tell whether an instruction runs as (part of) a loop nest."""
        return instr.op in self.loops and self.has_kinds(instr)

    def is_host(self, instr: Instr) -> bool:
        """Tell whether an instruction has no native code."""
        if not self.has_kinds(instr):
            return True
        if only_moves(instr) or instr.op in self.loops:
            return False
        solid = self.solids.get(instr.op)
        return solid is None or not solid.takes(instr)

    def accepts(self, instr: Instr, position: int, strided: Strided) -> bool:
        """Tell whether an instruction that is not a loop can read an operand in its present layout."""
        solid = self.solids.get(instr.op)
        return strided.contiguous if solid is None else solid.accepts(instr, position, strided)
