"""Batch norm and the gradient of piecewise-linear activations for eager mode, for arrays of any size.

Unlike the kernels of steps these functions take sizes as arguments, so one module serves all layers of all networks.
The code passes over a channel of an image batch two or three times while it is in the second-level cache, so each array
is read from or written to memory once; NumPy takes seven passes over memory.

Text is written for one dtype at a time; `module` joins them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from glassgrad.compile.llvm.loops.scalar import across_lanes
from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Function, Module, Value, type_name
from glassgrad.compile.llvm.products.shares import memory_of, record, word

_UNROLLED = 4
_SIZE = "i64"

Turn = Callable[[Builder, str, int, list[Value]], list[Value]]
"""Writes code for the elements from an offset on: (builder, offset, lanes, previous sums) to sums."""


# Words of a share of `inside`: the array objects of g, v and the result, the first element and the count, and the bits
# of the bounds. A share is a record after the claims of a context, as for a product.
G, V, D, FIRST, COUNT, LOW, HIGH = range(7)


def module(header: str, attributes: str, vector_bytes: int, data: int) -> str:
    """Return the text of all functions: ``norm_f32``, ``norm_back_f32``, ``inside_f32``, and the same for f64.

    `data` is the offset of the data pointer in an array object.
    """
    whole = Module(vector_bytes)
    for kind in ("f32", "f64"):
        lanes = 8 * vector_bytes // BITS[kind]
        for write in (_norm, _norm_back, _inside):
            write(whole, kind, lanes)
    shares = "".join(_inside_of_share(kind, data) for kind in ("f32", "f64"))
    return f"{header}\n{whole.text()}\n{shares}\n{attributes}"


# --- loops with bounds known at run time ----------------------------------------------------------


@contextmanager
def _while_below(b: Builder, start: str, stop: str, step: int, sums: Sequence[Value]) -> Iterator[_Open]:
    """Open ``for i in range(start, stop, step)``, for whole steps only; it may have no iterations."""
    head, body, after = (b.function.fresh(stem) for stem in ("head", "body", "after"))
    entry = b.label
    b.raw(f"br label %{head}")
    b.start(head)
    at = Value(f"%{b.function.fresh('i')}", _SIZE)
    carried = [Value(f"%{b.function.fresh('c')}", one.kind, one.lanes) for one in sums]
    place = len(b.lines)
    following = b.define(f"add nuw nsw i64 {at.text}, {step}", _SIZE)
    more = b.compare("le", following, Value(stop, _SIZE))
    b.raw(f"br i1 {more.text}, label %{body}, label %{after}")
    b.start(body)
    opened = _Open(at, carried)
    yield opened
    ends = b.label
    b.raw(f"br label %{head}")
    phis = [f"  {at.text} = phi i64 [ {start}, %{entry} ], [ {following.text}, %{ends} ]"]
    for one, first, last in zip(carried, sums, opened.sums, strict=True):
        phis.append(f"  {one.text} = phi {one.type} [ {first.text}, %{entry} ], [ {last.text}, %{ends} ]")
    b.lines[place:place] = phis
    b.start(after)
    opened.sums = carried


class _Open:
    """An open loop and its running sums: those at the start of an iteration, then at its end, then after the loop."""

    def __init__(self, at: Value, sums: list[Value]) -> None:
        self.at, self.sums = at, sums


def _along(b: Builder, count: str, lanes: int, sums: list[Value], turn: Turn, kinds: int) -> list[Value]:
    """Apply `turn` to `count` elements: several vectors at a time, then single ones, then elements.

    `sums` are `_UNROLLED` vectors and one number for each of `kinds` sums.
    """
    wide = [one for one in sums if one.lanes > 1]
    rest = [one for one in sums if one.lanes == 1]
    with _while_below(b, "0", count, _UNROLLED * lanes, wide) as several:
        made = list(several.sums)
        for number in range(_UNROLLED):
            offset = b.define(f"add nuw nsw i64 {several.at.text}, {number * lanes}", _SIZE)
            own = slice(number * kinds, (number + 1) * kinds)
            made[own] = turn(b, offset.text, lanes, made[own])
        several.sums = made
    wide = several.sums
    with _while_below(b, several.at.text, count, lanes, wide[:kinds]) as single:
        single.sums = turn(b, single.at.text, lanes, list(single.sums))
    with _while_below(b, single.at.text, count, 1, rest) as last:
        last.sums = turn(b, last.at.text, 1, list(last.sums))
    return [*single.sums, *wide[kinds:], *last.sums]


def _over_rows(b: Builder, lanes: int, kind: str, kinds: int, turn: Turn) -> list[Value]:
    """Apply `turn` to the rows of the open channel; return the `kinds` sums over all elements."""
    zeros = [b.const(0, kind, lanes)] * (_UNROLLED * kinds) + [b.const(0, kind)] * kinds
    with _while_below(b, "0", "%n", 1, zeros) as sample:
        plane = b.define(f"mul nuw nsw i64 {sample.at.text}, %c", _SIZE)
        plane = b.define(f"add nuw nsw i64 {plane.text}, %channel", _SIZE)
        start = b.define(f"mul nuw nsw i64 {plane.text}, %l", _SIZE)

        def moved(b: Builder, offset: str, lanes: int, sums: list[Value]) -> list[Value]:
            return turn(b, b.define(f"add nuw nsw i64 {start.text}, {offset}", _SIZE).text, lanes, sums)

        sample.sums = _along(b, "%l", lanes, sample.sums, moved, kinds)
    found = []
    for which in range(kinds):
        vectors = sample.sums[which : _UNROLLED * kinds : kinds]
        whole = b.fadd(b.fadd(vectors[0], vectors[1]), b.fadd(vectors[2], vectors[3]))
        found.append(b.fadd(across_lanes(b, "add", whole), sample.sums[_UNROLLED * kinds + which]))
    return found


# --- memory ---------------------------------------------------------------------------------------


def _read(b: Builder, array: str, offset: str, kind: str, lanes: int = 1) -> Value:
    place = b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {array}, i64 {offset}")
    return b.define(f"load {type_name(kind, lanes)}, ptr {place}, align {BITS[kind] // 8}", kind, lanes)


def _put(b: Builder, value: Value, array: str, offset: str) -> None:
    place = b.pointer(f"getelementptr {LLVM_TYPE[value.kind]}, ptr {array}, i64 {offset}")
    b.raw(f"store {value.typed}, ptr {place}, align {BITS[value.kind] // 8}")


def _function(whole: Module, name: str, arguments: str, write: Callable[[Builder], None]) -> None:
    b = Builder(Function(whole))
    write(b)
    lines = "\n".join(b.lines)
    whole.definitions[name] = f"define void @{name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}\n"


_SIZES = "i64 %n, i64 %c, i64 %l, i64 %first, i64 %last"


# --- batch norm -----------------------------------------------------------------------------------


def _norm(whole: Module, kind: str, lanes: int) -> None:
    """y = (x - mean) / sqrt(var + eps) * w + b of the channels `first` to `last`, with residuals for the gradient."""
    number = LLVM_TYPE[kind]

    def write(b: Builder) -> None:
        share, eps = Value("%share", kind), Value("%eps", kind)
        offset = b.define("sub i64 %last, %first", _SIZE)
        with _while_below(b, "0", offset.text, 1, ()) as each:
            b.raw(f"%channel = add i64 %first, {each.at.text}")
            total = _over_rows(b, lanes, kind, 1, lambda b, at, k, s: [b.fadd(s[0], _read(b, "%x", at, kind, k))])
            mean = b.fmul(total[0], share)

            def square(b: Builder, at: str, k: int, sums: list[Value]) -> list[Value]:
                centred = b.fsub(_read(b, "%x", at, kind, k), mean)
                return [b.fma(centred, centred, sums[0]), b.fadd(sums[1], centred)]

            # The rounding error of the mean, as in compile/ir/passes/means.py.
            squares, rest = _over_rows(b, lanes, kind, 2, square)
            moved = b.fmul(rest, share)
            mean = b.fadd(mean, moved)
            var = b.fmul(_without(b, squares, b.fmul(rest, moved)), share)
            inverse = b.fdiv(b.const(1, kind), b.call("sqrt", b.fadd(var, eps)))
            scale = b.fmul(inverse, _read(b, "%weight", "%channel", kind))
            bias = _read(b, "%bias", "%channel", kind)

            def normal(b: Builder, at: str, k: int, sums: list[Value]) -> list[Value]:
                centred = b.fsub(_read(b, "%x", at, kind, k), mean)
                _put(b, b.fma(centred, scale, bias), "%y", at)
                return sums

            _over_rows(b, lanes, kind, 0, normal)
            for value, array in ((mean, "%mean"), (var, "%var"), (inverse, "%inverse"), (scale, "%scale")):
                _put(b, value, array, "%channel")

    arrays = ", ".join(f"ptr %{name}" for name in ("x", "weight", "bias", "y", "mean", "var", "inverse", "scale"))
    _function(whole, f"norm_{kind}", f"{arrays}, {_SIZES}, {number} %share, {number} %eps", write)


def _without(b: Builder, squares: Value, excess: Value) -> Value:
    """Return a sum of squares minus `excess`: at least 0, and infinite or NaN if the sum is."""
    at_least = b.select(b.compare("olt", squares, b.like(math.inf, squares)), b.like(0, squares), squares)
    return b.select(b.compare("olt", excess, squares), b.fsub(squares, excess), at_least)


def _norm_back(whole: Module, kind: str, lanes: int) -> None:
    """The gradients of `_norm`: with c = x - mean, r = 1 / std they are dw = r sum(g c), db = sum(g) and
    dx = w r (g - mean(g) - c r r mean(g c)).
    """
    number = LLVM_TYPE[kind]

    def write(b: Builder) -> None:
        share = Value("%share", kind)
        offset = b.define("sub i64 %last, %first", _SIZE)
        with _while_below(b, "0", offset.text, 1, ()) as each:
            b.raw(f"%channel = add i64 %first, {each.at.text}")
            mean = _read(b, "%mean", "%channel", kind)
            inverse = _read(b, "%inverse", "%channel", kind)
            scale = _read(b, "%scale", "%channel", kind)

            def both(b: Builder, at: str, k: int, sums: list[Value]) -> list[Value]:
                g = _read(b, "%g", at, kind, k)
                centred = b.fsub(_read(b, "%x", at, kind, k), mean)
                return [b.fadd(sums[0], g), b.fma(g, centred, sums[1])]

            db, product = _over_rows(b, lanes, kind, 2, both)
            dw = b.fmul(product, inverse)
            slope = b.fneg(b.fmul(b.fmul(dw, inverse), share))
            level = b.fmul(db, share)

            def spread(b: Builder, at: str, k: int, sums: list[Value]) -> list[Value]:
                g = _read(b, "%g", at, kind, k)
                centred = b.fsub(_read(b, "%x", at, kind, k), mean)
                inner = b.fsub(b.fma(centred, slope, g), level)
                _put(b, b.fmul(inner, scale), "%dx", at)
                return sums

            _over_rows(b, lanes, kind, 0, spread)
            _put(b, dw, "%dw", "%channel")
            _put(b, db, "%db", "%channel")

    arrays = ", ".join(f"ptr %{name}" for name in ("g", "x", "mean", "inverse", "scale", "dx", "dw", "db"))
    _function(whole, f"norm_back_{kind}", f"{arrays}, {_SIZES}, {number} %share", write)


# --- activations with a kink ----------------------------------------------------------------------


def _inside(whole: Module, kind: str, lanes: int) -> None:
    """d = g where v is neither at most `low` nor at least `high`, else 0; a bound of NaN means no bound."""
    number = LLVM_TYPE[kind]

    def write(b: Builder) -> None:
        low, high = Value("%low", kind), Value("%high", kind)

        def turn(b: Builder, at: str, k: int, sums: list[Value]) -> list[Value]:
            v, g = _read(b, "%v", at, kind, k), _read(b, "%g", at, kind, k)
            out = b.binary("or", b.compare("ole", v, low), b.compare("oge", v, high))
            _put(b, b.select(out, b.like(0, g), g), "%d", at)
            return sums

        _along(b, "%count", lanes, [], turn, 0)

    _function(whole, f"below_{kind}", f"ptr %g, ptr %v, ptr %d, i64 %count, {number} %low, {number} %high", write)


def _inside_of_share(kind: str, data: int) -> str:
    """Read the record of a share, and call the function of that kind."""
    number, bits = LLVM_TYPE[kind], BITS[kind]
    arrays = {"g": G, "v": V, "d": D}
    places = "".join(memory_of(name, at, data) for name, at in arrays.items())
    moved = "".join(f"  %{name} = getelementptr {number}, ptr %{name}.data, i64 %first\n" for name in arrays)
    bounds = "".join(word(name, at, number) for name, at in {"low": LOW, "high": HIGH}.items())
    bounds = bounds.replace("align 8", f"align {bits // 8}")
    given = f"ptr %g, ptr %v, ptr %d, i64 %count, {number} %low, {number} %high"
    return f"""
define void @inside_{kind}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("first", FIRST)}{word("count", COUNT)}{bounds}{places}{moved}\
  call void @below_{kind}({given})
  ret void
}}
"""
