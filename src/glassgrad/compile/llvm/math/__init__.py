"""Our own exp, log, tanh, erf, pow, sin, cos, ... on scalars and vectors: accurate and branch-free.

Each function becomes one small LLVM function for every (element kind, number of lanes) that is used, inlined where
it is called; on scalars, long ones are called instead. Polynomials were fitted in 120-digit arithmetic by weighted
least squares on Chebyshev nodes: round one coefficient, fit the others again, and repeat.

`MAX_ULP` states the largest error in units in the last place; the tests measure it on dense, random and edge inputs.

Input: vectors in registers, and the name of a function. Output: a call of it, defined in the module on first use.

One family per file: `exponential.py`, `power.py`, `special.py`, `trigonometric.py`. `library.py` calls the C library,
`common.py` has shared helpers.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.llvm.math import exponential, power, special, trigonometric
from glassgrad.compile.llvm.module.ir import Builder, Function, Value, suffix

Routine = Callable[..., Value]

ROUTINES: dict[str, Routine] = {
    "exp": exponential.exp,
    "expm1": exponential.expm1,
    "log": exponential.log,
    "log1p": exponential.log1p,
    "power": power.power,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tanh": special.tanh,
    "sigmoid": special.sigmoid,
    "erf": special.erf,
    "erfc_from": special.erfc_from,
}

# name -> largest error in ulp (float32, float64)
MAX_ULP: dict[str, tuple[float, float]] = {
    "exp": (1.5, 1.5),
    "expm1": (2.5, 2.5),
    "log": (1.5, 1.5),
    "log1p": (2.0, 2.0),
    "power": (1.0, 2.0),
    "sin": (1.5, 1.5),
    "cos": (1.5, 1.5),
    "tanh": (3.5, 3.5),
    "sigmoid": (3.0, 3.0),
    "erf": (4.0, 4.0),
    "erfc": (4.5, 6.0),  # largest just below 1, where a unit is half of that of the factors
    # Functions of the C library: glibc's errors, with a margin for others.
    "asin": (1.5, 1.5),
    "acos": (1.5, 1.5),
    "atan": (1.5, 1.5),
    "asinh": (0.6, 2.5),
    "acosh": (0.6, 2.5),
    "atanh": (0.6, 2.5),
    "atan2": (1.5, 1.5),
    "hypot": (1.0, 1.0),
    "log2": (1.5, 1.5),
    "log10": (2.5, 2.5),
    "exp2": (1.5, 1.5),
    "gammaln": (0.6, 6.0),
    "fmod": (0.0, 0.0),
    "nextafter": (0.0, 0.0),
    # Built from the above by `TermSpace`.
    "tan": (3.5, 3.5),
    "sinh": (3.5, 3.5),
    "cosh": (3.5, 3.5),
}

# Long routines, for which the cost of a call is negligible. Each parameter that Adam updates needs three powers of a
# scalar; inlined, they were half of the code of a small training step.
_LONG = {"power"}


def math_call(b: Builder, name: str, *args: Value) -> Value:
    """Call one of our routines; define it in the module on first use."""
    args = tuple(b.level(*args))
    kind, lanes = args[0].kind, args[0].lanes
    called = lanes == 1 and name in _LONG
    # A called function is specialised for each set of constants, as inlining would do, so LLVM computes the logarithm
    # of a constant base.
    fixed = [called and not arg.text.startswith("%") for arg in args]
    full = "_".join(
        [f"gg_{name}_{suffix(kind, lanes)}", *(f"{n}_{arg.text}" for n, arg in enumerate(args) if fixed[n])]
    )
    definitions = b.function.module.definitions
    params = [arg if fixed[n] else Value(f"%x{n}", arg.kind, arg.lanes) for n, arg in enumerate(args)]
    free = [param for param, known in zip(params, fixed, strict=True) if not known]
    if full not in definitions:
        definitions[full] = _definition(b, name, full, params, free, "noinline" if called else "alwaysinline")
    typed = ", ".join(arg.typed for arg, known in zip(args, fixed, strict=True) if not known)
    return b.define(f"call {args[0].type} @{full}({typed})", kind, lanes)


def _definition(b: Builder, name: str, full: str, params: list[Value], free: list[Value], how: str) -> str:
    # No fast-math flags inside, because the accuracy depends on the order of operations.
    inner = Builder(Function(b.function.module), flags="")
    result = ROUTINES[name](inner, *params)
    inner.raw(f"ret {result.typed}")
    head = ", ".join(param.typed for param in free)
    body = "\n".join(["entry:", *inner.lines])
    return f"define internal {result.type} @{full}({head}) {how} #0 {{\n{body}\n}}\n"
