"""Basic ops on registers, for scalars and vectors of every element kind; `composite` builds the others from them.

An entry takes the builder, the operands (all of one kind unless its comment says otherwise) and the params,
and returns the result. Transcendental functions are calls of our own vector routines in `math`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from glassgrad.compile.llvm.math import math_call
from glassgrad.compile.llvm.math.library import LIBRARY, library_call
from glassgrad.compile.llvm.module.ir import BITS, Builder, Value, is_float, is_signed

Emit = Callable[[Builder, list[Value], Any], Value]


def _arith(float_op: str, int_op: str) -> Emit:
    def emit(b: Builder, x: list[Value], data: Any) -> Value:
        if x[0].kind == "b1":
            int_op_of_bool = {"add": "or", "mul": "and", "sub": "xor"}[int_op]
            return b.binary(int_op_of_bool, x[0], x[1])
        return b.binary(float_op if is_float(x[0].kind) else int_op, x[0], x[1])

    return emit


Parts = tuple[Value, Value, Value, Value]


def divisor_parts(b: Builder, d: Value) -> Parts:
    """Return the factors for a division by d = m 2^e: 2^-e as two factors, m, and 1/m.

    This is for a divisor that many values share, because products take a tenth of the time of a division. Splitting
    off the exponent and multiplying by it first keeps every intermediate value in range and exact, so zeros,
    infinities, NaN and denormals have the results of a division. If 2^-e is above 1, one factor 2 is moved into 1/m,
    which is then at most 2; so if an intermediate value overflows, the result does too.
    """
    bits, bias = (23, 127) if d.kind == "f32" else (52, 1023)
    integer = "i32" if d.kind == "f32" else "i64"
    tiny = b.compare("olt", b.call("fabs", d), b.like(2.0 ** (1 - bias), d))
    lifted = b.select(tiny, b.binary("fmul", d, b.like(2.0 ** (bits + 1), d), flags=""), d)
    raw = b.bitcast(lifted, integer)
    field = b.binary("and", b.binary("lshr", raw, b.like(bits, raw)), b.like(2 * bias + 1, raw))
    # Zero, Inf and NaN keep their value and exponent 0.
    special = b.binary("or", b.compare("eq", field, b.like(0, raw)), b.compare("eq", field, b.like(2 * bias + 1, raw)))
    exponent = b.select(special, b.like(0, raw), b.binary("sub", field, b.like(bias, raw)))
    m = b.bitcast(b.binary("sub", raw, b.binary("shl", exponent, b.like(bits, raw))), d.kind)
    power = b.binary("sub", b.select(tiny, b.like(bits + 1, raw), b.like(0, raw)), exponent)
    power = b.select(special, b.like(0, raw), power)
    up = b.compare("gt", power, b.like(0, raw))
    power = b.select(up, b.binary("sub", power, b.like(1, raw)), power)
    half = b.binary("ashr", power, b.like(1, raw))
    first, second = (
        b.bitcast(b.binary("shl", b.binary("add", part, b.like(bias, raw)), b.like(bits, raw)), d.kind)
        for part in (half, b.binary("sub", power, half))
    )
    m = b.select(up, b.binary("fmul", m, b.like(0.5, d), flags=""), m)
    return first, second, m, b.binary("fdiv", b.like(1, d), m, flags="")


def divide_by_parts(b: Builder, x: Value, parts: Parts) -> Value:
    """x divided by the divisor of `parts`, rounded like a division.

    The product with 1/m is at most one unit off. Its remainder is exact in one fused operation, and one correction step
    rounds correctly (Markstein 1990, "Computation of elementary functions on the IBM RISC System/6000 processor").
    Zeros, infinities, NaN and denormals have no such remainder and keep the value of the product.
    """
    first, second, m, inverse = parts
    for power in (first, second):
        x = b.binary("fmul", x, power, flags="")
    near = b.binary("fmul", x, inverse, flags="")
    rest = b.fma(b.fneg(m), near, x)
    exact = b.fma(rest, inverse, near)
    size = b.call("fabs", near)
    above = b.compare("oge", size, b.like(2.0 ** (-126 if x.kind == "f32" else -1022), size))
    below = b.compare("olt", size, b.like(math.inf, size))
    return b.select(b.binary("and", above, below), exact, near)


def _negative(b: Builder, x: list[Value], data: object) -> Value:
    return b.fneg(x[0]) if is_float(x[0].kind) else b.binary("sub", b.like(0, x[0]), x[0])


def _extreme(b: Builder, a: Value, c: Value, largest: bool) -> Value:
    if is_float(a.kind):
        # llvm.maximum, unlike maxnum, propagates NaN, as NumPy does.
        return b.call("maximum" if largest else "minimum", a, c, flags="nsz")
    if a.kind == "b1":
        return b.binary("or" if largest else "and", a, c)
    name = ("s" if is_signed(a.kind) else "u") + ("max" if largest else "min")
    return b.call(name, a, c)


def _compare(float_predicate: str, int_predicate: str) -> Emit:
    def emit(b: Builder, x: list[Value], data: Any) -> Value:
        return b.compare(float_predicate if is_float(x[0].kind) else int_predicate, x[0], x[1])

    return emit


def _where(b: Builder, x: list[Value], data: object) -> Value:
    return b.select(x[0], x[1], x[2])


def _bitwise(opcode: str) -> Emit:
    return lambda b, x, data: b.binary(opcode, x[0], x[1])


def _not(b: Builder, x: list[Value], data: object) -> Value:
    return b.binary("xor", x[0], b.like(1 if x[0].kind == "b1" else -1, x[0]))


def _abs(b: Builder, x: list[Value], data: object) -> Value:
    if is_float(x[0].kind):
        return b.call("fabs", x[0])
    if not is_signed(x[0].kind):
        return x[0]
    return b.call("smax", x[0], _negative(b, x, data))


def _rounding(intrinsic: str) -> Emit:
    return lambda b, x, data: b.call(intrinsic, x[0]) if is_float(x[0].kind) else x[0]


def _isnan(b: Builder, x: list[Value], data: object) -> Value:
    return b.compare("uno", x[0], x[0]) if is_float(x[0].kind) else b.const(0, "b1", x[0].lanes)


def _signbit(b: Builder, x: list[Value], data: object) -> Value:
    bits = b.bitcast(x[0], f"i{BITS[x[0].kind]}")
    return b.compare("lt", bits, b.like(0, bits))


def _safe_divisor(b: Builder, n: Value, d: Value) -> tuple[Value, Value]:
    """Return a divisor that cannot trap, and a mask of the lanes where it was replaced."""
    bad = b.compare("eq", d, b.like(0, d))
    if is_signed(d.kind):
        # The most negative number divided by -1 also traps.
        lowest = b.like(-(1 << (BITS[d.kind] - 1)), d)
        bad = b.binary("or", bad, b.binary("and", b.compare("eq", n, lowest), b.compare("eq", d, b.like(-1, d))))
    return b.select(bad, b.like(1, d), d), bad


def _floor_divide(b: Builder, x: list[Value], data: object) -> Value:
    n, d = b.level(x[0], x[1])
    if is_float(n.kind):
        return _float_floor_divide(b, n, d)
    safe, _ = _safe_divisor(b, n, d)
    zero = b.like(0, d)
    if is_signed(n.kind):
        quotient, rest = b.binary("sdiv", n, safe), b.binary("srem", n, safe)
        differ = b.compare("lt", b.binary("xor", rest, safe), zero)
        down = b.binary("and", b.compare("ne", rest, zero), differ)
        quotient = b.select(down, b.binary("sub", quotient, b.like(1, d)), quotient)
    else:
        quotient = b.binary("udiv", n, safe)
    return b.select(b.compare("eq", d, zero), zero, quotient)


def _float_floor_divide(b: Builder, n: Value, d: Value) -> Value:
    rest = b.binary("frem", n, d, flags="")
    zero = b.like(0, d)
    differ = b.compare("olt", b.fmul(b.call("copysign", b.like(1, d), rest), d), zero)
    wrong = b.binary("and", b.compare("une", rest, zero), differ)
    # If the signs differ, subtract 1 from the quotient instead of adding the divisor to the remainder, which may
    # overflow.
    whole = b.fdiv(b.binary("fsub", n, rest, flags=""), d)
    exact = b.select(wrong, b.fsub(whole, b.like(1, whole)), whole)
    rounded = b.call("floor", exact)
    half_up = b.compare("ogt", b.fsub(exact, rounded), b.like(0.5, exact))
    quotient = b.select(half_up, b.fadd(rounded, b.like(1, exact)), rounded)
    # Division by zero returns the plain quotient, Inf or NaN.
    return b.select(b.compare("oeq", d, b.like(0, d)), b.fdiv(n, d), quotient)


def _power(b: Builder, x: list[Value], data: object) -> Value:
    if is_float(x[0].kind):
        return math_call(b, "power", x[0], x[1])
    return _integer_power(b, x[0], x[1])


def _integer_power(b: Builder, base: Value, exponent: Value) -> Value:
    """Square and multiply over all bits of the exponent, without a branch."""
    base, exponent = b.level(base, exponent)
    result, factor = b.like(1, base), base
    for bit in range(min(BITS[base.kind], 63)):
        mask = b.binary("and", exponent, b.like(1 << bit, exponent))
        chosen = b.compare("ne", mask, b.like(0, exponent))
        result = b.select(chosen, b.binary("mul", result, factor), result)
        factor = b.binary("mul", factor, factor)
    return result


def _constant_power(b: Builder, x: list[Value], data: Any) -> Value:
    """x to a small integer or half-integer power: a few products."""
    exponent = float(data)
    value = x[0]
    whole = int(abs(exponent))
    result: Value | None = None
    factor, left = value, whole
    while left:
        if left & 1:
            result = factor if result is None else b.fmul(result, factor)
        left >>= 1
        factor = b.fmul(factor, factor) if left else factor
    if abs(exponent) != whole:
        root = b.call("sqrt", value)
        result = root if result is None else b.fmul(result, root)
    if result is None:
        return b.like(1, value)
    return result if exponent > 0 else b.fdiv(b.like(1, value), result)


def _within(b: Builder, x: list[Value], data: tuple[int, int]) -> Value:
    low, high = data
    # One unsigned comparison covers both ends.
    shifted = b.binary("sub", x[0], b.like(low, x[0])) if low else x[0]
    unsigned = Value(shifted.text, "u64", shifted.lanes)
    return b.compare("lt", unsigned, b.like(high - low, unsigned))


def _wrap(b: Builder, x: list[Value], extent: int) -> Value:
    """An index as in NumPy: negative ones count from the end. It is clamped, so that no read leaves the array."""
    index = x[0]
    from_end = b.binary("add", index, b.like(extent, index))
    wrapped = b.select(b.compare("lt", index, b.like(0, index)), from_end, index)
    unsigned = Value(wrapped.text, "u64", wrapped.lanes)
    clamped = b.call("umin", unsigned, b.like(extent - 1, unsigned))
    return Value(clamped.text, "i64", clamped.lanes)


def _shift(opcode: str) -> Emit:
    def emit(b: Builder, x: list[Value], data: Any) -> Value:
        # A shift by the width or more is 0 (or -1) in NumPy but undefined in LLVM.
        value, count = b.level(x[0], x[1])
        width = b.like(BITS[value.kind], value)
        unsigned = Value(count.text, value.kind.replace("i", "u"), count.lanes)
        fits = b.compare("lt", unsigned, Value(width.text, unsigned.kind, width.lanes))
        name = "shl" if opcode == "left" else "ashr" if is_signed(value.kind) else "lshr"
        shifted = b.binary(name, value, b.select(fits, count, b.like(0, count)))
        top = b.like(BITS[value.kind] - 1, value)
        beyond = b.binary("ashr", value, top) if name == "ashr" else b.like(0, value)
        return b.select(fits, shifted, beyond)

    return emit


def _fmod(b: Builder, x: list[Value], data: object) -> Value:
    """The remainder with the sign of the dividend; it is exact."""
    n, d = b.level(x[0], x[1])
    if is_float(n.kind):
        return b.binary("frem", n, d, flags="")
    if n.kind == "b1":
        return b.const(0, "b1", n.lanes)
    safe, bad = _safe_divisor(b, n, d)
    return b.select(bad, b.like(0, d), b.binary("srem" if is_signed(n.kind) else "urem", n, safe))


def _nextafter(b: Builder, x: list[Value], data: object) -> Value:
    """Increment or decrement the bits of a, because floats of one sign are ordered like their bits."""
    a, target = b.level(x[0], x[1])
    bits = b.bitcast(a, f"i{BITS[a.kind]}")
    away = b.binary("xor", b.compare("ogt", target, a), b.compare("olt", a, b.like(0, a)))
    one = b.like(1, bits)
    moved = b.bitcast(b.select(away, b.binary("add", bits, one), b.binary("sub", bits, one)), a.kind)
    smallest = b.call("copysign", b.bitcast(one, a.kind), target)
    moved = b.select(b.compare("oeq", a, b.like(0, a)), smallest, moved)
    moved = b.select(b.compare("oeq", a, target), target, moved)
    return b.select(b.compare("uno", a, target), b.fadd(a, target), moved)


def _math(name: str) -> Emit:
    return lambda b, x, data: math_call(b, name, *x)


def _library(name: str) -> Emit:
    return lambda b, x, data: library_call(b, name, *x)


# op -> (cost in simple instructions, how it is emitted)
ELEMENTWISE: dict[str, tuple[int, Emit]] = {
    "add": (1, _arith("fadd", "add")),
    "subtract": (1, _arith("fsub", "sub")),
    "multiply": (1, _arith("fmul", "mul")),
    "divide": (6, lambda b, x, data: b.fdiv(x[0], x[1])),
    "negative": (1, _negative),
    "square": (1, lambda b, x, data: b.binary("fmul" if is_float(x[0].kind) else "mul", x[0], x[0])),
    "power": (60, _power),
    "constant_power": (4, _constant_power),
    "where": (1, _where),
    "maximum": (2, lambda b, x, data: _extreme(b, x[0], x[1], largest=True)),
    "minimum": (2, lambda b, x, data: _extreme(b, x[0], x[1], largest=False)),
    "exp": (18, _math("exp")),
    "expm1": (22, _math("expm1")),
    "log": (20, _math("log")),
    "log1p": (26, _math("log1p")),
    "sqrt": (8, lambda b, x, data: b.call("sqrt", x[0])),
    "sin": (30, _math("sin")),
    "cos": (30, _math("cos")),
    "tanh": (30, _math("tanh")),
    "sigmoid": (26, _math("sigmoid")),
    "erf": (36, _math("erf")),
    "erfc_from": (30, _math("erfc_from")),
    "abs": (1, _abs),
    "equal": (1, _compare("oeq", "eq")),
    "not_equal": (1, _compare("une", "ne")),
    "less": (1, _compare("olt", "lt")),
    "less_equal": (1, _compare("ole", "le")),
    "greater": (1, _compare("ogt", "gt")),
    "greater_equal": (1, _compare("oge", "ge")),
    "logical_and": (1, _bitwise("and")),
    "logical_or": (1, _bitwise("or")),
    "logical_xor": (1, _bitwise("xor")),
    "logical_not": (1, _not),
    "bitwise_and": (1, _bitwise("and")),
    "bitwise_or": (1, _bitwise("or")),
    "bitwise_xor": (1, _bitwise("xor")),
    "bitwise_not": (1, _not),
    "isnan": (1, _isnan),
    "signbit": (1, _signbit),
    "floor_divide": (20, _floor_divide),
    "floor": (1, _rounding("floor")),
    "ceil": (1, _rounding("ceil")),
    "trunc": (1, _rounding("trunc")),
    "round": (1, _rounding("rint")),
    "within": (1, _within),
    "cast": (1, lambda b, x, data: b.cast(x[0], data)),
    "wrap": (3, _wrap),
    "copysign": (2, lambda b, x, data: b.call("copysign", x[0], x[1])),
    "left_shift": (5, _shift("left")),
    "right_shift": (5, _shift("right")),
    "fmod": (20, _fmod),
    "nextafter": (8, _nextafter),
    **{op: (80, _library(name)) for op, name in LIBRARY.items()},
}

COSTS = {name: cost for name, (cost, _) in ELEMENTWISE.items()}


def emit_elementwise(b: Builder, op: str, args: list[Value], data: Any) -> Value:
    """Emit one op. Halves are computed as floats and rounded, as in NumPy; `nextafter` works on halves."""
    _, emit = ELEMENTWISE[op]
    if op not in {"cast", "nextafter"} and any(arg.kind == "f16" for arg in args):
        result = emit(b, [b.cast(arg, "f32") if arg.kind == "f16" else arg for arg in args], data)
        return b.cast(result, "f16") if result.kind == "f32" else result
    return emit(b, args, data)


# --- reductions ----------------------------------------------------------------------------------

IDENTITY: dict[str, float] = {
    "add": 0,
    "multiply": 1,
    "maximum": float("-inf"),
    "minimum": float("inf"),
    "and": 1,
    "or": 0,
}


def identity_of(how: str, kind: str) -> float:
    """Return the initial value of a reduction."""
    value = IDENTITY[how]
    if value in {float("inf"), float("-inf")} and not is_float(kind):
        if kind == "b1":
            return value > 0
        bits = BITS[kind] - is_signed(kind)
        highest = (1 << bits) - 1
        return highest if value > 0 else (-(1 << bits) if is_signed(kind) else 0)
    return value


def combine(b: Builder, how: str, a: Value, c: Value) -> Value:
    """Combine two partial results of a reduction."""
    match how:
        case "maximum" | "minimum":
            return _extreme(b, a, c, how == "maximum")
        case "and" | "or":
            return b.binary(how, a, c)
    return _arith("fadd" if how == "add" else "fmul", "add" if how == "add" else "mul")(b, [a, c], None)


def across_lanes(b: Builder, how: str, value: Value) -> Value:
    """Reduce the lanes of a vector to a scalar."""
    if value.lanes == 1:
        return value
    if how in {"maximum", "minimum"} and is_float(value.kind):
        return _extreme_across_lanes(b, how, value)
    name, vector = _horizontal(how, value.kind), value.typed
    scalar_type = value.type.split(" x ")[1].rstrip(">")
    base = f"llvm.vector.reduce.{name}.v{value.lanes}{scalar_name(value.kind)}"
    declarations = b.function.module.declarations
    if name in {"fadd", "fmul"}:
        declarations[base] = f"declare {scalar_type} @{base}({scalar_type}, {value.type})"
        start = b.const(0 if name == "fadd" else 1, value.kind).text
        return b.define(f"call reassoc {scalar_type} @{base}({scalar_type} {start}, {vector})", value.kind)
    declarations[base] = f"declare {scalar_type} @{base}({value.type})"
    return b.define(f"call {scalar_type} @{base}({vector})", value.kind)


def _extreme_across_lanes(b: Builder, how: str, value: Value) -> Value:
    """The largest or smallest lane, or NaN if one is NaN; NaN is tested once, not in every folding step."""
    missing = b.compare("uno", value, value)
    cleaned = b.select(missing, b.like(identity_of(how, value.kind), value), value)
    scalar = value.type.split(" x ")[1].rstrip(">")
    name = f"llvm.vector.reduce.f{how[:3]}.v{value.lanes}{scalar_name(value.kind)}"
    b.function.module.declarations[name] = f"declare {scalar} @{name}({value.type})"
    found = b.define(f"call nnan nsz {scalar} @{name}({cleaned.typed})", value.kind)
    return b.select(across_lanes(b, "or", missing), b.const(float("nan"), value.kind), found)


def scalar_name(kind: str) -> str:
    """Return the suffix of an intrinsic for one element."""
    return {"b1": "i1"}.get(kind, kind.replace("u", "i"))


def _horizontal(how: str, kind: str) -> str:
    if how in {"and", "or"}:
        return how
    if how in {"maximum", "minimum"}:
        if kind == "b1":
            return "or" if how == "maximum" else "and"
        return ("s" if is_signed(kind) else "u") + how[:3]
    plain = "add" if how == "add" else "mul"
    if kind == "b1":
        return "or" if how == "add" else "and"
    return f"f{plain}" if is_float(kind) else plain
