"""What a kernel that is no loop nest has to say: whether it can be emitted, its cost, its cuts, its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.ir import Builder
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Cut
from glassgrad.compile.plan.view_chains import Strided

if TYPE_CHECKING:
    from glassgrad.compile.llvm.step import StepModule
    from glassgrad.compile.plan.schedule import Task


class SolidCode:
    """One kernel's code; subclasses fill in what is below."""

    label: ClassVar[str] = "call"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.instr = kernel.instrs[0]

    @staticmethod
    def takes(instr: Instr) -> bool:
        """Tell whether this instruction has a form that can be emitted."""
        return True

    @staticmethod
    def accepts(instr: Instr, position: int, strided: Strided) -> bool:
        """Tell whether an operand can be read as it lies."""
        return strided.contiguous

    @property
    def flops(self) -> int:
        return 0

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory that a share needs."""
        return 0

    def time(self) -> float:
        """Estimate one thread's nanoseconds."""
        return 100.0

    def units(self) -> int:
        """Return how many units of work there are when it is not cut."""
        return 1

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        """Return the ways to share the work."""
        return []

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        """Emit the work on units [lo, hi)."""
        raise AssertionError(f"{self.instr.op} has no code")
