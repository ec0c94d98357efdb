"""Passes: pure functions from graph to graph, each verified after it ran."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.passes.clean import eliminate_common, eliminate_dead, settle
from glassgrad.compile.ir.passes.decompose import decompose
from glassgrad.compile.ir.passes.fold import fold
from glassgrad.compile.ir.passes.means import with_exact_means
from glassgrad.compile.ir.passes.simplify import simplify
from glassgrad.compile.ir.passes.widen import widen_products
from glassgrad.compile.ir.well_formed import verify

Pass = Callable[[Graph], Graph]

# The passes for every emitter: constants folded, identities applied, common and dead code removed.
STANDARD: tuple[Pass, ...] = (eliminate_dead, fold, simplify, eliminate_common, fold, simplify, eliminate_dead, settle)


def run(graph: Graph, passes: Sequence[Pass] = STANDARD, check: Callable[[Graph], object] | None = None) -> Graph:
    """Apply passes in order; `check` is called on every result."""
    for one in passes:
        graph = one(graph)
        if check is not None:
            check(graph)
    return graph


def simplified(graph: Graph) -> Graph:
    """Run the standard passes; verify the graph's structure after each, and its types after the last."""
    return verify(run(graph, check=functools.partial(verify, types=False)))


__all__ = [
    "STANDARD",
    "Pass",
    "decompose",
    "eliminate_common",
    "eliminate_dead",
    "fold",
    "run",
    "settle",
    "simplified",
    "simplify",
    "widen_products",
    "with_exact_means",
]
