"""Statistics of a program as plain data, for every backend: a row per kernel, and totals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One unit of work: a kernel of native code, or an instruction of a NumPy program.

    Attributes:
        phase: the phase, between two barriers, in which it runs.
        kind: loop, product, scatter, window or host; numpy in a NumPy program.
        ops: the instructions in it.
        result: type of what it stores (the first, if several).
        flops, bytes: its arithmetic and memory traffic, if every array is read and written once.
        cut: how threads partition it: rows, tiles, columns, batch, or the single partition that computes all of it.
        origins: the origins of its instructions.
        where: the origins as lines of the user, without duplicates.
    """

    phase: int
    kind: str
    ops: tuple[str, ...]
    result: str
    flops: int
    bytes: int
    cut: str
    origins: tuple[object, ...] = ()

    @property
    def where(self) -> tuple[str, ...]:
        """The lines, resolved on request, because for all kernels this takes a tenth of the compile time."""
        return tuple(dict.fromkeys(str(origin) for origin in self.origins))

    def __str__(self) -> str:
        ops = "+".join(self.ops) if len(self.ops) <= 6 else "+".join(self.ops[:5]) + f"+{len(self.ops) - 5} more"
        return f"{self.phase:>3} {self.kind:<8} {self.result:<22} {self.flops:>12} {self.bytes:>11} {self.cut:<9} {ops}"


@dataclass(frozen=True)
class Stats:
    """Totals of a program.

    Attributes:
        flops: floating-point operations of one call; a multiplication and an addition count as two, even if they are
            one instruction.
        bytes: memory traffic of one call, if every unit of work reads and writes each of its arrays once.
        kernels: units of work: loop nests and products of native code, instructions of a NumPy program.
        peak_bytes: memory for values between kernels.
        instructions: instructions of the graph after the passes.
        threads: the number of partitions of the work.
        trace_seconds, plan_seconds, compile_seconds: the time it took to build; planning is part of compiling.
        phases: the number of phases between barriers.
        cached: whether the machine code came from the disk.
        functions: functions of the LLVM module.
        extra_flops: the number of recomputed operations, which save memory.
        least_bytes: the memory of the smallest plan, which is used if none meets the memory limit; otherwise 0.
        reused_buffers: how many values reuse the memory of an earlier one.
    """

    flops: int
    bytes: int
    kernels: int
    peak_bytes: int
    instructions: int
    threads: int = 1
    trace_seconds: float = 0.0
    plan_seconds: float = 0.0
    compile_seconds: float = 0.0
    phases: int = 1
    cached: bool = False
    functions: int = 0
    reused_buffers: int = 0
    extra_flops: int = 0
    least_bytes: int = 0
