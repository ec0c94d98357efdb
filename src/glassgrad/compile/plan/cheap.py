"""Values that are cheap to compute again, and so not kept: what follows from another kept value element by element.

Around a batch norm a step keeps up to four arrays of one size for its backward pass: the convolution's result without
its mean, the normalised values, the layer's result and that of the activation. The first one's source and numbers for
each channel give all the others in a few operations for each element, inside of the loops that read them. Memory that
is touched for the first time costs more than that, and so does reading it back once it has left the caches.

Such a value's source is the last array in front of it that a product, a sum, a concatenation or an addition of two
arrays has made. Nothing else is computed again, so that a copy never needs another copy's source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.recompute import copied, is_forward, marked

_CHEAP = frozenset({"add", "subtract", "multiply", "negative", "relu", "hardtanh", "maximum", "minimum"})
LEAST = 64 << 20
"""Bytes that have to be saved: a step whose arrays fit into the caches would only have more to do."""
_PART = 64  # an array of less than this part of them is not worth a second look

# Gradients wait for the optimizer's loops. Where weights and the optimizer's state take as much as activations do, the
# end of the backward pass needs the most memory, and dropping activations would not change it.
_TIMES_STATE = 4


@dataclass(eq=False)
class _Chain:
    """Values that follow from one source element by element, in the order in which they are made.

    Attributes:
        keep: no op is kept for its name's sake.
    """

    members: list[Var] = field(default_factory=list)
    keep: frozenset[str] = frozenset()


def without_cheap(graph: Graph, least: int = LEAST) -> Graph:
    """Return the graph with its cheap values computed again for the backward pass, where that saves enough memory.

    Args:
        graph: in native form.
        least: bytes that it has to save, in arrays of at least a 64th of that.
    """
    if marked(graph):  # the user has said what to keep
        return graph
    read = {var for instr in graph.instrs if not is_forward(instr) for var in instr.reads()}
    chains = {root: chain for root, chain in _chains(graph, least // _PART).items() if _saved(root, chain, read) > 0}
    state = sum(target.nbytes for target, _ in graph.updates)
    if sum(_saved(root, chain, read) for root, chain in chains.items()) < max(least, _TIMES_STATE * state):
        return graph
    producer = graph.producers()
    parts = {producer[var]: chain for chain in chains.values() for var in chain.members}
    dropped = {var for chain in chains.values() for var in chain.members}
    kept = {out for instr in graph.instrs for out in instr.outputs if out not in dropped}
    return copied(graph, parts, kept)


def _saved(root: Var, chain: _Chain, read: set[Var]) -> int:
    """Return the bytes that are not kept when the source alone is, given what the backward pass reads."""
    wanted = sum(var.nbytes for var in chain.members if var in read)
    return wanted - (0 if root in read else root.nbytes)


def _chains(graph: Graph, least: int) -> Mapping[Var, _Chain]:
    """Return each source with what follows from it."""
    chains: dict[Var, _Chain] = {}
    source: dict[Var, Var] = {}
    results = set(graph.results())
    for instr in graph.instrs:
        before = _before(instr)
        if before is None or before.nbytes < least or instr.outputs[0] in results:
            continue
        root = source[instr.outputs[0]] = source.get(before, before)
        chains.setdefault(root, _Chain()).members.append(instr.outputs[0])
    return chains


def _before(instr: Instr) -> Var | None:
    """Return the one large array that a cheap instruction of the forward pass reads; None for any other instruction."""
    if instr.op not in _CHEAP or not is_forward(instr):
        return None
    out = instr.outputs[0]
    large = {var for var in instr.reads() if 8 * var.size > out.size}
    (one,) = large if len(large) == 1 else (None,)
    return one if one is not None and one.shape == out.shape and one.dtype == out.dtype else None
