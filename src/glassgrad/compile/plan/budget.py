"""What to compute twice so that a step needs no more memory than it may.

The forward pass is cut into stretches, and all that the backward pass reads of a stretch is computed again
(`plan.recompute`), or all but the results of products and convolutions, which are most of the work (Korthikanti et al.
2023, "Reducing activation recomputation in large transformer models"). How many stretches there are is searched for, as
in algorithm 3 of Chen et al. 2016, "Training deep nets with sublinear memory cost": k stretches keep what lies between
them and need room for one of them, n/k; with k about sqrt(n) both are small. Of the plans that fit, the one with the
fewest operations done twice is taken.

A cut is made where little crosses it: among the places in the last half of a stretch, the one over which the values
that later instructions of the forward pass read have the fewest bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.kernels import Plan
from glassgrad.compile.plan.memory import ALIGNMENT, pinned_vars
from glassgrad.compile.plan.recompute import extra_flops, is_forward, recomputed
from glassgrad.compile.plan.view_chains import only_moves

_PRODUCTS = frozenset({"matmul", "conv2d"})


@dataclass(eq=False)
class Stretch:
    """Instructions of the forward pass whose results are computed again, but for those of the ops in `keep`."""

    keep: frozenset[str]


def within(graph: Graph, budget: int, needs: Callable[[Graph], int]) -> Graph:
    """Return the graph with the fewest operations done twice that `needs` at most so many bytes.

    Where no plan does, the one that needs least is returned.
    """
    least, smallest = needs(graph), graph
    if least <= budget:
        return graph
    plans = sorted(candidates(graph), key=extra_flops)
    for plan in plans:
        size = needs(plan)
        if size <= budget:
            return plan
        if size < least:
            least, smallest = size, plan
    return smallest


def candidates(graph: Graph) -> Iterator[Graph]:
    """Yield plans with different numbers of stretches."""
    forward = forward_pass(graph)
    weights = _kept_bytes(graph, forward)
    most = math.ceil(2 * math.sqrt(max(len(forward), 1)))
    count = 2
    while count <= most:
        stretches = _stretches(forward, weights, count)
        for keep in (_PRODUCTS, frozenset[str]()):
            # What the last stretch has computed is needed at once.
            marks: dict[Instr, Stretch] = {}
            for one in stretches[:-1]:
                marks |= dict.fromkeys(one, Stretch(keep))
            yield recomputed(graph, marks)
        count = max(count + 1, count * 4 // 3)


def forward_pass(graph: Graph) -> list[Instr]:
    """Return the instructions before the first of a derivative rule."""
    first = next((at for at, instr in enumerate(graph.instrs) if not is_forward(instr)), 0)
    return list(graph.instrs[:first])


def _kept_bytes(graph: Graph, forward: list[Instr]) -> list[int]:
    """Return for each instruction the bytes of its results that the backward pass reads."""
    inside = set(forward)
    read = {var for instr in graph.instrs if instr not in inside for var in instr.reads()}
    producer = graph.producers()
    for var in list(read):  # a view takes no memory
        while (maker := producer.get(var)) is not None and only_moves(maker):
            (var,) = maker.reads()
            read.add(var)
    return [0 if only_moves(instr) else sum(out.nbytes for out in instr.outputs if out in read) for instr in forward]


def _crossing(forward: list[Instr]) -> list[int]:
    """Return for the place behind each instruction the bytes that instructions before it give to those behind it."""
    last: dict[Var, int] = {}
    for at, instr in enumerate(forward):
        for var in instr.reads():
            last[var] = at
    change = [0] * (len(forward) + 1)
    for at, instr in enumerate(forward):
        for out in instr.outputs:
            if last.get(out, at) > at:
                change[at] += out.nbytes
                change[last[out]] -= out.nbytes
    total, found = 0, []
    for one in change[:-1]:
        total += one
        found.append(total)
    return found


def _stretches(forward: list[Instr], sizes: list[int], count: int) -> list[list[Instr]]:
    """Cut the forward pass into about `count` stretches that keep the same number of bytes."""
    crossing, wanted = _crossing(forward), sum(sizes) / count
    found: list[list[Instr]] = []
    begin = half = at = held = 0
    while at < len(forward):
        held += sizes[at]
        if held <= wanted / 2:
            half = at
        if held >= wanted:
            cut = min(range(half, at + 1), key=lambda place: (crossing[place], -place))
            found.append(forward[begin : cut + 1])
            begin = at = cut + 1
            half, held = begin, 0
            continue
        at += 1
    return [*found, forward[begin:]] if begin < len(forward) else found


def bytes_between(plan: Plan, alias: dict[Var, Var]) -> int:
    """Return what the values between kernels need at most at once, without what lies in memory of the caller's."""
    elsewhere = {*pinned_vars(plan.graph), *alias}
    last: dict[Var, int] = {}
    for at, kernel in enumerate(plan.kernels):
        for var in kernel.reads | kernel.writes:
            last[var] = at
    ends: dict[int, int] = {}
    now = most = 0
    for at, kernel in enumerate(plan.kernels):
        for var in kernel.writes - elsewhere:
            size = max(-(-var.nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
            now += size
            ends[last[var]] = ends.get(last[var], 0) + size
        most = max(most, now)
        now -= ends.pop(at, 0)
    return most
