"""Reports on a compiled function: totals, and the plan as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from glassgrad.compile.front.calls.cached_trace import TraceCall
from glassgrad.compile.front.origin import Origin
from glassgrad.compile.ir.graph import Graph, Instr, type_text
from glassgrad.compile.ir.totals import Row, Stats
from glassgrad.compile.numpy.memory import shows
from glassgrad.compile.plan.recompute import extra_flops
from glassgrad.ops.core import PRIMITIVES


def stats(call: TraceCall) -> Stats:
    """Return the totals of a trace's program."""
    found: Stats | None = getattr(call.program, "stats", None)
    if found is None:
        graph: Graph = call.program.runs
        memory, needed = call.program.memory, call.program.peak_bytes
        work = [instr for instr in graph.instrs if not shows(instr)]
        found = Stats(
            sum(map(flops, work)),
            sum(map(traffic, work)),
            len(work),
            needed,
            len(call.graph.instrs),
            extra_flops=extra_flops(graph),
            least_bytes=0 if memory is None or needed <= memory else needed,
        )
    return replace(found, trace_seconds=call.trace_seconds, compile_seconds=call.compile_seconds)


def table(call: TraceCall, backend: str, retraces: Sequence[str], width: int = 100) -> str:
    """Return the plan of a trace as text of about `width` columns."""
    totals = stats(call)
    work = f"{count(totals.flops)}flop, {count(totals.bytes)}B moved, {count(totals.peak_bytes)}B between kernels"
    threads = f"{totals.threads} thread{'s' if totals.threads != 1 else ''}"
    lines = [
        f"{call.capture.graph.name}: {totals.kernels} kernels on {backend}, {threads}, {work};",
        f"traced in {totals.trace_seconds:.2f} s, compiled in {totals.compile_seconds:.2f} s",
        "",
    ]
    lines += _aligned(call.program.explain() if hasattr(call.program, "explain") else rows_of(call.graph), width)
    if retraces:
        lines += ["", "traced again because:", *(f"  {reason}" for reason in retraces)]
    for edge, now in call.capture.changed:
        lines.append(f"not run again: {edge.path} became {now!r} while tracing")
    return "\n".join(lines) + "\n"


def _aligned(rows: Sequence[Row], width: int) -> list[str]:
    """Return a heading and rows as aligned columns; the column of op names takes the remaining width."""
    cells: list[tuple[str, str, str, str, Sequence[str], str]] = [("kind", "result", "flop", "bytes", ("ops",), "from")]
    for row in rows:
        where = row.where[0] if row.where else ""
        cells.append((row.kind, row.result, count(row.flops), count(row.bytes), row.ops, where))
    kind, result, flop, moved = (max(len(row[at]) for row in cells) for at in range(4))
    taken = kind + result + flop + moved + max(len(row[-1]) for row in cells) + 7
    ops = [_joined(row[4], max(width - taken, 20)) for row in cells]
    room = max(map(len, ops))
    return [
        f"{row[0]:<{kind}} {row[1]:<{result}} {row[2]:>{flop}} {row[3]:>{moved}}  {text:<{room}}  {row[5]}".rstrip()
        for row, text in zip(cells, ops, strict=True)
    ]


def _joined(ops: Sequence[str], room: int) -> str:
    """Return as many names as fit, and the number of those left out."""
    for shown in range(min(len(ops), 4), 1, -1):
        more = f"+{len(ops) - shown} more" if shown < len(ops) else ""
        text = "+".join(ops[:shown]) + more
        if len(text) <= room and not (more and shown > 3):
            return text
    return ops[0] + (f"+{len(ops) - 1} more" if len(ops) > 1 else "")


def rows_of(graph: Graph) -> list[Row]:
    """Return a row for every instruction of a NumPy program that does work."""
    return [
        Row(
            0,
            "numpy",
            (instr.op,),
            type_text(instr.outputs[0]),
            flops(instr),
            traffic(instr),
            "",
            (instr.where,) if isinstance(instr.where, Origin) else (),
        )
        for instr in graph.instrs
        if not instr.is_view
    ]


def count(number: float) -> str:
    """Write a number with a unit: 12.3 k, 4.5 M."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000:
            return f"{number:.3g} {unit}" if unit else f"{number:.0f} "
        number /= 1000
    return f"{number:.3g} T"


# --- estimates from the graph ---------------------------------------------------------------------


def flops(instr: Instr) -> int:
    """Return the arithmetic of an instruction."""
    out = instr.outputs[0]
    reads = list(instr.reads())
    if instr.op == "matmul":
        return 2 * out.size * reads[0].shape[-1]
    if instr.op.startswith("conv2d"):
        # A convolution, its input gradient and its weight gradient need the same number of multiplications.
        return 2 * _convolution_size(instr)
    if out.dtype.kind not in "fcV":
        return 0
    if PRIMITIVES[instr.op].kind == "elementwise":
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
