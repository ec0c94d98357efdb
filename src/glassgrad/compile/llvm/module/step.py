"""A schedule as one module: kernels as functions, phases that call them on a share, the table of phases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.loops.nest_code import NestFunction, emit_nest
from glassgrad.compile.llvm.loops.nest_layout import NestPlan, plan_nest
from glassgrad.compile.llvm.module.alike import merged
from glassgrad.compile.llvm.module.cuts import nest_cuts, nest_time, recut_tiles
from glassgrad.compile.llvm.module.ir import Builder, Function, Module
from glassgrad.compile.llvm.module.solid import SOLIDS, HostCode
from glassgrad.compile.llvm.module.solid_base import SolidCode
from glassgrad.compile.llvm.module.support import slot_offset
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.plan.kernels import Kernel, Plan
from glassgrad.compile.plan.memory import pinned_vars, plan_memory
from glassgrad.compile.plan.order import dependencies
from glassgrad.compile.plan.schedule import Schedule, Task, make_schedule
from glassgrad.compile.plan.view_chains import Strided

BLAS_KINDS = ("f32", "f64")
# From this many products and convolutions of distinct sizes, tiles take the distance of A's rows as an argument. In a
# DenseNet of 40 layers this makes their callers alike too: a third less code is compiled.
MANY_PRODUCTS = 60


@dataclass(eq=False)
class Code:
    """How one kernel is emitted: a nest with its layout and function, or code of another kind."""

    layout: NestPlan | None = None
    function: NestFunction | None = None
    name: str = ""
    solid: SolidCode | None = None


def _solid_code(plan: Plan, kernel: Kernel) -> SolidCode:
    instr = kernel.instrs[0]
    solid = SOLIDS.get(instr.op)
    return HostCode(kernel) if solid is None or instr in plan.fusion.hosts else solid(kernel)


def _count_sizes(plan: Plan) -> int:
    """Count the kernels other than loops that differ in their op or in the sizes of their inputs."""
    instrs = [kernel.instrs[0] for kernel in plan.kernels if kernel.nest is None]
    return len({(instr.op, *(getattr(one, "shape", ()) for one in instr.inputs)) for instr in instrs})


def _most_scratch(codes: Iterable[Code]) -> int:
    sizes = (part.scratch for code in codes for part in (code.layout, code.solid) if part is not None)
    return -(-max(sizes, default=0) // 64) * 64


def memory_of(plan: Plan, shares: int, alias: Mapping[Var, Var]) -> int:
    """Return the bytes that a step will need for values between its kernels and for scratch, before it is written.

    Args:
        plan: the plan with the kernels.
        shares: the number of shares of the work.
        alias: arrays that are written into the memory of another.
    """
    codes = {kernel: _unwritten(plan, kernel, shares) for kernel in plan.kernels}
    tasks = {kernel: _task(kernel, code, shares, alias) for kernel, code in codes.items()}
    schedule = make_schedule(list(tasks.values()), dependencies(plan, alias, tasks), shares)
    between = plan_memory(schedule, set(pinned_vars(plan.graph)), alias).size
    return between + shares * _most_scratch(codes.values())


def _unwritten(plan: Plan, kernel: Kernel, shares: int) -> Code:
    if kernel.nest is None:
        return Code(solid=_solid_code(plan, kernel))
    return Code(plan_nest(kernel.nest, host().vector_bytes, shares))


def _task(kernel: Kernel, code: Code, shares: int, alias: Mapping[Var, Var]) -> Task:
    if code.solid is not None:
        return Task(kernel, code.solid.time(), code.solid.cuts(shares, alias), by_host=isinstance(code.solid, HostCode))
    nest, layout = kernel.nest, code.layout
    assert nest is not None
    assert layout is not None
    task = Task(kernel, nest_time(nest, layout), nest_cuts(nest, layout, shares, alias))
    if layout.flexible:
        task.recut = lambda region: recut_tiles(nest, layout, region, alias)
    return task


class StepModule:
    """The code of a step, made in two stages: `tasks` returns the facts for the scheduler, `emit` writes the phases.

    Attributes:
        slots: number of each array's pointer in the context; BLAS pointers and scratch memory come after them.
        scratch: bytes of scratch memory of one share.
        makers: the kernel that each function was first written for.
        kept: modules of `native.products` whose functions the step calls.
        merged_from: characters of a module from which the search for alike functions pays.
    """

    merged_from = 1_000_000

    def __init__(self, plan: Plan, shares: int, *, apart: bool = False) -> None:
        self.plan = plan
        self.shares = shares
        self.module = Module(host().vector_bytes, host().has_bfloat, apart=apart)
        self.code: dict[Kernel, Code] = {}
        self.slots: dict[Var, int] = {}
        self.alias: Mapping[Var, Var] = {}
        self._functions: dict[str, str] = {}
        self.makers: dict[str, Kernel] = {}
        self.kept: dict[str, None] = {}
        self._written_for: Kernel | None = None
        for kernel in plan.kernels:
            self.code[kernel] = self._nest(kernel) if kernel.nest is not None else self._solid(kernel)
        self.module.any_rows = apart or _count_sizes(plan) >= MANY_PRODUCTS
        self.scratch = _most_scratch(self.code.values())
        self.phases = 0

    # --- kernels ---------------------------------------------------------------------------------

    def _nest(self, kernel: Kernel) -> Code:
        assert kernel.nest is not None
        self._written_for = kernel
        layout = plan_nest(kernel.nest, self.module.vector_bytes, self.shares)
        function = emit_nest(self.module, kernel.nest, layout)
        return Code(layout, function, self.helper(function.definition("NAME")))

    def helper(self, text: str) -> str:
        """Add a function, which the text calls NAME, unless one with the same text exists; return its name."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        name = self._functions.get(digest)
        if name is None:
            name = self._functions[digest] = f"kernel{len(self._functions)}"
            self.module.definitions[name] = text.replace("@NAME(", f"@{name}(", 1)
            if self._written_for is not None:
                self.makers[name] = self._written_for
        return name

    def refused(self, accepted: Callable[[str], bool]) -> Kernel | None:
        """Return the first kernel whose function alone is a module that is not `accepted`."""
        own = {*self.makers, *(name for name in self.module.definitions if name.startswith("phase"))}
        shared = [text for name, text in self.module.definitions.items() if name not in own]
        around = [host().header(), *self.module.declarations.values(), *shared, host().attributes()]
        for name, kernel in self.makers.items():
            alone = self.module.definitions[name].replace("define internal", "define", 1)
            if not accepted("\n".join([*around, alone])):
                return kernel
        return None

    def _solid(self, kernel: Kernel) -> Code:
        return Code(solid=_solid_code(self.plan, kernel))

    def tasks(self, alias: Mapping[Var, Var]) -> dict[Kernel, Task]:
        """Return a task for every kernel; `alias` maps arrays that are written into the memory of another."""
        self.alias = alias
        return {kernel: _task(kernel, code, self.shares, alias) for kernel, code in self.code.items()}

    # --- phases ------------------------------------------------------------------------------------

    def emit(self, schedule: Schedule, pinned: Sequence[Var]) -> str:
        """Write the phases; return the module. Slots are given to `pinned` first."""
        for var in pinned:
            self.slots.setdefault(var, len(self.slots))
        for _, task in schedule.tasks():
            for var in sorted(task.kernel.writes, key=lambda var: var.id):
                self.slots.setdefault(self.alias.get(var, var), len(self.slots))
        native = [tasks for tasks in schedule.phases if not (tasks and tasks[0].by_host)]
        names = [self._phase(number, tasks) for number, tasks in enumerate(native)]
        self.phases = len(names)
        entries = ", ".join(f"ptr @{name}" for name in names)
        self.module.definitions["phases"] = f"@phases = constant [{len(names)} x ptr] [{entries}]\n"
        self.module.definitions["phases_of"] = "define ptr @phases_of() {\n  ret ptr @phases\n}\n"
        if sum(map(len, self.module.definitions.values())) > self.merged_from:
            self.module.definitions = merged(self.module.definitions, self._functions.values())
            self.makers = {name: kernel for name, kernel in self.makers.items() if name in self.module.definitions}
        return "\n".join([host().header(), self.module.text(), host().attributes()])

    @property
    def functions(self) -> int:
        """Number of distinct kernel functions."""
        return sum(name in self.module.definitions for name in self._functions.values())

    @property
    def scratch_slot(self) -> int:
        return len(self.slots) + len(BLAS_KINDS)

    def _phase(self, number: int, tasks: Sequence[Task]) -> str:
        b = Builder(Function(self.module))
        for task in tasks:
            self._guarded(b, task)
        b.raw("ret void")
        name = f"phase{number}"
        body = "\n".join(["entry:", *b.lines])
        # Phases are only calls: optimising them takes as long as a third of the kernels and saves no run time.
        head = f"define internal void @{name}(ptr %ctx, i64 %share) noinline optnone #0"
        self.module.definitions[name] = f"{head} {{\n{body}\n}}\n"
        return name

    def _guarded(self, b: Builder, task: Task) -> None:
        """Emit a task for the shares that take part in it."""
        if self.shares == 1:
            self._perform(b, task, *self._whole(task))
            return
        go, after = b.function.fresh("go"), b.function.fresh("next")
        if task.cut is None:
            condition = b.define(f"icmp eq i64 %share, {task.share}", "b1").text
            low, high = self._whole(task)
        else:
            low, high = self._bounds(b, task.cut.bounds)
            condition = b.define(f"icmp ult i64 {low}, {high}", "b1").text
        b.raw(f"br i1 {condition}, label %{go}, label %{after}")
        b.start(go)
        self._perform(b, task, low, high)
        b.raw(f"br label %{after}")
        b.start(after)

    def _whole(self, task: Task) -> tuple[str, str]:
        code = self.code[task.kernel]
        if code.layout is not None:
            return "0", str(code.layout.units)
        assert code.solid is not None
        return "0", str(code.solid.units())

    def _bounds(self, b: Builder, ends: Sequence[int]) -> tuple[str, str]:
        """Load [lo, hi) of this share."""
        name = f"bounds_{'_'.join(map(str, ends))}"
        values = ", ".join(f"i64 {end}" for end in ends)
        self.module.definitions[name] = f"@{name} = internal constant [{len(ends)} x i64] [{values}]\n"
        first = b.pointer(f"getelementptr i64, ptr @{name}, i64 %share")
        second = b.pointer(f"getelementptr i64, ptr {first}, i64 1")
        return b.define(f"load i64, ptr {first}", "i64").text, b.define(f"load i64, ptr {second}", "i64").text

    def _perform(self, b: Builder, task: Task, low: str, high: str) -> None:
        code = self.code[task.kernel]
        self._written_for = task.kernel
        if code.solid is not None:
            code.solid.emit(self, b, task, (low, high))
        else:
            self._call_nest(b, task.kernel, code, (low, high))

    def pointer(self, b: Builder, var: Var) -> str:
        """Load an array's address from the context."""
        return self._slot_pointer(b, self.slots[self.alias.get(var, var)])

    def _slot_pointer(self, b: Builder, slot: int) -> str:
        place = b.pointer(f"getelementptr i8, ptr %ctx, i64 {slot_offset(self.shares, slot)}")
        return b.pointer(f"load ptr, ptr {place}, align 8")

    def _call_nest(self, b: Builder, kernel: Kernel, code: Code, bounds: tuple[str, str]) -> None:
        assert code.layout is not None
        assert code.function is not None
        assert kernel.nest is not None
        pointers = [self.pointer(b, root) for root in code.function.roots]
        scratch = "null"
        if code.layout.scratch:
            scratch = self.scratch_pointer(b)
        extent = kernel.nest.extents[code.layout.axis] if code.layout.axis is not None else 1
        arguments = [f"ptr {pointer}" for pointer in pointers]
        arguments += [f"ptr {scratch}", f"i64 {bounds[0]}", f"i64 {bounds[1]}", f"i64 {extent}"]
        b.raw(f"call void @{code.name}({', '.join(arguments)})")

    def scratch_pointer(self, b: Builder) -> str:
        """Return the address of this share's scratch memory."""
        if not self.scratch:
            return "null"
        base = self._slot_pointer(b, self.scratch_slot)
        offset = b.define(f"mul i64 %share, {self.scratch}", "i64").text
        return b.pointer(f"getelementptr i8, ptr {base}, i64 {offset}")

    def operand_pointer(self, b: Builder, operand: Strided) -> str:
        """Return the address of an operand's first element."""
        pointer = self.pointer(b, operand.root)
        offset = operand.offset * operand.root.dtype.itemsize
        return b.pointer(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def blas_pointer(self, b: Builder, kind: str) -> str:
        """Load the address of the matrix product for an element kind."""
        return self._slot_pointer(b, len(self.slots) + BLAS_KINDS.index(kind))
