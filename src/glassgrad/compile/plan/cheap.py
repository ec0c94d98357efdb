"""Recompute cheap values instead of keeping them: those that follow elementwise from another kept value.

Around a batch norm a step keeps up to four arrays of one size for its backward pass: the convolution's result minus
its mean, the normalised values, the layer's result and that of the activation. The source of the first one and numbers
per channel give all the others in a few operations per element, inside the loops that read them. The first access to
new memory costs more than that, and so does a read after the data has left the caches.

The source of such a value is the last array before it that a product, a sum, a concatenation or an addition of two
arrays computed. Nothing else is recomputed, so a copy never needs another copy's source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.recompute import copied, is_forward, marked

_CHEAP = frozenset({"add", "subtract", "multiply", "negative", "relu", "hardtanh", "maximum", "minimum"})
LEAST = 64 << 20
"""The least saving in bytes; a step whose arrays fit into the caches would only do more work."""
_PART = 64  # arrays of less than LEAST / _PART bytes are ignored

# Gradients are kept until the optimizer's loops. If weights and the optimizer's state are as large as activations, the
# peak is at the end of the backward pass, and dropping activations would not reduce it.
_TIMES_STATE = 4


@dataclass(eq=False)
class _Chain:
    """Values that follow elementwise from one source, in the order of computation.

    Attributes:
        keep: ops whose results are kept, as for `budget.Stretch`; none here.
    """

    members: list[Var] = field(default_factory=list)
    keep: frozenset[str] = frozenset()


def without_cheap(graph: Graph, least: int = LEAST) -> Graph:
    """Return the graph with its cheap values recomputed for the backward pass, if that saves enough memory.

    Args:
        graph: in native form.
        least: the bytes that it must save, in arrays of at least a 64th of that.
    """
    if marked(graph):  # the user has decided what to keep
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
    """Return the bytes saved by keeping only the source, given the values that the backward pass reads."""
    wanted = sum(var.nbytes for var in chain.members if var in read)
    return wanted - (0 if root in read else root.nbytes)


def _chains(graph: Graph, least: int) -> Mapping[Var, _Chain]:
    """Return each source with the values that follow from it."""
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
