"""Elementwise ops written in other elementwise ops: activations and their kin.

Each is a function of expressions, in the arrangement that the eager op uses, so that both round alike and stay finite
in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.plan.build_nest import LoopLowering, NestBuilder
from glassgrad.compile.plan.fusion import same_point
from glassgrad.compile.plan.indices import Indices, broadcast
from glassgrad.compile.plan.nests import Expr, Expressions


class Term:
    """An expression with operators."""

    def __init__(self, exprs: Expressions, expr: Expr) -> None:
        self.exprs = exprs
        self.expr = expr

    def _lift(self, other: Any) -> Expr:
        return other.expr if isinstance(other, Term) else self.exprs.const(other, self.expr.kind)

    def call(self, op: str, *others: Any, kind: str | None = None, data: Any = None) -> Term:
        """Apply an op to this term and others (terms or numbers)."""
        args = [self.expr, *map(self._lift, others)]
        return Term(self.exprs, self.exprs.apply(op, args, kind or self.expr.kind, data))

    def __add__(self, other: Any) -> Term:
        return self.call("add", other)

    def __sub__(self, other: Any) -> Term:
        return self.call("subtract", other)

    def __mul__(self, other: Any) -> Term:
        return self.call("multiply", other)

    def __truediv__(self, other: Any) -> Term:
        return self.call("divide", other)

    def __rsub__(self, other: Any) -> Term:
        return Term(self.exprs, self.exprs.apply("subtract", [self._lift(other), self.expr], self.expr.kind))

    def __neg__(self) -> Term:
        return self.call("negative")

    __radd__, __rmul__ = __add__, __mul__

    def test(self, op: str, other: Any) -> Term:
        """Compare."""
        return self.call(op, other, kind="b1")

    def then(self, yes: Any, no: Any) -> Term:
        """`yes` where this mask holds, else `no`; at least one of them is a term."""
        like = yes if isinstance(yes, Term) else no
        args = [self.expr, like._lift(yes), like._lift(no)]
        return Term(self.exprs, self.exprs.apply("where", args, like.expr.kind))


def _softplus(x: Term) -> Term:
    return x.call("relu") + (-x.call("abs")).call("exp").call("log1p")


def _erfc(x: Term) -> Term:
    # The exponential is an expression of its own: derivatives need it too, and it is then computed once.
    kind = x.expr.kind
    wide = Term(x.exprs, x.exprs.cast(x.expr, "f32" if kind == "f16" else kind))
    found = wide.call("erfc_from", (-(wide * wide)).call("exp"))
    return Term(x.exprs, x.exprs.cast(found.expr, kind))


def _gelu(x: Term) -> Term:
    return x * (0.5 * _erfc(x * -math.sqrt(0.5)))


def _gelu_tanh(x: Term) -> Term:
    return 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)).call("tanh"))


def _elu(x: Term, alpha: float) -> Term:
    return x.test("greater", 0).then(x, alpha * x.call("minimum", 0).call("expm1"))


def _logaddexp(a: Term, b: Term) -> Term:
    top = a.call("maximum", b)
    tail = (-(a - b).call("abs")).call("exp").call("log1p")
    # Inf - Inf is NaN: two equal infinities are their own result.
    return a.test("equal", b).then(a + math.log(2), top + tail)


def _xlogy(a: Term, b: Term) -> Term:
    zero = a.test("equal", 0)
    known = b.test("equal", b)
    return zero.call("logical_and", known, kind="b1").then(0.0 * a, a * b.call("log"))


def _xlog1py(a: Term, b: Term) -> Term:
    zero = a.test("equal", 0)
    known = b.test("equal", b)
    return zero.call("logical_and", known, kind="b1").then(0.0 * a, a * b.call("log1p"))


def _fmax(a: Term, b: Term) -> Term:
    picked = a.test("not_equal", a).then(b, a.call("maximum", b))
    return b.test("not_equal", b).then(a, picked)


def _fmin(a: Term, b: Term) -> Term:
    picked = a.test("not_equal", a).then(b, a.call("minimum", b))
    return b.test("not_equal", b).then(a, picked)


def _sinh(x: Term) -> Term:
    a = x.call("abs")
    e = a.call("expm1")
    half = (a * 0.5).call("exp")
    size = a.test("greater", 20.0).then(0.5 * half * half, 0.5 * (e + e / (e + 1)))
    return size.call("copysign", x)


def _cosh(x: Term) -> Term:
    half = (x.call("abs") * 0.5).call("exp")
    return (0.5 * half) * half + (half * half).call("reciprocal") * 0.5


def _lerp(a: Term, b: Term, w: Term) -> Term:
    """Two formulas, so that both ends are met exactly."""
    d = b - a
    return w.call("abs").test("less", 0.5).then(a + w * d, b - (1 - w) * d)


Formula = Callable[..., Term]

_FORMULAS: dict[str, Formula] = {
    "softplus": _softplus,
    "log_sigmoid": lambda x: -_softplus(-x),
    "silu": lambda x: x * x.call("sigmoid"),
    "mish": lambda x: x * _softplus(x).call("tanh"),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "leaky_relu": lambda x, slope: x.test("greater", 0).then(x, slope * x),
    "elu": _elu,
    "hardtanh": lambda x, low, high: x.call("clip", data=(low, high)),
    "hardswish": lambda x: x * (x + 3).call("clip", data=(0, 6)) / 6,
    "lerp": _lerp,
    "root": lambda x: x.call("sqrt"),
    "exp2": lambda x: Term(x.exprs, x.exprs.apply("power", [x.exprs.const(2, x.expr.kind), x.expr], x.expr.kind)),
    "log2": lambda x: x.call("log") * (1 / math.log(2)),
    "log10": lambda x: x.call("log") * (1 / math.log(10)),
    "tan": lambda x: x.call("sin") / x.call("cos"),
    "sinh": _sinh,
    "cosh": _cosh,
    "logaddexp": _logaddexp,
    "xlogy": _xlogy,
    "xlog1py": _xlog1py,
    "fmax": _fmax,
    "fmin": _fmin,
    "erfc": _erfc,
    "ndtr": lambda x: 0.5 * _erfc(x * -math.sqrt(0.5)),
}


def _composite(formula: Formula) -> LoopLowering:
    def build(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
        kind = builder.kind(instr.output.dtype)
        terms = []
        for operand in instr.inputs:
            at = broadcast(out, operand.shape) if isinstance(operand, Var) else ()
            terms.append(Term(builder.exprs, builder.read(operand, at, kind)))
        return formula(*terms, **instr.params).expr

    return LoopLowering(same_point, build=build)


COMPOSITES: dict[str, LoopLowering] = {name: _composite(formula) for name, formula in _FORMULAS.items()}
