"""Loads and stores of vectors: whole, masked, strided, gathered."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Value, suffix, type_name

Layout = tuple[int, int, int, Value | None]

# Partial stores of shorter vectors use several plain stores: a masked one takes 12 cycles on AMD's AVX2 processors.
_MASKED_BYTES = 64

# LLVM 22 moved the alignment of masked accesses from an argument to an attribute.
_ALIGN_IS_ATTRIBUTE = llvm.llvm_version_info[0] >= 22


def mask_of(lanes: Sequence[bool]) -> Value | None:
    """Return a constant mask; None (no mask) if all lanes are set."""
    if all(lanes):
        return None
    return Value(f"<{', '.join(f'i1 {str(lane).lower()}' for lane in lanes)}>", "b1", len(lanes))


def first_lanes(count: int, lanes: int) -> Value | None:
    """Return the mask of the first `count` lanes; None for all."""
    return mask_of([lane < count for lane in range(lanes)])


def memory_kind(kind: str) -> str:
    """Return the kind of an element in memory: booleans take a byte."""
    return "u8" if kind == "b1" else kind


def _size(kind: str) -> int:
    return max(BITS[kind] // 8, 1)


def load_vector(
    b: Builder,
    kind: str,
    pointer: str,
    layout: Layout,
    computed: list[tuple[Value, int]],
    mask: Value | None,
    root: str,
) -> Value:
    """Load what `layout` describes; lanes that are masked out read 0."""
    lanes, stride, offset, exists = layout
    stored = memory_kind(kind)
    pointer, spread = _displace(b, stored, pointer, computed)
    lanes_mask = _both(b, exists, mask, lanes)
    if lanes == 1 and spread is None:
        value = _load_scalar(b, stored, pointer, mask, root)
    elif spread is None and stride == 1:
        value = _load_contiguous(b, stored, _at(b, stored, pointer, offset), lanes, lanes_mask)
    elif spread is None and stride == 2 and _existing(lanes_mask, lanes):
        first = _at(b, stored, pointer, 2 * offset)
        value = _load_every_second(b, stored, first, lanes, _existing(lanes_mask, lanes))
    else:
        pointers = _spread_pointers(b, stored, (pointer, spread), layout)
        value = _gather(b, stored, pointers, lanes, lanes_mask)
    return b.compare("ne", value, b.like(0, value)) if kind == "b1" else value


def store_vector(b: Builder, value: Value, pointer: str, layout: Layout) -> None:
    """Store a vector or a scalar where `layout` says."""
    lanes, stride, offset, exists = layout
    if value.kind == "b1":
        value = b.define(f"zext {value.typed} to {type_name('u8', value.lanes)}", "u8", value.lanes)
    if lanes == 1:
        b.raw(f"store {value.typed}, ptr {pointer}, align {_size(value.kind)}")
        return
    value = b.splat(value, lanes)
    if stride == 1:
        place = _at(b, value.kind, pointer, offset)
        if exists is None:
            b.raw(f"store {value.typed}, ptr {place}, align {_size(value.kind)}")
        elif b.function.module.vector_bytes < _MASKED_BYTES and (count := _existing(exists, lanes)):
            _store_first(b, value, place, count)
        else:
            target = _aligned_pointer(f"ptr {place}", value.kind)
            _masked(b, "store", value.kind, lanes, f"{value.typed}, {target}", exists)
        return
    pointers = _spread_pointers(b, value.kind, (pointer, None), layout)
    target = _aligned_pointer(pointers, value.kind)
    _masked(b, "scatter", value.kind, lanes, f"{value.typed}, {target}", _full(exists, lanes))


def _store_first(b: Builder, value: Value, place: str, count: int) -> None:
    """Store the first elements of a vector, in pieces of powers of two."""
    start = 0
    for width in (1 << bit for bit in reversed(range(count.bit_length())) if count >> bit & 1):
        lanes = ", ".join(f"i32 {lane}" for lane in range(start, start + width))
        piece = b.define(f"shufflevector {value.typed}, {value.typed}, <{width} x i32> <{lanes}>", value.kind, width)
        there, kind = _at(b, value.kind, place, start), f"<{width} x {LLVM_TYPE[value.kind]}>"
        b.raw(f"store {kind} {piece.text}, ptr {there}, align {_size(value.kind)}")
        start += width


def prefetch(b: Builder, pointer: str, *, writes: bool, level: int = 1) -> None:
    """Prefetch the cache line at an address, which may be outside of any array, into the cache of this level."""
    b.function.module.declarations["prefetch"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    b.raw(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(writes)}, i32 {4 - level}, i32 1)")


def _at(b: Builder, kind: str, pointer: str, offset: int) -> str:
    return b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {pointer}, i64 {offset}") if offset else pointer


def _displace(b: Builder, kind: str, pointer: str, computed: list[tuple[Value, int]]) -> tuple[str, Value | None]:
    """Add computed counters to an address; return those that vary across lanes as a vector."""
    spread: Value | None = None
    for index, stride in computed:
        scaled = index if stride == 1 else b.binary("mul", index, b.like(stride, index))
        if index.lanes == 1:
            pointer = b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {pointer}, i64 {scaled.text}")
        else:
            spread = scaled if spread is None else b.binary("add", spread, scaled)
    return pointer, spread


def _both(b: Builder, exists: Value | None, mask: Value | None, lanes: int) -> Value | None:
    if mask is None or lanes == 1:
        return exists
    mask = b.splat(mask, lanes)
    return mask if exists is None else b.binary("and", mask, exists)


def _load_scalar(b: Builder, kind: str, pointer: str, mask: Value | None, root: str) -> Value:
    if mask is None:
        return b.define(f"load {LLVM_TYPE[kind]}, ptr {pointer}, align {_size(kind)}", kind)
    # Avoid a branch: where the mask is false, read the array's first element and discard it.
    safe = b.pointer(f"select {mask.typed}, ptr {pointer}, ptr {root}")
    value = b.define(f"load {LLVM_TYPE[kind]}, ptr {safe}, align {_size(kind)}", kind)
    return b.select(mask, value, b.like(0, value))


def _load_contiguous(b: Builder, kind: str, pointer: str, lanes: int, mask: Value | None) -> Value:
    vector = type_name(kind, lanes)
    if mask is None:
        return b.define(f"load {vector}, ptr {pointer}, align {_size(kind)}", kind, lanes)
    return Value(_masked(b, "load", kind, lanes, _aligned_pointer(f"ptr {pointer}", kind), mask), kind, lanes)


def _existing(mask: Value | None, lanes: int) -> int:
    """Return how many lanes exist if they are the first ones; 0 if that is unknown or the mask has another form."""
    if mask is None:
        return lanes
    count = mask.text.count("i1 true")
    return count if mask.text.startswith("<") else 0


def _load_every_second(b: Builder, kind: str, pointer: str, lanes: int, count: int) -> Value:
    """Load elements 0, 2, 4, ... by two adjacent vectors and a shuffle; read nothing after the last one."""
    span = 2 * count - 1
    halves = [
        _load_contiguous(b, kind, _at(b, kind, pointer, start), lanes, first_lanes(span - start, lanes))
        if span > start
        else Value("zeroinitializer", kind, lanes)
        for start in (0, lanes)
    ]
    order = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))
    text = f"shufflevector {halves[0].typed}, {halves[1].typed}, <{lanes} x i32> <{order}>"
    return b.define(text, kind, lanes)


def _spread_pointers(b: Builder, kind: str, base: tuple[str, Value | None], layout: Layout) -> str:
    """Return a vector of addresses, with its type."""
    pointer, spread = base
    lanes, stride, offset, _ = layout
    if stride:
        pointer = _at(b, kind, pointer, offset * stride)
        steps = b.binary("mul", b.lane_numbers(lanes), b.const(stride, "i64", lanes))
        spread = steps if spread is None else b.binary("add", spread, steps)
    if spread is None:  # a single element, which some of the lanes read
        spread = b.const(0, "i64", lanes)
    name = b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {pointer}, {spread.typed}")
    return f"<{lanes} x ptr> {name}"


def _gather(b: Builder, kind: str, pointers: str, lanes: int, mask: Value | None) -> Value:
    text = _masked(b, "gather", kind, lanes, _aligned_pointer(pointers, kind), _full(mask, lanes))
    return Value(text, kind, lanes)


def _full(mask: Value | None, lanes: int) -> Value:
    return Value("splat (i1 true)", "b1", lanes) if mask is None else mask


def _aligned_pointer(pointer: str, kind: str) -> str:
    """Return a pointer argument of a masked intrinsic with its alignment, in the syntax of this LLVM."""
    if _ALIGN_IS_ATTRIBUTE:
        what, _, name = pointer.rpartition(" ")
        return f"{what} align {_size(kind)} {name}"
    return f"{pointer}, i32 {_size(kind)}"


def _masked(b: Builder, what: str, kind: str, lanes: int, arguments: str, mask: Value) -> str:
    """Call llvm.masked.*; return the name of the result, empty for stores."""
    vector, mask_type = type_name(kind, lanes), f"<{lanes} x i1>"
    spread = what in {"gather", "scatter"}
    name = f"llvm.masked.{what}.{suffix(kind, lanes)}.{f'v{lanes}p0' if spread else 'p0'}"
    pointer = f"<{lanes} x ptr>" if spread else "ptr"
    align = "" if _ALIGN_IS_ATTRIBUTE else ", i32"
    loads = what in {"load", "gather"}
    if loads:
        declared = f"declare {vector} @{name}({pointer}{align}, {mask_type}, {vector})"
        call = f"call {vector} @{name}({arguments}, {mask_type} {mask.text}, {vector} zeroinitializer)"
    else:
        declared = f"declare void @{name}({vector}, {pointer}{align}, {mask_type})"
        call = f"call void @{name}({arguments}, {mask_type} {mask.text})"
    b.function.module.declarations[name] = declared
    if loads:
        return b.define(call, kind, lanes).text
    b.raw(call)
    return ""
