"""Scans along an axis: each element depends on the previous one, which a loop carries in registers.

If there are dimensions after the axis, a vector holds neighbours along them; along the last axis the loop is scalar.
Elements are combined in NumPy's order, so sums have the same rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.composite import emit_primitive
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, memory_kind, store_vector
from glassgrad.compile.llvm.loops.scalar import emit_elementwise
from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value, kind_of
from glassgrad.compile.llvm.module.solid_base import FormCode
from glassgrad.compile.plan.schedule import Cut

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task

Carried = list[Value]
# Returns the carried values after an element: (builder, its operands, its position along the axis, carried values). The
# first carried value is stored; before the first element nothing is carried.
Step = Callable[[Builder, list[Value], Value, Carried], Carried]


def _folding(op: str) -> Step:
    def step(b: Builder, x: list[Value], place: Value, carried: Carried) -> Carried:
        return [emit_primitive(b, op, [carried[0], x[0]])] if carried else [x[0]]

    return step


def _recurrence(b: Builder, x: list[Value], place: Value, carried: Carried) -> Carried:
    """h[i] = a[i] * h[i-1] + b[i]; the first coefficient is ignored, even if it is infinite."""
    factor, term = x
    if not carried:
        return [term]
    return [emit_elementwise(b, "add", [emit_elementwise(b, "multiply", [factor, carried[0]], None), term], None)]


def _extreme_index(op: str) -> Step:
    """The last position of the extreme so far; NaN counts as extreme and stays."""

    def step(b: Builder, x: list[Value], place: Value, carried: Carried) -> Carried:
        if not carried:
            return [b.const(0, "i64", x[0].lanes), x[0]]
        best = emit_elementwise(b, op, [carried[1], x[0]], None)
        same, missing = emit_elementwise(b, "equal", [x[0], best], None), emit_elementwise(b, "isnan", [x[0]], None)
        return [b.select(b.binary("or", same, missing), place, carried[0]), best]

    return step


STEPS: dict[str, Step] = {
    "cumsum": _folding("add"),
    "cumprod": _folding("multiply"),
    "logcumsumexp": _folding("logaddexp"),
    "recurrence": _recurrence,
    "cummax_index": _extreme_index("maximum"),
    "cummin_index": _extreme_index("minimum"),
}


@dataclass(frozen=True)
class Scan:
    """One scan: rows of `count` steps of `inner` neighbours; kinds of the operands, of computing and of the result."""

    op: str
    rows: int
    count: int
    inner: int
    reverse: bool
    kinds: tuple[str, ...]
    computed: str
    kind: str


def scan_of(instr: Instr) -> Scan | None:
    """Describe an instruction; None if it has nothing to compute or operands of another shape."""
    out, axis = instr.output, instr.params["axis"]
    kinds = [kind_of(x.dtype) if isinstance(x, Var) and x.shape == out.shape else None for x in instr.inputs]
    kind = kind_of(out.dtype)
    if kind is None or not out.size or not out.ndim:
        return None
    known = tuple(one for one in kinds if one is not None)
    if len(known) < len(kinds):
        return None
    shape = out.shape
    computed = known[0] if instr.op.endswith("_index") else kind
    reverse = bool(instr.params.get("reverse", False))
    rows, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return Scan(instr.op, rows, shape[axis], inner, reverse, known, computed, kind)


class ScanWriter:
    """Writes a scan as a function (result, operands ..., lo, hi) over rows lo to hi."""

    def __init__(self, module: Module, scan: Scan) -> None:
        self.scan = scan
        self.code = LoopNest(Function(module))
        widest = max(BITS[memory_kind(kind)] for kind in (*scan.kinds, scan.kind))
        self.lanes = 1 if scan.inner == 1 else max(module.vector_bytes * 8 // widest, 1)

    @property
    def b(self) -> Builder:
        return self.code.current

    def definition(self, name: str) -> str:
        """Return the whole function."""
        scan = self.scan
        with self.code.loop("%lo", "%hi", 1) as loop:
            row = self._times(loop.counter, scan.count * scan.inner)
            full = scan.inner - scan.inner % self.lanes
            if full:
                with self.code.loop("0", str(full), self.lanes) as chunk:
                    self._column(self.b.binary("add", row, chunk.counter), None)
            if full < scan.inner:
                start = self.b.binary("add", row, self.b.const(full, "i64"))
                self._column(start, first_lanes(scan.inner - full, self.lanes))
        self.b.raw("ret void")
        operands = "".join(f", ptr %x{number}" for number in range(len(scan.kinds)))
        head = f"define internal void @{name}(ptr %out{operands}, i64 %lo, i64 %hi) #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def _times(self, value: Value, factor: int) -> Value:
        return self.b.binary("mul", value, self.b.const(factor, "i64"))

    def _column(self, start: Value, mask: Value | None) -> None:
        """Scan one vector of neighbours from `start` on."""
        first = self._step(start, self.b.const(0, "i64"), mask, [])
        if self.scan.count == 1:
            return
        with self.code.loop("1", str(self.scan.count), 1) as loop:
            carried = [loop.carry(self.b, value) for value in first]
            loop.next = self._step(start, loop.counter, mask, carried)

    def _step(self, start: Value, turn: Value, mask: Value | None, carried: Carried) -> Carried:
        scan, b = self.scan, self.b
        place = b.binary("sub", b.const(scan.count - 1, "i64"), turn) if scan.reverse else turn
        offset = b.binary("add", start, self._times(place, scan.inner))
        layout: Any = (self.lanes, 1, 0, mask)
        values = []
        for number, kind in enumerate(scan.kinds):
            address = self._address(f"%x{number}", kind, offset)
            values.append(b.cast(load_vector(b, kind, address, layout, [], None, address), scan.computed))
        made = STEPS[scan.op](b, values, place, carried)
        store_vector(b, made[0], self._address("%out", scan.kind, offset), layout)
        return made

    def _address(self, base: str, kind: str, offset: Value) -> str:
        return self.b.pointer(f"getelementptr {LLVM_TYPE[memory_kind(kind)]}, ptr {base}, i64 {offset.text}")


class ScanCode(FormCode[Scan]):
    """Running sums, products, extremes and recurrences. Threads share the dimensions before the axis."""

    label = "scan"
    read = staticmethod(scan_of)

    @property
    def flops(self) -> int:
        return self.instr.output.size

    def time(self) -> float:
        return 50.0 + self.instr.output.size * (20.0 if self.instr.op == "logcumsumexp" else 1.0)

    def units(self) -> int:
        return self.form.rows

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        return self.rows((self.form.rows, self.form.count * self.form.inner), shares, alias)

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        text = ScanWriter(step.module, self.form).definition("NAME")
        operands = self.pointers(step, b)
        self.call(step, b, text, [step.pointer(b, self.instr.output), *operands], bounds)
