"""The late instructions of a step, which only read the new state."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Graph, Instr


def late_instrs(graph: Graph) -> set[Instr]:
    """Return the instructions that depend on new values of inputs but on which no new value depends."""
    new = {value for _, value in graph.updates}
    needed = set(new)
    for instr in reversed(graph.instrs):
        if not needed.isdisjoint(instr.outputs):
            needed.update(instr.reads())
    late: set[Instr] = set()
    for instr in graph.instrs:
        if needed.isdisjoint(instr.outputs) and not new.isdisjoint(instr.reads()):
            late.add(instr)
            new.update(instr.outputs)
    return late
