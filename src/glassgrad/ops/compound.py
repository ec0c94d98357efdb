"""Elementwise ops with PyTorch's extra arguments, and small functions composed of elementwise primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import complexes, reduce
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import as_real, concrete
from glassgrad.ops.complex_input import complex_dtype, takes_complex
from glassgrad.ops.core import Array, Aval, Custom, bad_option, custom
from glassgrad.ops.data_dependent import nonzero_p
from glassgrad.ops.expects import expect_mask
from glassgrad.ops.samples import S
from glassgrad.ops.shape import astype
from glassgrad.ops.vmap.rules import native

_NUMBERS = (int, float, type(None), np.generic)


@takes_complex
def add(x: Array, other: Array, *, alpha: float = 1) -> Array:
    """x + alpha * other."""
    return ew.add(x, other) if alpha == 1 else ew.add(x, ew.multiply(other, alpha))


@takes_complex
def subtract(x: Array, other: Array, *, alpha: float = 1) -> Array:
    """x - alpha * other."""
    return ew.subtract(x, other) if alpha == 1 else ew.subtract(x, ew.multiply(other, alpha))


@takes_complex
def rsub(x: Array, other: Array, *, alpha: float = 1) -> Array:
    """other - alpha * x."""
    return subtract(other, x, alpha=alpha)


@takes_complex
def divide(x: Array, other: Array, *, rounding_mode: str | None = None) -> Array:
    """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""
    if rounding_mode is None:
        return ew.divide(x, other)
    if rounding_mode == "floor":
        return floor_divide(x, other)
    if rounding_mode == "trunc":
        return ew.trunc(ew.divide(x, other)) if _has_fractions(x, other) else _whole_quotient(x, other)
    raise bad_option("divide", "rounding_mode", rounding_mode, "None, 'floor' or 'trunc'")


def _has_fractions(*xs: Array) -> bool:
    return any(x.dtype.kind not in "biu" if hasattr(x, "dtype") else not isinstance(x, int) for x in xs)


def _whole_quotient(x: Array, other: Array) -> Array:
    """The quotient of integers rounded towards 0: the floor, plus 1 where it is negative and inexact."""
    down = ew.floor_divide(x, other)
    inexact = ew.logical_and(ew.not_equal(ew.remainder(x, other), 0), ew.not_equal(ew.less(x, 0), ew.less(other, 0)))
    return ew.add(down, astype(inexact, down.dtype))


def floor_divide(x: Array, other: Array) -> Array:
    """x / other, rounded down."""
    return ew.floor_divide(x, other)


# Without extra arguments these are the primitives themselves; in-place ops rely on that.
for _function, _prim in ((add, ew.add), (subtract, ew.subtract), (divide, ew.divide), (floor_divide, ew.floor_divide)):
    _function.primitive = _prim  # type: ignore[attr-defined]  # set at run time


@takes_complex
def lerp(x: Array, end: Array, weight: Array) -> Array:
    """x + weight * (end - x), exact at both ends."""
    return ew.lerp(x, end, weight)


@takes_complex
def addcmul(x: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """x + value * tensor1 * tensor2."""
    if x.dtype.kind in "fV" and getattr(tensor1, "dtype", x.dtype).kind not in "fV":
        tensor1 = astype(tensor1, np.result_type(tensor1.dtype, x.dtype))  # small integers would wrap
    product = ew.multiply(tensor1, tensor2)
    return x + (product if value == 1 else product * value)


@takes_complex
def addcdiv(x: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """x + value * tensor1 / tensor2."""
    quotient = ew.divide(tensor1, tensor2)
    return x + (quotient if value == 1 else quotient * value)


@takes_complex
def float_power(x: Array, other: Array) -> Array:
    """x ** other, computed in float64, or in complex128 where one of them is complex."""
    kind = np.float64 if complex_dtype((x, other)) is None else np.complex128
    wide = [astype(value, kind) if hasattr(value, "dtype") else kind(value) for value in (x, other)]
    return ew.power(*wide)


def frac(x: Array) -> Array:
    """The fraction of x, with its sign."""
    return x - ew.trunc(x)


@takes_complex
def positive(x: Array) -> Array:
    """x itself; booleans are refused, as in PyTorch and NumPy."""
    if hasattr(x, "dtype") and x.dtype.kind == "b":
        reason = "a truth value has no sign"
        raise errors.OP_WRONG_KIND(op="positive", operands="a tensor of bool", reason=reason, where=provenance.here())
    return x


@takes_complex
def ldexp(x: Array, other: Array) -> Array:
    """x * 2**other."""
    if hasattr(x, "dtype") and hasattr(other, "dtype") and _has_fractions(x) and not _has_fractions(other):
        other = astype(other, x.dtype)  # integers do not widen a floating-point result
    return x * ew.exp2(other * 1.0)


class Frexp(NamedTuple):
    """What `frexp` returns."""

    mantissa: Array
    exponent: Array


frexp_p: Custom = custom(
    "frexp",
    lambda xp, x: np.frexp(x),
    saves="y",
    multiple=True,
    joint_vjp=lambda gs, needs, y, x: (None if gs[0] is None else ldexp(gs[0], -y[1]),),
    joint_jvp=lambda tangents, y, x: (ldexp(tangents[0], -y[1]), None),
    batch=native,
    shape=lambda x: (Aval(tuple(x.shape), x.dtype), Aval(tuple(x.shape), np.dtype(np.int32))),
)
frexp_p.describe("x = m * 2**e with 0.5 <= |m| < 1", "g / 2**e")
frexp_p.samples = [S((3, 4)), S(())]


def frexp(x: Array) -> Frexp:
    """The mantissa, at least 0.5 and below 1 in size, and the exponent (int32) of x = mantissa * 2**exponent."""
    return Frexp(*frexp_p(x))


def deg2rad(x: Array) -> Array:
    """Degrees to radians."""
    return x * (math.pi / 180)


def rad2deg(x: Array) -> Array:
    """Radians to degrees."""
    return x * (180 / math.pi)


def round(x: Array, decimals: int = 0) -> Array:
    """Round to `decimals` places, ties to even. The gradient is 0."""
    if decimals == 0:
        return ew.round_p(x)
    scale = 10.0**decimals
    return ew.round_p(x * scale) / scale


def nan_to_num(x: Array, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """x with `nan` for NaN and the largest numbers (or `posinf`, `neginf`) for infinities, where the gradient is 0."""
    return ew.nan_to_num_p(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def clip(x: Array, min: Any = None, max: Any = None) -> Array:
    """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([-2.0, 0.5, 3.0]).clip(0, 1).tolist()
        [0.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise bad_option("clip", "min", None, "at least one of min and max")
    if isinstance(min, _NUMBERS) and isinstance(max, _NUMBERS):
        return ew.clip_p(x, low=min, high=max)
    # maximum and minimum would share the gradient where x is at the bound; here x gets all of it.
    if min is not None:
        x = ew.where(ew.logical_or(x >= min, ew.isnan(x)), x, min)
    return x if max is None else ew.where(ew.logical_or(x <= max, ew.isnan(x)), x, max)


def clamp_min(x: Array, min: Any) -> Array:
    """Limit x from below."""
    return clip(x, min=min)


def clamp_max(x: Array, max: Any) -> Array:
    """Limit x from above."""
    return clip(x, max=max)


# --- choosing -------------------------------------------------------------------------------------


_PYTHON_NUMBERS = (float, int, bool)


@takes_complex
def where(condition: Array, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; with `condition` alone, the indices where it is true.

    Entries that are not chosen have gradient 0. A NaN or inf in the computation behind them turns that 0 into NaN,
    since 0 * inf is NaN. `safe_where` avoids this.
    """
    if input is None and other is None:
        return nonzero_p(condition)
    if getattr(condition, "dtype", None) != np.uint8:  # masks of early PyTorch versions
        expect_mask("where", condition, "condition")
    if type(input) in _PYTHON_NUMBERS and type(other) in _PYTHON_NUMBERS and float in (type(input), type(other)):
        input, other = np.float32(input), np.float32(other)  # the dtype of plain numbers without a tensor
    return ew.where(condition, input, other)


@takes_complex
def safe_where(cond: Array, function: Callable[..., Array], *xs: Array, otherwise: Any = 0.0, fill: Any = 1.0) -> Array:
    """`function(*xs)` where `cond` is true, else `otherwise`, with clean gradients on both sides.

    ``where(x > 0, log(x), 0)`` has the right value at x = 0 but the gradient NaN: log is computed there too, and its
    derivative inf is multiplied by 0. Here `function` gets `fill`, a harmless value, instead of the arguments that are
    not chosen.

    Args:
        cond: where the function is defined.
        function: takes as many tensors as `xs` holds; each element of its result may depend on the matching elements.
        xs: its arguments; they broadcast against `cond`.
        otherwise: the value elsewhere.
        fill: the value that replaces the arguments elsewhere.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([0.0, 2.0], requires_grad=True)
        >>> gg.safe_where(x > 0, gg.log, x).sum().backward()
        >>> x.grad.tolist()
        [0.0, 0.5]
    """
    return ew.where(cond, function(*(ew.where(cond, x, fill) for x in xs)), otherwise)


# --- comparing ------------------------------------------------------------------------------------


@takes_complex
def isclose(x: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""
    x, other = (as_real(v) if hasattr(v, "dtype") and v.dtype.kind == "b" else v for v in (x, other))
    near = ew.abs(x - other) <= atol + rtol * ew.abs(other)
    near = ew.logical_and(near, ew.logical_and(ew.isfinite(x), ew.isfinite(other)))
    near = ew.logical_or(near, ew.equal(x, other))  # infinities of the same sign
    return ew.logical_or(near, ew.logical_and(ew.isnan(x), ew.isnan(other))) if equal_nan else near


@takes_complex
def allclose(x: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close; see `isclose`."""
    return bool(reduce.all(isclose(x, other, rtol, atol, equal_nan)))


@takes_complex
def equal(x: Array, other: Array) -> bool:
    """Whether two tensors have the same shape and elements: one bool, as in PyTorch. `eq` is elementwise."""
    if tuple(np.shape(x)) != tuple(np.shape(other)):
        return False
    return bool(np.array_equal(concrete(x, "equal"), concrete(other, "equal")))


@takes_complex
def isreal(x: Array) -> Array:
    """Whether the imaginary part is 0."""
    return ew.equal(complexes.imag(x), 0)


def isposinf(x: Array) -> Array:
    """Whether x is +inf."""
    return ew.equal(x, math.inf)


def isneginf(x: Array) -> Array:
    """Whether x is -inf."""
    return ew.equal(x, -math.inf)


# --- complex numbers by magnitude and angle -------------------------------------------------------


def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers from magnitude and angle: abs cos(angle) + i abs sin(angle)."""
    return complexes.complex(abs * ew.cos(angle), abs * ew.sin(angle))


@takes_complex
def sgn(x: Array) -> Array:
    """x / |x| for complex numbers, with 0 for 0; the sign for real numbers."""
    if not complexes.is_complex(x):
        return ew.sign(x)
    zero = ew.equal(x, 0)
    return ew.where(zero, 0, x / ew.abs(ew.where(zero, 1, x)))


@takes_complex
def angle(x: Array) -> Array:
    """Argument of a complex number, between -pi and pi; 0 or pi for a real number."""
    if complexes.is_complex(x):
        return ew.atan2(complexes.imag(x), complexes.real(x))
    # atan2(0 * x, x) would be -pi for negative x, since 0 * x is -0.0, and NaN for infinite x.
    return ew.where(ew.less(x, 0), math.pi, ew.sign(as_real(x)) * 0)
