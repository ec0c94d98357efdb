"""Native code of elementwise ops from their forwards: `prim.forward(TermSpace(...), *terms)` builds the expression.

A forward is written against an array namespace. `TermSpace` is one whose arrays are expressions at a point of a loop
nest, so only an op's entry states its formula. Functions that NumPy or SciPy provides, which a forward only names, are
defined here in terms of those in `scalar`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.scalar import ELEMENTWISE, emit_elementwise
from glassgrad.compile.llvm.module.ir import Builder, Value, is_float
from glassgrad.compile.llvm.without_code import WITHOUT_CODE
from glassgrad.compile.plan.build_nest import LoopLowering, NestBuilder
from glassgrad.compile.plan.fusion import same_point
from glassgrad.compile.plan.indexing.indices import Indices
from glassgrad.compile.plan.nests import Expr, Expressions
from glassgrad.ops import activation, special  # noqa: F401 - importing them fills the registry
from glassgrad.ops.core import REGISTRY, Elementwise, Primitive
from glassgrad.ops.operators import attach
from glassgrad.ops.views import broadcast_indices

_ON_MASKS = {"logical_and", "logical_or", "logical_xor", "logical_not"}
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_BOOLEAN = _COMPARISONS | _ON_MASKS | {"isnan", "signbit"}


class Term:
    """An expression with the operators of an array."""

    __hash__ = None  # type: ignore[assignment]  # comparing makes an expression

    def __init__(self, exprs: Expressions, expr: Expr) -> None:
        self.exprs = exprs
        self.expr = expr

    def cast(self, kind: str) -> Term:
        """The same number in another element kind."""
        return Term(self.exprs, self.exprs.cast(self.expr, kind))


def apply(op: str, *args: Any, data: Any = None) -> Term:
    """Apply a basic op to terms and numbers; at least one of them is a term."""
    masks = [arg for arg in args[:1] if op == "where"]  # a choice has the kind of its alternatives
    values = args[len(masks) :]
    exprs = next(arg.exprs for arg in args if isinstance(arg, Term))
    kind = "b1" if op in _ON_MASKS else _common_kind(values)
    lifted = [exprs.cast(arg.expr, kind) if isinstance(arg, Term) else exprs.const(arg, kind) for arg in values]
    lifted = [arg.cast("b1").expr for arg in masks] + lifted
    return Term(exprs, exprs.apply(op, lifted, "b1" if op in _BOOLEAN else kind, data))


def _common_kind(values: tuple[Any, ...]) -> str:
    """Return the kind in which NumPy would compute: a Python float turns integers into float64, other numbers adapt."""
    kinds = [value.expr.kind for value in values if isinstance(value, Term)]
    floats = [kind for kind in kinds if is_float(kind)]
    if floats:
        return max(floats)
    if not kinds or any(isinstance(value, float) for value in values):
        return "f64"
    wide = [kind for kind in kinds if kind != "b1"]
    return max(wide, key=lambda kind: int(kind[1:])) if wide else kinds[0]


# NumPy's names of the basic ops that have another name here.
_NUMPY_NAMES = {REGISTRY[op].forward: op for op in ELEMENTWISE if op in REGISTRY}


class TermSpace:
    """An array namespace whose arrays are `Term`s: the basic ops, and the functions below built from them."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = name if name in ELEMENTWISE else _NUMPY_NAMES.get(name)
        if op is None:
            raise AttributeError(f"expressions have no function {name}")
        return lambda *args: apply(op, *args)

    def power(self, a: Any, b: Any) -> Any:
        exponent = b.expr.data if isinstance(b, Term) and b.expr.op == "const" else b
        # A square root and small integer powers; other half-integer powers differ from pow at 0 and -Inf.
        simple = isinstance(exponent, int | float) and (exponent == 0.5 or exponent == int(exponent))
        if simple and abs(exponent) <= 8 and isinstance(a, Term) and is_float(a.expr.kind):
            return apply("constant_power", a, data=float(exponent))
        return apply("power", a, b)

    def clip(self, x: Any, low: float | None, high: float | None) -> Any:
        x = x if low is None else self.maximum(x, low)
        return x if high is None else self.minimum(x, high)

    def sign(self, x: Any) -> Any:
        # The sign of a zero or NaN is the value itself.
        return self.where(x > 0, 1, self.where(x < 0, -1, x))

    def isinf(self, x: Any) -> Any:
        return abs(x) == math.inf if is_float(x.expr.kind) else _is_nan(x)  # no integer is infinite

    def isfinite(self, x: Any) -> Any:
        return abs(x) < math.inf if is_float(x.expr.kind) else _is_number(x)  # every integer is finite

    def signbit(self, x: Any) -> Any:
        return apply("signbit", x) if is_float(x.expr.kind) else x < 0

    def remainder(self, n: Any, d: Any) -> Any:
        rest = self.fmod(n, d)
        wrong = self.logical_and(rest != 0, self.logical_xor(rest < 0, d < 0))
        return self.where(wrong, rest + d, rest)

    def exp2(self, x: Any) -> Any:
        return apply("exp2", x)

    def tan(self, x: Any) -> Any:
        return self.sin(x) / self.cos(x)

    def sinh(self, x: Any) -> Any:
        a = abs(x)
        e = self.expm1(a)
        half = self.exp(a * 0.5)
        return self.copysign(self.where(a > 20.0, 0.5 * half * half, 0.5 * (e + e / (e + 1))), x)

    def cosh(self, x: Any) -> Any:
        half = self.exp(abs(x) * 0.5)
        return (0.5 * half) * half + 0.5 / (half * half)

    def sinc(self, x: Any) -> Any:
        angle = math.pi * x
        return self.where(x == 0, 1.0, self.sin(angle) / angle)

    def logaddexp(self, a: Any, b: Any) -> Any:
        # Inf - Inf is NaN, so two equal infinities are returned unchanged.
        tail = self.log1p(self.exp(-abs(a - b)))
        return self.where(a == b, a + math.log(2), self.maximum(a, b) + tail)

    def logaddexp2(self, a: Any, b: Any) -> Any:
        tail = self.log1p(self.exp2(-abs(a - b))) * (1 / math.log(2))
        return self.where(a == b, a + 1, self.maximum(a, b) + tail)

    def fmax(self, a: Any, b: Any) -> Any:
        return self.where(_is_nan(b), a, self.where(_is_nan(a), b, self.maximum(a, b)))

    def fmin(self, a: Any, b: Any) -> Any:
        return self.where(_is_nan(b), a, self.where(_is_nan(a), b, self.minimum(a, b)))

    def heaviside(self, x: Any, at_zero: Any) -> Any:
        return self.where(x == 0, at_zero, self.where(x < 0, 0, self.where(x > 0, 1, x)))

    def nan_to_num(self, x: Any, *, nan: float, posinf: float | None, neginf: float | None) -> Any:
        if self.dtype.kind != "f":
            return x
        most = float(np.finfo(self.dtype).max)
        infinite = self.where(x < 0, -most if neginf is None else neginf, most if posinf is None else posinf)
        return self.where(self.isnan(x), nan, self.where(self.isinf(x), infinite, x))

    def erfc(self, x: Any) -> Any:
        # The exponential is a separate expression, so derivatives, which need it too, share it. 1 - erf(x) would
        # lose digits where erf is near 1.
        return apply("erfc_from", x, self.exp(-(x * x)))

    def ndtr(self, x: Any) -> Any:
        return 0.5 * self.erfc(x * -math.sqrt(0.5))

    def xlogy(self, a: Any, b: Any) -> Any:
        return self._times(a, b, self.log(b))

    def xlog1py(self, a: Any, b: Any) -> Any:
        return self._times(a, b, self.log1p(b))

    def _times(self, a: Any, b: Any, factor: Any) -> Any:
        """a times a function of b; 0 where a is 0 and b is not NaN."""
        return self.where(self.logical_and(a == 0, _is_number(b)), 0.0 * a, a * factor)

    def entr(self, x: Any) -> Any:
        # A zero or NaN is returned unchanged.
        return self.where(x > 0, -(x * self.log(x)), self.where(x < 0, -math.inf, x))


def _is_nan(x: Any) -> Any:
    return x != x  # noqa: PLR0124 - NaN alone differs from itself


def _is_number(x: Any) -> Any:
    return x == x  # noqa: PLR0124 - as above


def _operator(op: str) -> Callable[..., Term]:
    """Return the operator of an op, which may be one of the functions above."""

    def function(*operands: Any) -> Term:
        result: Term = getattr(TermSpace(np.dtype(np.float64)), op)(*operands)
        return result

    return function


attach(Term, _operator)


def _kinds(builder: NestBuilder, instr: Instr) -> list[str]:
    """Return the kind in which each operand is read: that of the result or, for comparisons, that of the operands."""
    kind = builder.kind(instr.output.dtype)
    if instr.op == "where":
        return ["b1", kind, kind]
    if kind == "b1" and instr.op not in _ON_MASKS:
        dtypes: list[Any] = [operand.dtype if isinstance(operand, Var) else operand for operand in instr.inputs]
        kind = builder.kind(np.result_type(*dtypes))
    # Halves are computed as floats and rounded once, as in NumPy's functions; basic ops handle that themselves.
    return ["f32" if kind == "f16" and instr.op not in ELEMENTWISE else kind] * len(instr.inputs)


def _lowering(prim: Primitive) -> LoopLowering:
    def build(builder: NestBuilder, instr: Instr, out: Indices) -> Expr:
        terms = []
        for operand, kind in zip(instr.inputs, _kinds(builder, instr), strict=True):
            at = broadcast_indices(out, operand.shape) if isinstance(operand, Var) else ()
            terms.append(Term(builder.exprs, builder.read(operand, at, kind)))
        result: Term = prim.within(TermSpace(instr.output.dtype), *terms, **instr.params)
        return result.cast(builder.kind(instr.output.dtype)).expr

    return LoopLowering(same_point, build=build)


def emit_primitive(b: Builder, op: str, args: list[Value]) -> Value:
    """Emit an elementwise primitive on registers of one kind, for code outside of loop nests."""
    if op in ELEMENTWISE:
        return emit_elementwise(b, op, args, None)
    kind = args[0].kind
    dtype = np.dtype({"f16": np.float16, "f32": np.float32}.get(kind, np.float64))
    exprs, known = Expressions({}), dict[Expr, Value]()
    wide = "f32" if kind == "f16" else kind
    terms = [Term(exprs, exprs.apply("argument", (), wide, number)) for number in range(len(args))]
    for term, arg in zip(terms, args, strict=True):
        known[term.expr] = b.cast(arg, wide)
    return b.cast(_emit(b, REGISTRY[op].within(TermSpace(dtype), *terms).expr, known, args[0].lanes), kind)


def _emit(b: Builder, expr: Expr, known: dict[Expr, Value], lanes: int) -> Value:
    """Emit an expression with known arguments, each subexpression once."""
    if expr.op == "const":
        return b.const(expr.data, expr.kind, lanes)
    if expr not in known:
        parts = [_emit(b, part, known, lanes) for part in expr.args]
        known[expr] = emit_elementwise(b, expr.op, parts, expr.data)
    return known[expr]


FORWARDS: dict[str, LoopLowering] = {
    name: _lowering(prim)
    for name, prim in REGISTRY.items()
    if isinstance(prim, Elementwise) and name not in WITHOUT_CODE
}
