"""Sums, extremes and zeros of an array of floats or doubles, by one pass of native code in double precision.

NumPy takes seven passes for the same. Each lane of a vector has separate sums, which the caller combines; the caller
also handles elements that do not fill a block.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.native import cache
from glassgrad.ops.core import Array

# The update of an accumulator for each block of elements, and its initial value.
_STEPS = {
    "sum": ("fadd", "%x", "0.0"),
    "abs": ("fadd", "%a", "0.0"),
    "squares": ("fadd", "%q", "0.0"),
    "zeros": ("fadd", "%z", "0.0"),
    "minimum": ("olt", "%x", "0x7FF0000000000000"),
    "maximum": ("ogt", "%x", "0xFFF0000000000000"),
}
ROWS = tuple(_STEPS)
"""The rows of the result, in this order: sums of the elements, of their magnitudes and squares, zeros, extremes."""


@lru_cache(maxsize=1)
def reader() -> Callable[[Array], tuple[int, Array]]:
    """Return the function of a flat contiguous array that returns the number of elements read, and `ROWS` by lanes.

    Raises:
        ImportError: without llvmlite.
    """
    lanes = max(2, host().vector_bytes // 8)
    magnitude = f"declare <{lanes} x double> @llvm.fabs.v{lanes}f64(<{lanes} x double>)"
    text = "\n".join([host().header(), magnitude, _pass("float", lanes), _pass("double", lanes)])
    code = LoadedCode(cache.code_for(text, host().compile)[0])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    functions = {
        np.dtype(dtype): kind(code.address(f"moments.{name}"))
        for name, dtype in (("float", np.float32), ("double", np.float64))
    }

    def moments(flat: Array, _keep: LoadedCode = code) -> tuple[int, Array]:
        rows = np.empty((len(ROWS), lanes))
        count = flat.size - flat.size % lanes
        functions[flat.dtype](flat.ctypes.data, count, rows.ctypes.data)
        return count, rows

    return moments


def _pass(kind: str, lanes: int) -> str:
    """Return the function for `count` elements, a multiple of the lanes."""
    wide, narrow = f"<{lanes} x double>", f"<{lanes} x {kind}>"
    size = 4 if kind == "float" else 8
    load = f"  %v = load {narrow}, ptr %p, align {size}\n"
    load += f"  %x = fpext {narrow} %v to {wide}\n" if kind == "float" else ""
    load = load if kind == "float" else load.replace("%v", "%x")

    def filled(number: str) -> str:
        return f"<{', '.join([f'double {number}'] * lanes)}>"

    heads, steps, ends = [], [], []
    for at, (name, (how, operand, first)) in enumerate(_STEPS.items()):
        heads.append(f"  %{name} = phi {wide} [ {filled(first)}, %entry ], [ %{name}.next, %body ]\n")
        if how == "fadd":
            steps.append(f"  %{name}.next = fadd {wide} %{name}, {operand}\n")
        else:
            steps.append(
                f"  %{name}.is = fcmp {how} {wide} {operand}, %{name}\n"
                f"  %{name}.next = select <{lanes} x i1> %{name}.is, {wide} {operand}, {wide} %{name}\n"
            )
        ends.append(
            f"  %{name}.p = getelementptr {wide}, ptr %out, i64 {at}\n  store {wide} %{name}, ptr %{name}.p, align 8\n"
        )
    return f"""
define void @moments.{kind}(ptr %data, i64 %count, ptr %out) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
{"".join(heads)}  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %p = getelementptr {kind}, ptr %data, i64 %i
{load}  %a = call {wide} @llvm.fabs.v{lanes}f64({wide} %x)
  %q = fmul {wide} %x, %x
  %is.zero = fcmp oeq {wide} %x, zeroinitializer
  %z = uitofp <{lanes} x i1> %is.zero to {wide}
{"".join(steps)}  %i.next = add i64 %i, {lanes}
  br label %head
done:
{"".join(ends)}  ret void
}}
"""


__all__ = ["ROWS", "reader"]
