"""Loops over time in a compiled step: calls of `compile.llvm.sequences.recurrent`, whose code all steps share.

Rows of the batch are independent, so each share computes all steps of its rows and packs the weights for itself. The
packing takes a hundredth of the time; synchronisation would take as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.module.ir import BITS, Builder, kind_of
from glassgrad.compile.llvm.module.solid_base import SolidCode
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.tiles import place
from glassgrad.compile.llvm.sequences.recurrent import all_steps
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Cut
from glassgrad.ops.kernels.recurrent import ARRAYS, FLAGS, GATES, ROWS, VECTORS, memory_of

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task

_FLOPS = 50.0  # per nanosecond


class RecurrentCode(SolidCode):
    """A forward loop over time."""

    label = "loop over time"
    back = False

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        params = self.instr.params
        self.cell = self.instr.op.split("_")[0]
        self.gates = GATES[self.cell]
        places = self._places()
        self.names = {name: position for position, name in enumerate(places)}
        *lead, self.hidden = self._var("y").shape
        self.steps, self.batch = reversed(lead) if params["batch_first"] else lead
        self.kind = kind_of(self._var("y").dtype) or ""
        self.lanes = host().vector_bytes * 8 // BITS[self.kind]
        self.blocks = -(-self.hidden // (VECTORS * self.lanes))

    @staticmethod
    def takes(instr: Instr) -> bool:
        sized = all(isinstance(one, Var) and one.size for one in instr.inputs)
        return sized and kind_of(instr.outputs[0].dtype) in {"f32", "f64"}

    def _places(self) -> tuple[str, ...]:
        """Return the names of the operands, then those of the results, as in `ops.kernels.recurrent`."""
        first = ("h0", "c0") if self.cell == "lstm" else ("h0",)
        last = ("hn", "cn") if self.cell == "lstm" else ("hn",)
        bias = ("bias",) if len(self.instr.inputs) > 2 + len(first) else ()
        kept = {"lstm": ("cells", "gates"), "gru": ("gates",), "rnn": ()}[self.cell]
        return ("a", *first, "w", *bias, "y", *last, *kept)

    def _var(self, name: str) -> Var:
        found = (*self.instr.inputs, *self.instr.outputs)[self.names[name]]
        assert isinstance(found, Var)
        return found

    @property
    def turns(self) -> int:
        return self.steps

    @property
    def flops(self) -> int:
        return 2 * self.steps * self.batch * self.gates * self.hidden * self.hidden

    def time(self) -> float:
        return self.flops / _FLOPS + self.steps * (200.0 + self.batch * self.hidden * self.gates)

    def units(self) -> int:
        return self.batch

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        if self.batch < ROWS * shares:
            return []
        return [Cut("rows", tuple(self.batch * share // shares for share in range(shares + 1)), {})]

    @property
    def _parts(self) -> tuple[int, int, int]:
        return memory_of(self.gates, self.back, self.batch, self.hidden, self.lanes)

    @property
    def scratch(self) -> int:
        return sum(self._parts) * BITS[self.kind] // 8

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        module = f"recurrent_{'relu' if self.instr.params.get('rectified') else self.cell}_{self.kind}"
        name, params = all_steps(module + "_back" * self.back)
        types = ", ".join(param.split()[0] for param in params.split(", "))
        step.module.declarations[name] = f"declare void @{name}({types})"
        step.kept[module] = None
        own = [step.operand_pointer(b, one) for one in self.kernel.operands if one is not None]
        own += [step.pointer(b, one) for one in self.instr.outputs]
        packed, states, _ = self._parts
        scratch = step.scratch_pointer(b)
        memory = [place(b, self.kind, scratch, start) for start in (0, packed, packed + states)]
        pointers = [*(own[self.names.get(array, 0)] for array in ARRAYS), *memory]
        distances = (1, self.steps) if self.instr.params["batch_first"] else (self.batch, 1)
        numbers = (self.steps, self.batch, self.hidden, *distances, *bounds, 0, self.blocks)
        flags = [f"i1 {str(self._flags().get(flag, False)).lower()}" for flag in FLAGS]
        arguments = [*(f"ptr {one}" for one in pointers), *(f"i64 {one}" for one in numbers), *flags]
        b.raw(f"call void @{name}({', '.join(arguments)}, i64 {self.turns})")

    def _flags(self) -> dict[str, bool]:
        return {"reverse": self.instr.params["reverse"], "biased": "bias" in self.names}


class RecurrentBackCode(RecurrentCode):
    """A backward loop over time."""

    label = "loop over time"
    back = True

    def _places(self) -> tuple[str, ...]:
        first = ("h0", "c0") if self.cell == "lstm" else ("h0",)
        states = ("dh0", "dc0") if self.cell == "lstm" else ("dh0",)
        kept = {"lstm": ("cells", "gates"), "gru": ("gates",), "rnn": ()}[self.cell]
        given = zip(("dy", "hn", "cn"), self.instr.params["given"], strict=False)
        hidden = ("dhidden",) if self.cell == "gru" else ()
        return (*(name for name, there in given if there), "y", *kept, *first, "w", "a", *hidden, *states)

    @property
    def turns(self) -> int:
        return self.steps + 1

    def _flags(self) -> dict[str, bool]:
        has = {"has_dy": "dy" in self.names, "has_dh": "hn" in self.names, "has_dc": "cn" in self.names}
        return {"reverse": self.instr.params["reverse"], **has}
