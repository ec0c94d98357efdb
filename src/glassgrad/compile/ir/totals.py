"""What a program consists of, as plain data, whichever backend made it: a row for every unit of work, and totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One unit of work: a kernel of native code, or an instruction of a NumPy program.

    Attributes:
        phase: between which barriers it runs.
        kind: loop, product, scatter, window or host; numpy in a NumPy program.
        ops: the instructions in it.
        result: type of what it stores (the first, if several).
        flops, bytes: its arithmetic and its traffic, if every array is read and written once.
        cut: how threads share it: rows, tiles, columns, batch, or the one share that does all of it.
        origins: where its instructions come from.
        where: the same as the user's lines, each once.
    """

    phase: int
    kind: str
    ops: tuple[str, ...]
    result: str
    flops: int
    bytes: int
    cut: str
    origins: tuple[Any, ...] = ()

    @property
    def where(self) -> tuple[str, ...]:
        """The lines, looked up when somebody asks: for all kernels that takes a tenth of the time of compiling."""
        return tuple(dict.fromkeys(str(origin) for origin in self.origins))

    def __str__(self) -> str:
        ops = "+".join(self.ops) if len(self.ops) <= 6 else "+".join(self.ops[:5]) + f"+{len(self.ops) - 5} more"
        return f"{self.phase:>3} {self.kind:<8} {self.result:<22} {self.flops:>12} {self.bytes:>11} {self.cut:<9} {ops}"


@dataclass(frozen=True)
class Stats:
    """Totals of a program.

    Attributes:
        flops: floating-point operations of one call; a multiplication and an addition are two, also where they are one
            instruction.
        bytes: memory traffic of one call, if every unit of work reads and writes each of its arrays once.
        kernels: units of work: loop nests and products of native code, instructions of a NumPy program.
        peak_bytes: memory for values between them.
        instructions: of the graph, after the passes.
        threads: into how many shares the work is cut.
        trace_seconds, plan_seconds, compile_seconds: what making it took; planning is part of compiling.
        phases: barriers, more or less.
        cached: whether the machine code came from the disk.
        functions: of the module.
        reused_buffers: how many values lie where another one lay before.
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
