"""Rows of elementwise ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.base.tables import pairs
from glassgrad.onnx.traced import Step
from glassgrad.onnx.writer import Value, Writer

Row = Callable[..., Any]


def direct(kind: str, **attributes: Any) -> Row:
    """An operator that computes the same, with operands of one dtype."""

    def row(w: Writer, step: Step, *xs: Any) -> Value:
        found = w.alike(xs, step.out.dtype)
        return w.op(kind, *found, dtype=step.out.dtype, shape=step.out.shape, **attributes)

    return row


def compared(kind: str, *, negated: bool = False) -> Row:
    """An operator from numbers to booleans."""

    def row(w: Writer, step: Step, *xs: Any) -> Value:
        found = w.op(kind, *_ordered(w, xs, kind), dtype=np.bool_, shape=step.out.shape)
        return w.op("Not", found, shape=step.out.shape) if negated else found

    return row


def _ordered(w: Writer, xs: tuple[Any, ...], kind: str) -> tuple[Value, ...]:
    """Return operands of one dtype; booleans as integers, which have an order."""
    found = w.alike(xs)
    if found[0].dtype == np.bool_ and kind != "Equal":
        return tuple([w.cast(x, np.int32) for x in found])
    return found


def _logical(kind: str) -> Row:
    def row(w: Writer, step: Step, *xs: Any) -> Value:
        return w.op(kind, *[w.cast(x, np.bool_) for x in xs], shape=step.out.shape)

    return row


def _bits(kind: str, of_booleans: str) -> Row:
    def row(w: Writer, step: Step, *xs: Any) -> Value:
        found = w.alike(xs)
        chosen = of_booleans if found[0].dtype == np.bool_ else kind
        return w.op(chosen, *found, dtype=step.out.dtype, shape=step.out.shape)

    return row


def _booleans_as(kind: str, row: Row) -> Row:
    """A sum or product, which for booleans becomes `or` or `and`."""

    def chosen(w: Writer, step: Step, *xs: Any) -> Value:
        if step.out.dtype == np.bool_:
            return w.op(kind, *[w.cast(x, np.bool_) for x in xs], shape=step.out.shape)
        found: Value = row(w, step, *xs)
        return found

    return chosen


def _tested(kind: str) -> Row:
    def row(w: Writer, step: Step, x: Any) -> Value:
        if x.dtype.kind != "f":
            return w.op("Not", w.op("Equal", x, x, dtype=np.bool_), shape=step.out.shape)
        return w.op(kind, x, dtype=np.bool_, shape=step.out.shape)

    return row


def _isfinite(w: Writer, step: Step, x: Value) -> Value:
    if x.dtype.kind != "f":
        return w.op("Equal", x, x, dtype=np.bool_, shape=step.out.shape)
    neither = w.op("Or", w.op("IsNaN", x, dtype=np.bool_), w.op("IsInf", x, dtype=np.bool_))
    return w.op("Not", neither, shape=step.out.shape)


def _where(w: Writer, step: Step, condition: Any, a: Any, b: Any) -> Value:
    chosen = w.cast(condition, np.bool_)
    return w.op(
        "Where", chosen, *[w.cast(x, step.out.dtype) for x in (a, b)], dtype=step.out.dtype, shape=step.out.shape
    )


def _clip(w: Writer, step: Step, x: Value, *, low: Any = None, high: Any = None) -> Value:
    x = w.cast(x, step.out.dtype)
    ends = [None if end is None else w.cast(end, step.out.dtype) for end in (low, high)]
    return w.op("Clip", x, *ends, shape=step.out.shape)


def _rest(w: Writer, a: Value, b: Value) -> Value:
    """The exact remainder of floor division of floats; it has the sign of the divisor."""
    zero = w.cast(0.0, a.dtype)
    left = w.op("Mod", a, b, fmod=1)
    signs = [w.op("Less", x, zero, dtype=np.bool_) for x in (left, b)]
    none = w.op("Equal", left, zero, dtype=np.bool_)
    other = w.op("And", w.op("Not", none), w.op("Xor", *signs))
    return w.op("Where", other, w.op("Add", left, b), left, dtype=a.dtype)


def _remainder(w: Writer, step: Step, a: Any, b: Any) -> Value:
    a, b = w.alike((a, b), step.out.dtype)
    return _rest(w, a, b) if step.out.dtype.kind == "f" else w.op("Mod", a, b, shape=step.out.shape)


def _floor_divide(w: Writer, step: Step, a: Any, b: Any) -> Value:
    a, b = w.alike((a, b), step.out.dtype)
    if step.out.dtype.kind == "f":
        return w.op("Round", w.op("Div", w.op("Sub", a, _rest(w, a, b)), b), shape=step.out.shape)
    # For integers, Div rounds towards 0, and Mod has the sign of the divisor.
    return w.op("Div", w.op("Sub", a, w.op("Mod", a, b)), b, shape=step.out.shape)


def _trunc(w: Writer, step: Step, x: Value) -> Value:
    x = w.cast(x, step.out.dtype)
    return w.op("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x)), shape=step.out.shape)


def _rsqrt(w: Writer, step: Step, x: Value) -> Value:
    return w.op("Reciprocal", w.op("Sqrt", w.cast(x, step.out.dtype)), shape=step.out.shape)


def _expm1(w: Writer, step: Step, x: Value) -> Value:
    """exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which keeps the digits near 0."""
    x = w.cast(x, step.out.dtype)
    above = w.op("Add", w.op("Exp", x), w.cast(1.0, x.dtype))
    return w.op("Mul", w.op("Tanh", w.op("Mul", x, w.cast(0.5, x.dtype))), above, shape=step.out.shape)


def _log1p(w: Writer, step: Step, x: Value) -> Value:
    """log(1 + x); near 0, where 1 + x loses digits, 2 atanh(x / (2 + x))."""
    x = w.cast(x, step.out.dtype)
    far = w.op("Log", w.op("Add", x, w.cast(1.0, x.dtype)))
    inner = w.op("Div", x, w.op("Add", x, w.cast(2.0, x.dtype)))
    near = w.op("Mul", w.op("Atanh", inner), w.cast(2.0, x.dtype))
    small = w.op("Less", w.op("Abs", x), w.cast(0.5, x.dtype), dtype=np.bool_)
    return w.op("Where", small, near, far, dtype=x.dtype, shape=step.out.shape)


def _scaled_log(base: float) -> Row:
    def row(w: Writer, step: Step, x: Value) -> Value:
        x = w.cast(x, step.out.dtype)
        return w.op("Mul", w.op("Log", x), w.cast(1 / math.log(base), x.dtype), shape=step.out.shape)

    return row


def _power_of(base: float) -> Row:
    def row(w: Writer, step: Step, x: Value) -> Value:
        return w.op("Pow", w.cast(base, step.out.dtype), w.cast(x, step.out.dtype), shape=step.out.shape)

    return row


def _atan2(w: Writer, step: Step, a: Any, b: Any) -> Value:
    """The angle of (b, a): atan(a / b), plus or minus pi where b < 0; 0 at the origin."""
    a, b = w.alike((a, b), step.out.dtype)
    zero, dtype = w.cast(0.0, a.dtype), a.dtype
    right = w.op("GreaterOrEqual", b, zero, dtype=np.bool_)
    quotient = w.op("Atan", w.op("Div", a, b))
    turn = w.op(
        "Where", w.op("Less", a, zero, dtype=np.bool_), w.cast(-math.pi, dtype), w.cast(math.pi, dtype), dtype=dtype
    )
    found = w.op("Where", right, quotient, w.op("Add", quotient, turn), dtype=dtype)
    at_origin = w.op("And", w.op("Equal", a, zero, dtype=np.bool_), w.op("Equal", b, zero, dtype=np.bool_))
    return w.op("Where", at_origin, zero, found, dtype=dtype, shape=step.out.shape)


def _gelu(form: str) -> Row:
    def row(w: Writer, step: Step, x: Value) -> Value:
        if w.opset >= 20:
            return w.op("Gelu", x, shape=step.out.shape, approximate=form)
        half = w.op("Mul", x, w.cast(0.5, x.dtype))
        if form == "tanh":
            cube = w.op("Mul", w.op("Mul", w.op("Mul", x, x), x), w.cast(0.044715, x.dtype))
            inner = w.op("Mul", w.op("Add", x, cube), w.cast(math.sqrt(2 / math.pi), x.dtype))
            share = w.op("Tanh", inner)
        else:
            share = w.op("Erf", w.op("Mul", x, w.cast(math.sqrt(0.5), x.dtype)))
        return w.op("Mul", half, w.op("Add", share, w.cast(1.0, x.dtype)), shape=step.out.shape)

    return row


def _round(w: Writer, step: Step, x: Value, *, decimals: int = 0) -> Value:
    if x.dtype.kind != "f":
        return x
    if not decimals:
        return w.op("Round", x, shape=step.out.shape)
    scale = w.cast(10.0**decimals, x.dtype)
    return w.op("Div", w.op("Round", w.op("Mul", x, scale)), scale, shape=step.out.shape)


def _erfc(w: Writer, step: Step, x: Value) -> Value:
    x = w.cast(x, step.out.dtype)
    return w.op("Sub", w.cast(1.0, x.dtype), w.op("Erf", x), shape=step.out.shape)


def _ndtr(w: Writer, step: Step, x: Value) -> Value:
    x = w.cast(x, step.out.dtype)
    share = w.op("Erf", w.op("Mul", x, w.cast(math.sqrt(0.5), x.dtype)))
    return w.op("Mul", w.op("Add", share, w.cast(1.0, x.dtype)), w.cast(0.5, x.dtype), shape=step.out.shape)


def _minmax(kind: str) -> Row:
    def row(w: Writer, step: Step, a: Any, b: Any) -> Value:
        """A maximum or minimum that ignores NaN."""
        a, b = w.alike((a, b), step.out.dtype)
        inner = w.op("Where", w.op("IsNaN", b, dtype=np.bool_), a, b, dtype=a.dtype)
        other = w.op("Where", w.op("IsNaN", a, dtype=np.bool_), b, a, dtype=a.dtype)
        return w.op(kind, other, inner, shape=step.out.shape)

    return row


def _hypot(w: Writer, step: Step, a: Any, b: Any) -> Value:
    """larger * sqrt(1 + (smaller / larger)**2), whose squares do not overflow."""
    a, b = [w.op("Abs", x) for x in w.alike((a, b), step.out.dtype)]
    large, small = w.op("Max", a, b), w.op("Min", a, b)
    tiny = w.cast(float(np.finfo(a.dtype).tiny), a.dtype)
    ratio = w.op("Div", small, w.op("Max", large, tiny))
    root = w.op("Sqrt", w.op("Add", w.op("Mul", ratio, ratio), w.cast(1.0, a.dtype)))
    return w.op("Mul", large, root, shape=step.out.shape)


def _logaddexp(base: float) -> Row:
    def row(w: Writer, step: Step, a: Any, b: Any) -> Value:
        """max + log(1 + exp(-|a - b|))."""
        a, b = w.alike((a, b), step.out.dtype)
        scale = w.cast(math.log(base), a.dtype)
        apart = w.op("Mul", w.op("Abs", w.op("Sub", a, b)), scale)
        more = w.op("Div", w.op("Softplus", w.op("Neg", apart)), scale)
        return w.op("Add", w.op("Max", a, b), more, shape=step.out.shape)

    return row


def _unless_zero(w: Writer, x: Value, limit: float, found: Value) -> Value:
    at_zero = w.op("Equal", x, w.cast(0.0, x.dtype), dtype=np.bool_)
    return w.op("Where", at_zero, w.cast(limit, x.dtype), found, dtype=x.dtype)


def _times_log(log: Row) -> Row:
    def row(w: Writer, step: Step, a: Any, b: Any) -> Value:
        a, b = w.alike((a, b), step.out.dtype)
        return _unless_zero(w, a, 0.0, w.op("Mul", a, log(w, step, b)))

    return row


def _entr(w: Writer, step: Step, x: Value) -> Value:
    x = w.cast(x, step.out.dtype)
    found = _unless_zero(w, x, 0.0, w.op("Neg", w.op("Mul", x, w.op("Log", x))))
    below = w.op("Less", x, w.cast(0.0, x.dtype), dtype=np.bool_)
    return w.op("Where", below, w.cast(-math.inf, x.dtype), found, dtype=x.dtype)


def _sinc(w: Writer, step: Step, x: Value) -> Value:
    turned = w.op("Mul", w.cast(x, step.out.dtype), w.cast(math.pi, step.out.dtype))
    return _unless_zero(w, turned, 1.0, w.op("Div", w.op("Sin", turned), turned))


def _copysign(w: Writer, step: Step, a: Any, b: Any) -> Value:
    """|a| with the sign of b; the sign of a zero comes from its reciprocal, which is infinite."""
    a, b = w.alike((a, b), step.out.dtype)
    zero = w.cast(0.0, b.dtype)
    signed = w.op("Where", w.op("Equal", b, zero, dtype=np.bool_), w.op("Reciprocal", b), b, dtype=b.dtype)
    size = w.op("Abs", a)
    return w.op("Where", w.op("Less", signed, zero, dtype=np.bool_), w.op("Neg", size), size, dtype=a.dtype)


def _lerp(w: Writer, step: Step, a: Any, b: Any, share: Any) -> Value:
    """Interpolate from the nearer end, so that both ends are exact."""
    a, b, share = w.alike((a, b, share), step.out.dtype)
    way = w.op("Sub", b, a)
    from_a = w.op("Add", a, w.op("Mul", share, way))
    from_b = w.op("Sub", b, w.op("Mul", way, w.op("Sub", w.cast(1.0, a.dtype), share)))
    near = w.op("Less", w.op("Abs", share), w.cast(0.5, a.dtype), dtype=np.bool_)
    return w.op("Where", near, from_a, from_b, dtype=a.dtype)


def _heaviside(w: Writer, step: Step, a: Any, b: Any) -> Value:
    a, b = w.alike((a, b), step.out.dtype)
    zero = w.cast(0.0, a.dtype)
    right = w.cast(w.op("Greater", a, zero, dtype=np.bool_), a.dtype)
    found = w.op("Where", w.op("Equal", a, zero, dtype=np.bool_), b, right, dtype=a.dtype)
    return w.op("Where", w.op("IsNaN", a, dtype=np.bool_), a, found, dtype=a.dtype)


def _log_sigmoid(w: Writer, step: Step, x: Value) -> Value:
    return w.op("Neg", w.op("Softplus", w.op("Neg", w.cast(x, step.out.dtype))), shape=step.out.shape)


def _nan_to_num(w: Writer, step: Step, x: Value, *, nan: Any, posinf: Any, neginf: Any) -> Value:
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    cases: tuple[tuple[str, dict[str, Any], float], ...] = (
        ("IsNaN", {}, nan or 0.0),
        ("IsInf", {"detect_negative": 0}, high),
        ("IsInf", {"detect_positive": 0}, low),
    )
    for kind, options, number in cases:
        found = w.op(kind, x, dtype=np.bool_, **options)
        x = w.op("Where", found, w.cast(float(number), x.dtype), x, dtype=x.dtype)
    return x


def _whole(kind: str) -> Row:
    """Rounding, which leaves integers unchanged."""
    rounded = direct(kind)
    return lambda w, step, x: x if x.dtype.kind != "f" else rounded(w, step, x)


_DIRECT = pairs("""
    subtract=Sub divide=Div negative=Neg power=Pow reciprocal=Reciprocal sqrt=Sqrt root=Sqrt maximum=Max
    minimum=Min exp=Exp log=Log sin=Sin cos=Cos tan=Tan asin=Asin acos=Acos atan=Atan sinh=Sinh cosh=Cosh
    tanh=Tanh asinh=Asinh acosh=Acosh atanh=Atanh abs=Abs sign=Sign erf=Erf sigmoid=Sigmoid softplus=Softplus
    mish=Mish relu=Relu hardswish=HardSwish
    """)
ELEMENTWISE: dict[str, Row] = {
    **{name: direct(op) for name, op in _DIRECT.items()},
    "add": _booleans_as("Or", direct("Add")),
    "multiply": _booleans_as("And", direct("Mul")),
    "rsqrt": _rsqrt,
    "remainder": _remainder,
    "fmod": direct("Mod", fmod=1),
    "floor_divide": _floor_divide,
    "where": _where,
    "fmax": _minmax("Max"),
    "fmin": _minmax("Min"),
    "clip": _clip,
    "expm1": _expm1,
    "log1p": _log1p,
    "exp2": _power_of(2.0),
    "log2": _scaled_log(2.0),
    "log10": _scaled_log(10.0),
    "atan2": _atan2,
    "floor": _whole("Floor"),
    "ceil": _whole("Ceil"),
    "trunc": _trunc,
    "round": _round,
    "equal": compared("Equal"),
    "not_equal": compared("Equal", negated=True),
    "less": compared("Less"),
    "less_equal": compared("LessOrEqual"),
    "greater": compared("Greater"),
    "greater_equal": compared("GreaterOrEqual"),
    "logical_and": _logical("And"),
    "logical_or": _logical("Or"),
    "logical_xor": _logical("Xor"),
    "logical_not": _logical("Not"),
    "bitwise_and": _bits("BitwiseAnd", "And"),
    "bitwise_or": _bits("BitwiseOr", "Or"),
    "bitwise_xor": _bits("BitwiseXor", "Xor"),
    "bitwise_not": _bits("BitwiseNot", "Not"),
    "isnan": _tested("IsNaN"),
    "isinf": _tested("IsInf"),
    "isfinite": _isfinite,
    "erfc": _erfc,
    "ndtr": _ndtr,
    "gelu": _gelu("none"),
    "gelu_tanh": _gelu("tanh"),
    "leaky_relu": lambda w, step, x, *, slope: w.op("LeakyRelu", x, shape=step.out.shape, alpha=float(slope)),
    "elu": lambda w, step, x, *, alpha: w.op("Elu", x, shape=step.out.shape, alpha=float(alpha)),
    "square": lambda w, step, x: w.op("Mul", x, x, shape=step.out.shape),
    "silu": lambda w, step, x: w.op("Mul", x, w.op("Sigmoid", x), shape=step.out.shape),
    "hypot": _hypot,
    "logaddexp": _logaddexp(math.e),
    "logaddexp2": _logaddexp(2.0),
    "xlogy": _times_log(direct("Log")),
    "lerp": _lerp,
    "heaviside": _heaviside,
    "log_sigmoid": _log_sigmoid,
    "nan_to_num": _nan_to_num,
    "xlog1py": _times_log(_log1p),
    "entr": _entr,
    "sinc": _sinc,
    "copysign": _copysign,
    "hardtanh": _clip,
}
