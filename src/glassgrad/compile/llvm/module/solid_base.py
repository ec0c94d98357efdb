"""The base classes of kernels other than loop nests: support for an instruction, cost, cuts, code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.module.ir import Builder
from glassgrad.compile.plan.indexing.indices import Index, row_strides
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Cut, Region, even_bounds, region_of
from glassgrad.compile.plan.view_chains import Strided

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task

Form = TypeVar("Form")


class SolidCode:
    """One kernel's code; subclasses override the methods below."""

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
        """Tell whether an operand can be read with its strides, without a copy."""
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
        """Return the number of units of work without a cut."""
        return 1

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        """Return the ways to share the work."""
        return []

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        """Emit the work on units [lo, hi)."""
        raise AssertionError(f"{self.instr.op} has no code")

    # --- helpers of subclasses ---

    def rows(self, shape: Sequence[int], shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        """Return the cut of a result of this shape by its rows, if it has several."""
        if not shape or shape[0] < 2:
            return []
        bounds, out = even_bounds(shape[0], shares), self.instr.output
        return [Cut("rows", bounds, {alias.get(out, out): region_of_rows(shape, bounds, out.size)})]

    def pointers(self, step: StepModule, b: Builder) -> list[str]:
        """Return pointers to the operands."""
        return [step.operand_pointer(b, operand) for operand in self.kernel.operands if operand is not None]

    @staticmethod
    def call(step: StepModule, b: Builder, text: str, pointers: Sequence[str], bounds: tuple[str, str]) -> None:
        """Call a function for units [lo, hi); `text` defines it under the name NAME."""
        name = step.helper(text)
        arguments = ", ".join(f"ptr {pointer}" for pointer in pointers)
        b.raw(f"call void @{name}({arguments}, i64 {bounds[0]}, i64 {bounds[1]})")


class FormCode(SolidCode, Generic[Form]):
    """A kernel whose instruction is read once into the form that its writer expects; `read` returns None for others."""

    read: Callable[[Instr], Form | None]

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        form = type(self).read(self.instr)
        assert form is not None
        self.form: Form = form

    @classmethod
    def takes(cls, instr: Instr) -> bool:
        return cls.read(instr) is not None


def region_of_rows(shape: Sequence[int], bounds: Sequence[int], size: int) -> Region | None:
    """Return the region that each share accesses of an array that is cut by its rows."""
    index = Index(0, tuple(enumerate(row_strides(tuple(shape)))))
    return region_of(index, [(0, shape[0])], bounds, dict(enumerate(shape)), size)
