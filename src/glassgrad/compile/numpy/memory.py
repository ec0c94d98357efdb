"""The memory that a NumPy program needs: its lines run in order, and a value is freed after its last use."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.view_chains import HOLD


def shows(instr: Instr) -> bool:
    """Tell whether the result of an instruction shares its operand's memory."""
    return instr.op == HOLD or instr.is_view


def peak(graph: Graph) -> int:
    """Return the peak memory of values between instructions, including results and new state."""
    owner: dict[Var, Var] = {}
    for instr in graph.instrs:
        if shows(instr):
            shown = instr.reads()[0]
            owner.update(dict.fromkeys(instr.outputs, owner.get(shown, shown)))
    made = {var for instr in graph.instrs for var in instr.outputs if var not in owner}
    last = {var: at for at, instr in enumerate(graph.instrs) for var in instr.outputs}
    for at, instr in enumerate(graph.instrs):
        last.update(dict.fromkeys((owner.get(var, var) for var in instr.reads()), at))
    last.update(dict.fromkeys((owner.get(var, var) for var in graph.results()), len(graph.instrs)))
    gone: dict[int, int] = {}
    for var in made:
        gone[last[var]] = gone.get(last[var], 0) + var.nbytes
    now = most = 0
    for at, instr in enumerate(graph.instrs):
        now += sum(var.nbytes for var in instr.outputs if var in made)
        most = max(most, now)
        now -= gone.get(at, 0)
    return most
