"""The largest magnitude in any number of arrays by one call of native code, the cheapest way to find a NaN.

Without the sign bit, the bits of floating-point numbers are ordered like their magnitudes: zero, numbers, infinity,
NaN. So the largest of these integers is NaN if there is one, else infinity if there is one.

The native code becomes a built-in function, because a call through ctypes takes longer than checking the gradients of a
small model. Arrays are read directly (see `executable`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.native import cache
from glassgrad.compile.native.executable import object_layout

UNKNOWN = -1.0
"""The result if an argument is not a contiguous array of floats or doubles."""
_UNROLLED = 4
_FAST_CALL = 0x80  # CPython's METH_FASTCALL: the code is called with an array of arguments and their number


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@lru_cache(maxsize=1)
def reader() -> Callable[..., float]:
    """Return the function of any number of arrays: their largest magnitude, 0 without any, or `UNKNOWN`.

    Raises:
        ImportError: without llvmlite.
        RuntimeError: if the layout of array objects is unknown, or the code cannot be loaded.
    """
    kinds = np.dtype(np.float32), np.dtype(np.float64)
    made = ctypes.cast(ctypes.pythonapi.PyFloat_FromDouble, ctypes.c_void_p).value or 0
    record = np.array([id(np.ndarray), *map(id, kinds), made], np.int64)
    text = _text(host().vector_bytes, object_layout()[1])
    code = LoadedCode(cache.code_for(text, host().compile)[0])
    method = _Method(b"largest", code.address("largest"), _FAST_CALL, b"The largest magnitude of arrays.")
    _ALIVE.extend((kinds, code, method))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., float] = make(ctypes.addressof(method), record, None)  # keeps the record, its `self`, alive
    return function


_ALIVE: list[object] = []
"""Keeps alive the objects that the function and the record refer to by address."""


def _text(vector_bytes: int, data_at: int) -> str:
    return "\n".join([host().header(), _widest(32, vector_bytes), _widest(64, vector_bytes), _largest(data_at)])


def _widest(bits: int, vector_bytes: int) -> str:
    """Return the function for `count` elements of one array: the largest of their bits without the sign."""
    lanes = 8 * vector_bytes // bits
    kind, block = f"<{lanes} x i{bits}>", _UNROLLED * lanes
    size, mask = bits // 8, (1 << (bits - 1)) - 1
    vector_mask = f"<{', '.join([f'i{bits} {mask}'] * lanes)}>"
    umax = f"call {kind} @llvm.umax.v{lanes}i{bits}({kind}"
    phis = "".join(f"  %a{u} = phi {kind} [ zeroinitializer, %entry ], [ %m{u}, %body ]\n" for u in range(_UNROLLED))
    body = "".join(
        f"  %i{u} = add i64 %i, {u * lanes}\n  %p{u} = getelementptr i{bits}, ptr %data, i64 %i{u}\n"
        f"  %v{u} = load {kind}, ptr %p{u}, align {size}\n  %w{u} = and {kind} %v{u}, {vector_mask}\n"
        f"  %m{u} = {umax} %a{u}, {kind} %w{u})\n"
        for u in range(_UNROLLED)
    )
    return f"""
declare {kind} @llvm.umax.v{lanes}i{bits}({kind}, {kind})
declare i{bits} @llvm.umax.i{bits}(i{bits}, i{bits})
declare i{bits} @llvm.vector.reduce.umax.v{lanes}i{bits}({kind})
define internal i{bits} @widest{bits}(ptr %data, i64 %count) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
{phis}  %i.next = add i64 %i, {block}
  %whole = icmp ule i64 %i.next, %count
  br i1 %whole, label %body, label %joined
body:
{body}  br label %head
joined:
  %b0 = {umax} %a0, {kind} %a1)
  %b1 = {umax} %a2, {kind} %a3)
  %b = {umax} %b0, {kind} %b1)
  %most = call i{bits} @llvm.vector.reduce.umax.v{lanes}i{bits}({kind} %b)
  br label %rest
rest:
  %j = phi i64 [ %i, %joined ], [ %j.next, %one ]
  %found = phi i{bits} [ %most, %joined ], [ %found.next, %one ]
  %more = icmp ult i64 %j, %count
  br i1 %more, label %one, label %done
one:
  %p = getelementptr i{bits}, ptr %data, i64 %j
  %v = load i{bits}, ptr %p, align {size}
  %w = and i{bits} %v, {mask}
  %found.next = call i{bits} @llvm.umax.i{bits}(i{bits} %found, i{bits} %w)
  %j.next = add i64 %j, 1
  br label %rest
done:
  ret i{bits} %found
}}
"""


def _largest(data_at: int) -> str:
    """Return the function of the record (its `self`), an array of arguments, and their number."""
    return f"""{_ELEMENTS}{_bits_of(data_at)}
define ptr @largest(ptr %self, ptr %arguments, i64 %count) {{
entry:
  %record.p = getelementptr i8, ptr %self, i64 {data_at}
  %record = load ptr, ptr %record.p, align 8
  %made.p = getelementptr i64, ptr %record, i64 3
  %made = load ptr, ptr %made.p, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %measured ]
  %so.far = phi i64 [ 0, %entry ], [ %largest, %measured ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %object, label %done
object:
  %item.p = getelementptr ptr, ptr %arguments, i64 %i
  %item = load ptr, ptr %item.p, align 8
  %bits = call i64 @bits_of(ptr %item, ptr %record)
  %known = icmp sge i64 %bits, 0
  br i1 %known, label %measured, label %unknown
measured:
  %largest = call i64 @llvm.umax.i64(i64 %so.far, i64 %bits)
  %i.next = add i64 %i, 1
  br label %next
done:
  %largest.of.all = bitcast i64 %so.far to double
  br label %told
unknown:
  br label %told
told:
  %result = phi double [ %largest.of.all, %done ], [ {UNKNOWN}, %unknown ]
  %object.made = call ptr %made(double %result)
  ret ptr %object.made
}}
"""


def _bits_of(data_at: int) -> str:
    """Return the function for one object: the bits of its largest magnitude as a double; negative if not an array."""
    # A float becomes a double before it is compared with those of other arrays; NaN stays NaN, the largest of all.
    return f"""
define internal i64 @bits_of(ptr %item, ptr %record) {{
entry:
  %type = load i64, ptr %record, align 8
  %single.p = getelementptr i64, ptr %record, i64 1
  %single = load i64, ptr %single.p, align 8
  %double.p = getelementptr i64, ptr %record, i64 2
  %double = load i64, ptr %double.p, align 8
  %fields = getelementptr i8, ptr %item, i64 {data_at}
  %its.type.p = getelementptr i8, ptr %fields, i64 -8
  %its.type = load i64, ptr %its.type.p, align 8
  %is.array = icmp eq i64 %its.type, %type
  br i1 %is.array, label %array, label %unknown
array:
  %data = load ptr, ptr %fields, align 8
  %descr.p = getelementptr i8, ptr %fields, i64 40
  %descr = load i64, ptr %descr.p, align 8
  %flags.p = getelementptr i8, ptr %fields, i64 48
  %flags = load i32, ptr %flags.p, align 4
  %aligned = and i32 %flags, {0x100}
  %order = and i32 %flags, {0x1 | 0x2}
  %is.aligned = icmp ne i32 %aligned, 0
  %is.ordered = icmp ne i32 %order, 0
  %is.piece = and i1 %is.aligned, %is.ordered
  br i1 %is.piece, label %kind, label %unknown
kind:
  %n = call i64 @elements(ptr %fields)
  %is.single = icmp eq i64 %descr, %single
  br i1 %is.single, label %singles, label %other
other:
  %is.double = icmp eq i64 %descr, %double
  br i1 %is.double, label %doubles, label %unknown
singles:
  %bits32 = call i32 @widest32(ptr %data, i64 %n)
  %value32 = bitcast i32 %bits32 to float
  %wide = fpext float %value32 to double
  %from32 = bitcast double %wide to i64
  ret i64 %from32
doubles:
  %from64 = call i64 @widest64(ptr %data, i64 %n)
  ret i64 %from64
unknown:
  ret i64 -1
}}
"""


_ELEMENTS = """
define internal i64 @elements(ptr %fields) {
entry:
  %nd.p = getelementptr i8, ptr %fields, i64 8
  %nd = load i32, ptr %nd.p, align 4
  %dims.p = getelementptr i8, ptr %fields, i64 16
  %dims = load ptr, ptr %dims.p, align 8
  br label %next
next:
  %d = phi i32 [ 0, %entry ], [ %d.next, %axis ]
  %n = phi i64 [ 1, %entry ], [ %n.next, %axis ]
  %more = icmp ult i32 %d, %nd
  br i1 %more, label %axis, label %done
axis:
  %d.wide = zext i32 %d to i64
  %extent.p = getelementptr i64, ptr %dims, i64 %d.wide
  %extent = load i64, ptr %extent.p, align 8
  %n.next = mul i64 %n, %extent
  %d.next = add i32 %d, 1
  br label %next
done:
  ret i64 %n
}
"""

__all__ = ["UNKNOWN", "reader"]
