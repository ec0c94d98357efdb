"""Elementwise primitives: arithmetic, exponentials, trigonometry, comparisons that carry a gradient.

Each entry states the function and its local derivatives; everything else is derived from them.
Edges are NumPy's and PyTorch's; where the two disagree the entry says so in `notes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.ops.core import Array, elementwise, select
from glassgrad.ops.samples import booleans, reals

_inf = float("inf")
_nan = float("nan")
_EDGES = (0.0, -0.0, 1.0, -1.0, 1e3, -1e3, 1e-30, _inf, -_inf, _nan)

# --- arithmetic -----------------------------------------------------------------------------------

add = elementwise(
    "add", "add", (1, 1), formula="a + b", derivative="1, 1", samples=(reals(-3, 3), reals(-3, 3)), edge=_EDGES
)
subtract = elementwise(
    "subtract", "subtract", (1, -1), formula="a - b", derivative="1, -1",
    samples=(reals(-3, 3), reals(-3, 3)), edge=_EDGES,
)  # fmt: skip
multiply = elementwise(
    "multiply", "multiply", (lambda y, a, b: b, lambda y, a, b: a), saves="x", formula="a * b", derivative="b, a",
    samples=(reals(-3, 3), reals(-3, 3)), edge=_EDGES,
)  # fmt: skip
divide = elementwise(
    "divide", "divide", (lambda y, a, b: reciprocal(b), lambda y, a, b: -y / b), saves=("x", "y"),
    formula="a / b", derivative="1 / b, -y / b", samples=(reals(-3, 3), reals(0.3, 3)), edge=_EDGES,
)  # fmt: skip
negative = elementwise(
    "negative", "negative", (-1,), formula="-x", derivative="-1", samples=(reals(-3, 3),), edge=_EDGES
)
remainder = elementwise(
    "remainder", "remainder", (1, lambda y, a, b: -floor_divide(a, b)), saves="x", formula="a - floor(a / b) * b",
    derivative="1, -floor(a / b)", samples=(reals(0.1, 0.9), reals(1.1, 3)),
)  # fmt: skip
reciprocal = elementwise(
    "reciprocal", lambda xp, x: 1 / x, (lambda y, x: -y * y,), saves="y", formula="1 / x", derivative="-y**2",
    samples=(reals(0.3, 3),), edge=_EDGES,
)  # fmt: skip
square = elementwise(
    "square", "square", (lambda y, x: 2 * x,), saves="x", formula="x**2", derivative="2 * x",
    samples=(reals(-3, 3),), edge=_EDGES,
)  # fmt: skip


def _power_base(y: Array, a: Array, b: Array) -> Array:
    # b * a**(b-1), and 0 where b is 0, also at a = 0 where the product would be 0 * inf.
    if isinstance(b, int | float):
        return b * power(a, b - 1) if b != 0 else 0 * a
    return where(b == 0, 0, b * power(a, b - 1))


def _power_exponent(y: Array, a: Array, b: Array) -> Array:
    # y * log(a), and 0 where a is 0 and b is not negative: the limit from above.
    zero = logical_and(a == 0, b >= 0)
    return where(zero, 0, y * log(where(zero, 1, a)))


power = elementwise(
    "power", lambda xp, a, b: xp.power(a, b) if not isinstance(b, int | float) else a**b,
    (_power_base, _power_exponent), saves=("x", "y"), formula="a ** b",
    derivative="b * a**(b-1), y * log(a)", samples=(reals(0.3, 3), reals(-2, 3)),
    edge=(0.0, 0.5, 1.0, 2.0, 3.0, _inf, _nan),
)  # fmt: skip

# --- selection ------------------------------------------------------------------------------------

where = elementwise(
    "where", "where", (None, select(lambda y, c, a, b: c), select(lambda y, c, a, b: logical_not(c))), saves="x",
    formula="a if c else b", derivative="-, c, not c", samples=(booleans, reals(-3, 3), reals(-3, 3)),
)  # fmt: skip


def _tie(chosen: Array, other: Array, y: Array) -> Array:
    # Half a gradient to each where both are equal, as in PyTorch. NaN inputs get none.
    return where(chosen == y, where(chosen == other, 0.5, 1.0), 0.0)


maximum = elementwise(
    "maximum", "maximum", (lambda y, a, b: _tie(a, b, y), lambda y, a, b: _tie(b, a, y)), saves=("x", "y"),
    formula="max(a, b)", derivative="a > b, b > a; halves on ties", samples=(reals(-3, 0), reals(0.1, 3)), edge=_EDGES,
)  # fmt: skip
minimum = elementwise(
    "minimum", "minimum", (lambda y, a, b: _tie(a, b, y), lambda y, a, b: _tie(b, a, y)), saves=("x", "y"),
    formula="min(a, b)", derivative="a < b, b < a; halves on ties", samples=(reals(-3, 0), reals(0.1, 3)), edge=_EDGES,
)  # fmt: skip


def _clip(xp: Any, x: Array, *, low: float | None, high: float | None) -> Array:
    return xp.clip(x, low, high)


def _inside(y: Array, x: Array, *, low: float | None, high: float | None) -> Array:
    if low is None:
        return x <= high
    return x >= low if high is None else logical_and(x >= low, x <= high)


clip_p = elementwise(
    "clip", _clip, (select(_inside),), saves="x", formula="min(max(x, low), high)", derivative="low <= x <= high",
    samples=(reals(-3, 3, -1, 1),), edge=_EDGES,
)  # fmt: skip

# --- exponentials and logarithms ------------------------------------------------------------------

exp = elementwise(
    "exp", "exp", (lambda y, x: y,), saves="y", formula="exp(x)", derivative="y", samples=(reals(-3, 3),), edge=_EDGES
)
expm1 = elementwise(
    "expm1", "expm1", (lambda y, x: y + 1,), saves="y", formula="exp(x) - 1", derivative="y + 1",
    samples=(reals(-3, 3),), edge=_EDGES,
)  # fmt: skip
log = elementwise(
    "log", "log", (lambda y, x: reciprocal(x),), saves="x", formula="log(x)", derivative="1 / x",
    samples=(reals(0.3, 4),), edge=_EDGES,
)  # fmt: skip
log1p = elementwise(
    "log1p", "log1p", (lambda y, x: reciprocal(1 + x),), saves="x", formula="log(1 + x)", derivative="1 / (1 + x)",
    samples=(reals(-0.7, 3),), edge=_EDGES,
)  # fmt: skip
sqrt = elementwise(
    "sqrt", "sqrt", (lambda y, x: reciprocal(2 * y),), saves="y", formula="sqrt(x)", derivative="1 / (2 * y)",
    samples=(reals(0.3, 4),), edge=_EDGES,
)  # fmt: skip
rsqrt = elementwise(
    "rsqrt", lambda xp, x: 1 / xp.sqrt(x), (lambda y, x: -0.5 * y * y * y,), saves="y", formula="1 / sqrt(x)",
    derivative="-y**3 / 2", samples=(reals(0.3, 4),), edge=_EDGES,
)  # fmt: skip

# --- trigonometry and sigmoids --------------------------------------------------------------------

sin = elementwise(
    "sin", "sin", (lambda y, x: cos(x),), saves="x", formula="sin(x)", derivative="cos(x)",
    samples=(reals(-4, 4),), edge=_EDGES,
)  # fmt: skip
cos = elementwise(
    "cos", "cos", (lambda y, x: -sin(x),), saves="x", formula="cos(x)", derivative="-sin(x)",
    samples=(reals(-4, 4),), edge=_EDGES,
)  # fmt: skip
tanh = elementwise(
    "tanh", "tanh", (lambda y, x: 1 - y * y,), saves="y", formula="tanh(x)", derivative="1 - y**2",
    samples=(reals(-3, 3),), edge=_EDGES,
)  # fmt: skip


def _sigmoid(xp: Any, x: Array) -> Array:
    # exp of a non-positive number neither overflows nor loses the small values far to the left.
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1, e) / (1 + e)


sigmoid = elementwise(
    "sigmoid", _sigmoid, (lambda y, x: y * (1 - y),), saves="y", formula="1 / (1 + exp(-x))",
    derivative="y * (1 - y)", samples=(reals(-4, 4),), edge=_EDGES,
)  # fmt: skip
relu = elementwise(
    "relu", lambda xp, x: xp.maximum(x, 0), (select(lambda y, x: y > 0),), saves="y", formula="max(x, 0)",
    derivative="x > 0", samples=(reals(-3, 3, 0),), edge=_EDGES,
)  # fmt: skip
abs = elementwise(  # noqa: A001 - NumPy's name
    "abs", "abs", (lambda y, x: sign(x),), saves="x", formula="|x|", derivative="sign(x)",
    samples=(reals(-3, 3, 0),), edge=_EDGES,
)  # fmt: skip
sign = elementwise(
    "sign", "sign", (None,), formula="sign(x)", derivative="0", samples=(reals(-3, 3, 0),), edge=_EDGES
)

# --- without a derivative -------------------------------------------------------------------------


def _companion(name: str, forward: str, formula: str, arity: int = 2) -> Any:
    return elementwise(name, forward, (None,) * arity, formula=formula, derivative="none")


equal = _companion("equal", "equal", "a == b")
not_equal = _companion("not_equal", "not_equal", "a != b")
less = _companion("less", "less", "a < b")
less_equal = _companion("less_equal", "less_equal", "a <= b")
greater = _companion("greater", "greater", "a > b")
greater_equal = _companion("greater_equal", "greater_equal", "a >= b")
logical_and = _companion("logical_and", "logical_and", "a and b")
logical_or = _companion("logical_or", "logical_or", "a or b")
logical_xor = _companion("logical_xor", "logical_xor", "a xor b")
logical_not = _companion("logical_not", "logical_not", "not x", arity=1)
bitwise_and = _companion("bitwise_and", "bitwise_and", "a & b")
bitwise_or = _companion("bitwise_or", "bitwise_or", "a | b")
bitwise_xor = _companion("bitwise_xor", "bitwise_xor", "a ^ b")
bitwise_not = _companion("bitwise_not", "invert", "~x", arity=1)
isnan = _companion("isnan", "isnan", "x is NaN", arity=1)
isinf = _companion("isinf", "isinf", "x is infinite", arity=1)
isfinite = _companion("isfinite", "isfinite", "x is finite", arity=1)
floor_divide = _companion("floor_divide", "floor_divide", "floor(a / b)")

# --- public functions -----------------------------------------------------------------------------


def clip(x: Array, min: Any = None, max: Any = None) -> Array:  # noqa: A002 - PyTorch's names
    """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([-2.0, 0.5, 3.0]).clip(0, 1).tolist()
        [0.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise ValueError("clip: at least one of min and max must be given")
    numbers = (int, float, type(None), np.generic)
    if isinstance(min, numbers) and isinstance(max, numbers):
        return clip_p(x, low=min, high=max)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)
