"""The user's names for the values of a graph, resolved on request."""

from __future__ import annotations

from dataclasses import replace

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Graph, Operand, Var
from glassgrad.compile.source.rewriting.runs import assigned, forward_runs


def with_names(graph: Graph) -> Graph:
    """Return the same graph with the names that the user's statements give to its forward values."""
    forward = [one for one in graph.instrs if isinstance(one.where, Origin) and one.where.role == FORWARD]
    users = graph.users()
    names: dict[Var, str] = {}
    for run in forward_runs(forward):
        names.update(assigned(run, users))
    new = {var: replace(var, name=name) for var, name in names.items() if var.name is None}

    def now(operand: Operand) -> Operand:
        return new.get(operand, operand) if isinstance(operand, Var) else operand

    instrs = tuple(
        replace(instr, inputs=tuple(map(now, instr.inputs)), outputs=tuple(new.get(var, var) for var in instr.outputs))
        for instr in graph.instrs
    )
    updates = tuple((target, new.get(value, value)) for target, value in graph.updates)
    return replace(graph, instrs=instrs, outputs=tuple(map(now, graph.outputs)), updates=updates)
