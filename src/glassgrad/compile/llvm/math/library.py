"""Functions of the C library, which compiled code calls by name: directly on scalars, lane by lane on vectors.

They are for ops where an error below one unit in the last place, or every edge case of the standard (Annex F of C),
matters more than speed. Float32 has separate functions (`atanf`).
"""

from __future__ import annotations

from glassgrad.compile.llvm.module.ir import Builder, Value

# op -> the name in the C library; entries that compute in float64 have no float32 function of this accuracy.
_SAME_NAME = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "hypot", "log2", "log10", "exp2")
LIBRARY = {**{name: name for name in _SAME_NAME}, "gammaln": "lgamma"}
_WIDE = {"lgamma", "asinh", "acosh", "atanh"}


def library_call(b: Builder, name: str, *args: Value) -> Value:
    """Call a function of the C library on scalars, or on each lane of vectors."""
    args = tuple(b.level(*args))
    kind, lanes = args[0].kind, args[0].lanes
    if kind == "f32" and name in _WIDE:
        return b.cast(library_call(b, name, *(b.cast(arg, "f64") for arg in args)), kind)
    function = name + ("f" if kind == "f32" else "")
    scalar = Value("", kind).type
    b.function.module.declarations[function] = f"declare {scalar} @{function}({', '.join([scalar] * len(args))})"
    if lanes == 1:
        return b.define(f"call {scalar} @{function}({', '.join(arg.typed for arg in args)})", kind)
    total = Value("poison", kind, lanes)
    for lane in range(lanes):
        parts = [b.define(f"extractelement {arg.typed}, i64 {lane}", kind).typed for arg in args]
        value = b.define(f"call {scalar} @{function}({', '.join(parts)})", kind)
        total = b.define(f"insertelement {total.typed}, {value.typed}, i64 {lane}", kind, lanes)
    return total
