"""Values computed twice so that they need not be kept: checkpoints inside of a compiled step.

A checkpointed part of the forward pass leaves a mark on its instructions. What the backward pass reads of such a part
is computed again from what the part was given (Chen et al. 2016, "Training deep nets with sublinear memory cost"),
right before it is first read. What the instructions after the part read, its results above all, is kept.

The second computation is the first one's over again, so something has to hold it back: otherwise one loop could do both
at once, or it could run before the backward pass begins. ``hold(x, token)`` is x, from the moment on at which `token`
is known: a cotangent that the backward pass has brought to the place where the value is needed. It costs nothing: loops
and products read through it as through a view, and what reads it runs after what writes `token`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var, all_vars
from glassgrad.compile.ir.passes.clean import eliminate_dead
from glassgrad.compile.plan.view_chains import HOLD, only_moves

AGAIN = "again"
"""The role of an instruction that computes something for the second time."""


class Part(Protocol):
    """A checkpointed part of a program: `keep` names the ops whose results are kept all the same."""

    keep: frozenset[str]


Parts = Mapping[Instr, Part]


def marked(graph: Graph) -> dict[Instr, Part]:
    """Return the instructions of checkpointed parts, as their origins say."""
    found = {}
    for instr in graph.instrs:
        part = getattr(instr.where, "part", None)
        if part is not None and is_forward(instr):
            found[instr] = part
    return found


def is_forward(instr: Instr) -> bool:
    """Tell whether an instruction is the user's own, and none that a derivative rule has made."""
    return getattr(instr.where, "role", "forward") == "forward"


def key_of_parts(graph: Graph) -> str:
    """Return what tells graphs with different marks apart; empty for a graph without any."""
    parts = marked(graph)
    numbers: dict[int, int] = {}
    texts = []
    for at, instr in enumerate(graph.instrs):
        if instr in parts:
            part = parts[instr]
            texts.append(f"{at}:{numbers.setdefault(id(part), len(numbers))}:{','.join(sorted(part.keep))}")
    return " ".join(texts)


def recomputed(graph: Graph, parts: Parts | None = None) -> Graph:
    """Return the graph with values of the parts (by default the marked ones) computed again for the backward pass."""
    parts = marked(graph) if parts is None else parts
    if not parts:
        return graph
    return copied(graph, parts, _kept(graph, parts))


def copied(graph: Graph, parts: Parts, kept: set[Var]) -> Graph:
    """Return the graph with the values of the parts that are not `kept` computed again for the backward pass."""
    return eliminate_dead(_Copies(graph, parts, kept).run())


class _Copies:
    """One rewriting; values that are read again are copied one by one, the first reader first."""

    def __init__(self, graph: Graph, parts: Parts, kept: set[Var]) -> None:
        self.graph, self.parts, self.kept = graph, parts, kept
        self.producer = graph.producers()
        self.reach = _reach(graph)
        self.ends = _ends(graph, parts)
        self.instrs: list[Instr] = []
        self.copies: dict[Var, Var] = {}
        self.held: dict[tuple[int, Var], Var] = {}
        self.number = 1 + max((var.id for var in all_vars(graph)), default=-1)

    def run(self) -> Graph:
        """Return the new graph."""
        latest: Var | None = None
        for instr in self.graph.instrs:
            now = instr
            if not is_forward(instr):
                now = self._reading(instr, latest)
                out = instr.outputs[0]
                if latest is None or self.reach[out] >= self.reach[latest]:
                    latest = out
            self.instrs.append(now)
        return replace(self.graph, instrs=tuple(self.instrs))

    def _reading(self, instr: Instr, latest: Var | None) -> Instr:
        """Return an instruction of the backward pass with copies instead of what is not kept."""
        wanted = [var for var in dict.fromkeys(instr.reads()) if self._is_dropped(var)]
        if not wanted:
            return instr
        for var in wanted:
            self._copy(var, self._token(instr, var, latest))
        return replace(instr, inputs=tuple(self._copied(operand) for operand in instr.inputs))

    def _copied(self, operand: Operand) -> Operand:
        return self.copies.get(operand, operand) if isinstance(operand, Var) else operand

    def _is_dropped(self, var: Var) -> bool:
        instr = self.producer.get(var)
        return instr is not None and instr in self.parts and var not in self.kept

    def _token(self, reader: Instr, var: Var, latest: Var | None) -> Var | None:
        """Return a value that the backward pass knows only when it has come to this part."""
        end = self.ends[id(self.parts[self.producer[var]])]
        for operand in [*reader.reads(), *([latest] if latest is not None else [])]:
            maker = self.producer.get(operand)
            if maker is not None and not is_forward(maker) and self.reach[operand] >= end:
                return operand
        return None

    def _copy(self, var: Var, token: Var | None) -> None:
        """Append what computes a value again, unless it is there; without a token the value is kept after all."""
        if token is None:
            return
        waiting = [var]
        while waiting:
            current = waiting[-1]
            instr = self.producer[current]
            if current in self.copies:
                waiting.pop()
                continue
            missing = [one for one in instr.reads() if self._again(one) and one not in self.copies]
            if missing:
                waiting += missing
                continue
            part = id(self.parts.get(instr, self.parts[self.producer[var]]))
            inputs = tuple(self._input(operand, part, token) for operand in instr.inputs)
            outputs = tuple(self._like(one) for one in instr.outputs)
            where = replace(instr.where, role=AGAIN) if hasattr(instr.where, "role") else AGAIN
            self.instrs.append(replace(instr, inputs=inputs, outputs=outputs, where=where))
            self.copies.update(zip(instr.outputs, outputs, strict=True))

    def _again(self, var: Var) -> bool:
        """Tell whether a value that a copy reads is computed again as well: dropped ones, and views of kept ones."""
        instr = self.producer.get(var)
        return self._is_dropped(var) or (instr is not None and only_moves(instr))

    def _input(self, operand: Operand, part: int, token: Var) -> Operand:
        if not isinstance(operand, Var):
            return operand
        if operand in self.copies:
            return self.copies[operand]
        known = self.held.get((part, operand))
        if known is None:
            known = self.held[part, operand] = self._like(operand)
            self.instrs.append(Instr(HOLD, (operand, token), (known,), {}, self.producer_where(operand)))
        return known

    def producer_where(self, var: Var) -> Any:
        """Return the origin of a value, None for an argument."""
        instr = self.producer.get(var)
        return None if instr is None else instr.where

    def _like(self, var: Var) -> Var:
        self.number += 1
        return Var(self.number - 1, var.shape, var.dtype, var.name)


def _kept(graph: Graph, parts: Parts) -> set[Var]:
    """Return the values of the parts that others than the backward pass read, or that their policy keeps."""
    kept = set(graph.results())
    for instr, part in parts.items():
        if instr.op in part.keep:
            kept.update(instr.outputs)
    producer = graph.producers()
    for instr in graph.instrs:
        if is_forward(instr):
            for var in instr.reads():
                maker = producer.get(var)
                if maker is not None and maker in parts and parts.get(instr) is not parts[maker]:
                    kept.add(var)
    # A view takes no memory: what it shows is what is kept.
    for var in list(kept):
        while (maker := producer.get(var)) is not None and only_moves(maker):
            (var,) = maker.reads()
            kept.add(var)
    return kept


def _reach(graph: Graph) -> dict[Var, int]:
    """Return for each value the place of the last instruction of the forward pass that it depends on."""
    reach: dict[Var, int] = {}
    for at, instr in enumerate(graph.instrs):
        found = max((reach.get(var, -1) for var in instr.reads()), default=-1)
        if is_forward(instr):
            found = max(found, at)
        for out in instr.outputs:
            reach[out] = found
    return reach


def _ends(graph: Graph, parts: Parts) -> dict[int, int]:
    """Return for each part the place of its last instruction."""
    return {id(parts[instr]): at for at, instr in enumerate(graph.instrs) if instr in parts}


def extra_flops(graph: Graph) -> int:
    """Return the floating-point operations that are done again: of products all, of other ops one for each result."""
    again = (instr for instr in graph.instrs if AGAIN in (instr.where, getattr(instr.where, "role", "")))
    return sum(map(flops_of, again))


def flops_of(instr: Instr) -> int:
    """Return the floating-point operations of an instruction; of ops that are no products one for each result."""
    if only_moves(instr):
        return 0
    terms = 1
    if instr.op == "matmul":
        terms = 2 * instr.reads()[0].shape[-1]
    elif instr.op.startswith("conv2d"):
        terms = 2 * instr.reads()[1].size // max(instr.output.shape[1], 1)
    return terms * sum(out.size for out in instr.outputs if out.dtype.kind == "f")


def tokens_of(producer: Mapping[Var, Instr], views: set[Instr], reads: Sequence[Var]) -> list[Var]:
    """Return what has to be known before an instruction that reads these values through views may run."""
    found = []
    for var in reads:
        while (instr := producer.get(var)) is not None and instr in views:
            if instr.op == HOLD:
                found += [part for part in instr.inputs[1:] if isinstance(part, Var)]
            source = instr.inputs[0]
            assert isinstance(source, Var)
            var = source
    return found
