"""Choose values to recompute so that a step meets a memory limit.

The forward pass is cut into stages where few bytes cross. `plan.chain` chooses the stretches of stages to drop by their
bytes and operations. `plan.recompute` recomputes everything that the backward pass reads of such a stretch, or
everything except the results of products and convolutions, which are most of the work (Korthikanti et al. 2023,
"Reducing activation recomputation in large transformer models").

The memory of a plan is known only with its kernels: fused loops keep values in registers that the chain counts, and the
backward pass has gradients that the chain does not count. So the limit of the chain is adjusted a few times by the
difference between the plan and the limit of the step. If none of these plans fits, plans with equal stretches are tried
(Chen et al. 2016, algorithm 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.chain import Chain
from glassgrad.compile.plan.recompute import extra_flops, flops_of, is_forward, recomputed
from glassgrad.compile.plan.view_chains import only_moves

_PRODUCTS = frozenset({"matmul", "conv2d"})
_STAGES = 48
_TRIES = 4
_EQUAL = (2, 5, 8, 13)  # numbers of stretches of about the same size
_NEAR = 0.95  # a plan that uses this part of the limit is accepted without trying cheaper ones


@dataclass(eq=False)
class Stretch:
    """Instructions of the forward pass whose results are recomputed, except those of the ops in `keep`."""

    keep: frozenset[str]


def within(graph: Graph, budget: int, needs: Callable[[Graph], int]) -> Graph:
    """Return the graph with the fewest recomputed operations among those tried that `needs` at most `budget` bytes.

    If none does, return the one that needs the least memory.
    """
    whole = needs(graph)
    if whole <= budget:
        return graph
    stages = stages_of(graph)
    chain = chain_of(graph, stages)
    least = chain.least() * (1 + 2 * len(stages) / 1000)  # levels are rounded up
    found = [(whole, 0, graph)]
    aim, low, high = float(budget - max(whole - chain.total(), 0)), least, float(chain.total())
    for _ in range(_TRIES):
        aim = min(max(aim, low), high)
        plan = _dropping(graph, stages, chain, aim)
        if plan is None:
            break
        size = needs(plan)
        found.append((size, extra_flops(plan), plan))
        if _NEAR * budget <= size <= budget or (size > budget and aim <= least):
            break
        if size > budget:
            high = aim
        else:
            low = aim
        aim += budget * (1 + _NEAR) / 2 - size
        if not low < aim < high:
            aim = (low + high) / 2
        if high - low < 0.02 * high:
            break
    fitting = [one for one in found if one[0] <= budget]
    for count in () if fitting else _EQUAL:
        plan = _equal(graph, count)
        found.append((needs(plan), extra_flops(plan), plan))
        fitting = [one for one in found if one[0] <= budget]
    chosen = min(fitting, key=lambda one: one[1]) if fitting else min(found, key=lambda one: one[0])
    return chosen[2]


def _dropping(graph: Graph, stages: list[list[Instr]], chain: Chain, limit: float) -> Graph | None:
    """Return the graph with the stretches dropped that the chain chooses within a limit."""
    found = chain.cheapest(limit)
    if found is None:
        return None
    marks: dict[Instr, Stretch] = {}
    for choice in found[1]:
        part = Stretch(_PRODUCTS if choice.spared else frozenset())
        marks |= dict.fromkeys((instr for stage in stages[choice.begin : choice.end] for instr in stage), part)
    return recomputed(graph, marks) if marks else graph


def _equal(graph: Graph, count: int) -> Graph:
    """Return the graph that drops all but the last of `count` stretches, which keep about the same number of bytes.

    A chain does not know the effect of fusion on each choice; stretches of one size are a more robust choice.
    """
    forward = forward_pass(graph)
    marks: dict[Instr, Stretch] = {}
    for stretch in _stretches(forward, _kept_bytes(graph, forward), count)[:-1]:
        marks |= dict.fromkeys(stretch, Stretch(frozenset()))
    return recomputed(graph, marks)


def stages_of(graph: Graph) -> list[list[Instr]]:
    """Cut the forward pass into stages."""
    forward = forward_pass(graph)
    return _stretches(forward, _kept_bytes(graph, forward), min(_STAGES, len(forward))) if forward else []


def chain_of(graph: Graph, stages: list[list[Instr]]) -> Chain:
    """Return the memory and operations of the stages, and the bytes that cross between them."""
    forward = [instr for stage in stages for instr in stage]
    weights = dict(zip(forward, _kept_bytes(graph, forward), strict=True))
    place = {instr: number for number, stage in enumerate(stages) for instr in stage}
    producer = graph.producers()
    last: dict[Instr, int] = {}
    for instr in forward:
        for var in instr.reads():
            maker = producer.get(var)
            while maker in place and only_moves(maker):  # a view takes no memory
                maker = producer.get(maker.reads()[0])
            if maker in place:
                last[maker] = max(last.get(maker, 0), place[instr])
    crossing = np.zeros((len(stages), len(stages)))
    for maker, stage in last.items():
        crossing[place[maker], stage] += sum(out.nbytes for out in maker.outputs)
    spare = [_spare(stage, weights, last, number) for number, stage in enumerate(stages)]
    return Chain(
        sizes=[sum(weights[instr] for instr in stage) for stage in stages],
        products=[sum(out.nbytes for one in stage if one.op in _PRODUCTS for out in one.outputs) for stage in stages],
        flops=[sum(map(flops_of, stage)) for stage in stages],
        other_flops=[_others(stage) for stage in stages],
        spare=[sum(map(flops_of, some)) for some in spare],
        other_spare=[_others(some) for some in spare],
        crossing=crossing,
    )


def _others(instrs: list[Instr]) -> int:
    return sum(flops_of(instr) for instr in instrs if instr.op not in _PRODUCTS)


def _spare(stage: list[Instr], weights: dict[Instr, int], last: dict[Instr, int], number: int) -> list[Instr]:
    """Return the instructions at the end of a stage that only compute values for later stages, which are kept."""
    found = []
    wanted: set[Var] = set()
    for instr in reversed(stage):
        kept = last.get(instr, 0) > number
        if wanted.intersection(instr.outputs) or (weights[instr] and not kept):
            wanted.update(instr.reads())
        else:
            found.append(instr)
    return found


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
    """Return for the position after each instruction the bytes that cross it."""
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
