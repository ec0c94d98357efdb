"""How kernels can be cut into shares for threads, and their cost; the scheduler uses both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.loops.nest_layout import NestPlan, nest_cost
from glassgrad.compile.llvm.products.amx import pays
from glassgrad.compile.llvm.products.amx_check import has_tiles
from glassgrad.compile.llvm.products.matmul import Product
from glassgrad.compile.plan.indexing.indices import Index
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.nests import Nest
from glassgrad.compile.plan.schedule import Cut, Region, even_bounds, region_of

# Rough rates of one thread; they only decide which kernels are worth sharing.
_OPS_PER_NS = 1.5  # vector instructions
_BYTES_PER_NS = 25.0
FLOPS_PER_NS = 100.0
_CALL_NS = 40.0


def nest_time(nest: Nest, layout: NestPlan) -> float:
    """Estimate one thread's nanoseconds."""
    vectors = nest.points / max(layout.lanes, 1)
    size = touched_bytes(nest)
    return _CALL_NS + max(vectors * nest_cost(nest) / _OPS_PER_NS, size / _BYTES_PER_NS)


def kernel_time(kernel: Kernel) -> float:
    """Estimate one thread's nanoseconds for a kernel that is not laid out yet."""
    if kernel.nest is not None:
        work = kernel.nest.points * nest_cost(kernel.nest) / 16 / _OPS_PER_NS
        return _CALL_NS + max(work, touched_bytes(kernel.nest) / _BYTES_PER_NS)
    size = sum(var.nbytes for var in kernel.reads | kernel.writes)
    instr = kernel.instrs[0]
    flops = 0.0
    if instr.op == "matmul" and kernel.operands[0] is not None:
        flops = 2.0 * instr.output.size * kernel.operands[0].shape[-1]
    elif instr.op.startswith("conv2d") and kernel.operands[1] is not None:
        flops = 2.0 * size * math.prod(kernel.operands[1].shape[2:])
    return _CALL_NS + max(flops / FLOPS_PER_NS, size / _BYTES_PER_NS)


def touched_bytes(nest: Nest) -> int:
    """Return the bytes that a nest reads and writes if it accesses every element once."""
    places = {(access.root, access.index, is_store): access for access, is_store in nest.accesses()}
    return sum(
        math.prod(nest.extents[axis] for axis in access.index.axes) * access.root.dtype.itemsize
        for access in places.values()
    )


def nest_flops(nest: Nest) -> int:
    """Return the floating-point operations of a nest: one for each elementwise op and each term of a reduction."""
    total = 0
    for expr in nest.expressions():
        axes = set(expr.axes)
        if expr.op == "reduced":
            total += math.prod(nest.extents[axis] for axis in (*nest.outer, *nest.inner))
        elif expr.kind[0] == "f" and expr.op not in {"const", "load", "cast", "where", "counter"}:
            total += math.prod(nest.extents[axis] for axis in axes)
    return total


def product_time(product: Product) -> float:
    """Estimate one thread's nanoseconds."""
    speed = FLOPS_PER_NS
    if product.kind == "bf16":
        speed *= 8 if pays(product.m, product.n, product.k) and has_tiles() else 2
    return _CALL_NS * 4 * math.prod(product.batch) + product.flops / speed


def nest_cuts(nest: Nest, layout: NestPlan, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
    """Return the ways to cut a nest; empty if it is a single unit of work."""
    if layout.units < 2 or layout.axis is None:
        return []
    if layout.split_tiles:
        extent = nest.extents[layout.axis]
        return [tile_cut(nest, layout, even_bounds(extent, shares, layout.tile), alias)]
    bounds = even_bounds(layout.units, shares)
    return [Cut("rows", bounds, _regions(nest, [(axis, nest.extents[axis]) for axis in layout.shared], bounds, alias))]


def tile_cut(nest: Nest, layout: NestPlan, ends: tuple[int, ...], alias: Mapping[Var, Var]) -> Cut:
    """Return the cut of the vector axis at the given elements."""
    assert layout.axis is not None
    regions = _regions(nest, [(layout.axis, nest.extents[layout.axis])], ends, alias)
    return Cut("tiles", tuple(-(-end // layout.tile) for end in ends), regions)


def recut_tiles(nest: Nest, layout: NestPlan, region: Region, alias: Mapping[Var, Var]) -> Cut | None:
    """Return the cut that matches the cut of a neighbouring kernel, if tiles can be cut there."""
    assert layout.axis is not None
    extent = nest.extents[layout.axis]
    ends = (0, *(high for _, high in region.ranges))
    lows = tuple(low for low, _ in region.ranges)
    if region.period != extent or ends[-1] != extent or lows != ends[:-1]:
        return None
    if any(end % layout.tile for end in ends[:-1]):
        return None
    return tile_cut(nest, layout, ends, alias)


def _regions(
    nest: Nest, axes: list[tuple[int, int]], bounds: tuple[int, ...], alias: Mapping[Var, Var]
) -> dict[Var, Region | None]:
    found: dict[Var, Region | None] = {}
    for access, _ in nest.accesses():
        root = alias.get(access.root, access.root)
        region = None
        if not access.computed:
            region = region_of(access.index, axes, bounds, nest.extents, root.size)
        if root in found and found[root] != region:
            region = None
        found[root] = region
    return found


def product_cuts(product: Product, out: Var, shares: int) -> list[Cut]:
    """Return the ways to cut a product: by matrices of the batch, rows, or columns."""
    cuts = []
    batch = math.prod(product.batch)
    if batch > 1:
        if batch >= shares:
            cuts.append(_product_cut(product, out, "batch", even_bounds(batch, shares)))
        return cuts
    by_rows = _product_cut(product, out, "rows", even_bounds(product.m, shares))
    by_columns = _product_cut(product, out, "columns", even_bounds(product.n, shares))
    cuts = [by_rows, by_columns] if product.m >= product.n else [by_columns, by_rows]
    return [cut for cut in cuts if all(low < high for low, high in pairwise(cut.bounds))]


def _product_cut(product: Product, out: Var, axis: str, bounds: tuple[int, ...]) -> Cut:
    rank = len(product.batch)
    numbers = dict(enumerate((*product.batch, product.m, product.n, product.k)))
    rows, columns, inner = rank, rank + 1, rank + 2
    wanted = {"batch": list(range(rank)), "rows": [rows], "columns": [columns]}[axis]
    cut = [(number, numbers[number]) for number in wanted]
    a, b = product.a, product.b
    left, right = (_aligned(side.strides[:-2], side.shape[:-2], rank) for side in (a, b))
    index_a = _index(a.offset, [*left, (rows, a.strides[-2]), (inner, a.strides[-1])])
    index_b = _index(b.offset, [*right, (inner, b.strides[-2]), (columns, b.strides[-1])])
    stride, out_terms = 1, []
    for number in (columns, rows, *reversed(range(rank))):
        out_terms.append((number, stride))
        stride *= numbers[number]
    regions: dict[Var, Region | None] = {}
    for root, index in ((a.root, index_a), (b.root, index_b), (out, _index(0, out_terms))):
        region = region_of(index, cut, bounds, numbers, root.size)
        regions[root] = region if root not in regions else None
    return Cut(axis, bounds, regions)


def _aligned(strides: tuple[int, ...], shape: tuple[int, ...], rank: int) -> list[tuple[int, int]]:
    """Pair batch strides with the axes of the whole batch, from the right, as broadcasting does."""
    lead = rank - len(strides)
    return [(lead + place, 0 if shape[place] == 1 else stride) for place, stride in enumerate(strides)]


def _index(offset: int, terms: list[tuple[int, int]]) -> Index:
    return Index(offset, tuple(sorted((axis, stride) for axis, stride in terms if stride)))
