"""What a compiled function consists of, for people: totals, and the plan as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glassgrad.compile.graph import Graph, Instr, Var, type_text
from glassgrad.compile.origin import Origin
from glassgrad.ops.core import REGISTRY


@dataclass(frozen=True)
class Stats:
    """Totals of a program.

    Attributes:
        flops: floating-point operations of one call; a multiplication and an addition are two.
        bytes: memory traffic of one call, if every unit of work reads and writes each of its arrays once.
        kernels: units of work: loop nests and products of native code, instructions of a NumPy program.
        peak_bytes: memory for values between them.
        instructions: of the graph, after the passes.
        threads: among how many the work is shared.
        trace_seconds, compile_seconds: what making it took.
    """

    flops: int
    bytes: int
    kernels: int
    peak_bytes: int
    instructions: int
    threads: int
    trace_seconds: float
    compile_seconds: float


def stats(call: Any) -> Stats:
    """Return the totals of a trace's program."""
    native = getattr(call.program, "stats", None)
    if native is not None:
        totals = (native.flops, native.bytes, native.kernels, native.peak_bytes, native.instructions, native.threads)
    else:
        graph: Graph = call.graph
        work = [instr for instr in graph.instrs if not is_view(instr)]
        totals = (sum(map(flops, work)), sum(map(traffic, work)), len(work), peak(graph), len(graph.instrs), 1)
    return Stats(*totals, call.trace_seconds, call.compile_seconds)


def table(call: Any, backend: str, retraces: Sequence[str]) -> str:
    """Return the plan of a trace as text."""
    totals = stats(call)
    made = f"traced in {totals.trace_seconds:.2f} s, compiled in {totals.compile_seconds:.2f} s"
    work = f"{count(totals.flops)}flop, {count(totals.bytes)}B moved, {count(totals.peak_bytes)}B between kernels"
    lines = [
        f"{call.capture.graph.name}: {totals.kernels} kernels on {backend}, {totals.threads} thread(s), {work}; {made}",
        "",
        f"{'kind':<8} {'result':<26} {'flop':>8} {'bytes':>8}  {'ops':<44} from",
    ]
    lines += _native_rows(call.program.explain()) if hasattr(call.program, "explain") else _rows(call.graph)
    if retraces:
        lines += ["", "traced again because:", *(f"  {reason}" for reason in retraces)]
    for edge, now in call.capture.changed:
        lines.append(f"not run again: {edge.path} became {now!r} while tracing")
    return "\n".join(lines) + "\n"


def _row(kind: str, result: str, work: int, moved: int, ops: Sequence[str], where: str) -> str:
    joined = "+".join(ops) if len(ops) <= 4 else f"{'+'.join(ops[:3])}+{len(ops) - 3} more"
    return f"{kind:<8} {result:<26} {count(work):>8} {count(moved):>8}  {joined:<44} {where}".rstrip()


def _native_rows(rows: Sequence[Any]) -> list[str]:
    return [
        _row(row.kind, row.result, row.flops, row.bytes, row.ops, row.where[0] if row.where else "") for row in rows
    ]


def _rows(graph: Graph) -> list[str]:
    lines = []
    for instr in graph.instrs:
        if not is_view(instr):
            where = str(instr.where) if isinstance(instr.where, Origin) else ""
            lines.append(_row("numpy", type_text(instr.outputs[0]), flops(instr), traffic(instr), [instr.op], where))
    return lines


def count(number: float) -> str:
    """Write a number with a unit: 12.3 k, 4.5 M."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000:
            return f"{number:.3g} {unit}" if unit else f"{number:.0f} "
        number /= 1000
    return f"{number:.3g} T"


# --- estimates from the graph ---------------------------------------------------------------------


def is_view(instr: Instr) -> bool:
    """Tell whether an instruction only looks at memory in another way."""
    basic = instr.op == "getitem" and len(instr.inputs) == 1
    return basic or REGISTRY[instr.op].is_view


def flops(instr: Instr) -> int:
    """Return the arithmetic of an instruction."""
    out = instr.outputs[0]
    reads = list(instr.reads())
    if instr.op == "matmul":
        return 2 * out.size * reads[0].shape[-1]
    if instr.op.startswith("conv2d"):
        # Each of the three products of a convolution multiplies what the other two are made of.
        return 2 * _convolution_size(instr)
    if out.dtype.kind not in "fc":
        return 0
    if REGISTRY[instr.op].kind == "elementwise":
        return out.size
    if instr.op in {"sum", "max", "min", "logsumexp", "softmax", "log_softmax"}:
        return reads[0].size
    return 0


def _convolution_size(instr: Instr) -> int:
    shapes = [var.shape for var in (*instr.reads(), *instr.outputs)]
    batch_in, batch_out, kernel = {
        "conv2d": (shapes[0], shapes[2], shapes[1]),
        "conv2d_input": (shapes[2], shapes[0], shapes[1]),
        "conv2d_weight": (shapes[0], shapes[1], shapes[2]),
    }[instr.op]
    del batch_in
    return math.prod(batch_out) * math.prod(kernel[1:])


def traffic(instr: Instr) -> int:
    """Return the bytes an instruction reads and writes."""
    return sum(var.nbytes for var in (*instr.reads(), *instr.outputs))


def peak(graph: Graph) -> int:
    """Return the most memory that values between instructions take at one time."""
    last: dict[Var, int] = {}
    for at, instr in enumerate(graph.instrs):
        for var in instr.reads():
            last[var] = at
    for var in graph.results():
        last[var] = len(graph.instrs)
    made = {var for instr in graph.instrs if not is_view(instr) for var in instr.outputs}
    now = most = 0
    for at, instr in enumerate(graph.instrs):
        now += sum(var.nbytes for var in instr.outputs if var in made)
        most = max(most, now)
        now -= sum(var.nbytes for var in {*instr.reads(), *instr.outputs} if var in made and last.get(var, at) == at)
    return most
