"""The lowering of every op: one entry per op.

*Loops* become expressions in a loop nest: elementwise ops, reductions, and ops that read their operand at other
indices (pad, concat, gather, roll, ...). *Views* (ops with `indices`) only transform indices. Ops in `solid` have
separate code: matrix products, scatters, windows. The host computes ops without an entry, see `host`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glassgrad.compile.ir.graph import Instr, Operand, Var
from glassgrad.compile.llvm.loops.composite import FORWARDS
from glassgrad.compile.llvm.loops.gathers import GATHERS, both, in_memory
from glassgrad.compile.llvm.loops.routes import Route, axis_routes, spec_routes
from glassgrad.compile.plan.build_nest import LoopLowering, NestBuilder
from glassgrad.compile.plan.fusion import same_point
from glassgrad.compile.plan.indexing.indices import Extents, Index, Indices, source_indices
from glassgrad.compile.plan.nests import Expr
from glassgrad.compile.plan.view_chains import keeps_order
from glassgrad.ops.core import PRIMITIVES
from glassgrad.ops.places import Slice, spec_entries
from glassgrad.ops.views import broadcast_indices


def _at(operand: Operand, out: Indices) -> Indices:
    return broadcast_indices(out, operand.shape) if isinstance(operand, Var) else ()


def _astype(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    value = builder.read(instr.inputs[0], _at(instr.inputs[0], out))
    kind = builder.kind(instr.output.dtype)
    return value if value.kind == kind else builder.exprs.apply("cast", [value], kind, kind)


def _reduction(how: str) -> LoopLowering:
    return LoopLowering(reduces=True, how=how)


# --- ops that read their operand elsewhere ----------------------------------------------------------


def _copied_view() -> LoopLowering:
    """A view whose result must be contiguous: a loop that reads its source through the view."""

    def build(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
        source = instr.inputs[0]
        assert isinstance(source, Var)
        if keeps_order(instr) and builder.fusion.chain.in_order(source):
            # Contiguous memory stays contiguous: only the flat position matters, which every index expresses.
            return builder.read_in_order(source, instr.output, out)
        return builder.read(source, source_indices(instr, out, builder.group.extents))

    return LoopLowering(lambda instr, position, out, extents: source_indices(instr, out, extents), build=build)


def _concat(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    kind = builder.kind(instr.output.dtype)
    axis = instr.params["axis"]
    start, result = 0, None
    for part in instr.inputs:
        assert isinstance(part, Var)
        extent = part.shape[axis]
        if extent == 0:
            continue
        mask = builder.exprs.within(out[axis], start, start + extent)
        indices = [*out[:axis], out[axis] + -start, *out[axis + 1 :]]
        value = builder.exprs.cast(builder.read_at_computed(part, indices, mask), kind)
        result = value if result is None else builder.exprs.apply("where", [mask, value, result], kind)
        start += extent
    assert result is not None
    return result


def _roll(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """Each rolled axis is cut where it wraps, and one of two reads is selected."""
    source = instr.inputs[0]
    assert isinstance(source, Var)
    indices: list[Index | Expr] = list(out)
    for shift, axis in zip(instr.params["shift"], instr.params["axis"], strict=True):
        extent = source.shape[axis]
        current = indices[axis]
        position = current if isinstance(current, Expr) else builder.exprs.counter(current)
        moved = builder.exprs.apply("add", [position, builder.exprs.const(-shift % extent, "i64")], "i64")
        wrapped = builder.exprs.apply("subtract", [moved, builder.exprs.const(extent, "i64")], "i64")
        over = builder.exprs.apply("greater_equal", [moved, builder.exprs.const(extent, "i64")], "b1")
        indices[axis] = builder.exprs.apply("where", [over, wrapped, moved], "i64")
    return builder.read_at_computed(source, indices)


def _triangle(lower: bool) -> LoopLowering:
    def build(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
        kind = builder.kind(instr.output.dtype)
        value = builder.read(instr.inputs[0], out, kind)
        row = builder.exprs.counter(out[-2] + instr.params["diagonal"])
        column = builder.exprs.counter(out[-1])
        keep = builder.exprs.apply("less_equal" if lower else "greater_equal", [column, row], "b1")
        return builder.exprs.apply("where", [keep, value, builder.exprs.const(0, kind)], kind)

    return LoopLowering(same_point, build=build)


def _one_hot(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    index = builder.read(instr.inputs[0], out[:-1], "i64")
    same = builder.exprs.apply("equal", [index, builder.exprs.counter(out[-1])], "b1")
    return builder.exprs.cast(same, builder.kind(instr.output.dtype))


# --- gather -----------------------------------------------------------------------------------------


def _routed(
    builder: NestBuilder, routes: Iterable[Route], arrays: Sequence[Operand], out: Indices
) -> list[Index | Expr]:
    """Return the source indices of an element of the result."""
    return [
        route.affine(out)
        if route.array is None
        else _wrapped(builder, arrays[route.array], route.of_array(out), route.extent)
        for route in routes
    ]


def _wrapped(builder: NestBuilder, operand: Operand, indices: Indices, extent: int) -> Expr:
    """Interpret an index as NumPy does: negative ones count from the end."""
    return builder.exprs.apply("wrap", [builder.read(operand, indices, "i64")], "i64", extent)


def _getitem(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    source, *arrays = instr.inputs
    assert isinstance(source, Var)
    if not arrays:
        return builder.read(source, source_indices(instr, out, builder.group.extents))
    routes, _ = spec_routes(instr, arrays, source.shape)
    return builder.read_at_computed(source, _routed(builder, routes, arrays, out))


def _getitem_reads(instr: Instr, position: int, out: Indices, extents: Extents) -> Indices | None:
    source, *arrays = instr.inputs
    assert isinstance(source, Var)
    if not arrays:
        return source_indices(instr, out, extents)
    routes, _ = spec_routes(instr, arrays, source.shape)
    return next((route.of_array(out) for route in routes if route.array == position - 1), None)


def _take_along(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    source, index = instr.inputs
    assert isinstance(source, Var)
    return builder.read_at_computed(source, _routed(builder, axis_routes(instr, index, source.shape), [index], out))


def _full(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    kind = builder.kind(instr.output.dtype)
    if instr.inputs:
        return builder.read(instr.inputs[0], (), kind)
    return builder.exprs.const(instr.params.get("value", 0), kind)


def _arange(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    kind = builder.kind(instr.output.dtype)
    value = builder.exprs.cast(builder.exprs.counter(out[0]), kind)
    step = builder.exprs.const(instr.params.get("step", 1), kind)
    start = builder.exprs.const(instr.params.get("start", 0), kind)
    return builder.exprs.apply("add", [builder.exprs.apply("multiply", [value, step], kind), start], kind)


# --- windows and single places ----------------------------------------------------------------------


def _at_place(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """Whether an element is the one that the index of its row selects."""
    index = instr.inputs[-1]
    place = _wrapped(builder, index, _at(index, out), instr.output.shape[instr.params["axis"]])
    return builder.exprs.apply("equal", [place, builder.exprs.counter(out[instr.params["axis"]])], "b1")


def _put_one_along(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    kind = builder.kind(instr.output.dtype)
    value = builder.read(instr.inputs[0], _at(instr.inputs[0], out), kind)
    return builder.exprs.apply("where", [_at_place(builder, instr, out), value, builder.exprs.const(0, kind)], kind)


def _window(builder: NestBuilder, instr: Instr, out: Indices) -> tuple[Expr | None, list[Index | Expr]]:
    """Return whether an element is in the slice ``spec`` of the result, and its indices in the slice."""
    shape = instr.output.shape
    mask: Expr | None = None
    inside: list[Index | Expr] = []
    axis = 0
    for part in spec_entries(instr.params["spec"], shape):
        if part is None:
            inside.append(Index())
            continue
        index, extent = out[axis], shape[axis]
        axis += 1
        if type(part) is not Slice:
            mask = both(builder, mask, builder.exprs.within(index + -(int(part) % extent), 0, 1))
            continue
        start, stop, step = slice(*part).indices(extent)
        count = len(range(start, stop, step))
        if abs(step) == 1:
            place: Index | Expr = (index + -start) * step
            if (start, count) != (0, extent):
                mask = both(builder, mask, builder.exprs.within((index + -start) * step, 0, count))
        else:
            place, hit = _strided_place(builder, index + -start, step, count)
            mask = both(builder, mask, hit)
        inside.append(place)
    return mask, inside


def _strided_place(builder: NestBuilder, index: Index, step: int, count: int) -> tuple[Expr, Expr]:
    exprs = builder.exprs
    distance, wide = exprs.counter(index), exprs.const(step, "i64")
    place = exprs.apply("floor_divide", [distance, wide], "i64")
    exact = exprs.apply("equal", [exprs.apply("multiply", [place, wide], "i64"), distance], "b1")
    hit = exprs.apply("logical_and", [exact, exprs.apply("within", [place], "b1", (0, count))], "b1")
    return exprs.apply("where", [hit, place, exprs.const(0, "i64")], "i64"), hit


def _put_slice(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """The value inside the slice; around it zeros, or for `set_slice` the array."""
    value = instr.inputs[-1]
    assert isinstance(value, Var)
    kind = builder.kind(instr.output.dtype)
    mask, inside = _window(builder, instr, out)
    placed = builder.exprs.cast(builder.read_at_computed(value, inside, mask), kind)
    if mask is None:
        return placed
    around = builder.exprs.const(0, kind) if len(instr.inputs) == 1 else builder.read(instr.inputs[0], out, kind)
    return builder.exprs.apply("where", [mask, placed, around], kind)


# --- the table ---------------------------------------------------------------------------------------


LOOPS: dict[str, LoopLowering] = {
    **FORWARDS,
    "astype": LoopLowering(same_point, build=_astype),
    "sum": _reduction("add"),
    "max": _reduction("maximum"),
    "min": _reduction("minimum"),
    "prod": _reduction("multiply"),
    "any": _reduction("or"),
    "all": _reduction("and"),
    "argmax": _reduction("argmax"),
    "argmin": _reduction("argmin"),
    "concat": LoopLowering(in_memory, build=_concat),
    "roll": LoopLowering(in_memory, build=_roll),
    "tril": _triangle(lower=True),
    "triu": _triangle(lower=False),
    "at_place": LoopLowering(same_point, build=_at_place),
    "put_one_along": LoopLowering(same_point, build=_put_one_along),
    "put_slice": LoopLowering(in_memory, build=_put_slice),
    "set_slice": LoopLowering(lambda instr, position, out, extents: out if position == 0 else None, build=_put_slice),
    **GATHERS,
    "one_hot": LoopLowering(lambda instr, position, out, extents: out[:-1], build=_one_hot),
    "getitem": LoopLowering(_getitem_reads, build=_getitem),
    "take_along_axis": LoopLowering(
        lambda instr, position, out, extents: same_point(instr, position, out, extents) if position == 1 else None,
        build=_take_along,
    ),
    **{op: _copied_view() for op, prim in PRIMITIVES.items() if prim.indices is not None and op != "getitem"},
    "full": LoopLowering(same_point, build=_full),
    "arange": LoopLowering(same_point, build=_arange),
}
