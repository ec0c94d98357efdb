"""Functions that a written program calls: each is written once, when the first expression needs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from glassgrad.compile.c.builder import CBuilder, c_function
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.llvm.loops.scalar import ELEMENTWISE
from glassgrad.compile.llvm.math import ROUTINES
from glassgrad.compile.llvm.math.library import LIBRARY
from glassgrad.compile.llvm.module.ir import Value

_DOUBLE_ONLY = frozenset({"lgamma", "asinh", "acosh", "atanh"})  # as native code: float32 has none so accurate

_FMA = """\
/* a * b + c, rounded once where the processor can */
#ifdef FP_FAST_FMAF
#define GG_FMAF(a, b, c) fmaf((a), (b), (c))
#else
#define GG_FMAF(a, b, c) ((a) * (b) + (c))
#endif
#ifdef FP_FAST_FMA
#define GG_FMA(a, b, c) fma((a), (b), (c))
#else
#define GG_FMA(a, b, c) ((a) * (b) + (c))
#endif
"""

_WRAP = """\
/* an index as in NumPy, where negative ones count from the end; the result is always inside of the axis */
static inline ptrdiff_t gg_wrap(int64_t index, int64_t extent)
{
    const int64_t at = index < 0 ? index + extent : index;
    return (ptrdiff_t)(at < 0 || at >= extent ? extent - 1 : at);
}
"""

_OUTSIDE = """\
/* whether an index is below `low` or not below `extent`; `spare` is a value that no one uses as an index */
static bool gg_outside_KIND(const TYPE *index, ptrdiff_t count, TYPE low, TYPE extent, bool spares, TYPE spare)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        if ((index[i] < low || index[i] >= extent) && !(spares && index[i] == spare)) {
            return true;
        }
    }
    return false;
}
"""


class Helpers:
    """The functions of one program, in an order in which C can read them.

    Attributes:
        texts: name -> definition.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def need(self, name: str, text: str | Callable[[], str]) -> str:
        """Add a definition unless it is there; return the name."""
        if name not in self.texts:
            # What a definition itself needs is added before it.
            made = text if isinstance(text, str) else text()
            self.texts.setdefault(name, made)
        return name

    def templated(self, name: str, text: str, kind: str) -> str:
        """Add a definition for an element kind, written with TYPE, KIND and F (the suffix of the C library)."""
        return self.need(f"{name}_{kind}", in_kind(text, kind))

    def wrap(self) -> str:
        return self.need("gg_wrap", _WRAP)

    def outside(self, kind: str) -> str:
        return self.templated("gg_outside", _OUTSIDE, kind)

    def extreme(self, name: str, kind: str) -> str:
        """Return the function of the larger, or smaller, of two floats; NaN if one is.

        Both choices are the same number unless one is NaN, so their bits together are the number, or NaN. Without a
        second condition, compilers choose in vectors.
        """
        sign, whole = (">" if name == "maximum" else "<"), f"u{kind[1:]}"
        to, back = self.bits(kind, whole), self.bits(whole, kind)
        text = f"""\
/* the {"larger" if sign == ">" else "smaller"} number, or NaN if one is: only then the two choices differ */
static inline TYPE gg_{name}_KIND(TYPE a, TYPE b)
{{
    const TYPE x = a {sign} b ? a : b, y = b {sign} a ? b : a;
    return {back}({to}(x) | {to}(y));
}}
"""
        return self.templated(f"gg_{name}", text, kind)

    def bits(self, source: str, kind: str) -> str:
        """Return the function that reads the bits of a number as another kind."""
        name = f"gg_{source}_as_{kind}"
        text = f"""\
static inline {TYPES[kind]} {name}({TYPES[source]} x)
{{
    {TYPES[kind]} y;
    memcpy(&y, &x, sizeof y);
    return y;
}}
"""
        return self.need(name, text)

    def truncation(self, source: str, kind: str) -> str:
        """Return the function that drops the fraction of a float; what does not fit becomes the least integer."""
        name = f"gg_{source}_to_{kind}"
        least, most, low = (
            ("INT64_MIN", "9223372036854775808.0", "-9223372036854775808.0")
            if kind == "i64"
            else ("0u", "18446744073709551616.0", "0.0")
        )
        text = f"""\
static inline {TYPES[kind]} {name}({TYPES[source]} x)
{{
    return (double)x >= {low} && (double)x < {most} ? ({TYPES[kind]})x : {least};
}}
"""
        return self.need(name, text)

    # --- functions of numbers --------------------------------------------------------------------------

    def call(self, op: str, args: Sequence[str], kind: str, data: object) -> str:
        """Return the call of an elementwise op that has no operator in C."""
        joined = ", ".join(args)
        if op in LIBRARY:
            return self._library(LIBRARY[op], joined, kind)
        if op == "wrap":
            return f"{self.wrap()}({joined}, {data})"
        suffix = "" if data is None else "_" + re.sub(r"\W+", "_", str(data).replace("-", "minus_")).strip("_")
        name = f"gg_{op}_{kind}{suffix}"
        return f"{self.need(name, lambda: self._defined(name, op, len(args), kind, data))}({joined})"

    @staticmethod
    def _library(name: str, joined: str, kind: str) -> str:
        if kind == "f32" and name in _DOUBLE_ONLY:
            return f"(float){name}((double)({joined}))"
        return f"{c_function(name, kind)}({joined})"

    def _defined(self, name: str, op: str, arity: int, kind: str, data: object) -> str:
        b = CBuilder(self)
        params = [Value(f"x{number}", kind) for number in range(arity)]
        routine = ROUTINES.get(op) if kind[0] == "f" else None
        result = routine(b, *params) if routine is not None else ELEMENTWISE[op][1](b, params, data)
        head = ", ".join(f"{TYPES[kind]} {param.text}" for param in params)
        used = " ".join([*b.lines, result.text])
        unused = [f"(void){param.text};" for param in params if not re.search(rf"\b{param.text}\b", used)]
        if "GG_FMA" in used:
            self.need("fma", _FMA)
        body = "\n".join(f"    {line}" for line in [*unused, *b.lines, f"return {result.text};"])
        return f"static inline {TYPES[result.kind]} {name}({head})\n{{\n{body}\n}}\n"


def in_kind(text: str, kind: str) -> str:
    """Return a definition for an element kind."""
    suffix = "f" if kind == "f32" else ""
    return re.sub(r"\bTYPE\b", TYPES[kind], re.sub(r"_KIND\b", f"_{kind}", re.sub(r"_F\b", suffix, text)))
