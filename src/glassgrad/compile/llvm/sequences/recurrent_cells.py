"""The formulas of recurrent cells in native code: a vector of hidden units at one time step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from glassgrad.compile.llvm.loops.memory_ops import load_vector, store_vector
from glassgrad.compile.llvm.math import math_call
from glassgrad.compile.llvm.module.ir import Builder, Value

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.words import Words


class Point:
    """A vector of columns of a row at a step, with its loads and stores.

    Args:
        words: the code writer.
        sizes: lanes of a vector, and columns of a block.
        columns: the first column, in the row and in its block.
        mask: the columns that exist; None for all.
        places: the addresses of the row in each array.
        first: in the backward pass, whether this is the first turn, without a later step.
    """

    def __init__(
        self,
        words: Words,
        sizes: tuple[int, int],
        columns: tuple[str, str],
        mask: Value | None,
        places: Mapping[str, str],
        first: str = "",
    ) -> None:
        self.words, self.columns, self.places, self.first = words, columns, places, first
        self.sizes, self.layout = sizes, (sizes[0], 1, 0, mask)

    @property
    def b(self) -> Builder:
        return self.words.b

    def load(self, name: str, gate: int = 0) -> Value:
        """Load from an array in which the gates are consecutive."""
        address = self._address(name, gate)
        return load_vector(self.b, self.words.kind, address, self.layout, [], None, address)

    def load_if(self, flag: str, name: str, gate: int = 0) -> Value:
        """Load if `flag` is set, else return 0."""
        value = self.load(name, gate)
        return self.b.select(Value(flag, "b1"), value, self.b.like(0, value))

    def store(self, value: Value, name: str, gate: int = 0) -> None:
        store_vector(self.b, value, self._address(name, gate), self.layout)

    def product(self, gate: int = 0) -> Value:
        """Load the product for a gate."""
        lanes, width = self.sizes
        base = self.words._place(self.places["products"], str(gate * width))
        address = self.words._place(base, self.columns[1])
        return load_vector(self.b, self.words.kind, address, (lanes, 1, 0, None), [], None, address)

    def later(self, value: Value, flag: str, last: str) -> Value:
        """Return the cotangent from the later step; at the last step, that of the last state, if any."""
        return self.b.select(Value(self.first, "b1"), self.load_if(flag, last), value)

    def bias(self, gate: int) -> Value:
        places = {**self.places, "bias": "%bias"}
        point = Point(self.words, self.sizes, self.columns, self.layout[3], places)
        return point.load_if("%biased", "bias", gate)

    def _address(self, name: str, gate: int) -> str:
        place = self.places[name]
        if gate:
            place = self.words._place(place, self.words._times("%hidden", str(gate)))
        return self.words._place(place, self.columns[0])


class Cell(NamedTuple):
    """A kind of recurrent layer.

    Attributes:
        gates: the number of products per hidden unit.
        kept: the number of residuals per hidden unit, besides states.
        forward, backward: emit a step.
        finish: emits the cotangent of the first state.
    """

    gates: int
    kept: int
    forward: Callable[[Point], None]
    backward: Callable[[Point], None]
    finish: Callable[[Point], None]


_LAST = ("%has_dh", "hn")


def _within(p: Point, y: Value, squashed: bool = False) -> Value:
    """Return the slope of a sigmoid, or of a tanh, from its value."""
    one = p.b.like(1, y)
    if squashed:
        return p.b.fsub(one, p.b.fmul(y, y))
    return p.b.fmul(y, p.b.fsub(one, y))


def _lstm(p: Point) -> None:
    b = p.b
    i, f, g, o = (
        math_call(b, "tanh" if gate == 2 else "sigmoid", b.fadd(p.load("a", gate), p.product(gate)))
        for gate in range(4)
    )
    c = b.fma(f, p.load("cell_before"), b.fmul(i, g))
    h = b.fmul(o, math_call(b, "tanh", c))
    for gate, value in enumerate((i, f, g, o)):
        p.store(value, "gates", gate)
    for name, value in (("cells", c), ("cn", c), ("y", h), ("hn", h), ("state", h)):
        p.store(value, name)


def _lstm_back(p: Point) -> None:
    b = p.b
    i, f, g, o = (p.load("gates", gate) for gate in range(4))
    dh = b.fadd(p.later(p.product(), *_LAST), p.load_if("%has_dy", "dy"))
    squashed = math_call(b, "tanh", p.load("cells"))
    slope = _within(p, squashed, squashed=True)
    dc = b.fma(b.fmul(dh, o), slope, p.later(p.load("dc0"), "%has_dc", "cn"))
    before = p.load("cell_before")
    p.store(b.fmul(dc, f), "dc0")
    found = (
        b.fmul(b.fmul(dc, g), _within(p, i)),
        b.fmul(b.fmul(dc, before), _within(p, f)),
        b.fmul(b.fmul(dc, i), _within(p, g, squashed=True)),
        b.fmul(b.fmul(dh, squashed), _within(p, o)),
    )
    for gate, value in enumerate(found):
        p.store(value, "a", gate)
        p.store(value, "state", gate)


def _gru(p: Point) -> None:
    b = p.b
    from_h = [b.fadd(p.product(gate), p.bias(gate)) for gate in range(3)]
    r, z = (math_call(b, "sigmoid", b.fadd(p.load("a", gate), from_h[gate])) for gate in range(2))
    n = math_call(b, "tanh", b.fma(r, from_h[2], p.load("a", 2)))
    h = b.fma(z, b.fsub(p.load("before"), n), n)
    for gate, value in enumerate((r, z, n, from_h[2])):
        p.store(value, "gates", gate)
    for name in ("y", "hn", "state"):
        p.store(h, name)


def _gru_back(p: Point) -> None:
    b = p.b
    r, z, n, inner = (p.load("gates", gate) for gate in range(4))
    dh = b.fadd(p.later(b.fadd(p.product(), p.load("dh0")), *_LAST), p.load_if("%has_dy", "dy"))
    dn = b.fmul(b.fmul(dh, b.fsub(b.like(1, z), z)), _within(p, n, squashed=True))
    dz = b.fmul(b.fmul(dh, b.fsub(p.load("before"), n)), _within(p, z))
    dr = b.fmul(b.fmul(dn, inner), _within(p, r))
    p.store(b.fmul(dh, z), "dh0")
    for gate, value in enumerate((dr, dz, dn)):
        p.store(value, "a", gate)
    for gate, value in enumerate((dr, dz, b.fmul(dn, r))):
        p.store(value, "dhidden", gate)
        p.store(value, "state", gate)


def _rnn(rectified: bool) -> Callable[[Point], None]:
    def forward(p: Point) -> None:
        b = p.b
        h = b.fadd(p.load("a"), p.product())
        h = _relu(b, h) if rectified else math_call(b, "tanh", h)
        for name in ("y", "hn", "state"):
            p.store(h, name)

    return forward


def _relu(b: Builder, x: Value) -> Value:
    # NaN stays NaN.
    return b.select(b.compare("olt", x, b.like(0, x)), b.like(0, x), x)


def _rnn_back(rectified: bool) -> Callable[[Point], None]:
    def backward(p: Point) -> None:
        b = p.b
        dh, y = b.fadd(p.later(p.product(), *_LAST), p.load_if("%has_dy", "dy")), p.load("y")
        if rectified:
            dh = b.select(b.compare("ogt", y, b.like(0, y)), dh, b.like(0, dh))
        else:
            dh = b.fmul(dh, _within(p, y, squashed=True))
        for name in ("a", "state"):
            p.store(dh, name)

    return backward


def _finish(p: Point) -> None:
    p.store(p.product(), "dh0")


def _finish_gru(p: Point) -> None:
    p.store(p.b.fadd(p.product(), p.load("dh0")), "dh0")


CELLS = {
    "lstm": Cell(4, 4, _lstm, _lstm_back, _finish),
    "gru": Cell(3, 4, _gru, _gru_back, _finish_gru),
    "rnn": Cell(1, 0, _rnn(False), _rnn_back(False), _finish),
    "relu": Cell(1, 0, _rnn(True), _rnn_back(True), _finish),
}
