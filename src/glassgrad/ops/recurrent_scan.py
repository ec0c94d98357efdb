"""Loops over time as primitives: a traced recurrent layer consists of these and ordinary products.

``lstm_scan(a, h, c, w)`` runs all steps on the contributions of the inputs to the gates. Its derivative is
``lstm_scan_back`` and products over all steps together. Residuals are results, so a trace holds a loop as one
instruction. Higher derivatives, forward mode and vmap decompose it into single steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.activation import relu
from glassgrad.ops.axes import swap_last
from glassgrad.ops.core import PRIMITIVES, Array, Aval, Fused, Primitive, fused
from glassgrad.ops.fused import linear_p
from glassgrad.ops.kernels.recurrent import Form
from glassgrad.ops.linalg import matmul
from glassgrad.ops.recurrent_loops import Kept, Scan, backward, before, forward
from glassgrad.ops.recurrent_steps import gru_cell, lstm_cell
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.shape import cat, reshape_p, stack


def _form(name: str, reverse: bool, batch_first: bool, rectified: bool = False) -> Form:
    return Form("relu" if rectified else name, reverse, batch_first)


def _rows(x: Array) -> Array:
    return reshape_p(x, shape=(x.shape[0] * x.shape[1], x.shape[2]))


class _Loop(NamedTuple):
    """A kind of layer, and the rules of its loop in both directions.

    Attributes:
        name: name of the kind.
        states: number of states.
        has_cells, has_gates: values that the derivative needs besides y and the first states.
    """

    name: str
    states: int
    has_cells: bool
    has_gates: bool

    def declared(self) -> tuple[Fused, Primitive]:
        """Return the primitives of both directions."""
        scan = fused(
            f"{self.name}_scan",
            self.compute,
            joint_vjp=self.vjp,
            decompose=self.decomposed,
            multiple=True,
            companions=self.has_cells + self.has_gates,
            shape=self.shape,
            register=False,
        ).describe("all steps, from what the inputs give to the gates")
        back = Primitive(
            f"{self.name}_scan_back", self.compute_back, multiple=True, shape=self.back_shape, register=False
        ).describe("cotangents of the gates of all steps")
        scan.saves_results = True
        for one in (scan, back):
            PRIMITIVES[one.name] = one
        return scan, back

    # --- forwards ---

    def compute(self, _xp: Any, a: Array, *rest: Array, **params: Any) -> Any:
        first, w, bias = self._split(rest)
        results, kept = forward(Scan(_form(self.name, **params), a, first, w, *bias))
        made = (*results, *(one for one in (kept.cells, kept.gates) if one is not None))
        return made, made

    def shape(self, a: Any, *rest: Any, **_params: Any) -> tuple[Aval, ...]:
        first, w, _ = self._split(rest)
        hidden = w.shape[1]
        y, gates = (Aval((*a.shape[:2], width), a.dtype) for width in (hidden, 4 * hidden))
        return y, *_like(first, a), *[y] * self.has_cells, *[gates] * self.has_gates

    def decomposed(self, a: Array, *rest: Array, reverse: bool, batch_first: bool, **options: Any) -> tuple[Array, ...]:
        """The same loop step by step, in other ops."""
        now, w, bias = self._split(rest)
        steps = a.shape[int(batch_first)]
        found: list[Any] = [None] * steps
        for at in reversed(range(steps)) if reverse else range(steps):
            from_h = linear_p(now[0], w, *bias)
            now, *kept = _STEPS[self.name](a[:, at] if batch_first else a[at], from_h, now, **options)
            found[at] = (now[0], *kept)
        if not steps:
            empty = a[..., : w.shape[1]]
            return empty, *now, *[empty] * self.has_cells, *[cat([empty] * 4, -1)] * self.has_gates
        y, *kept = (stack(list(parts), int(batch_first)) for parts in zip(*found, strict=True))
        return y, *now, *kept

    def _split(self, rest: Sequence[Any]) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """Return the first states, the weights, and the bias, if there is one."""
        return tuple(rest[: self.states]), rest[self.states], tuple(rest[self.states + 1 :])

    # --- backwards ---

    def vjp(self, g: Any, needs: Any, made: Any, a: Any, *rest: Array, **params: Any) -> Any:
        first, w, bias = self._split(rest)
        given = tuple(one is not None for one in g)
        kept = (made[0], *made[1 + self.states :])
        cotangents = [one for one in g if one is not None]
        found = BACK[self.name](*cotangents, *kept, *first, w, given=given, **params)
        dhidden, dstates = found[-1 - self.states], found[len(found) - self.states :]
        earlier = before(made[0], first[0], _form(self.name, **params))
        dw = matmul(swap_last(_rows(dhidden)), _rows(earlier)) if needs[1 + self.states] else None
        return found[0], *dstates, dw, *([sum_p(dhidden, axis=(0, 1), keepdims=False)] if bias else [])

    def compute_back(self, _xp: Any, *args: Array, given: tuple[bool, ...], **params: Any) -> Any:
        parts = list(args)
        g = [parts.pop(0) if there else None for there in given]
        y = parts.pop(0)
        cells = parts.pop(0) if self.has_cells else None
        gates = parts.pop(0) if self.has_gates else None
        scan = Scan(_form(self.name, **params), y, tuple(parts[: self.states]), parts[self.states])
        da, dhidden, dstates = backward(scan, g, Kept(y, cells, gates))
        return (da, *([dhidden] if self.name == "gru" else []), *dstates)

    def back_shape(self, *args: Any, **_params: Any) -> tuple[Aval, ...]:
        first, w = args[-1 - self.states : -1], args[-1]
        y = args[-2 - self.states - self.has_cells - self.has_gates]
        da = Aval((*y.shape[:2], w.shape[0]), w.dtype)
        return *[da] * (1 + (self.name == "gru")), *_like(first, w)


def _like(states: Sequence[Any], model: Any) -> tuple[Aval, ...]:
    return tuple(Aval(tuple(one.shape), model.dtype) for one in states)


def _lstm(a: Array, from_h: Array, states: Any) -> Any:
    hidden, cell, gates = lstm_cell(a + from_h, states[1])
    return (hidden, cell), cell, cat(list(gates), -1)


def _gru(a: Array, from_h: Array, states: Any) -> Any:
    hidden, gates = gru_cell(a, from_h, states[0])
    return (hidden,), cat(list(gates), -1)


def _rnn(a: Array, from_h: Array, _states: Any, rectified: bool) -> Any:
    hidden = relu(a + from_h) if rectified else ew.tanh(a + from_h)
    return ((hidden,),)


_STEPS: dict[str, Any] = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}

_LOOPS = (_Loop("lstm", 2, True, True), _Loop("gru", 1, False, True), _Loop("rnn", 1, False, False))
_DECLARED = {one.name: one.declared() for one in _LOOPS}
SCANS = {name: scan for name, (scan, _) in _DECLARED.items()}
BACK = {name: back for name, (_, back) in _DECLARED.items()}
NAMES = frozenset(one.name for one in SCANS.values())
KINDS = frozenset(np.dtype(kind) for kind in "fd")
"""Dtypes that have loops; layers of other dtypes decompose into single steps."""
