"""What C cannot say is refused before anything is written, with the user's line."""

from __future__ import annotations

from glassgrad import errors
from glassgrad.compile.ir.graph import Graph, Instr, dtype_text
from glassgrad.compile.llvm.module.ir import kind_of
from glassgrad.compile.llvm.without_code import WITHOUT_CODE
from glassgrad.compile.plan.target import Target


def refuse_hosts(graph: Graph, target: Target) -> None:
    """Raise `CompileError` for the first instruction that has no C."""
    for instr in graph.instrs:
        if target.is_host(instr):
            raise errors.NO_C(op=instr.op, where=instr.where or "an unknown line", reason=_reason(instr, target))


def _reason(instr: Instr, target: Target) -> str:
    for var in (*instr.reads(), *instr.outputs):
        if target.kind_of(var.dtype) is None:
            known = kind_of(var.dtype)
            return f"C11 has no {dtype_text(var.dtype) if known or var.dtype.kind == 'c' else var.dtype}"
    if instr.op in WITHOUT_CODE:
        return WITHOUT_CODE[instr.op]
    return "not in this form"
