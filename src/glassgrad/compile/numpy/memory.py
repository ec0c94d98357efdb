"""How much memory a NumPy program needs: its lines run in their order, and a value goes after its last use."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.view_chains import HOLD


def shows(instr: Instr) -> bool:
    """Tell whether the result of an instruction is memory of its operand."""
    return instr.op == HOLD or instr.is_view


def peak(graph: Graph) -> int:
    """Return the most memory that values between instructions take at one time, results and new state included."""
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
