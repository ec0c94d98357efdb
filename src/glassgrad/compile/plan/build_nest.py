"""Turn a fused group into a loop nest: expressions, the order of loops, and axes that can be merged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassgrad.compile.ir.graph import DType, Instr, Operand, Var
from glassgrad.compile.plan.fusion import Fusion, Group, LoopOp, reduction_indices
from glassgrad.compile.plan.indexing.indices import Axis, Index, Indices, NeedsSplit, flatten, reshaped, row_strides
from glassgrad.compile.plan.nests import Access, Expr, Expressions, Nest, Reduction, Store, operands

KindOf = Callable[[DType], str | None]


@dataclass(frozen=True)
class LoopLowering(LoopOp):
    """The lowering of an op to an expression: `build(builder, instr, out)` returns its value at the indices `out`.

    For a reduction, `how` names the accumulating op.
    """

    build: Callable[[NestBuilder, Instr, Indices], Expr] | None = None
    how: str = ""


class NestBuilder:
    """Builds the expressions of one group; lowerings call its methods.

    Attributes:
        exprs: makes expressions.
    """

    def __init__(
        self,
        fusion: Fusion,
        group: Group,
        table: Mapping[str, LoopLowering],
        kind_of: KindOf,
        inlined: set[Var],
        costs: Mapping[str, int],
    ) -> None:
        self.fusion = fusion
        self.group = group
        self.table = table
        self.kind_of = kind_of
        self.inlined = inlined
        self.exprs = Expressions(costs)
        self._values: dict[tuple[Var, Indices], Expr] = {}

    def kind(self, dtype: DType) -> str:
        """Return the element kind of a dtype that has one."""
        kind = self.kind_of(dtype)
        assert kind is not None
        return kind

    def read(self, operand: Operand, indices: Indices, kind: str | None = None) -> Expr:
        """Return the value of an operand at indices, as the given element kind."""
        if not isinstance(operand, Var):
            number: Any = operand  # a Symbol would be a Var by now
            return self.exprs.const(number, kind or _kind_of_number(number))
        chain = self.fusion.chain
        base = chain.base(operand)
        if base in self.group.indices or base in self.inlined:
            value = self._value(*chain.indices(operand, indices, self.group.extents))
        else:
            value = self.exprs.load(*chain.flat(operand, indices, self.group.extents), self.kind(base.dtype))
        return value if kind is None else self.exprs.cast(value, kind)

    def read_at_computed(self, operand: Var, indices: Sequence[Index | Expr], mask: Expr | None = None) -> Expr:
        """Load an operand from memory at indices some of which are computed."""
        strides = row_strides(operand.shape)
        flat = Index()
        computed = []
        for index, stride in zip(indices, strides, strict=True):
            if isinstance(index, Index):
                flat += index * stride
            else:
                computed.append((index, stride))
        return self.exprs.load(self.root(operand), flat, self.kind(operand.dtype), computed, mask)

    def read_in_order(self, source: Var, result: Var, indices: Indices) -> Expr:
        """Read a contiguous source at the position of an element of its reshaped `result`."""
        base = self.fusion.base(source)
        if base in self.group.indices or base in self.inlined:
            at = reshaped(indices, result.shape, source.shape, self.group.extents)
            return self._value(*self.fusion.chain.indices(source, at, self.group.extents))
        return self.exprs.load(base, flatten(indices, row_strides(result.shape)), self.kind(base.dtype))

    def root(self, operand: Var) -> Var:
        """Return the Var whose memory holds a C-contiguous operand."""
        assert self.fusion.chain.in_order(operand)
        return self.fusion.base(operand)

    def _value(self, var: Var, indices: Indices) -> Expr:
        key = (var, indices)
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = self._compute(var, indices)
        return known

    def _compute(self, var: Var, indices: Indices) -> Expr:
        instr = self.fusion.producer.get(var)
        mine = self.group.indices.get(var)
        if instr is not None and (var in self.inlined or mine == indices):
            lowering = self.table[instr.op]
            if lowering.reduces:
                return self._reduce(instr, lowering, indices)
            assert lowering.build is not None
            return lowering.build(self, instr, indices)
        raise AssertionError(f"{var} is read at a place where the nest does not compute it")

    def _reduce(self, instr: Instr, lowering: LoopLowering, out: Indices) -> Expr:
        source = reduction_indices(instr, out, self.group.reduced[instr.output])
        kind = self.kind(instr.output.dtype)
        wanted = None if lowering.how.startswith("arg") else kind
        value = self.read(instr.inputs[0], source, wanted)
        position = None
        if lowering.how.startswith("arg"):
            shape = instr.reads()[0].shape
            axes = instr.params["axis"]
            inside = [source[axis] for axis in axes]
            position = self.exprs.counter(flatten(tuple(inside), row_strides([shape[axis] for axis in axes])))
        reduction = Reduction(lowering.how, value, kind, position)
        return self.exprs.reduced(reduction, self.group.outer)

    def nest(self, stored: Sequence[Var]) -> Nest:
        """Return the nest that stores the given Vars."""
        stores = []
        for var in stored:
            indices = self.group.indices[var]
            access = Access(var, flatten(indices, row_strides(var.shape)))
            stores.append(Store(self._value(var, indices), access))
        nest = Nest(dict(self.group.extents), [], list(self.group.inner), stores, [])
        nest.outer = [axis for axis in nest.extents if axis not in self.group.inner]
        nest.ops = [instr.op for instr in self.group.members]
        nest.where = [instr.where for instr in self.group.members]
        return nest


def _kind_of_number(value: float) -> str:
    if isinstance(value, bool):
        return "b1"
    return "i64" if isinstance(value, int) else "f64"


def build_nest(
    fusion: Fusion,
    group: Group,
    stored: Sequence[Var],
    table: Mapping[str, LoopLowering],
    kind_of: KindOf,
    inlined: set[Var],
    costs: Mapping[str, int],
) -> Nest:
    """Return the loop nest of a group, with loops ordered for memory access and merged where possible."""
    while True:
        try:
            builder = NestBuilder(fusion, group, table, kind_of, inlined, costs)
            nest = builder.nest(stored)
            break
        except NeedsSplit as request:
            group.split(request.axis, request.inner)
    if group.inner and not group.has_reduction and not any(_is_outer_value(store, group) for store in nest.stores):
        # Inner axes are only needed if some stored value does not vary along them; hoisting handles other cases.
        nest.outer, nest.inner = [*nest.outer, *nest.inner], []
    order_loops(nest)
    nest = merge_axes(nest, builder.exprs)
    nest.reductions = collect_reductions(nest)
    return nest


def _is_outer_value(store: Store, group: Group) -> bool:
    return not store.access.index.axes & group.inner


def collect_reductions(nest: Nest) -> list[Reduction]:
    """Return the reductions that the stores need, in order of stage."""
    found = [expr.data for expr in nest.expressions() if expr.op == "reduced"]
    return sorted(found, key=lambda reduction: reduction.value.stage)


# --- the order of loops ---------------------------------------------------------------------------


def order_loops(nest: Nest) -> None:
    """Sort the outer and the inner axes so that most accesses traverse memory in order."""
    votes: Counter[Axis] = Counter()
    accesses = list(nest.accesses())
    for access, is_store in accesses:
        for axis, stride in access.index.terms:
            if stride == 1:
                votes[axis] += (3 if is_store else 2) * len(access.index.terms)
    fastest = max(nest.extents, key=lambda axis: (votes[axis], axis), default=None)
    strides: dict[Axis, int] = {}
    # Accesses that agree on the fastest axis decide first, those with the most axes before others.
    ranked = sorted(accesses, key=lambda pair: (_stride(pair[0], fastest) != 1, -len(pair[0].index.terms)))
    for access, _ in ranked:
        for axis, stride in access.index.terms:
            strides.setdefault(axis, abs(stride))

    def slowest_first(axis: Axis) -> tuple[int, bool, Axis]:
        return -strides.get(axis, 1 << 60), axis == fastest, axis

    nest.outer.sort(key=slowest_first)
    nest.inner.sort(key=slowest_first)


def _stride(access: Access, axis: Axis | None) -> int:
    return next((stride for other, stride in access.index.terms if other == axis), 0)


_LONG_ROW = 16  # elements


def vector_axis(nest: Nest) -> Axis | None:
    """Return the axis along which memory is contiguous: the last outer or the last inner one.

    Each access counts as often as it is executed, so one read per channel has little weight beside reads of images. For
    a short row all accesses count equally, because it spans few cache lines in any order.
    """
    candidates = [axes[-1] for axes in (nest.outer, nest.inner) if axes]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    votes: Counter[Axis] = Counter()
    long = nest.extents[nest.inner[-1]] >= _LONG_ROW
    for access, is_store in nest.accesses():
        turns = math.prod(nest.extents[axis] for axis in access.index.axes) if long else 1
        for axis, stride in access.index.terms:
            if stride == 1:
                votes[axis] += turns * (3 if is_store else 2)
    return max(candidates, key=lambda axis: (votes[axis], axis == nest.inner[-1]))


# --- merged axes ---------------------------------------------------------------------------------


def merge_axes(nest: Nest, exprs: Expressions) -> Nest:
    """Merge neighbouring loops that every index traverses like one longer loop."""
    strides = [dict(index.terms) for index in _all_indices(nest)]
    dropped: dict[Axis, Index] = {}
    for axes in (nest.outer, nest.inner):
        for position in range(len(axes) - 2, -1, -1):
            slow, fast = axes[position], axes[position + 1]
            extent = nest.extents[fast]
            if all(steps.get(slow, 0) == steps.get(fast, 0) * extent for steps in strides):
                nest.extents[fast] = extent * nest.extents.pop(slow)
                del axes[position]
                dropped[slow] = Index()
    return _rewrite(nest, exprs, dropped) if dropped else nest


def _all_indices(nest: Nest) -> list[Index]:
    found = {access.index for access, _ in nest.accesses()}
    found |= {expr.data for expr in nest.expressions() if expr.op == "counter"}
    return list(found)


def _rewrite(nest: Nest, exprs: Expressions, drop: Mapping[Axis, Index]) -> Nest:
    """Rebuild all expressions after `drop`; the remaining axis takes over the merged range."""
    outer = frozenset(nest.outer)
    new: dict[Expr, Expr] = {}

    def access(old: Access) -> Access:
        computed = tuple((new[expr], stride) for expr, stride in old.computed)
        return Access(old.root, old.index.substituted(drop), computed, None if old.mask is None else new[old.mask])

    for expr in nest.expressions():
        match expr.op:
            case "const":
                new[expr] = expr
            case "counter":
                new[expr] = exprs.counter(expr.data.substituted(drop))
            case "load":
                place = access(expr.data)
                new[expr] = exprs.load(place.root, place.index, expr.kind, place.computed, place.mask)
            case "reduced":
                old = expr.data
                position = None if old.position is None else new[old.position]
                new[expr] = exprs.reduced(Reduction(old.how, new[old.value], old.kind, position), outer)
            case _:
                new[expr] = exprs.apply(expr.op, [new[arg] for arg in expr.args], expr.kind, expr.data)
    stores = [Store(new[store.value], access(store.access)) for store in nest.stores]
    return Nest(nest.extents, nest.outer, nest.inner, stores, [], nest.name, nest.ops, nest.where)


__all__ = ["LoopLowering", "NestBuilder", "build_nest", "collect_reductions", "operands", "vector_axis"]
