"""Recurrent layers in one native call per direction: the loop over time, without the products of the inputs.

Each thread runs all steps for some rows of the batch. With a small batch it takes some columns of the state instead,
and the threads synchronise after each step. The code is in `compile.llvm.sequences.recurrent`, for float32 and float64.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels import native, products
from glassgrad.ops.kernels.ways import Array, Dtype, least

FROM = least("recurrent layer")
A_STEP = 200_000  # multiplications that take as long as NumPy's calls for a step
PACKED_FOR = 8  # positions from which packing large weights pays
ROWS = 4  # at least, for each thread: fewer take as long
A_TURN = 50_000  # multiplications per thread and step from which synchronising after each step pays
_SMALL = 4_096  # weights of a gate: packing these takes almost no time
_LINE = 64  # bytes, and elements: parts of the memory begin at multiples of this
_KINDS = {"f": "f32", "d": "f64"}
GATES = {"lstm": 4, "gru": 3, "rnn": 1, "relu": 1}
VECTORS = 2  # in a packed panel

# --- the record of a share --------------------------------------------------------------------------

# Arrays as objects. The forward pass computes gates, y, cells and the last states hn and cn from a, h0 and c0. The
# backward pass reads dy; hn and cn then hold the cotangents of the last states. It computes the cotangents of the first
# states and of the product with the weights; the latter equals that of a, except for GRU (dhidden).
ARRAYS = ("a", "gates", "y", "cells", "h0", "c0", "hn", "cn", "bias", "w", "dy", "dhidden", "dh0", "dc0")
# Sizes; distances between steps and between rows of an array, in positions; and the part of this share.
NUMBERS = ("steps", "batch", "hidden", "step_at", "row_at", "row_first", "row_last", "block_first", "block_last")
# Whether the sequence is read from its end; whether there are a bias and cotangents of y and of the last states.
FLAGS = ("reverse", "biased", "has_dy", "has_dh", "has_dc")
# The next turn of the share (0 packs its part of the weights), steps per turn, turns in total, the blocks to pack, and
# the offsets in the memory of the states and of this share's own part, in elements.
ENTRY = ("turn", "each", "turns", "pack_first", "pack_last", "states_at", "scratch_at")
WORDS = {name: at for at, name in enumerate((*ARRAYS, "memory", *NUMBERS, *FLAGS, *ENTRY))}
_FORM = struct.Struct(f"<{len(WORDS)}q")


Source = tuple[Callable[[str, int], Any], int]


class Form(NamedTuple):
    """A layer: its kind, how the sequence is read, and which axis of the arrays is time."""

    kind: str
    reverse: bool
    batch_first: bool


def source() -> Source | None:
    """Return the function that makes jobs, and the bytes of a vector; None if NumPy computes everything."""
    return None if native.kernels.off else _layers()


@functools.cache
def _layers() -> Source | None:
    library = native.library("recurrent_rnn_f32")
    return None if library is None else (native.job, library.host().vector_bytes)


def forward(
    form: Form, a: Array, gates: Array | None, states: Sequence[Array], w: Array, bias: Array | None
) -> tuple[Array, ...] | None:
    """Compute all steps; return y, the last states, and the cells of an LSTM. None if NumPy should compute it.

    Args:
        form: kind of layer and layout.
        a: contributions of the inputs to the gates of all steps.
        gates: an array for the activated gates, which may be `a`.
        states: states before the first step.
        w: weights of the state, (gates * hidden, hidden).
        bias: added to the product with the weights, where it is not part of `a`.
    """
    if not _suits(form, a, w):
        return None
    y = np.empty((*a.shape[:2], w.shape[1]), a.dtype)
    cells = np.empty_like(y) if len(states) > 1 else None
    last = [np.empty_like(one) for one in states]
    given = {"a": a, "gates": gates, "y": y, "cells": cells, "bias": bias, "w": w}
    given |= _named("h0 c0", states) | _named("hn cn", last)
    return (y, *last, cells) if _run(form, "", given, {"biased": bias is not None}) else None


def backward(
    form: Form, g: Sequence[Array | None], kept: dict[str, Array], states: Sequence[Array], w: Array
) -> tuple[Array, Array, list[Array]] | None:
    """Return the cotangents of `a`, of the product with the weights and of the first states; None if left to NumPy.

    Args:
        form: kind of layer and layout.
        g: cotangents of y and of the last states, None for those that are missing.
        kept: y, gates and cells of the forward pass.
        states: states before the first step.
        w: weights of the state.
    """
    y = kept["y"]
    if not _suits(form, y, w):
        return None
    da = np.empty((*y.shape[:2], w.shape[0]), y.dtype)
    dhidden = np.empty_like(da) if form.kind == "gru" else da
    found = [np.empty_like(one) for one in states]
    given = {**kept, "a": da, "dhidden": dhidden, "w": w, "dy": g[0]}
    given |= _named("hn cn", g[1:]) | _named("h0 c0", states) | _named("dh0 dc0", found)
    flags = {flag: given.get(name) is not None for flag, name in (("has_dy", "dy"), ("has_dh", "hn"), ("has_dc", "cn"))}
    return (da, dhidden, found) if _run(form, "_back", given, flags) else None


def _named(names: str, arrays: Sequence[Array]) -> dict[str, Array]:
    return dict(zip(names.split(), arrays, strict=False))


def _suits(form: Form, x: Array, w: Array) -> bool:
    """Tell whether native code pays for a sequence of such arrays."""
    if type(x) is not np.ndarray or type(w) is not np.ndarray or w.dtype is not x.dtype:
        return False
    steps, batch = x.shape[1::-1] if form.batch_first else x.shape[:2]
    if not (x.size and x.dtype.char in _KINDS and x.dtype.isnative) or steps * (batch * w.size + A_STEP) < FROM:
        return False
    return steps * batch >= PACKED_FOR or bool(w.shape[1] ** 2 <= _SMALL)


def _run(form: Form, suffix: str, given: dict[str, Array], flags: dict[str, bool]) -> bool:
    """Run a function on arrays (None for missing ones); return False if NumPy should compute it."""
    made = source()
    if made is None:
        return False
    job, vector_bytes = made
    a, w = given["a"], given["w"]
    arrays = {name: _laid(one, a.dtype) for name, one in given.items() if one is not None}
    if any(one is None for one in arrays.values()):
        return False
    plan = _plan(form, bool(suffix), a.shape, w.shape[1], vector_bytes // a.itemsize, threads_for(a, w))
    memory = np.empty(plan.elements + _LINE // a.itemsize, a.dtype)
    places = [*(id(arrays.get(name, a)) for name in ARRAYS), id(memory)]
    words = [form.reverse, *(flags.get(name, False) for name in FLAGS[1:])]
    records = [(*places, *numbers, *words, *entry) for numbers, entry in plan.shares]
    found = job(f"recurrent_{form.kind}_{_KINDS[a.dtype.char]}{suffix}", len(records))
    if found is None:
        return False
    found.run(_FORM, records, plan.turns)
    return True


def _laid(x: Array, dtype: Dtype) -> Array | None:
    """Return an array in the layout of native code; None for another type or dtype."""
    if type(x) is not np.ndarray or x.dtype is not dtype:
        return None
    return np.require(x, requirements=["C", "A"])


def threads_for(a: Array, w: Array) -> int:
    """Return how many threads share a step of a layer."""
    return products.shares(a.shape[0] * a.shape[1] * w.size)


# --- how the work is cut ----------------------------------------------------------------------------


def memory_of(gates: int, back: bool, rows: int, hidden: int, lanes: int) -> tuple[int, int, int]:
    """Return the sizes in elements of the packed weights, the states, and the products of `rows` rows."""
    panels, width = 1 if back else gates, VECTORS * lanes
    terms = gates * hidden if back else -(-hidden // lanes) * lanes
    packed = -(-hidden // width) * panels * width * terms
    states = 2 * rows * hidden * (gates if back else 1)
    return _up(packed), _up(states), _up(rows * width * panels)


class _Plan(NamedTuple):
    """The cuts of a layer: each share's numbers and the words after its flags; the turns; the elements of memory."""

    shares: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
    turns: int
    elements: int


@lru_cache(maxsize=256)
def _plan(form: Form, back: bool, shape: tuple[int, ...], hidden: int, lanes: int, threads: int) -> _Plan:
    steps, batch = shape[1::-1] if form.batch_first else shape[:2]
    gates, blocks = GATES[form.kind], -(-hidden // (VECTORS * lanes))
    by_rows = batch >= ROWS * threads
    if not by_rows:
        threads = min(threads, blocks, 1 + batch * gates * hidden * hidden // (2 * A_TURN))
    packed, states, own = memory_of(gates, back, batch, hidden, lanes)
    turns = steps + back  # the last one gives the cotangent of the first state
    each = turns if by_rows or threads == 1 else 1
    distances = (1, steps) if form.batch_first else (batch, 1)
    shares = []
    for at, (part, rows) in enumerate(zip(_edges(blocks, threads), _edges(batch, threads), strict=True)):
        cut = (*rows, 0, blocks) if by_rows else (0, batch, *part)
        entry = (0, each, turns, *part, packed, packed + states + at * own)
        shares.append(((steps, batch, hidden, *distances, *cut), entry))
    return _Plan(shares, 1 - -turns // each, packed + states + threads * own)


def _edges(size: int, count: int) -> list[tuple[int, int]]:
    return list(pairwise([size * at // count for at in range(count + 1)]))


def _up(size: int) -> int:
    return -(-size // _LINE) * _LINE
