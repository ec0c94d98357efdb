"""Normalise a graph for the native backend: few forms of each op, everything else marked for the host.

This is pure rewriting, like the passes. The ops that it introduces (`put_one_along`, `put_slice`, `set_slice`,
`at_place`) exist only between here and the emitter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.clean import eliminate_dead
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import Rules, rule
from glassgrad.compile.plan.target import Target
from glassgrad.compile.plan.weight_parts import parts_of
from glassgrad.ops.narrow import NARROW
from glassgrad.ops.places import ARRAY, EVERYTHING, join_index
from glassgrad.ops.resample import neighbours


class Normaliser(Rewriter):
    """A rewriter that knows the abilities of the target."""

    def __init__(self, graph: Graph, target: Target, shares: int, *, alone: bool) -> None:
        super().__init__(graph)
        self.shares = shares
        self.alone = alone
        self.turned = {instr.inputs[0] for instr in graph.instrs if instr.op == "permute_dims"}
        self.target = target

    def internal(self, op: str, inputs: tuple[Operand, ...], like: Instr, var: Var, **params: Any) -> Var:
        """Append an instruction of an unregistered op, with a given result."""
        self.append(Instr(op, inputs, (var,), params, like.where))
        return var

    def renamed(self, instr: Instr, op: str, **params: Any) -> Var:
        """Append an instruction under another op name."""
        old = instr.output
        return self.internal(
            op, instr.inputs, instr, self.var(old.shape, old.dtype, old.name), **{**instr.params, **params}
        )

    def reshaped(self, operand: Operand, shape: tuple[int, ...], like: Instr) -> Operand:
        """Return an operand in another shape."""
        if not isinstance(operand, Var) or operand.shape == shape:
            return operand
        return self.apply("reshape", operand, like=like, shape=shape)

    def computed_by_loop(self, operand: Operand) -> bool:
        """Tell whether a loop computes a value, so that it need not be stored if its reader is also a loop."""
        instr = self.producer.get(operand) if isinstance(operand, Var) else None
        return instr is not None and self.target.is_loop(instr)


def normalise(graph: Graph, target: Target, shares: int = 1, *, alone: bool = False) -> Graph:
    """Bring a graph into the forms that the native backend lowers.

    Args:
        graph: after the passes.
        target: what the backend can do.
        shares: the threads that will certainly share the work.
        alone: whether one thread will certainly do all of it.
    """
    rewriter = Normaliser(graph, target, shares, alone=alone)
    # The host only supports primitives.
    return eliminate_dead(rewriter.rewrite(NATIVE_FORM, target.has_kinds, again=False).finish())


def _vectors(rewriter: Normaliser, instr: Instr, a: Operand, b: Operand) -> Operand | None:
    """Turn vectors into matrices of one row or column."""
    if not isinstance(a, Var) or not isinstance(b, Var) or (a.ndim > 1 and b.ndim > 1):
        return None
    left = rewriter.reshaped(a, (1, *a.shape), instr) if a.ndim == 1 else a
    right = rewriter.reshaped(b, (*b.shape, 1), instr) if b.ndim == 1 else b
    return rewriter.reshaped(rewriter.apply("matmul", left, right, like=instr), instr.output.shape, instr)


# A sum over fewer rows is not worth splitting.
_ROWS_OF_A_PART = 64
# A sum with fewer results than vector lanes is not worth splitting either.
_COLUMNS = 16


def _product_in_parts(rewriter: Normaliser, instr: Instr, x: Operand, b: Operand) -> Operand | None:
    """Split a weight's gradient, x.T @ g: every share sums the rows it has, and the sums are added.

    If it were cut by rows or columns of the result, each share would read all rows of x or g, half of which another
    core has just written, and would have to wait for them. This pays if the result is small compared with the operands.
    """
    parts, a = rewriter.shares, instr.inputs[0]
    assert isinstance(a, Var)
    if not isinstance(b, Var) or parts == 1 or a.ndim != 2 or b.ndim != 2 or instr.output in rewriter.turned:
        return None
    if instr.output.dtype.kind == NARROW:  # each part would be rounded
        return None
    m, (terms, n) = a.shape[0], b.shape
    if terms % parts or terms < parts * _ROWS_OF_A_PART or 2 * m * n > terms * (m + n):
        return None
    left = rewriter.reshaped(x, (parts, terms // parts, m), instr)
    right = rewriter.reshaped(b, (parts, terms // parts, n), instr)
    turned = rewriter.apply("permute_dims", left, like=instr, axes=(0, 2, 1))
    return _joined(rewriter, instr, rewriter.apply("matmul", turned, right, like=instr))


def _sum_in_parts(rewriter: Normaliser, instr: Instr, source: Operand) -> Operand | None:
    """Split a sum over the rows of a matrix: every share sums the rows it has, and the sums are added."""
    assert isinstance(source, Var)
    axes, parts = instr.params["axis"], rewriter.shares
    rows = math.prod(source.shape[axis] for axis in axes)
    leading = axes == tuple(range(len(axes))) and 0 < len(axes) < source.ndim
    if parts == 1 or not leading or instr.params["keepdims"] or source.dtype.kind != "f":
        return None
    if source.shape[0] % parts or rows < parts * _ROWS_OF_A_PART or instr.output.size < _COLUMNS:
        return None
    split = rewriter.reshaped(source, (parts, source.shape[0] // parts, *source.shape[1:]), instr)
    shifted = tuple(axis + 1 for axis in axes)
    sums = rewriter.apply("sum", split, like=instr, axis=shifted, keepdims=False)
    return _joined(rewriter, instr, sums)


def _zeros_in_one(rewriter: Normaliser, instr: Instr, _x: Operand) -> Operand | None:
    """Turn a sum of row sums of 0 times a value (a finiteness check) into one sum, in the loop that computes the value.

    The sum is 0 or NaN in any order, so it may be reordered. Row sums would leave partial vectors at their ends, and
    need a separate kernel for their sum.
    """
    rows = rewriter.behind(instr.inputs[0])
    product = rows.inputs[0] if rows is not None else None
    if not rewriter.alone or not isinstance(product, Var) or instr.output.shape:
        return None
    flat = rewriter.reshaped(product, (product.size,), instr)
    return rewriter.apply("sum", flat, like=instr, axis=(0,), keepdims=False)


def _joined(rewriter: Normaliser, instr: Instr, parts: Var) -> Var:
    """Return the sum over the first axis."""
    if parts.shape[0] > 4:
        return rewriter.apply("sum", parts, like=instr, axis=(0,), keepdims=False)
    first, *others = (rewriter.apply("getitem", parts, like=instr, spec=(at,)) for at in range(parts.shape[0]))
    for other in others:
        first = rewriter.apply("add", first, other, like=instr)
    return first


def _arg(rewriter: Normaliser, instr: Instr, source: Operand) -> Operand:
    """Write the axis as a tuple, as in every reduction."""
    assert isinstance(source, Var)
    axis = instr.params["axis"]
    axes = tuple(range(source.ndim)) if axis is None else (axis % max(source.ndim, 1),)
    return rewriter.renamed(
        instr, instr.op, axis=axes if source.ndim else (), keepdims=instr.params.get("keepdims", False)
    )


def _over_ones(rewriter: Normaliser, instr: Instr) -> bool:
    source = instr.inputs[0]
    return isinstance(source, Var) and all(source.shape[axis] == 1 for axis in instr.params["axis"])


def _without_reducing(rewriter: Normaliser, instr: Instr, source: Operand) -> Operand:
    """Replace a reduction over axes of size 1 by a reshape or a copy."""
    assert isinstance(source, Var)
    if source.dtype != instr.output.dtype:
        source = rewriter.apply("astype", source, like=instr, dtype=instr.output.dtype)
    # Copy even if nothing changes, because the value and its source may both be results of the program.
    same = source.shape == instr.output.shape
    shape = {} if same else {"shape": instr.output.shape}
    return rewriter.apply("copy" if same else "reshape", source, like=instr, **shape)


def _one_per_row(
    rewriter: Normaliser, instr: Instr, source: tuple[int, ...], arrays: tuple[Operand, ...]
) -> Var | None:
    """Return the column picked in each row, of an index ``(arange(n), columns)`` into a matrix."""
    if instr.params["spec"] != (ARRAY, ARRAY) or len(source) != 2:
        return None
    rows, columns = arrays
    known = rewriter.known.get(rows) if isinstance(rows, Var) else None
    if known is None or not isinstance(columns, Var) or columns.shape != (source[0],):
        return None
    return columns if np.array_equal(known, np.arange(source[0])) else None


def _getitem(rewriter: Normaliser, instr: Instr, source: Operand, *arrays: Operand) -> Operand | None:
    assert isinstance(source, Var)
    columns = _one_per_row(rewriter, instr, source.shape, arrays) if arrays else None
    if columns is None:
        return None
    index = rewriter.reshaped(columns, (*columns.shape, 1), instr)
    picked = _pick(rewriter, instr, source, index, axis=1)
    return rewriter.reshaped(picked, instr.output.shape, instr)


def _pick(rewriter: Normaliser, instr: Instr, source: Var, index: Operand, axis: int) -> Var:
    """Read one element along an axis; from a loop's result, as a masked sum, so that the loop and the reader fuse."""
    if source.dtype.kind == NARROW or not rewriter.computed_by_loop(source):
        return rewriter.apply("take_along_axis", source, index, like=instr, axis=axis)
    mask = rewriter.internal(
        "at_place", (index,), instr, rewriter.var(source.shape, np.bool_), axis=axis, extent=source.shape[axis]
    )
    chosen = rewriter.apply("where", mask, source, 0, like=instr)
    return rewriter.apply("sum", chosen, like=instr, axis=(axis,), keepdims=True)


def _take_along(rewriter: Normaliser, instr: Instr, source: Operand, index: Operand) -> Operand | None:
    axis = instr.params["axis"]
    assert isinstance(source, Var)
    assert isinstance(index, Var)
    others = zip(source.shape, index.shape, strict=True)
    same = all(a == b for place, (a, b) in enumerate(others) if place != axis)
    if index.shape[axis] != 1 or not same or source.dtype.kind != "f" or not rewriter.computed_by_loop(source):
        return None
    return _pick(rewriter, instr, source, index, axis)


def _put_along(rewriter: Normaliser, instr: Instr, value: Operand, index: Operand) -> Operand | None:
    """Turn a scatter of one element per row into a loop: each element of the result checks whether it is the target."""
    shape, axis = instr.output.shape, instr.params["axis"]
    assert isinstance(index, Var)
    fits = all(a == b for place, (a, b) in enumerate(zip(shape, index.shape, strict=True)) if place != axis)
    return rewriter.renamed(instr, "put_one_along") if index.shape[axis] == 1 and fits else None


def _put(rewriter: Normaliser, instr: Instr, value: Operand, *arrays: Operand) -> Operand | None:
    shape = instr.output.shape
    if not arrays:
        return rewriter.renamed(instr, "put_slice")
    columns = _one_per_row(rewriter, instr, shape, arrays)
    if columns is None or not isinstance(value, Var) or value.shape != columns.shape:
        return None
    index = rewriter.reshaped(columns, (*columns.shape, 1), instr)
    column = rewriter.reshaped(value, (*value.shape, 1), instr)
    return rewriter.internal("put_one_along", (column, index), instr, rewriter.var(shape, instr.output.dtype), axis=1)


def _at_set(rewriter: Normaliser, instr: Instr, x: Operand, value: Operand, *arrays: Operand) -> Operand:
    """Broadcast the value to its full shape; without index arrays, use a loop. A write to no element becomes a copy.

    The array itself cannot be returned: a result of the step must be neither an argument nor another result.
    """
    assert isinstance(x, Var)
    sample = [np.zeros(array.shape, np.intp) for array in arrays if isinstance(array, Var)]
    key = join_index(instr.params["spec"], sample)
    shape = np.broadcast_to(np.zeros((), np.bool_), x.shape)[key].shape
    if 0 in shape:
        return rewriter.apply("copy", x, like=instr)
    return _written(rewriter, instr, "at_set" if arrays else "set_slice", (x, value, *arrays), shape)


def _put_along_axis(rewriter: Normaliser, instr: Instr, x: Operand, value: Operand, index: Var) -> Operand:
    """Broadcast the value to its full shape."""
    return _written(rewriter, instr, instr.op, (x, value, index), index.shape)


def _written(
    rewriter: Normaliser, instr: Instr, op: str, inputs: tuple[Operand, ...], shape: tuple[int, ...]
) -> Operand:
    x, value, *arrays = inputs
    assert isinstance(x, Var)
    if not isinstance(value, Var):
        value = rewriter.constant(np.asarray(value, x.dtype))
    if value.dtype != x.dtype:
        value = rewriter.apply("astype", value, like=instr, dtype=x.dtype)
    if value.shape != shape:
        value = rewriter.apply("broadcast_to", value, like=instr, shape=shape)
    out = rewriter.var(x.shape, instr.output.dtype)
    return rewriter.internal(op, (x, value, *arrays), instr, out, **instr.params)


def _resample(rewriter: Normaliser, instr: Instr, x: Operand) -> Operand | None:
    """Sum neighbours along an axis times their weights; backward, scatter the products to the neighbours."""
    axis, dtype, total = instr.params["axis"], instr.output.dtype, None
    spec, back = (*(EVERYTHING,) * axis, ARRAY), instr.op == "resample_back"
    for index, weight in neighbours(instr.params["how"]):
        places = rewriter.constant(index)
        part = x if back else rewriter.apply("getitem", x, places, like=instr, spec=spec)
        if weight is not None:
            beside = weight.astype(dtype).reshape(-1, *(1,) * (instr.output.ndim - axis - 1))
            part = rewriter.apply("multiply", part, rewriter.constant(beside), like=instr)
        if back:
            part = rewriter.apply("put_add", part, places, like=instr, spec=spec, shape=instr.output.shape)
        total = part if total is None else rewriter.apply("add", total, part, like=instr)
    return total


def _conv_weight(rewriter: Normaliser, instr: Instr, x: Operand, gradient: Operand) -> Operand | None:
    """Compute parts of the sum over images, then their sum."""
    if not isinstance(x, Var) or not isinstance(gradient, Var) or x.dtype.kind != "f" or not instr.output.size:
        return None
    groups, (kh, kw) = instr.params["groups"], instr.params["kernel"]
    channels, outputs = x.shape[1] // groups, gradient.shape[1] // groups
    parts = parts_of(x.shape[0], instr.output.size)
    made = rewriter.var((parts, groups, outputs, channels * kh * kw), instr.output.dtype)
    candidate = Instr("conv2d_weight_parts", (x, gradient), (made,), instr.params, instr.where)
    if not parts or rewriter.target.is_host(candidate):
        return None
    rewriter.append(candidate)
    total = rewriter.apply("sum", made, like=instr, axis=(0,), keepdims=False)
    return rewriter.reshaped(total, instr.output.shape, instr)


_REDUCTIONS = ("sum", "max", "min", "prod", "any", "all")
NATIVE_FORM = Rules(
    (
        rule("matmul", _vectors),
        rule("matmul(permute_dims(x), b)", _product_in_parts),
        rule("argmax", _arg),
        rule("argmin", _arg),
        *(rule(op, _without_reducing, _over_ones) for op in _REDUCTIONS),
        rule("sum(sum(multiply(x, 0)))", _zeros_in_one),
        rule("sum", _sum_in_parts, lambda _, instr: instr.inputs[0].dtype == instr.output.dtype),
        rule("getitem", _getitem),
        rule("take_along_axis", _take_along),
        rule("put_along_add", _put_along),
        rule("put_add", _put),
        rule("at_set", _at_set),
        rule("put_along_axis", _put_along_axis),
        rule("conv2d_weight", _conv_weight),
        rule("resample", _resample),
        rule("resample_back", _resample),
    )
)
