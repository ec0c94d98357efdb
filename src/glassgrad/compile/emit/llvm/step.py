"""A plan as one module: kernels as functions, phases that call them on a share, the table of phases."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

from glassgrad.compile.emit.llvm.ir import Builder, Function, Module, kind_of
from glassgrad.compile.emit.llvm.loops import NestPlan, plan_nest
from glassgrad.compile.emit.llvm.matmul import accepts, can_multiply, emit_product, product_of
from glassgrad.compile.emit.llvm.nest_code import NestFunction, emit_nest
from glassgrad.compile.emit.llvm.support import slot_offset
from glassgrad.compile.emit.llvm.target import host
from glassgrad.compile.graph import Instr, Var
from glassgrad.compile.plan import Kernel, Plan
from glassgrad.compile.views import Strided

__all__ = ["Module", "StepModule", "accepts_layout", "can_multiply"]


def accepts_layout(instr: Instr, position: int, strided: Strided) -> bool:
    """Tell whether a solid op can read an operand as it lies."""
    if instr.op == "matmul":
        return accepts(strided)
    return strided.contiguous


@dataclass
class StepModule:
    """The code of a step.

    Attributes:
        text: the module.
        slots: number of each Var's pointer in the context; `blas` and `scratch` come last.
        phases: how many phases there are.
        scratch: bytes of scratch memory of one share.
    """

    plan: Plan
    shares: int
    module: Module = field(init=False)
    slots: dict[Var, int] = field(default_factory=dict)
    scratch: int = 0
    blas: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.module = Module(host().vector_bytes)
        graph = self.plan.graph
        known = [*graph.inputs, *(var for var, _ in graph.constants)]
        for kernel in self.plan.kernels:
            known += sorted(kernel.writes, key=lambda var: var.id)
        for var in known:
            self.slots.setdefault(var, len(self.slots))
        self.functions: dict[str, str] = {}
        nests = {kernel: self._nest(kernel) for kernel in self.plan.kernels if kernel.nest is not None}
        self.scratch = max((layout.scratch for _, layout, _ in nests.values()), default=0)
        names = [self._phase(number, kernel, nests.get(kernel)) for number, kernel in enumerate(self.plan.kernels)]
        entries = ", ".join(f"ptr @{name}" for name in names)
        self.module.definitions["phases"] = f"@phases = constant [{len(names)} x ptr] [{entries}]\n"
        self.module.definitions["phases_of"] = "define ptr @phases_of() {\n  ret ptr @phases\n}\n"
        self.phases = len(names)

    @property
    def text(self) -> str:
        return "\n".join([host().header(), self.module.text(), host().attributes()])

    @property
    def scratch_slot(self) -> int:
        return len(self.slots) + 2

    def blas_slot(self, kind: str) -> int:
        return len(self.slots) + (0 if kind == "f32" else 1)

    def _nest(self, kernel: Kernel) -> tuple[str, NestPlan, NestFunction]:
        assert kernel.nest is not None
        layout = plan_nest(kernel.nest, self.module.vector_bytes, self.shares)
        function = emit_nest(self.module, kernel.nest, layout)
        digest = hashlib.sha256(f"{len(function.roots)}{function.body}".encode()).hexdigest()[:12]
        name = self.functions.get(digest)
        if name is None:
            name = self.functions[digest] = f"nest{len(self.functions)}"
            self.module.definitions[name] = function.definition(name)
        return name, layout, function

    def _phase(self, number: int, kernel: Kernel, nest: tuple[str, NestPlan, NestFunction] | None) -> str:
        b = Builder(Function(self.module))
        if nest is not None:
            self._call_nest(b, kernel, nest)
        else:
            self._call_product(b, kernel)
        b.raw("ret void")
        name = f"phase{number}"
        body = "\n".join(["entry:", *b.lines])
        self.module.definitions[name] = f"define internal void @{name}(ptr %ctx, i64 %share) #0 {{\n{body}\n}}\n"
        return name

    def _pointer(self, b: Builder, slot: int) -> str:
        place = b.pointer(f"getelementptr i8, ptr %ctx, i64 {slot_offset(self.shares, slot)}")
        return b.pointer(f"load ptr, ptr {place}, align 8")

    def _range(self, b: Builder, units: int, granule: int = 1) -> tuple[str, str]:
        """Return [lo, hi) of this share of `units`."""
        if self.shares == 1:
            return "0", str(units)
        blocks = -(-units // granule)
        ends = [min(blocks * share // self.shares * granule, units) for share in range(self.shares + 1)]
        name = f"ranges_{'_'.join(map(str, ends))}"
        values = ", ".join(f"i64 {end}" for end in ends)
        self.module.definitions[name] = f"@{name} = internal constant [{len(ends)} x i64] [{values}]\n"
        first = b.pointer(f"getelementptr i64, ptr @{name}, i64 %share")
        second = b.pointer(f"getelementptr i64, ptr {first}, i64 1")
        return b.define(f"load i64, ptr {first}", "i64").text, b.define(f"load i64, ptr {second}", "i64").text

    def _call_nest(self, b: Builder, kernel: Kernel, nest: tuple[str, NestPlan, NestFunction]) -> None:
        name, layout, function = nest
        lo, hi = self._range(b, layout.units)
        pointers = [self._pointer(b, self.slots[root]) for root in function.roots]
        scratch = "null"
        if layout.scratch:
            base = self._pointer(b, self.scratch_slot)
            offset = b.define(f"mul i64 %share, {self.scratch}", "i64").text
            scratch = b.pointer(f"getelementptr i8, ptr {base}, i64 {offset}")
        assert kernel.nest is not None
        extent = kernel.nest.extents[layout.axis] if layout.axis is not None else 1
        arguments = [f"ptr {pointer}" for pointer in pointers]
        arguments += [f"ptr {scratch}", f"i64 {lo}", f"i64 {hi}", f"i64 {extent}"]
        b.raw(f"call void @{name}({', '.join(arguments)})")

    def _call_product(self, b: Builder, kernel: Kernel) -> None:
        instr = kernel.instrs[0]
        product = product_of(instr, kernel.operands)
        batch = math.prod(product.batch)
        by, units, granule = "rows", product.m, 4
        if batch >= self.shares and batch > 1:
            by, units, granule = "batch", batch, 1
        elif product.n > product.m:
            by, units, granule = "columns", product.n, 16
        lo, hi = self._range(b, units, granule)
        end = b.function.fresh("nothing")
        go = b.function.fresh("go")
        some = b.define(f"icmp ult i64 {lo}, {hi}", "b1").text
        b.raw(f"br i1 {some}, label %{go}, label %{end}")
        b.start(go)
        roots = (product.a.root, product.b.root, instr.output)
        pointers = (self._pointer(b, self.blas_slot(product.kind)), *(self._pointer(b, self.slots[root]) for root in roots))
        emit_product(b, product, pointers, (lo, hi), by)  # type: ignore[arg-type]
        b.raw(f"br label %{end}")
        b.start(end)


kind_of_dtype = kind_of
