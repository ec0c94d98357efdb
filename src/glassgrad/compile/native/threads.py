"""The number of shares of a step."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.llvm.module.cuts import FLOPS_PER_NS, kernel_time
from glassgrad.compile.native.runtime import available_cores
from glassgrad.compile.plan.kernels import Plan

# Estimated nanoseconds of work per participating thread. Barriers cost a quarter of a microsecond; reads of data that
# another core has just written cost more. Measured on a small network: two threads break even at an estimate of about
# 100 microseconds (40 of real time), and the names MLP takes 27 on one thread and 37 on two.
_PER_THREAD = 60000.0


def expected_threads(graph: Graph, threads: int | None) -> int:
    """Return the certain number of shares of a step before it is planned: its products alone must occupy all threads.

    Return 1 if that is not certain.
    """
    if threads is not None:
        return max(1, threads)
    work = sum(
        2.0 * instr.output.size * instr.inputs[0].shape[-1]
        for instr in graph.instrs
        if instr.op == "matmul" and isinstance(instr.inputs[0], Var) and instr.inputs[0].ndim
    )
    cores = available_cores()
    return cores if work / FLOPS_PER_NS >= 2 * cores * _PER_THREAD else 1


def choose_threads(plan: Plan, threads: int | None) -> int:
    """Return the number of shares: at most the number of cores, and none with too little work."""
    if threads is not None:
        return max(1, threads)
    work = sum(kernel_time(kernel) for kernel in plan.kernels)
    return max(1, min(available_cores(), int(work / _PER_THREAD)))
