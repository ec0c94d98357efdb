"""sin and cos.

x = n pi/2 + r; the quadrant n mod 4 selects the polynomial of sin(r) or cos(r) and the sign. float32 is reduced in
float64. Arguments up to 2^22 (about 4 million) are reduced here; for a vector with a larger one, the C library computes
all lanes, because its reduction covers every number.
"""

from __future__ import annotations

from glassgrad.compile.llvm.math.common import coefficients, nearest, polynomial
from glassgrad.compile.llvm.math.library import library_call
from glassgrad.compile.llvm.module.ir import Builder, Value

LIMIT = 2.0**22
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)

# (sin(r)/r - 1) / r^2 and (cos(r) - 1 + r^2/2) / r^4, in powers of r^2
_SIN = {
    "f32": (-0.1666666716337204, 0.008333331905305386, -0.00019840082677546889, 2.7249313916399842e-06),
    "f64": coefficients(
        """
        -0.16666666666666666 0.008333333333333331 -0.00019841269841265017 2.755731921930192e-06
        -2.5052106219521895e-08 1.6058529572267877e-10 -7.586576588171073e-13
        """
    ),
}
_COS = {
    "f32": (0.0416666679084301, -0.00138888880610466, 2.480059629306197e-05, -2.730044741383608e-07),
    "f64": coefficients(
        """
        0.041666666666666664 -0.0013888888888888887 2.4801587301584618e-05 -2.7557319221382114e-07
        2.087675578389404e-09 -1.1470459749675607e-11 4.745804889760674e-14
        """
    ),
}


def _reduce(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, rounding error of r, quadrant), in the kind of x."""
    wide = b.cast(x, "f64")
    whole, n = nearest(b, b.fmul(wide, b.like(_TWO_OVER_PI, wide)))
    first, second, third = (b.like(part, wide) for part in _HALF_PI)
    # The product with the first part is subtracted exactly; an fma computes its low half.
    product = b.fmul(whole, first)
    low = b.fma(whole, first, b.fneg(product))
    head = b.fsub(wide, product)
    rest = b.fma(whole, second, low)
    r = b.fsub(head, rest)
    lost = b.fsub(b.fsub(head, r), rest)
    lost = b.fma(b.fneg(whole), third, lost)
    if x.kind == "f64":
        return r, lost, n
    return b.cast(b.fadd(r, lost), "f32"), b.like(0, x), b.cast(n, "i32")


def _polynomials(b: Builder, r: Value, lost: Value) -> tuple[Value, Value]:
    """Return sin and cos of r + lost."""
    z = b.fmul(r, r)
    sine_tail = b.fmul(b.fmul(z, r), polynomial(b, z, _SIN[r.kind]))
    sine = b.fadd(r, b.fadd(lost, sine_tail))
    half = b.fmul(z, b.like(0.5, z))
    one = b.like(1, z)
    head = b.fsub(one, half)
    # The rounding error of 1 - z/2, plus the rest of the series, plus the derivative times the error of r.
    rounding = b.fsub(b.fsub(one, head), half)
    tail = b.fma(b.fmul(z, z), polynomial(b, z, _COS[r.kind]), b.fma(b.fneg(r), lost, rounding))
    return sine, b.fadd(head, tail)


def _sine(b: Builder, x: Value, quarter_turns: int) -> Value:
    r, lost, n = _reduce(b, x)
    sine, cosine = _polynomials(b, r, lost)
    turned = b.binary("add", n, b.like(quarter_turns, n)) if quarter_turns else n
    odd = b.compare("ne", b.binary("and", turned, b.like(1, n)), b.like(0, n))
    down = b.compare("ne", b.binary("and", turned, b.like(2, n)), b.like(0, n))
    value = b.select(odd, cosine, sine)
    return b.select(down, b.fneg(value), value)


def _with_large(b: Builder, x: Value, name: str, quarter_turns: int) -> Value:
    """The fast result unless some lane is too large for it."""
    size = b.call("fabs", x)
    large = b.binary("and", b.compare("ogt", size, b.like(LIMIT, x)), b.compare("olt", size, b.like(float("inf"), x)))
    some = _any(b, large)
    slow, join = b.function.fresh("large"), b.function.fresh("join")
    value = _sine(b, x, quarter_turns)
    if quarter_turns == 0:
        # Zero keeps its sign.
        value = b.select(b.compare("oeq", x, b.like(0, x)), x, value)
    entry = b.label
    b.raw(f"br i1 {some.text}, label %{slow}, label %{join}")
    b.start(slow)
    library = library_call(b, name, x)
    b.raw(f"br label %{join}")
    b.start(join)
    return b.define(f"phi {x.type} [ {value.text}, %{entry} ], [ {library.text}, %{slow} ]", x.kind, x.lanes)


def _any(b: Builder, mask: Value) -> Value:
    if mask.lanes == 1:
        return mask
    name = f"llvm.vector.reduce.or.v{mask.lanes}i1"
    b.function.module.declarations[name] = f"declare i1 @{name}({mask.type})"
    return b.define(f"call i1 @{name}({mask.typed})", "b1")


def sin(b: Builder, x: Value) -> Value:
    """Sine."""
    return _with_large(b, x, "sin", 0)


def cos(b: Builder, x: Value) -> Value:
    """Cosine."""
    return _with_large(b, x, "cos", 1)
