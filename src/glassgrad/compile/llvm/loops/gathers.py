"""Ops whose parameters determine the indices that they read: diagonals, strides, windows over images."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from glassgrad.compile.ir.graph import Instr, Operand, Var
from glassgrad.compile.llvm.loops.scalar import identity_of
from glassgrad.compile.llvm.module.ir import is_float
from glassgrad.compile.plan.build_nest import LoopLowering, NestBuilder
from glassgrad.compile.plan.indexing.indices import Extents, Index, Indices, flatten, reshaped
from glassgrad.compile.plan.nests import Expr
from glassgrad.ops.kernels.windows import out_size


def in_memory(instr: Instr, position: int, out: Indices, extents: Extents) -> Indices | None:
    """Require the operand in memory, because it is read at indices other than the computed one."""
    return None


def both(builder: NestBuilder, a: Expr | None, b: Expr) -> Expr:
    """Return the conjunction of two masks."""
    return b if a is None else builder.exprs.apply("logical_and", [a, b], "b1")


def _array(operand: Operand) -> Var:
    assert isinstance(operand, Var)
    return operand


def _inside(builder: NestBuilder, index: Index, extent: int) -> Expr | None:
    """Return the condition that an index is inside an axis; None if it always is."""
    ends = [step * (builder.group.extents[axis] - 1) for axis, step in index.terms]
    low, high = (index.offset + sum(pick(0, end) for end in ends) for pick in (min, max))
    return None if 0 <= low <= high < extent else builder.exprs.within(index, 0, extent)


def bordered(builder: NestBuilder, operand: Operand, place: Sequence[Index], outside: float, kind: str) -> Expr:
    """Return an element of an array, or `outside` beyond its border."""
    source = _array(operand)
    mask = _within(builder, source, place)
    value = builder.exprs.cast(builder.read_at_computed(source, place, mask), kind)
    return (
        value if mask is None else builder.exprs.apply("where", [mask, value, builder.exprs.const(outside, kind)], kind)
    )


def _within(builder: NestBuilder, source: Var, place: Sequence[Index]) -> Expr | None:
    """Return the condition that a place is inside an array; None if it always is."""
    mask: Expr | None = None
    for index, extent in zip(place, source.shape, strict=True):
        inside = _inside(builder, index, extent)
        mask = mask if inside is None else both(builder, mask, inside)
    return mask


# --- matrices and strides -----------------------------------------------------------------------------


def _as_strided(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    source = _array(instr.inputs[0])
    place = flatten(out, instr.params["stride"]) + instr.params["offset"]
    return builder.exprs.load(builder.root(source), place, builder.kind(source.dtype))


def _put_diagonal(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """The value where the column is `offset` after the row; the index is then always inside the value."""
    offset, rows, columns = (instr.params[name] for name in ("offset", "axis1", "axis2"))
    rest = [index for axis, index in enumerate(out) if axis not in {rows, columns}]
    mask = builder.exprs.within(out[columns] + out[rows] * -1 + -offset, 0, 1)
    value = builder.read_at_computed(_array(instr.inputs[0]), [*rest, out[rows] + min(offset, 0)], mask)
    return builder.exprs.apply("where", [mask, value, builder.exprs.const(0, value.kind)], value.kind)


def _mirror(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    source, (*rest, row, column) = _array(instr.inputs[0]), out
    given = ("less_equal" if instr.params["lower"] else "greater_equal", [column, row])
    mask = builder.exprs.apply(given[0], [builder.exprs.counter(index) for index in given[1]], "b1")
    pair = [builder.read_at_computed(source, [*rest, *places]) for places in ((row, column), (column, row))]
    return builder.exprs.apply("where", [mask, *pair], pair[0].kind)


def _pad(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    place = [index + -before for index, (before, _) in zip(out, instr.params["widths"], strict=True)]
    return bordered(builder, instr.inputs[0], place, instr.params.get("value", 0), builder.kind(instr.output.dtype))


# --- windows ------------------------------------------------------------------------------------------


def window_counts(instr: Instr, size: Sequence[int]) -> list[int]:
    """Return the number of windows along both axes of an image."""
    p = instr.params
    return [
        out_size(extent, p["kernel"][axis], p["stride"][axis], p["padding"][axis], p["dilation"][axis], p["ceil"])
        for axis, extent in enumerate(size)
    ]


def _of_window(instr: Instr, windows: Sequence[Index], tap: Sequence[Any]) -> list[Index]:
    """Return the position in the image of the element `tap` of a window; it may be outside of the image."""
    p = instr.params
    return [
        windows[axis] * p["stride"][axis] + tap[axis] * p["dilation"][axis] + -p["padding"][axis][0] for axis in (0, 1)
    ]


def _taps(instr: Instr, out: Indices) -> Iterator[list[Index]]:
    """Iterate over the positions of the elements of a window."""
    rows, columns = instr.params["kernel"]
    for tap in itertools.product(range(rows), range(columns)):
        yield [*out[:-2], *_of_window(instr, out[-2:], tap)]


def _pool(how: str) -> LoopLowering:
    def build(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
        kind = builder.kind(instr.output.dtype)
        outside = 0 if how == "add" else identity_of("maximum", kind)
        values = [bordered(builder, instr.inputs[0], place, outside, kind) for place in _taps(instr, out)]
        return functools.reduce(lambda total, value: builder.exprs.apply(how, [total, value], kind), values)

    return LoopLowering(in_memory, build=build)


def _columns(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """Every window of an image as a column: the rows are (channel, position in the window)."""
    p, source, kind = instr.params, _array(instr.inputs[0]), builder.kind(instr.output.dtype)
    counts = window_counts(instr, source.shape[-2:])
    parts = (*source.shape[:2], *p["kernel"], *counts)
    image, channel, *places = reshaped(out, instr.output.shape, parts, builder.group.extents)
    return bordered(builder, source, [image, channel, *_of_window(instr, places[2:], places[:2])], 0, kind)


def _winner(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
    """Select by the first largest element of a window: another image's element there, or the position."""
    *others, x, y = instr.inputs
    kind, of_x = builder.kind(instr.output.dtype), builder.kind(_array(x).dtype)
    largest = builder.read(y, out, of_x)
    chosen = builder.exprs.const(0, kind)
    for place in reversed(list(_taps(instr, out))):
        value = bordered(builder, x, place, identity_of("maximum", of_x), of_x)
        wins = builder.exprs.apply("equal", [value, largest], "b1")
        if is_float(of_x):
            wins = builder.exprs.apply("logical_or", [wins, builder.exprs.apply("isnan", [value], "b1")], "b1")
        inside = _within(builder, _array(x), place)
        wins = wins if inside is None else both(builder, inside, wins)  # the border may equal the largest
        if others:
            found = bordered(builder, others[0], place, 0, kind)
        else:
            found = builder.exprs.counter(flatten(tuple(place[-2:]), (_array(x).shape[-1], 1)))
        chosen = builder.exprs.apply("where", [wins, found, chosen], kind)
    return chosen


def _winner_reads(instr: Instr, position: int, out: Indices, extents: Extents) -> Indices | None:
    return out if position == len(instr.inputs) - 1 else None


GATHERS: dict[str, LoopLowering] = {
    "pad": LoopLowering(in_memory, build=_pad),
    "as_strided": LoopLowering(in_memory, build=_as_strided),
    "put_diagonal": LoopLowering(in_memory, build=_put_diagonal),
    "mirror": LoopLowering(in_memory, build=_mirror),
    "max_pool2d": _pool("maximum"),
    "sum_pool2d": _pool("add"),
    "im2col": LoopLowering(in_memory, build=_columns),
    "max_pool2d_gather": LoopLowering(_winner_reads, build=_winner),
    "max_pool2d_index": LoopLowering(_winner_reads, build=_winner),
}
