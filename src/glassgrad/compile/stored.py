"""Native code that an earlier process left on the disk, found before the stages that compile it are imported."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.totals import Row, Stats
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.native import cache_entry
from glassgrad.compile.native.executable import NativeStep
from glassgrad.engine.memory import fresh
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.compile.native.assemble import Emitted

Stages = Callable[[], Any]  # imports `stages`: half of all imports of a first step; a stored step does not need it


@dataclass(frozen=True)
class Looked:
    """A lookup on the disk.

    Attributes:
        key: the name of the step's entry.
        began: when the lookup began.
        state: large arrays of the trace, in memory that was never touched.
        found: the step, if it is there.
    """

    key: str
    began: float
    state: list[Array]
    found: Executable | None


def look(
    graph: Graph,
    threads: int | None,
    stages: Stages,
    *,
    as_it_is: bool = False,
    memory: int | None = None,
) -> Looked:
    """Look for a step on the disk.

    Args:
        graph, threads, as_it_is, memory: as for `stages.native`.
        stages: called if the prepared graph is requested, or the reason why an index is wrong.
    """
    began = time.perf_counter()
    key = cache_entry.key_of(graph, threads, memory, as_it_is=as_it_is)
    state = fresh.taken()
    small = functools.cache(lambda: stages().prepared(graph, as_it_is=as_it_is))
    found = cache_entry.find(key, graph, lambda: stages().find_checks(small()))
    if found is None:
        return Looked(key, began, state, None)
    step, stats = found
    stats = replace(stats, plan_seconds=0.0, compile_seconds=time.perf_counter() - began, cached=True)
    return Looked(key, began, state, Executable(small, step, stats, stages))


class Executable:
    """A graph compiled to native code; call it with one array for every input.

    Returns a tuple of new arrays, one for every output that is an array; inputs with updates are written in place.
    A step that came from the disk goes through the stages only if their results are requested.

    Attributes:
        inputs, outputs: types of arguments and results.
        stats: totals.
    """

    def __init__(
        self,
        graph: Callable[[], Graph],
        step: NativeStep,
        stats: Stats,
        stages: Stages,
        emitted: Emitted | None = None,
    ) -> None:
        self.step = step
        self.stats = stats
        self.inputs = step.inputs
        self.outputs = step.outputs[: len(step.outputs) - len(step.layout.guards)]
        self._graph = graph
        self._stages = stages
        self._emitted = emitted

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Run the program; safe from any number of threads."""
        return self.step(*arrays)

    @property
    def peak_bytes(self) -> int:
        """The memory for values between kernels."""
        return self.stats.peak_bytes

    @property
    def graph(self) -> Graph:
        """The graph that was compiled, after the passes."""
        return self._graph()

    @property
    def emitted(self) -> Emitted:
        """The results of the stages before machine code."""
        if self._emitted is None:
            self._emitted = self._stages().native(self.graph, self.stats.threads, as_it_is=True, stored=False)._emitted
        assert self._emitted is not None
        return self._emitted

    @property
    def llvm(self) -> str:
        """The module as text, before LLVM's own passes."""
        return self.emitted.text

    @property
    def assembly(self) -> str:
        """The machine code as text; made again for each request."""
        return host().assembly(self.llvm)

    def explain(self) -> list[Row]:
        """Return one row for every kernel, in the order in which they run."""
        return self.emitted.rows()
