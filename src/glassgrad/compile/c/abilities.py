"""What the C target can do, for the planner."""

from __future__ import annotations

from glassgrad.compile.c.kernels.solids import SOLIDS
from glassgrad.compile.llvm.loops.scalar import COSTS
from glassgrad.compile.llvm.module.ir import KINDS
from glassgrad.compile.llvm.table import LOOPS
from glassgrad.compile.plan.target import Target


def abilities() -> Target:
    """Return the ops and element kinds that have C: loops from the same table as native code.

    C11 has no type for halves, so they have none here.
    """
    return Target(LOOPS, SOLIDS, KINDS, frozenset({"f16", "bf16"}), COSTS)
