"""Loop nests: the computation of one fused group as expressions over loop counters.

This is the form between fusion and machine code. A `Nest` has outer axes and inner axes; its expressions are a DAG
without duplicates; its effects are stores. The vector axis, the values kept between two passes over the inner axes,
and the division of work among threads are decided on this form.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.plan.indexing.indices import Axis, Index


@dataclass(frozen=True, eq=False)
class Access:
    """A place in the memory of `root`: a flat index, plus counters that are themselves computed."""

    root: Var
    index: Index
    computed: tuple[tuple[Expr, int], ...] = ()
    mask: Expr | None = None


@dataclass(eq=False, slots=True)
class Expr:
    """One value at one point of the nest.

    Attributes:
        op: ``const``, ``counter``, ``load``, ``reduced``, ``cast``, or the name of an elementwise op.
        args: operands.
        kind: element kind (f32, i64, b1, ...).
        data: the number of a const, the `Index` of a counter, the `Access` of a load, the `Reduction` of a
            reduced value, the params of an op.
        axes: the loop counters it depends on.
        stage: the number of consecutive reductions that must be finished before it can be computed.
        cost: roughly the number of simple instructions to compute it from memory.
    """

    op: str
    args: tuple[Expr, ...]
    kind: str
    data: Any
    axes: frozenset[Axis]
    stage: int
    cost: int


@dataclass(eq=False, slots=True)
class Reduction:
    """`how` (add, maximum, argmax, ...) over the inner axes of a value, in a pass of its stage.

    `position` is the part of the chosen index that an argmax returns.
    """

    how: str
    value: Expr
    kind: str
    position: Expr | None = None


@dataclass(eq=False, slots=True)
class Store:
    """A value and its target."""

    value: Expr
    access: Access


@dataclass(eq=False)
class Nest:
    """One loop nest.

    Attributes:
        extents: extent of every axis.
        outer, inner: the axes in loop order, slowest first.
        stores: the effects.
        reductions: all reductions, in order of stage.
        name: the ops in it, for explain().
    """

    extents: dict[Axis, int]
    outer: list[Axis]
    inner: list[Axis]
    stores: list[Store]
    reductions: list[Reduction]
    name: str = ""
    ops: list[str] = field(default_factory=list)
    where: list[object] = field(default_factory=list)
    _known: list[Expr] | None = None

    @property
    def points(self) -> int:
        """Total number of iterations of the innermost loop."""
        return math.prod(self.extents[axis] for axis in (*self.outer, *self.inner))

    def expressions(self) -> list[Expr]:
        """Every expression once, operands before their users."""
        if self._known is not None:
            return self._known
        seen: dict[Expr, None] = {}
        for root in [store.value for store in self.stores]:
            _visit(root, seen)
        for store in self.stores:
            for expr, _ in store.access.computed:
                _visit(expr, seen)
            if store.access.mask is not None:
                _visit(store.access.mask, seen)
        self._known = list(seen)
        return self._known

    def accesses(self) -> Iterable[tuple[Access, bool]]:
        """Iterate over (access, is it a store)."""
        for expr in self.expressions():
            if expr.op == "load":
                yield expr.data, False
        for store in self.stores:
            yield store.access, True


def operands(expr: Expr) -> list[Expr]:
    """Return all operands of an expression, including those inside its access or reduction."""
    found = list(expr.args)
    if expr.op == "load":
        found += [computed for computed, _ in expr.data.computed]
        if expr.data.mask is not None:
            found.append(expr.data.mask)
    elif expr.op == "reduced":
        found.append(expr.data.value)
        if expr.data.position is not None:
            found.append(expr.data.position)
    return found


def _visit(root: Expr, seen: dict[Expr, None]) -> None:
    stack = [(root, False)]
    while stack:
        expr, finished = stack.pop()
        if expr in seen:
            continue
        if finished:
            seen[expr] = None
            continue
        stack.append((expr, True))
        stack += [(part, False) for part in operands(expr) if part not in seen]


class Expressions:
    """Makes expressions; equal ones are shared."""

    def __init__(self, costs: Mapping[str, int]) -> None:
        self.costs = costs
        self._known: dict[Hashable, Expr] = {}

    def _make(
        self, key: Hashable, op: str, args: tuple[Expr, ...], kind: str, data: Any, axes: frozenset[Axis], cost: int
    ) -> Expr:
        known = self._known.get(key)
        if known is None:
            stage = max((arg.stage for arg in args), default=0)
            total = cost + sum(arg.cost for arg in args)
            known = self._known[key] = Expr(op, args, kind, data, axes, stage, total)
        return known

    def const(self, value: float, kind: str) -> Expr:
        """A number."""
        return self._make(("const", repr(value), kind), "const", (), kind, value, frozenset(), 0)

    def counter(self, index: Index) -> Expr:
        """An index as an int64 value."""
        if not index.terms:
            return self.const(index.offset, "i64")
        return self._make(("counter", index), "counter", (), "i64", index, index.axes, 1)

    def load(
        self, root: Var, index: Index, kind: str, computed: Sequence[tuple[Expr, int]] = (), mask: Expr | None = None
    ) -> Expr:
        """The value in memory at a place; 0 where the mask is false."""
        args = [expr for expr, _ in computed] + ([] if mask is None else [mask])
        axes = index.axes.union(*(arg.axes for arg in args))
        key = ("load", root, index, tuple((id(expr), step) for expr, step in computed), id(mask))
        known = self._known.get(key)
        if known is None:
            stage = max((arg.stage for arg in args), default=0)
            access = Access(root, index, tuple(computed), mask)
            known = self._known[key] = Expr("load", (), kind, access, axes, stage, 2 + sum(a.cost for a in args))
        return known

    def apply(self, op: str, args: Sequence[Expr], kind: str, data: Any = None) -> Expr:
        """An elementwise op."""
        axes = frozenset[Axis]().union(*(arg.axes for arg in args))
        key = (op, tuple(id(arg) for arg in args), kind, repr(data))
        return self._make(key, op, tuple(args), kind, data, axes, self.costs.get(op, 1))

    def cast(self, value: Expr, kind: str) -> Expr:
        """The same number in another element kind."""
        if value.kind == kind:
            return value
        if value.op == "const":
            return self.const(value.data, kind)
        return self.apply("cast", (value,), kind, kind)

    def within(self, index: Index, low: int, high: int) -> Expr:
        """Whether low <= index < high."""
        return self.apply("within", (self.counter(index),), "b1", (low, high))

    def reduced(self, reduction: Reduction, outer: frozenset[Axis]) -> Expr:
        """The result of a reduction."""
        key = ("reduced", reduction.how, id(reduction.value), id(reduction.position), reduction.kind)
        known = self._known.get(key)
        if known is None:
            axes = reduction.value.axes & outer
            stage = reduction.value.stage + 1
            known = self._known[key] = Expr("reduced", (), reduction.kind, reduction, axes, stage, 0)
        return known
