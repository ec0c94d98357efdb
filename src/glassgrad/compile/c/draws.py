"""Random numbers of a step: PCG64 as NumPy has it, so that the same seed gives the same numbers.

The generator is PCG XSL RR 128/64 (O'Neill 2014); normal numbers come from the ziggurat of Marsaglia and Tsang 2000
with 256 layers, integers from Lemire 2019. The tables of the ziggurat are computed here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.c.helpers import Helpers, in_kind
from glassgrad.compile.c.words import filled, literal
from glassgrad.compile.front.calls.feeds import Drawn
from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.module.ir import kind_of

STRUCT = """\
#ifndef GG_GENERATOR
#define GG_GENERATOR
/* NumPy's PCG64: 128 bits of state and of increment, and half of a number that is left over */
struct gg_generator {
    uint64_t high, low, step_high, step_low, has_half, half;
};
#endif
"""
WORDS = 6

_NEXT = """\
static inline uint64_t gg_times(uint64_t a, uint64_t b, uint64_t *high)
{
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & 0xffffffffu);
    *high = a1 * b1 + (middle >> 32) + (other >> 32);
    return (other << 32) | (low & 0xffffffffu);
}

/* 64 random bits: the state times a constant plus the increment, then both halves mixed and turned */
static inline uint64_t gg_next64(struct gg_generator *g)
{
    const uint64_t by_high = UINT64_C(2549297995355413924), by_low = UINT64_C(4865540595714422341);
    uint64_t high;
    const uint64_t low = gg_times(g->low, by_low, &high);
    high += g->high * by_low + g->low * by_high;
    g->low = low + g->step_low;
    g->high = high + g->step_high + (g->low < low);
    const unsigned turn = (unsigned)(g->high >> 58);
    const uint64_t mixed = g->high ^ g->low;
    return (mixed >> turn) | (mixed << ((64u - turn) & 63u));
}

"""

_HALF = """\
static inline uint32_t gg_next32(struct gg_generator *g)
{
    if (g->has_half != 0) {
        g->has_half = 0;
        return (uint32_t)g->half;
    }
    const uint64_t both = gg_next64(g);
    g->has_half = 1;
    g->half = both >> 32;
    return (uint32_t)both;
}

"""

_UNIFORM = """\
static inline TYPE gg_uniform_KIND(struct gg_generator *g)
{
    return (TYPE)(gg_nextNUMBER(g) >> (NUMBER == 64 ? 11 : 8)) * (TYPE)(NUMBER == 64 ? 0x1p-53 : 0x1p-24);
}
"""

_FILL = """\
static void ALL_KIND(struct gg_generator *g, TYPE *to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        to[i] = ONE_KIND(g);
    }
}
"""

_NORMAL = """\
/* normal numbers: a layer of the ziggurat, a place in it, and rarely a closer look */
static TYPE gg_one_normal_KIND(struct gg_generator *g)
{
    for (;;) {
        BITS r = gg_nextNUMBER(g);
        const unsigned layer = (unsigned)(r & 0xffu);
        r >>= 8;
        const bool negative = (r & 1u) != 0;
        const BITS size = (r >> 1) & MASK;
        TYPE x = (TYPE)size * gg_widths_KIND[layer];
        x = negative ? -x : x;
        if (size < gg_inside_KIND[layer]) {
            return x;
        }
        if (layer == 0) {
            for (;;) {
                const TYPE across = -(TYPE)INVERSE * log1p_F(-gg_uniform_KIND(g));
                const TYPE down = -log1p_F(-gg_uniform_KIND(g));
                if (down + down > across * across) {
                    return ((size >> 8) & 1u) != 0 ? -((TYPE)EDGE + across) : (TYPE)EDGE + across;
                }
            }
        }
        if ((gg_heights_KIND[layer - 1] - gg_heights_KIND[layer]) * gg_uniform_KIND(g) + gg_heights_KIND[layer] <
            exp_F((TYPE)-0.5 * x * x)) {
            return x;
        }
    }
}
"""

_INTEGERS = """\
/* integers from `low` to `low + range`, both included */
static void gg_integers_KIND(struct gg_generator *g, TYPE *to, ptrdiff_t count, TYPE low, uint32_t range)
{
    const uint32_t sides = range + 1u;
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t m = range == 0 ? 0 : (uint64_t)gg_next32(g) * sides;
        if (range != 0 && (uint32_t)m < sides) {
            const uint32_t least = (UINT32_MAX - range) % sides;
            while ((uint32_t)m < least) {
                m = (uint64_t)gg_next32(g) * sides;
            }
        }
        to[i] = (TYPE)(low + (TYPE)(m >> 32));
    }
}
"""

_EDGE = Decimal("3.6541528853610087963519472518")  # where the tail begins
_LAYERS = 256


def _height(x: Decimal) -> Decimal:
    return (-x * x / 2).exp()


@functools.cache
def _ziggurat() -> tuple[tuple[Decimal, ...], Decimal]:
    """Return the right ends of the layers, the lowest last, and the area of each.

    The tail beyond an edge r is exp(-r^2 / 2) / (r + 1 / (r + 2 / (r + ...))). Each end follows from the one below it,
    so the recursion needs more digits than its results have.
    """
    with localcontext(Context(prec=50)):
        fraction = _EDGE
        for term in range(400, 0, -1):
            fraction = _EDGE + term / fraction
        area = _EDGE * _height(_EDGE) + _height(_EDGE) / fraction
        ends = [_EDGE]
        for _ in range(_LAYERS - 2):
            below = ends[-1]
            ends.append((-2 * (area / below + _height(below)).ln()).sqrt())
        return (Decimal(0), *reversed(ends)), area


def _tables(of: str) -> str:
    """Return the widths of the layers, the places that are inside for certain, and the heights."""
    ends, area = _ziggurat()
    with localcontext(Context(prec=50)):
        scale = Decimal(2) ** (52 if of == "f64" else 23)
        whole = area / _height(_EDGE)  # the lowest layer as a rectangle
        widths, inside, heights = [whole / scale], [int(_EDGE / whole * scale)], [Decimal(1)]
        for at in range(1, _LAYERS):
            widths.append(ends[at] / scale)
            inside.append(int(ends[at - 1] / ends[at] * scale))
            heights.append(_height(ends[at]))
    number, bits = ("double", "uint64_t") if of == "f64" else ("float", "uint32_t")
    tables = (
        ("widths", number, [literal(float(one), of) for one in widths]),
        ("inside", bits, [literal(one, "u64" if of == "f64" else "u32") for one in inside]),
        ("heights", number, [literal(float(one), of) for one in heights]),
    )
    return "\n".join(
        f"static const {kind} gg_{name}_{of}[{_LAYERS}] = {{\n{filled(texts)}\n}};" for name, kind, texts in tables
    )


def _normal(helpers: Helpers, of: str) -> str:
    helpers.need(f"gg_ziggurat_{of}", lambda: _tables(of) + "\n")
    f64 = of == "f64"
    words = {
        "BITS": "uint64_t" if f64 else "uint32_t",
        "NUMBER": "64" if f64 else "32",
        "MASK": "UINT64_C(0x000fffffffffffff)" if f64 else "0x007fffffu",
        "INVERSE": repr(1 / float(_EDGE)),
        "EDGE": repr(float(_EDGE)),
    }
    text = _NORMAL
    for word, now in words.items():
        text = text.replace(word, now)
    helpers.need(f"gg_one_normal_{of}", in_kind(text, of))
    return _filled(helpers, "gg_standard_normal", "gg_one_normal", of)


def _filled(helpers: Helpers, name: str, one: str, of: str) -> str:
    return helpers.templated(name, _FILL.replace("ALL", name).replace("ONE", one), of)


def draw_line(drawn: Drawn, generator: str, var: Var, to: tuple[str, str], helpers: Helpers) -> str:
    """Return the statement that draws an array: `to` is its address and its number of elements.

    Raises:
        CompileError: for a draw that C cannot repeat.
    """
    of = kind_of(var.dtype) or ""
    options = dict(zip(("size",), drawn.args, strict=False)) | drawn.options
    helpers.need("gg_next64", _NEXT)
    if of != "f64":
        helpers.need("gg_next32", _HALF)
    target = f"{generator}, {to[0]}, {to[1]}"
    plain = set(options) <= {"size", "dtype"} and of in {"f32", "f64"}
    if plain:
        helpers.templated("gg_uniform", _UNIFORM.replace("NUMBER", of[1:]), of)
    if drawn.method == "random" and plain:
        return f"{_filled(helpers, 'gg_random', 'gg_uniform', of)}({target});"
    if drawn.method == "standard_normal" and plain:
        return f"{_normal(helpers, of)}({target});"
    if drawn.method == "integers" and of in {"i64", "i32"}:
        low, high = _bounds(drawn)
        if 0 <= high - low < 0xFFFFFFFF:
            return f"{helpers.templated('gg_integers', _INTEGERS, of)}({target}, {literal(low, of)}, {high - low}u);"
    raise errors.NO_C_DRAW(method=drawn.method, name=var.name or "a random array", dtype=var.dtype)


def _bounds(drawn: Drawn) -> tuple[int, int]:
    """Return the least and the largest integer of a draw."""
    names: dict[str, Any] = dict(zip(("low", "high", "size", "dtype"), drawn.args, strict=False)) | drawn.options
    low, high = names["low"], names.get("high")
    low, high = (0, low) if high is None else (low, high)
    return int(low), int(high) - (0 if names.get("endpoint") else 1)


def words_of(state: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the state of a generator as the words of its struct."""
    inner = state["state"]
    wide = [inner["state"] >> 64, inner["state"] & _LOW, inner["inc"] >> 64, inner["inc"] & _LOW]
    return np.array([*wide, state["has_uint32"], state["uinteger"]], np.uint64)


def state_of(words: Sequence[int]) -> dict[str, Any]:
    """Return the state that the words of a struct stand for."""
    high, low, step_high, step_low, has, half = map(int, words)
    inner = {"state": high << 64 | low, "inc": step_high << 64 | step_low}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has, "uinteger": half}


_LOW = (1 << 64) - 1
