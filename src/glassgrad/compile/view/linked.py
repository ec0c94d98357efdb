"""A traced call whose parts know their lines: each line of its NumPy program, and each kernel in every form.

A kernel is written as loops, as LLVM, as assembly and as C, and has its cost; all belong to lines of the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.parameters import Args, Function
from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.source.listing import listing_of
from glassgrad.compile.view.seen import Seen, see
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import formulas
from glassgrad.ops.core import PRIMITIVES, Array

_FUNCTION = re.compile(r"^/\*(?:[^*]|\*(?!/))*\*/\nstatic void \w+\([^{]*\{\n.*?^\}\n", re.DOTALL | re.MULTILINE)
_REPEAT, _SECONDS = 3, 0.3  # of measuring all kernels


@dataclass
class LinkedKernel:
    """A kernel in every form.

    Attributes:
        ops: of its instructions.
        lines: the user's, to which these belong.
        nest: its loops around its formulas.
        llvm, asm, c: its code; None where there is none.
    """

    name: str
    ops: list[str]
    lines: list[int]
    nest: str
    llvm: str | None
    asm: str | None
    c: str | None


@dataclass
class KernelCost:
    """What a kernel does, and how long it took; no seconds for one that Python computes."""

    name: str
    flops: int
    bytes: int
    seconds: float | None
    lines: list[int]


class Linked:
    """A call of a function and its backward pass as the compiler sees it, linked to the lines of a file.

    Args:
        function, arguments: the call.
        file: the name of the file whose lines are wanted, as Python knows it.

    Example:
        >>> import glassgrad as gg
        >>> found = Linked(lambda x: (x * x).sum(), (gg.ones(3, requires_grad=True),), __file__)
        >>> any("sum" in one.ops[-1] for one in found.kernels()[0])
        True
    """

    def __init__(self, function: Function, arguments: Args, file: str) -> None:
        self.file = file
        self.seen: Seen = see(function, arguments, {})

    @property
    def graph(self) -> Graph:
        """The graph of the trace."""
        return self.seen.captured.graph

    def line(self, origin: object) -> int | None:
        """Return the user's line of an instruction; one of the backward pass belongs to the op that it derives."""
        if not isinstance(origin, Origin):
            return None
        made = self.seen.captured.nodes.get(origin.node) if origin.role != FORWARD else None
        found = made.where if made is not None else origin
        place = found.place if isinstance(found, Origin) else None
        return place.line if place is not None and place.file == self.file else None

    def lines(self, origins: Iterable[object]) -> list[int]:
        """Return the user's lines of some instructions."""
        return sorted({line for origin in origins if (line := self.line(origin)) is not None})

    def program(self) -> tuple[str, list[int | None]]:
        """Return the program in NumPy, and the user's line for each of its lines."""
        listing = listing_of(self.seen.captured, self.seen.gradients)
        text = str(listing.source)
        owned = [self.lines(listing.origins.get(at, ())) for at in range(text.rstrip("\n").count("\n") + 1)]
        return text, [own[0] if own else None for own in owned]

    @cached_property
    def compiled(self) -> _Compiled:
        """The native code, with a phase for each kernel."""
        return _Compiled(self.graph)

    def kernels(self) -> tuple[list[LinkedKernel], str]:
        """Return the kernels in every form, and why there is no C if there is none."""
        compiled = self.compiled
        texts, why = self._c()
        found = [
            LinkedKernel(
                name,
                [instr.op for instr in kernel.instrs],
                self.lines(instr.where for instr in kernel.instrs),
                nest_text(kernel),
                compiled.llvm(at),
                compiled.assembly(at),
                texts.get(_identity(kernel)),
            )
            for at, (kernel, name) in enumerate(zip(compiled.kernels, compiled.names, strict=True))
        ]
        return found, why

    def _c(self) -> tuple[dict[frozenset[int], str], str]:
        """Return the functions of the program in C by the instructions that they perform, and a remark."""
        from glassgrad.compile.c.export import Package

        try:
            package = Package(self.seen.captured, None)
            source = package.files()["step.c"].decode()
        except errors.CompileError as error:
            return {}, f"No C: {error}"
        written = _FUNCTION.findall(source)
        if len(written) < len(package.planned.kernels):
            return {}, "No C: its functions are not those of the plan."
        own = written[-len(package.planned.kernels) :]
        return {_identity(kernel): text for kernel, text in zip(package.planned.kernels, own, strict=True)}, ""

    def costs(self) -> list[KernelCost]:
        """Return arithmetic, traffic and time of each kernel: by itself, warm, on one thread, the best of three."""
        from glassgrad.compile.profile import profile

        compiled = self.compiled
        budget = min(0.002, _SECONDS / max(1, len(compiled.kernels)) / _REPEAT)
        timings = iter(profile(self.graph, self.seen.arrays, repeat=_REPEAT, budget=budget, begun=compiled.way))
        found = []
        for row, name in zip(compiled.rows, compiled.names, strict=True):
            seconds = None if row.kind == "host" else next(timings).seconds
            found.append(KernelCost(name, row.flops, row.bytes, seconds, self.lines(row.origins)))
        return found


class _Compiled:
    """Native code of a graph on one thread, kernel by kernel."""

    def __init__(self, graph: Graph) -> None:
        from glassgrad.compile.stages import native, planned

        self.way = planned(graph, 1)
        self.executable = native(graph, 1, as_it_is=True, stored=False, separate=True, begun=self.way)
        self.emitted = self.executable.emitted
        self.kernels: list[Kernel] = []
        self._phase: list[int | None] = []
        number = 0
        for tasks in self.emitted.schedule.phases:
            by_host = bool(tasks and tasks[0].by_host)
            for task in tasks:
                self.kernels.append(task.kernel)
                self._phase.append(None if by_host else number)
            number += not by_host
        self.rows = self.executable.explain()
        self.names = [f"{at} {_short(kernel)}" for at, kernel in enumerate(self.kernels, 1)]

    def _function(self, at: int) -> str | None:
        """Return the name of the function that a kernel is: its own, or that of its phase."""
        name = self.emitted.module.code[self.kernels[at]].name
        if name and name in self.emitted.module.module.definitions:
            return name
        phase = self._phase[at]
        return None if phase is None else f"phase{phase}"

    def llvm(self, at: int) -> str | None:
        """Return the LLVM of a kernel."""
        name = self._function(at)
        return None if name is None else self.emitted.module.module.definitions.get(name)

    @cached_property
    def _assembly(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        parts = re.split(r"^_?((?:kernel|phase)\d+):", self.executable.assembly, flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            body = re.split(r"^\s*\.?L?func_end|^\s*\.cfi_endproc", text, maxsplit=1, flags=re.MULTILINE)[0]
            found[name] = "\n".join(line for line in body.splitlines() if line.strip() and ".cfi_" not in line)
        return found

    def assembly(self, at: int) -> str | None:
        """Return the machine code of a kernel as text."""
        name = self._function(at)
        return None if name is None else self._assembly.get(name)


def _short(kernel: Kernel) -> str:
    ops = [instr.op for instr in kernel.instrs]
    return "+".join(ops[:3]) + (f"+{len(ops) - 3} more" if len(ops) > 3 else "")


def _identity(kernel: Kernel) -> frozenset[int]:
    return frozenset(id(instr.where) for instr in kernel.instrs)


def nest_text(kernel: Kernel) -> str:
    """Write a kernel as loops around its formulas; one that is no nest is its op."""
    lines, indent = [], ""
    if kernel.nest is not None:
        for at, axis in enumerate([*kernel.nest.outer, *kernel.nest.inner]):
            which = "" if axis in kernel.nest.outer else "  # inner"
            lines.append(f"{indent}for i{at} in range({kernel.nest.extents[axis]}):{which}")
            indent += "    "
    lines += [f"{indent}{_formula(instr)}" for instr in kernel.instrs]
    return "\n".join(lines)


def _formula(instr: Instr) -> str:
    texts = [_name(one) if isinstance(one, Var) else formulas.number(one) for one in instr.inputs]
    prim = PRIMITIVES.get(instr.op)
    made = ", ".join(f"{_name(var)}{list(var.shape)}" for var in instr.outputs)
    right = f"{instr.op}({', '.join(texts)})" if prim is None else formulas.expression(prim, texts, instr.params)
    return f"{made} = {right}"


def _name(var: Var) -> str:
    return var.name or f"v{var.id}"


@cache
def peaks() -> tuple[float, float]:
    """Return the most operations and bytes a second that one thread was seen to do, measured once."""
    size, long = 384, 4 << 20
    product = _fastest(lambda a, b: a @ b, np.ones((size, size), np.float32), np.ones((size, size), np.float32))
    total = _fastest(lambda a, b: a + b, np.ones(long, np.float32), np.ones(long, np.float32))
    return product[0], total[1]


def _fastest(function: Function, *arrays: Array) -> tuple[float, float]:
    from glassgrad.compile.profile import profile

    seen = see(function, tuple(Tensor(array) for array in arrays), {})
    timings = profile(seen.captured.graph, seen.arrays, repeat=5, budget=0.01)
    return max(one.gflops for one in timings) * 1e9, max(one.gbytes for one in timings) * 1e9
