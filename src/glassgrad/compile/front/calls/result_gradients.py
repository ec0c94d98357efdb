"""Results that still require a gradient: the backward pass of a compiled function becomes a separate program.

If a function returns a tensor whose graph is alive (a compiled model in an eager training loop), the trace continues
with the backward walk from symbolic cotangents. The forward program then also returns the values that the backward
program reads, and a call puts one node on the tape that runs the backward program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.hidden_branch import Branch, StepTracer, counts
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import DType, Graph, Instr, Operand, Shape, Var
from glassgrad.engine import tape
from glassgrad.engine.node import record
from glassgrad.engine.reports.float_warnings import hidden_branch
from glassgrad.engine.tape import pick
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array, Custom


@dataclass(eq=False)
class Boundary:
    """How gradients leave and enter a compiled function.

    Attributes:
        results: the outputs of the program that carry a gradient.
        kept: the outputs that are values for the backward program.
        read: the inputs of the program that the backward program also reads.
        parents: the receivers of gradients: a leaf of the state, or the position of an argument.
        graph: the backward program: cotangents, kept values, inputs -> gradients of the parents, then the counts.
        branches: for each count (of cotangents of 0 that became NaN) its op.
        program: the executable of `graph`.
    """

    results: list[int]
    kept: list[int]
    read: list[int]
    parents: list[Tensor | int]
    graph: Graph
    branches: list[Branch]
    program: Any = None


class Continuation:
    """The backward walk from the results, while the trace is running."""

    def __init__(self, tracer: Tracer, results: Sequence[Tensor]) -> None:
        self.tracer = tracer
        self.begin = len(tracer.builder.instrs)
        inputs = len(tracer.builder.inputs)
        seeds = [tracer.argument(one.array, f"d_result{number}") for number, one in enumerate(results)]
        noted = tracer.follow(one.node for one in results) if isinstance(tracer, StepTracer) else []
        found = tape.backward([one.node for one in results], seeds, retain_graph=False, create_graph=False)
        self.found: dict[Tensor, Array] = {leaf: g for leaf, g in found.items() if isinstance(leaf, Tensor)}
        self.cotangents = [seed.var for seed in seeds]
        self.counts = counts(tracer.builder, noted)
        # They are inputs of the backward program.
        tracer.builder.inputs[inputs:] = [
            var for var in tracer.builder.inputs[inputs:] if var not in set(self.cotangents)
        ]
        self.instrs = tracer.builder.instrs[self.begin :]
        del tracer.builder.instrs[self.begin :]

    def boundary(
        self, parents: dict[int, Tensor | int], outputs: list[Operand], results: Sequence[int], inputs: Sequence[Var]
    ) -> Boundary:
        """Return the boundary; append to `outputs` the values that the forward program must also return.

        `parents` maps the id of a leaf to the leaf or its argument position; `inputs` are those of the forward program.
        """
        wanted = [(parents[id(leaf)], g) for leaf, g in self.found.items() if id(leaf) in parents]
        gradients = [g.var if isinstance(g, Symbol) else self.tracer.constant(g) for _, g in wanted]
        read = _outer_reads(self.instrs, gradients, set(self.cotangents))
        constants = {var: value for var, value in self.tracer.builder.constants if var in read}
        place = {var: at for at, var in enumerate(inputs)}
        kept = [var for var in read if var not in place and var not in constants]
        at = len(outputs)
        outputs += kept
        taken = [var for var in read if var in place]
        graph = Graph(
            (*self.cotangents, *kept, *taken),
            tuple(self.instrs),
            (*gradients, *(count for _, count in self.counts)),
            tuple(constants.items()),
            name=f"{self.tracer.builder.name}_backward",
        )
        return Boundary(
            list(results),
            list(range(at, len(outputs))),
            [place[var] for var in taken],
            [who for who, _ in wanted],
            graph,
            [branch for branch, _ in self.counts],
        )


def _outer_reads(instrs: Sequence[Instr], results: Sequence[Var], inner: set[Var]) -> list[Var]:
    """Return the values that are read but not defined here, in order."""
    defined = inner | {var for instr in instrs for var in instr.outputs}
    read = dict.fromkeys(var for instr in instrs for var in instr.reads())
    read.update(dict.fromkeys(results))
    return [var for var in read if var not in defined]


# --- in a call ------------------------------------------------------------------------------------


def _vjp(
    g: Array, needs: Sequence[bool], _y: Array, *saved: Array, boundary: Boundary, like: Sequence[tuple[Shape, DType]]
) -> list[Array]:
    gs = list(g) if len(boundary.results) > 1 else [g]
    if any(isinstance(one, Tensor) for one in gs):
        raise errors.COMPILE_SECOND_ORDER(where=provenance.here())
    gs = [np.zeros(shape, dtype) if one is None else one for one, (shape, dtype) in zip(gs, like, strict=True)]
    found = boundary.program(*map(tape.turned, gs), *saved)
    gradients = len(found) - len(boundary.branches)
    for branch, count in zip(boundary.branches, found[gradients:], strict=True):
        if count:
            hidden_branch(branch.op, branch.place, int(count))
    return [tape.turned(c) for c in found[:gradients]]


_ONE = Custom("compiled", lambda _xp, *_x: None, joint_vjp=_vjp, register=False)
_SEVERAL = Custom("compiled_several", lambda _xp, *_x: None, joint_vjp=_vjp, register=False, multiple=True)
_ONE.describe("a compiled function")
_SEVERAL.describe("a compiled function")


def connect(
    boundary: Boundary, arrays: Sequence[Array], results: Sequence[Array], leaves: Sequence[Any]
) -> dict[int, Tensor]:
    """Put one node on the tape for a call; return the tensors of the outputs that carry a gradient."""
    parents = [leaves[who] if isinstance(who, int) else who for who in boundary.parents]
    places = tuple((x if x.node is None else x.node) if x._tracks else None for x in parents)
    saved = (None, *[results[at] for at in boundary.kept], *[arrays[at] for at in boundary.read])
    made = [results[at] for at in boundary.results]
    several = len(made) > 1
    params = {"boundary": boundary, "like": [(part.shape, part.dtype) for part in made]}
    frame = provenance.user_frame(1)
    prim = _SEVERAL if several else _ONE
    node = record(prim, places, saved, params, made[0], frame.f_code, frame.f_lasti)
    if not several:
        return {boundary.results[0]: make(made[0], node, True)}
    numbered = enumerate(zip(boundary.results, made, strict=True))
    return {at: pick(node, part, number, len(made)) for number, (at, part) in numbered}
