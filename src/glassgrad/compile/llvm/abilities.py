"""The abilities of this emitter on this machine, for the planner."""

from __future__ import annotations

from glassgrad.compile.llvm.loops.scalar import COSTS
from glassgrad.compile.llvm.module.ir import KINDS
from glassgrad.compile.llvm.module.solid import SOLIDS
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.table import LOOPS
from glassgrad.compile.plan.target import Target


def abilities() -> Target:
    """Return the ops and element kinds that have native code here.

    Without a conversion instruction for halves, the code would call functions of a C library that may be missing.
    """
    return Target(LOOPS, SOLIDS, KINDS, frozenset() if host().has_halves else frozenset({"f16"}), COSTS)
