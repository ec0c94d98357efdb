"""Values computed twice instead of kept: checkpoints inside a compiled step.

Instructions of a checkpointed part of the forward pass carry a mark. Values of such a part that the backward pass reads
are recomputed from the part's inputs (Chen et al. 2016, "Training deep nets with sublinear memory cost"), right before
their first use. Values that later instructions of the forward pass read, above all the part's results, are kept.

The recomputation repeats the first computation, so it must be held back: otherwise one loop could do both at once, or
it could run before the backward pass begins. ``hold(x, token)`` returns x, but only after `token` is known. The token
is a cotangent that the backward pass has computed by the time it needs the value. A hold costs nothing: loops and
products read through it as through a view, and its readers run after the kernel that writes `token`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var, all_vars
from glassgrad.compile.ir.passes.clean import eliminate_dead
from glassgrad.compile.plan.view_chains import HOLD, only_moves

AGAIN = "again"
"""The role of an instruction that computes a value for the second time."""


class Part(Protocol):
    """A checkpointed part of a program; `keep` names the ops whose results are kept anyway."""

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
    """Tell whether an instruction comes from the user's code and not from a derivative rule."""
    return getattr(instr.where, "role", "forward") == "forward"


def key_of_parts(graph: Graph) -> str:
    """Return a key that distinguishes graphs with different marks; empty for a graph without marks."""
    parts = marked(graph)
    numbers: dict[int, int] = {}
    texts = []
    for at, instr in enumerate(graph.instrs):
        if instr in parts:
            part = parts[instr]
            texts.append(f"{at}:{numbers.setdefault(id(part), len(numbers))}:{','.join(sorted(part.keep))}")
    return " ".join(texts)


def recomputed(graph: Graph, parts: Parts | None = None) -> Graph:
    """Return the graph with values of the parts (by default the marked ones) recomputed for the backward pass."""
    parts = marked(graph) if parts is None else parts
    if not parts:
        return graph
    return copied(graph, parts, _kept(graph, parts))


def copied(graph: Graph, parts: Parts, kept: set[Var]) -> Graph:
    """Return the graph with the values of the parts that are not `kept` recomputed for the backward pass."""
    return eliminate_dead(_Copies(graph, parts, kept).run())


class _Copies:
    """One rewriting; values are copied one by one, in the order of their first readers."""

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
        """Return an instruction of the backward pass that reads copies instead of values that are not kept."""
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
        """Return a value that the backward pass knows only after it has reached this part."""
        end = self.ends[id(self.parts[self.producer[var]])]
        for operand in [*reader.reads(), *([latest] if latest is not None else [])]:
            maker = self.producer.get(operand)
            if maker is not None and not is_forward(maker) and self.reach[operand] >= end:
                return operand
        return None

    def _copy(self, var: Var, token: Var | None) -> None:
        """Append the instructions that recompute a value, unless they exist; without a token, keep the value."""
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
        """Tell whether a value that a copy reads is recomputed too: dropped values and views of kept ones are."""
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
    """Return the values of the parts that are read outside the backward pass, or that their policy keeps."""
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
    # A view takes no memory; the array behind it is kept instead.
    for var in list(kept):
        while (maker := producer.get(var)) is not None and only_moves(maker):
            (var,) = maker.reads()
            kept.add(var)
    return kept


def _reach(graph: Graph) -> dict[Var, int]:
    """Return for each value the position of the last forward instruction that it depends on."""
    reach: dict[Var, int] = {}
    for at, instr in enumerate(graph.instrs):
        found = max((reach.get(var, -1) for var in instr.reads()), default=-1)
        if is_forward(instr):
            found = max(found, at)
        for out in instr.outputs:
            reach[out] = found
    return reach


def _ends(graph: Graph, parts: Parts) -> dict[int, int]:
    """Return for each part the position of its last instruction."""
    return {id(parts[instr]): at for at, instr in enumerate(graph.instrs) if instr in parts}


def extra_flops(graph: Graph) -> int:
    """Return the floating-point operations done a second time: all those of products, one per result for other ops."""
    again = (instr for instr in graph.instrs if AGAIN in (instr.where, getattr(instr.where, "role", "")))
    return sum(map(flops_of, again))


def flops_of(instr: Instr) -> int:
    """Return the floating-point operations of an instruction; one per result for ops that are not products."""
    if only_moves(instr):
        return 0
    terms = 1
    if instr.op == "matmul":
        terms = 2 * instr.reads()[0].shape[-1]
    elif instr.op.startswith("conv2d"):
        terms = 2 * instr.reads()[1].size // max(instr.output.shape[1], 1)
    return terms * sum(out.size for out in instr.outputs if out.dtype.kind == "f")


def tokens_of(producer: Mapping[Var, Instr], views: set[Instr], reads: Sequence[Var]) -> list[Var]:
    """Return the tokens that must be known before an instruction that reads these values through views may run."""
    found = []
    for var in reads:
        while (instr := producer.get(var)) is not None and instr in views:
            if instr.op == HOLD:
                found += [part for part in instr.inputs[1:] if isinstance(part, Var)]
            source = instr.inputs[0]
            assert isinstance(source, Var)
            var = source
    return found
