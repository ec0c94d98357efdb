"""Shared by the routines: polynomials, bits of floats, scaling by powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import Builder, Value

INF = float("inf")
NAN = float("nan")


@dataclass(frozen=True)
class Format:
    """A floating-point format: stored fraction bits, exponent bias, its integer kind."""

    fraction: int
    bias: int
    integer: str
    smallest_normal: float


FORMATS = {
    "f32": Format(23, 127, "i32", 2.0**-126),
    "f64": Format(52, 1023, "i64", 2.0**-1022),
}


def coefficients(text: str) -> tuple[float, ...]:
    """Return the numbers in a text, lowest power first."""
    return tuple(map(float, text.split()))


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    total = b.like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, x, b.like(coefficient, x))
    return total


def clamp(b: Builder, x: Value, low: float | None, high: float | None) -> Value:
    """Limit x; NaN stays NaN."""
    if high is not None:
        x = b.select(b.compare("ogt", x, b.like(high, x)), b.like(high, x), x)
    if low is not None:
        x = b.select(b.compare("olt", x, b.like(low, x)), b.like(low, x), x)
    return x


def nearest(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return x rounded to an integer, as a float and as an integer; for |x| < 2^21.

    Adding 1.5 * 2^fraction shifts the fraction out of the significand and leaves the integer in the low bits; unlike a
    conversion, this is defined for NaN.
    """
    form = FORMATS[x.kind]
    magic = 1.5 * 2.0**form.fraction
    pushed = b.fadd(x, b.like(magic, x))
    whole = b.fsub(pushed, b.like(magic, x))
    bits = b.bitcast(pushed, form.integer)
    base = b.bitcast(b.like(magic, x), form.integer)
    return whole, b.binary("sub", bits, base)


def power_of_two(b: Builder, n: Value, kind: str) -> Value:
    """2^n for an integer vector n in the range of normal exponents."""
    form = FORMATS[kind]
    biased = b.binary("add", n, b.like(form.bias, n))
    return b.bitcast(b.binary("shl", biased, b.like(form.fraction, n)), kind)


def scale(b: Builder, x: Value, n: Value, whole: Value | None = None) -> Value:
    """x * 2^n, even if 2^n itself is out of range; `whole` is n as a float, if known."""
    if whole is not None and b.function.module.vector_bytes == 64 and x.lanes * (4 if x.kind == "f32" else 8) == 64:
        return _scale_in_one(b, x, whole)
    half = b.binary("ashr", n, b.like(1, n))
    other = b.binary("sub", n, half)
    return b.fmul(b.fmul(x, power_of_two(b, half, x.kind)), power_of_two(b, other, x.kind))


def _scale_in_one(b: Builder, x: Value, whole: Value) -> Value:
    """Scale by AVX-512's instruction."""
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if x.kind == 'f32' else 'pd'}.512"
    mask = f"i{x.lanes}"
    signature = f"{x.type}, {x.type}, {x.type}, {mask}, i32"
    b.function.module.declarations[name] = f"declare {x.type} @{name}({signature})"
    arguments = f"{x.typed}, {whole.typed}, {x.type} zeroinitializer, {mask} -1, i32 4"
    return b.define(f"call {x.type} @{name}({arguments})", x.kind, x.lanes)


def inverse_estimate(b: Builder, x: Value) -> Value:
    """1 / x for x far from the ends of the range, to 14 bits or better, for quotients that are corrected afterwards."""
    if x.kind == "f32" and x.lanes == 16 and b.function.module.vector_bytes == 64:
        name = "llvm.x86.avx512.rcp14.ps.512"
        b.function.module.declarations[name] = f"declare {x.type} @{name}({x.type}, {x.type}, i16)"
        return b.define(f"call {x.type} @{name}({x.typed}, {x.type} zeroinitializer, i16 -1)", x.kind, x.lanes)
    return b.fdiv(b.like(1, x), x)


def to_integer_bits(b: Builder, x: Value) -> Value:
    """Return the bits of a float as an integer."""
    return b.bitcast(x, FORMATS[x.kind].integer)


def copysign(b: Builder, size: Value, sign: Value) -> Value:
    """|size| with the sign of `sign`."""
    return b.call("copysign", size, sign)
