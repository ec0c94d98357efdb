"""Recurrent layers in one native call for each direction: the loop over time, without the products of the inputs.

Each thread goes through all steps with some rows of the batch. Where these are few, it takes some columns of the state,
and the threads meet after each step. The code, `compile.llvm.sequences.recurrent`, is for float32 and float64.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels import products

Array = Any

FROM = 2_000_000  # multiplications, as many as take the time from which it pays
A_STEP = 200_000  # multiplications that take as long as NumPy's calls for a step
PACKED_FOR = 8  # positions from which packing the weights pays, where they are many
_SMALL = 4_096  # weights of a gate that are packed in no time
_FORM = struct.Struct("<36q")
_KINDS = {"f": "f32", "d": "f64"}
_LINE = 64
_ROWS = 4  # of a thread at least: fewer take as long
A_TURN = 50_000  # multiplications of a thread in a step from which it pays to meet after each


class Form(NamedTuple):
    """A layer: its kind, how the sequence is read, and which axis of the arrays is time."""

    kind: str
    reverse: bool
    batch_first: bool


GATES = {"lstm": 4, "gru": 3, "rnn": 1, "relu": 1}


def source() -> Any:
    """Return what makes jobs of native code, and the bytes of its vectors; `native`, which stands above, does."""
    return None


def forward(
    form: Form, a: Array, gates: Array | None, states: Sequence[Array], w: Array, bias: Array | None
) -> tuple[Array, ...] | None:
    """Compute all steps; return y, the last states, and the cells of an LSTM. None if NumPy should compute it.

    Args:
        form: of the layer.
        a: what the inputs give to the gates of all steps.
        gates: an array for the activated gates, which may be `a`.
        states: before the first step.
        w: weights of the state, (gates * hidden, hidden).
        bias: what the weights' product is added to, where that is not in `a`.
    """
    hidden = w.shape[1]
    y = np.empty((*a.shape[:2], hidden), a.dtype)
    cells = np.empty_like(y) if len(states) > 1 else y
    last = [np.empty_like(one) for one in states]
    given = {"a": a, "gates": y if gates is None else gates, "y": y, "cells": cells, "bias": bias, "w": w}
    given |= dict(zip(("h0", "c0"), states, strict=False)) | dict(zip(("hn", "cn"), last, strict=False))
    return (y, *last, cells) if _run(form, "", given, {"biased": bias is not None}) else None


def backward(
    form: Form, g: Sequence[Array | None], kept: dict[str, Array], states: Sequence[Array], w: Array
) -> tuple[Array, Array, list[Array]] | None:
    """Return the cotangents of `a`, of what the weights give, and of the first states; None if NumPy should compute.

    Args:
        form: of the layer.
        g: cotangents of y and of the last states, None for those that are missing.
        kept: y, gates and cells of the forward pass.
        states: before the first step.
        w: weights of the state.
    """
    like = kept["y"]
    shape = (*like.shape[:2], w.shape[0])
    da = np.empty(shape, like.dtype)
    dhidden = np.empty(shape, like.dtype) if form.kind == "gru" else da
    found = [np.empty_like(one) for one in states]
    dy, *last = g
    given = {**kept, "a": da, "dhidden": dhidden, "w": w, "dy": dy}
    given |= dict(zip(("hn", "cn"), last, strict=False)) | dict(zip(("h0", "c0"), states, strict=False))
    given |= dict(zip(("dh0", "dc0"), found, strict=False))
    flags = {"has_dy": dy is not None, "has_dh": last[0] is not None, "has_dc": len(last) > 1 and last[1] is not None}
    return (da, dhidden, found) if _run(form, "_back", given, flags) else None


def _run(form: Form, suffix: str, given: dict[str, Array], flags: dict[str, bool]) -> bool:
    """Run a function on arrays, of which None are missing; return False where NumPy should compute it."""
    a, w = given["a"], given["w"]
    if not _suits(form, a, w):
        return False
    made = source()
    if made is None:
        return False
    job, vector_bytes = made
    arrays = {name: _laid(one, a.dtype) for name, one in given.items() if one is not None}
    if any(one is None for one in arrays.values()):
        return False
    plan = _plan(form, bool(suffix), a.shape, w.shape[1], vector_bytes // a.itemsize, threads_for(a, w))
    memory = np.empty(plan.elements + _LINE // a.itemsize, a.dtype)
    places = [id(arrays.get(name, a)) for name in _ARRAYS]
    words = [int(flags.get(name, False)) for name in _FLAGS]
    records = [
        (*places, id(memory), *share.numbers, int(form.reverse), *words, 0, plan.each, plan.turns, *share.pack,
         plan.states, share.scratch)
        for share in plan.shares
    ]  # fmt: skip  # one record
    found = job(f"recurrent_{form.kind}_{_KINDS[a.dtype.char]}{suffix}", len(records))
    if found is None:
        return False
    found.run(_FORM, records, 1 - -plan.turns // plan.each)
    return True


_ARRAYS = ("a", "gates", "y", "cells", "h0", "c0", "hn", "cn", "bias", "w", "dy", "dhidden", "dh0", "dc0")
_FLAGS = ("biased", "has_dy", "has_dh", "has_dc")


def _suits(form: Form, a: Array, w: Array) -> bool:
    if type(a) is not np.ndarray or type(w) is not np.ndarray or a.dtype.char not in _KINDS or w.dtype is not a.dtype:
        return False
    steps, batch = a.shape[1::-1] if form.batch_first else a.shape[:2]
    if not a.size or steps * (batch * w.size + A_STEP) < FROM:
        return False
    return steps * batch >= PACKED_FOR or bool(w.shape[1] ** 2 <= _SMALL)


def _laid(x: Array, dtype: Any) -> Array | None:
    """Return an array as native code reads it; None for one of another kind."""
    if type(x) is not np.ndarray or x.dtype is not dtype:
        return None
    return np.require(x, requirements=["C", "A"])


def threads_for(a: Array, w: Array) -> int:
    """Return how many threads share a step of a layer."""
    return products.shares(a.shape[0] * a.shape[1] * w.size)


class _Share(NamedTuple):
    numbers: tuple[int, ...]
    pack: tuple[int, int]
    scratch: int


class _Plan(NamedTuple):
    """How a layer is cut: shares, steps of a turn, turns, where states begin, and how much memory it takes."""

    shares: list[_Share]
    each: int
    turns: int
    states: int
    elements: int


@lru_cache(maxsize=256)
def _plan(form: Form, back: bool, shape: tuple[int, ...], hidden: int, lanes: int, threads: int) -> _Plan:
    steps, batch = shape[1::-1] if form.batch_first else shape[:2]
    gates, width = GATES[form.kind], 2 * lanes
    blocks = -(-hidden // width)
    by_rows = batch >= _ROWS * threads
    if not by_rows:
        threads = min(threads, 1 + batch * gates * hidden * hidden // (2 * A_TURN))
    count = min(threads, batch if by_rows else blocks)
    turns = steps + back
    terms = gates * hidden if back else -(-hidden // lanes) * lanes
    panels = _up(blocks * (1 if back else gates) * width * terms, _LINE)
    states = _up(2 * batch * hidden * (gates if back else 1), _LINE)
    rows = -(-batch // count) if by_rows else batch
    own = _up(rows * width * (1 if back else gates), _LINE)
    distances = (1, steps) if form.batch_first else (batch, 1)
    shares = []
    for at, (pack, part) in enumerate(zip(_edges(blocks, count), _edges(batch, count), strict=True)):
        cut = (*part, 0, blocks) if by_rows else (0, batch, *pack)
        numbers = (steps, batch, hidden, *distances, *cut)
        shares.append(_Share(numbers, pack, panels + states + at * own))
    each = turns if by_rows or count == 1 else 1
    return _Plan(shares, each, turns, panels, panels + states + count * own)


def _edges(size: int, count: int) -> list[tuple[int, int]]:
    return list(pairwise([size * at // count for at in range(count + 1)]))


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
