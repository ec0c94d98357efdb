"""Convolutions in two dimensions and their transposes: the table of plans, the choice, and the kernels of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.convolutions.columns import Columns
from glassgrad.compile.llvm.convolutions.depthwise import Depthwise
from glassgrad.compile.llvm.convolutions.direct import Direct
from glassgrad.compile.llvm.convolutions.minimal import MinimalFiltering
from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import Shape, shape_of
from glassgrad.compile.llvm.module.ir import Builder
from glassgrad.compile.llvm.module.solid_base import FormCode
from glassgrad.compile.plan.indexing.indices import Index, row_strides
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Cut, Region, even_bounds, region_of

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task

PLANS: tuple[type[ConvPlan], ...] = (Depthwise, MinimalFiltering, Direct, Columns)
"""All ways to compute a convolution, the fastest first; the first one that applies is used."""


def chosen(shape: Shape) -> type[ConvPlan] | None:
    """Return the plan of a convolution, or of the transpose that its role names; None if the host computes it."""
    return next((plan for plan in PLANS if plan.applies(shape)), None)


def _read(instr: Instr) -> Shape | None:
    """Return the sizes of a convolution that some plan applies to."""
    shape = shape_of(instr)
    return shape if shape is not None and chosen(shape) is not None else None


class ConvCode(FormCode[Shape]):
    """conv2d and its transposes, by the chosen plan."""

    label = "conv"
    read = staticmethod(_read)

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        plan = chosen(self.form)
        assert plan is not None
        self.plan = plan(self.form)

    @property
    def flops(self) -> int:
        return self.form.flops

    @property
    def scratch(self) -> int:
        return self.plan.scratch

    def time(self) -> float:
        return self.plan.time

    def units(self) -> int:
        return self.plan.units

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        units = self.plan.units
        if units < 2:
            return []
        bounds = even_bounds(units, shares)
        operands = [(operand.root, operand.shape) for operand in self.kernel.operands if operand is not None]
        weight = None if self.form.role == "weight" else operands[1][1]
        regions = {}
        for var, shape in [*operands, (self.instr.output, self.instr.output.shape)]:
            root = alias.get(var, var)
            regions[root] = self._region(root, shape, bounds) if shape != weight else None
        return [Cut("images", bounds, regions)]

    def _region(self, root: Var, shape: tuple[int, ...], bounds: tuple[int, ...]) -> Region | None:
        """Return the region of an array of images or parts that each share accesses; None for all of it."""
        each = self.plan.images if self.form.role != "weight" else 1
        if not shape or shape[0] != self.plan.units * each:
            return None
        index = Index(0, tuple((axis, stride) for axis, stride in enumerate(row_strides(shape)) if shape[axis] > 1))
        ends = [end * each for end in bounds]
        return region_of(index, [(0, ends[-1])], ends, dict(enumerate(shape)), root.size)

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        pointers = [*self.pointers(step, b), step.pointer(b, self.instr.output), step.scratch_pointer(b)]
        self.call(step, b, self.plan.text(step.module, step.helper), pointers, bounds)
