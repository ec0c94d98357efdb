"""From a graph to something that runs: the public entry of the native backend."""

from __future__ import annotations

from typing import Any

from glassgrad.compile.emit.llvm.blas import GEMM, blas_pointers
from glassgrad.compile.emit.llvm.ir import kind_of
from glassgrad.compile.emit.llvm.scalar import COSTS
from glassgrad.compile.emit.llvm.step import StepModule, accepts_layout
from glassgrad.compile.emit.llvm.table import LOOPS
from glassgrad.compile.emit.llvm.target import host
from glassgrad.compile.executable import NativeStep
from glassgrad.compile.graph import Graph, Var
from glassgrad.compile.plan import Lowerings, make_plan


def lower(graph: Graph, *, threads: int | None = None) -> Any:
    """Compile a graph to native code."""
    plan = make_plan(graph, Lowerings(LOOPS, kind_of, accepts_layout, COSTS))
    module = StepModule(plan, threads or 1)
    code = host().compile(module.text)
    outputs = [out for out in graph.outputs if isinstance(out, Var)]
    buffers, arena = [], 0
    for kernel in plan.kernels:
        for var in kernel.writes:
            if var not in outputs:
                buffers.append((var, arena))
                arena += -(-var.nbytes // 64) * 64
    pointers = blas_pointers()
    step = NativeStep(
        code, module.shares, module.phases, module.slots, [pointers[name] for name in GEMM.values()], graph.inputs,
        {target for target, _ in graph.updates}, outputs, buffers, graph.constants, [], arena, module.scratch,
    )  # fmt: skip
    step.llvm = module.text
    return step
