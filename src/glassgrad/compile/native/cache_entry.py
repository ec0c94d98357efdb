"""A compiled step as an entry of the cache: its layout as plain data, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.ir.graph import Graph, Var, all_vars
from glassgrad.compile.ir.totals import Stats
from glassgrad.compile.kept import files
from glassgrad.compile.llvm.module.blas import GEMM, blas
from glassgrad.compile.native import cache
from glassgrad.compile.native.executable import HostCall, Layout, NativeStep
from glassgrad.compile.native.host_calls import host_call
from glassgrad.compile.native.runtime import available_cores
from glassgrad.compile.plan.indexing.bounds import Computed, IndexBounds, IndexCheck
from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.ops.narrow import NARROW, bfloat16

# Larger constants that the compiler made itself are not worth storing.
_MOST_BYTES = 1 << 20


Uses = Callable[[], tuple[list[IndexCheck], list[Computed]]]


def key_of(graph: Graph, threads: int | None, memory: int | None = None, *, as_it_is: bool) -> str:
    """Return the name of an entry for the traced graph; `as_it_is` says that no passes will change it."""
    shares = threads or f"auto {available_cores()}"
    how = "as it is" if as_it_is else "prepared"
    if memory is not None:
        how += f" within {memory}"
    # AMX needs the processor's and the system's support: a process that may not use it must not find code that does.
    tiles = _has_tiles() if any(var.dtype.kind == NARROW for var in all_vars(graph)) else None
    parts = f"{how} {graph.key()} {_key_of_parts(graph)}"
    return cache.key_of("step", parts, shares, blas().name, blas().always, tiles)


def _key_of_parts(graph: Graph) -> str:
    if all(getattr(instr.where, "part", None) is None for instr in graph.instrs):
        return ""
    from glassgrad.compile.plan.recompute import key_of_parts  # this also imports some of the passes

    return key_of_parts(graph)


def _has_tiles() -> bool:
    # This import loads a large part of the emitter, which a step from disk does not need.
    from glassgrad.compile.llvm.products.amx_check import has_tiles

    return has_tiles()


def find(key: str, graph: Graph, uses: Uses) -> tuple[NativeStep, Stats] | None:
    """Return a step from disk; None without a valid entry."""
    entry = files.read(key)
    if entry is None:
        return None
    header, code = entry
    try:
        layout, stats = to_layout(graph, header, uses)
        return NativeStep(code, layout), stats
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, MemoryError, errors.LinkError):
        files.forget(key)
        return None


def write(key: str, graph: Graph, layout: Layout, stats: Stats, code: bytes) -> None:
    """Store a step on disk, if possible."""
    header = to_header(graph, layout, stats)
    if header is not None:
        files.write(key, header, code)


def to_header(graph: Graph, layout: Layout, stats: Stats) -> dict[str, Any] | None:
    """Return the header of an entry; None for a step that cannot be stored.

    `graph` is the one of the entry's key, so its inputs and constants need not be stored.
    """
    variables = list(layout.slots)
    number = {var: place for place, var in enumerate(variables)}
    segments = [[count, host if host is None else _host_entry(host, graph, number)] for count, host in layout.segments]
    if any(entry == [] for _, entry in segments):
        return None  # it calls Python functions
    own = {var: place for place, (var, _) in enumerate(graph.constants)}
    constants: list[list[int | str]] = []
    for var, value in layout.constants:
        if var in own:
            constants.append([number[var], own[var]])
            continue
        array = np.ascontiguousarray(value, var.dtype)
        if array.nbytes > _MOST_BYTES:
            return None
        constants.append([number[var], array.tobytes().hex()])
    return {
        "vars": [[list(var.shape), _dtype_name(var.dtype)] for var in variables],
        "slots": [layout.slots[var] for var in variables],
        "inputs": [number[var] for var in layout.inputs],
        "outputs": [number[var] for var in layout.outputs],
        "written": [number[var] for var in layout.inputs if var in layout.written],
        "buffers": [[number[var], offset] for var, offset in layout.buffers.items()],
        "constants": constants,
        "segments": segments,
        "guards": len(layout.guards),
        "checks": [[number[check.var], check.extent, check.low, check.spare] for check in layout.checks],
        "sizes": [layout.shares, layout.phases, layout.arena, layout.scratch],
        "stats": asdict(stats),
    }


def to_layout(graph: Graph, header: dict[str, Any], uses: Uses) -> tuple[Layout, Stats]:
    """Return the layout that an entry describes, for a graph with the same structure; `uses` as in `Layout`.

    Raises `ValueError`, `TypeError`, `LookupError` or `OverflowError` for a header that `to_header` cannot have made.
    """
    variables = _variables(graph, header)
    count = len(variables)

    def var(place: object) -> Var:
        return variables[_number(place, count)]

    shares, phases, arena, scratch = header["sizes"]
    slots = [_number(slot, count) for slot in header["slots"]]
    outputs = [var(place) for place in header["outputs"]]
    guards = _number(header["guards"], len(outputs) + 1)
    layout = Layout(
        shares=_number(shares, _MOST_SHARES, 1),
        phases=_number(phases, _FAR, 1),
        slots=dict(zip(variables, slots, strict=True)),
        pointers=[blas().pointers.get(kind, 0) for kind in GEMM],
        inputs=graph.inputs,
        outputs=outputs,
        written={var(place) for place in header["written"]},
        buffers={var(place): _number(offset, _FAR) for place, offset in header["buffers"]},
        constants=[_constant(var(place), source, graph) for place, source in header["constants"]],
        checks=[IndexBounds(var(place), *_bounds(*bounds)) for place, *bounds in header["checks"]],
        segments=[
            (_number(turns, phases + 1), entry if entry is None else _host_call(entry, graph, variables))
            for turns, entry in header["segments"]
        ],
        arena=_number(arena, _FAR),
        scratch=_number(scratch, _FAR),
        guards=outputs[len(outputs) - guards :],
        uses=uses,
    )
    _check_memory(layout)
    return layout, _stats(header["stats"])


# Upper bounds for valid entries: sizes of memory, and threads.
_FAR, _MOST_SHARES = 1 << 48, 1 << 12


def _number(value: object, below: int, low: int = 0) -> int:
    if type(value) is not int or not low <= value < below:
        raise ValueError(f"{value!r} is not from {low} to {below - 1}")
    return value


def _host_entry(host: HostCall, graph: Graph, number: Mapping[Var, int]) -> list[object]:
    """Return a call of the host as plain data, by its instruction in the graph; empty if that is not sufficient."""
    if not getattr(PRIMITIVES[host.op], "by_name", False):
        return []
    places = [at for at, instr in enumerate(graph.instrs) if instr.op == host.op and instr.params == host.params]
    if not places:
        return []
    blocks = [
        [[number[one[0]], one[1], list(one[2]), list(one[3])] if isinstance(one, tuple) else one for one in side]
        for side in (host.operands, host.results)
    ]
    return [places[0], *blocks, sorted(number[var] for var in host.movable)]


def _host_call(entry: Any, graph: Graph, variables: Sequence[Var]) -> HostCall:
    place, operands, results, movable = entry
    instr = graph.instrs[_number(place, len(graph.instrs))]
    primitive = PRIMITIVES[instr.op]
    if not getattr(primitive, "by_name", False):
        raise ValueError(f"{instr.op} is stored as a call of the host")
    free = frozenset(variables[_number(at, len(variables))] for at in movable)
    sides = [
        tuple(_block(one, variables) if isinstance(one, list) else one for one in side) for side in (operands, results)
    ]
    return host_call(primitive, dict(instr.params), sides[0], sides[1], free)


def _block(stored: Any, variables: Sequence[Var]) -> tuple[Var, int, tuple[int, ...], tuple[int, ...]]:
    place, offset, shape, strides = stored
    var = variables[_number(place, len(variables))]
    extents = tuple(_number(extent, _FAR) for extent in shape)
    steps = tuple(_number(stride, _FAR, -_FAR) for stride in strides)
    ends = [stride * max(extent - 1, 0) for extent, stride in zip(extents, steps, strict=True)]
    low, high = offset + sum(min(end, 0) for end in ends), offset + sum(max(end, 0) for end in ends)
    if 0 not in extents and not 0 <= low <= high < max(var.size, 1):
        raise ValueError("a block lies outside its array")
    return var, _number(offset, _FAR), extents, steps


def _variables(graph: Graph, header: dict[str, Any]) -> list[Var]:
    """Return the Vars of an entry; its inputs are those of the graph."""
    variables = [
        Var(-1 - place, tuple(_number(extent, _FAR) for extent in shape), _dtype(str(dtype)))
        for place, (shape, dtype) in enumerate(header["vars"])
    ]
    for place, var in zip(header["inputs"], graph.inputs, strict=True):
        stored = variables[_number(place, len(variables))]
        if stored.shape != var.shape or stored.dtype != var.dtype:
            raise ValueError(f"{stored} is stored for {var}")
        variables[place] = var
    return variables


def _dtype_name(dtype: np.dtype) -> str:
    return dtype.name if dtype.kind == NARROW else dtype.str


def _dtype(name: str) -> np.dtype:
    return bfloat16() if name == "bfloat16" else np.dtype(name)


def _constant(var: Var, source: object, graph: Graph) -> tuple[Var, Array]:
    if isinstance(source, str):
        return var, np.frombuffer(bytes.fromhex(source), var.dtype).reshape(var.shape)
    value = graph.constants[_number(source, len(graph.constants))][1]
    if np.shape(value) != var.shape:
        raise ValueError(f"{var} is not of the shape of constant {source}")
    return var, value


def _bounds(extent: object, low: object, spare: object) -> tuple[int, int, int | None]:
    return _number(extent, _FAR), _number(low, 1, -_FAR), None if spare is None else _number(spare, _FAR, -_FAR)


def _check_memory(layout: Layout) -> None:
    """Raise `ValueError` unless each Var has its own slot and its memory is inside the arena."""
    known = {*layout.inputs, *layout.outputs, *layout.buffers, *(var for var, _ in layout.constants)}
    if len(set(layout.slots.values())) < len(layout.slots) or not known <= layout.slots.keys():
        raise ValueError("two Vars share a slot")
    if not layout.written <= set(layout.inputs) or any(check.var not in layout.inputs for check in layout.checks):
        raise ValueError("it treats another value as an argument")
    if any(offset + var.nbytes > layout.arena for var, offset in layout.buffers.items()):
        raise ValueError("a buffer lies outside the memory")


def _stats(stored: dict[str, Any]) -> Stats:
    if not all(isinstance(value, int | float) for value in stored.values()):
        raise ValueError("a total that is no number")
    return Stats(**stored)
