"""`memory`: the memory that is saved for the backward pass, by the user's line, and graphs that grow over steps."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from glassgrad.base.provenance import Place
from glassgrad.compile.report import count
from glassgrad.doctor.bisection.torch_run import is_torch_run
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reports.wording import lines
from glassgrad.doctor.restoring.step_aside import StepAside, arrays_in, eagerly, written_as
from glassgrad.engine.node import Node
from glassgrad.engine.saved_tensors import Watcher
from glassgrad.engine.tape import Observer
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.ops.views import memory_owner

_SHOWN = 20


@dataclass(frozen=True)
class Kept:
    """The values that the ops of one line save for the backward pass.

    Attributes:
        place: the user's line; `place.variable` is the name of the result there.
        op: the op that saved it.
        bytes: size of the memory, without what earlier ops already save.
        arrays: the number of arrays.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.ones(4, 8, requires_grad=True)
        >>> found = gg.doctor.memory(lambda: (gg.ones(2, 4) @ w).tanh().sum().backward(), report=False)
        >>> found.rows[0].op, found.rows[0].bytes
        ('tanh', 64)
    """

    place: Place
    op: str
    bytes: int
    arrays: int

    @property
    def variable(self) -> str | None:
        """The name that the result is assigned to; None if the line assigns none."""
        return self.place.variable


@dataclass(frozen=True)
class Memory:
    """The memory that a step saves for its backward pass, at its peak.

    Attributes:
        rows: by line, variable and op, the largest first.
        total: bytes, with the memory of each array counted once, without weights and data.
        held: bytes that are saved but would be alive anyway: weights, data.
        nodes: recorded ops that were alive then.
        compiled: whether the step is compiled; it was run eagerly for this measurement.
        planned: bytes between the kernels of its latest program; None if there is none.
        steps: the number of steps run.
        growth: the number of recorded ops still alive one step later, for each step but the first.
        findings: the warning about a graph that grows.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.ones(4, 8, requires_grad=True)
        >>> found = gg.doctor.memory(lambda: (gg.ones(2, 4) @ w).tanh().sum().backward(), report=False)
        >>> [(row.op, row.bytes) for row in found.rows]
        [('tanh', 64), ('matmul', 32)]
    """

    rows: tuple[Kept, ...]
    total: int
    held: int
    nodes: int
    compiled: bool = False
    planned: int | None = None
    steps: int = 1
    growth: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_text(self))


def memory(
    step: Callable[..., Any], *args: Any, steps: int = 1, report: bool = True, file: TextIO | None = None
) -> Memory:
    """Measure the memory saved for the backward pass of a step, and whether the graph grows from step to step.

    The step runs, and everything it can reach is restored: weights, gradients, the optimizer's state, random state,
    variables. A compiled step runs eagerly, without its program.

    Args:
        step: a function that trains or only computes a loss; it may be compiled, or PyTorch's. In a PyTorch step,
            growth is searched in its global and enclosing variables.
        args: its arguments.
        steps: with two or more, ops of one step that are still alive after the next one count as a growing graph.
        report: print the results, to `file` or standard output.

    Example:
        >>> import glassgrad as gg
        >>> x, w = gg.ones(100, 50), gg.ones(50, 20, requires_grad=True)
        >>> def step():
        ...     hidden = (x @ w).tanh()
        ...     hidden.sum().backward()
        >>> found = memory(step, report=False)
        >>> found.total, [(row.op, row.bytes) for row in found.rows], w.grad is None
        (8000, [('tanh', 8000)], True)
    """
    measure = _of_torch if is_torch_run(step, args) else _of_ours
    found = measure(step, args, max(1, steps))
    if report:
        print(found, file=file or sys.stdout)
    return found


def _of_ours(step: Callable[..., Any], args: Sequence[Any], steps: int) -> Memory:
    aside = StepAside(step, args)
    watch = _Watch(aside)
    generations: list[list[weakref.ref[Node]]] = []
    growth: list[int] = []
    findings: tuple[Finding, ...] = ()
    try:
        for _ in range(steps):
            with watch, eagerly(watch.observer):
                result = step(*args)
            if not watch.measured:
                watch.measure()
            del result
            gc.collect()
            if generations:
                growth.append(len(_alive(generations[-1])))
            generations.append(watch.take())
        if growth and all(growth):
            findings = (_growing(_alive([ref for one in generations for ref in one]), aside, growth),)
    finally:
        aside.restore()
    compiled, planned = written_as(step) is not step, _planned(step)
    return Memory(*watch.most, compiled, planned, steps, tuple(growth), findings)


def _of_torch(step: Callable[..., Any], args: Sequence[Any], steps: int) -> Memory:
    from glassgrad.doctor.memory_use.torch_memory import kept_by

    (rows, held, tensors), variables = kept_by(step, args, steps)
    kept = tuple(sorted((Kept(*row) for row in rows), key=lambda row: -row.bytes))
    growing, finding = variables.growth(), variables.finding()
    growth = () if growing is None else growing[1]
    findings = () if finding is None else (finding,)
    return Memory(kept, sum(row.bytes for row in kept), held, tensors, steps=steps, growth=growth, findings=findings)


def _planned(step: Any) -> int | None:
    if written_as(step) is step or not getattr(step, "traces", 0):
        return None
    return int(step.stats.peak_bytes)


def _alive(nodes: Iterable[weakref.ref[Node]]) -> list[Node]:
    return [node for ref in nodes if (node := ref()) is not None]


class _Watch(Watcher):
    """Records every node, and measures whenever a backward pass begins."""

    def __init__(self, aside: StepAside) -> None:
        self.nodes: list[weakref.ref[Node]] = []
        self.observer = _Begins(self)
        self.most: tuple[tuple[Kept, ...], int, int, int] = ((), 0, 0, 0)
        self.measured = False
        arrays = [*(tensor.array for tensor, _ in aside.found.tensors.values()), *(a for _, a in aside.found.arrays)]
        self._known = {id(memory_owner(array)) for array in arrays}
        self._keep = arrays  # an id belongs to one array only while the array lives

    def note(self, node: Node) -> None:
        self.nodes.append(weakref.ref(node))

    def take(self) -> list[weakref.ref[Node]]:
        """Return the nodes of the step that ended, and start a new list."""
        taken, self.nodes, self.measured = self.nodes, [], False
        self.observer.latest = 0
        return taken

    def measure(self) -> None:
        """Sum up the live memory; keep the result if it is the largest so far."""
        self.measured = True
        nodes = _alive(self.nodes)
        anyway = self._known | {
            id(memory_owner(parent.array)) for node in nodes for parent in node.parents if isinstance(parent, Tensor)
        }
        counted: set[int] = set()
        rows: dict[tuple[str, str | None, str], list[Any]] = {}
        held = 0
        for node in nodes:
            for array in arrays_in(node.saved if type(node.saved) is tuple else ()):
                owner = memory_owner(array)
                if id(owner) in counted:
                    continue
                counted.add(id(owner))
                if id(owner) in anyway:
                    held += owner.nbytes
                    continue
                place = node.place
                row = rows.setdefault((str(place), place.variable, node.name), [place, node.name, 0, 0])
                row[2] += owner.nbytes
                row[3] += 1
        kept = tuple(sorted((Kept(*row) for row in rows.values()), key=lambda row: -row.bytes))
        total = sum(row.bytes for row in kept)
        if not self.most[3] or total > self.most[1]:
            self.most = kept, total, held, len(nodes)


class _Begins(Observer):
    """Makes the watch measure before the first rule of each walk; a walk visits the youngest node first."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch
        self.latest = 0

    def rule(self, node: Node, g: Array, saved: tuple[Any, ...], position: int | None) -> None:
        if position is None and node.seq >= self.latest:
            self._watch.measure()
        self.latest = node.seq


# --- graphs that grow -----------------------------------------------------------------------------


def _growing(alive: list[Node], aside: StepAside, growth: list[int]) -> Finding:
    """Name the line of the youngest op that no other live op uses, and the variable that holds its result."""
    inner = {id(parent) for node in alive for parent in node.parents}
    tops = [node for node in alive if id(node) not in inner]
    top = max(tops, key=lambda node: node.seq)
    place = top.place
    holder = _holder(top, aside)
    kept = f", by {holder}" if holder else ""
    inside = holder is not None and holder == place.variable
    others = [text for text in place.operands if text and text != place.variable]
    if inside and top.name == "add" and place.variable in place.operands and len(others) == 1:
        remedy = f"{place.variable} += {others[0] if others[0].isidentifier() else f'({others[0]})'}.item()"
    else:
        remedy = f"{place.variable or 'value'}.detach()  # or .item(), where it is stored"
    return Finding(
        "graph grows",
        "warning",
        f"the result of {top.name} at {place.quoted()} is kept from step to step{kept}, and with it the ops "
        f"that made it: {growth[-1]:,} of the step before the last are alive",
        "Keep the number, not the tensor with its history.",
        where=str(place),
        value=float(growth[-1]),
        threshold=0.0,
        remedy=remedy,
    )


def _holder(top: Node, aside: StepAside) -> str | None:
    """Return the variable, attribute or container that holds the result of an op, in the user's notation."""
    for change in aside.places.changes():
        if any(tensor.node is top for tensor in _tensors(change.now)):
            return change.path
    for tensor, path in aside.found.tensors.values():
        if tensor.node is top:
            return path
    return None


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from _tensors(part)


# --- as text --------------------------------------------------------------------------------------


def _text(found: Memory) -> Iterator[str]:
    run = f"{found.steps} steps" if found.steps > 1 else "one step"
    yield f"memory       {count(found.total)}B kept for the backward pass by {found.nodes:,} ops   ({run})"
    if found.held:
        yield f"             {count(found.held)}B more are saved but alive anyway: weights, data"
    if found.compiled:
        planned = "" if found.planned is None else f"; its program has {count(found.planned)}B between its kernels"
        yield f"             the step is compiled and was run eagerly here{planned}"
    for row in found.rows[:_SHOWN]:
        share = row.bytes / found.total
        many = f"{row.arrays} arrays" if row.arrays > 1 else ""
        name = f"{row.variable}: {row.op}" if row.variable else row.op
        where = f"{row.place}  {row.place.source}".rstrip()
        yield f"  {count(row.bytes) + 'B':>8} {share:>5.0%}  {name:<24} {many:<10} {where}"
    if len(found.rows) > _SHOWN:
        rest = found.rows[_SHOWN:]
        yield f"  {count(sum(row.bytes for row in rest)) + 'B':>8}        in {len(rest)} more lines"
    if found.steps > 1 or found.findings:
        yield from lines(found.findings)


__all__ = ["Kept", "Memory", "memory"]
