"""LLVM IR as text: typed values, a builder of straight-line code, and nested loops.

IR is text instead of an object model, because users read the text in `compiled.llvm`, and building strings
costs a tenth of building llvmlite's IR objects. Everything here works on scalars (one lane) and on vectors:
a `Value` has an element kind and a number of lanes, and mixing the two splats the scalar.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

# Element kinds in registers, by NumPy's code. Booleans are one bit here and one byte in memory.
# In LLVM integers have no sign; a bfloat16 is handled as its bits.
_KINDS = [
    # NumPy, kind, LLVM's type, bits
    ("f2", "f16", "half", 16),
    ("f4", "f32", "float", 32),
    ("f8", "f64", "double", 64),
    ("i1", "i8", "i8", 8),
    ("i2", "i16", "i16", 16),
    ("i4", "i32", "i32", 32),
    ("i8", "i64", "i64", 64),
    ("u1", "u8", "i8", 8),
    ("u2", "u16", "i16", 16),
    ("u4", "u32", "i32", 32),
    ("u8", "u64", "i64", 64),
    ("b1", "b1", "i1", 1),
    ("V2", "bf16", "i16", 16),
]
KINDS = {code: kind for code, kind, _, _ in _KINDS}
LLVM_TYPE = {kind: name for _, kind, name, _ in _KINDS}
BITS = {kind: bits for _, kind, _, bits in _KINDS}

# Signs of zeros may change and a product may be fused with the sum that uses it. Nothing else may be reordered, so NaN
# and Inf agree with NumPy.
FAST = "nsz contract"


def kind_of(dtype: np.dtype) -> str | None:
    """Return the element kind of a dtype, or None for one that native code does not handle."""
    return KINDS.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None


def is_float(kind: str) -> bool:
    """Tell whether an element kind is a floating-point one."""
    return kind[0] == "f"


def is_signed(kind: str) -> bool:
    """Tell whether an integer kind has negative numbers."""
    return kind[0] == "i"


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA name or a literal, with its element kind and number of lanes."""

    text: str
    kind: str
    lanes: int = 1

    @property
    def type(self) -> str:
        return type_name(self.kind, self.lanes)

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"


def type_name(kind: str, lanes: int) -> str:
    """Return LLVM's type: ``float``, ``<16 x float>``."""
    element = LLVM_TYPE[kind]
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(kind: str, lanes: int) -> str:
    """Return the suffix of an overloaded intrinsic: ``f32``, ``v16f32``."""
    base = {"b1": "i1", "bf16": "i16"}.get(kind, kind.replace("u", "i"))
    return base if lanes == 1 else f"v{lanes}{base}"


def literal(value: float, kind: str) -> str:
    """Return a number in LLVM's syntax; floats in hexadecimal, so that no digit is lost."""
    if kind == "b1":
        return "true" if value else "false"
    if kind == "f16":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if kind == "bf16":
        return str(_upper_half(value))
    if is_float(kind):
        # LLVM requires the bits of the double even for a float, which must be exactly representable.
        number = float(np.float32(value)) if kind == "f32" else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    return str(int(value))


def _upper_half(value: float) -> int:
    """Return the bits of a number rounded to bfloat16, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    if np.isnan(value):
        return bits >> 16 | 1 << 6
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


class Module:
    """The shared parts of a module: declared intrinsics, constants and helper functions by name.

    `apart` says that its functions also serve other modules (`compile.llvm.module.units`), and `any_rows` that tiles of
    products take the distance of A's rows as an argument.
    """

    def __init__(self, vector_bytes: int, has_bfloat: bool = False, *, apart: bool = False) -> None:
        self.apart = self.any_rows = apart
        self.vector_bytes = vector_bytes
        self.has_bfloat = has_bfloat
        self.declarations: dict[str, str] = {}
        self.definitions: dict[str, str] = {}

    def text(self) -> str:
        """Return the whole module."""
        return "\n".join([*self.declarations.values(), "", *self.definitions.values()])


class Function:
    """The names in one function, and its module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._count = 0

    def fresh(self, stem: str = "t") -> str:
        """Return an unused name."""
        self._count += 1
        return f"{stem}{self._count}"


class Builder:
    """Appends instructions to one straight-line run of code; see the module docstring."""

    def __init__(self, function: Function, flags: str = FAST) -> None:
        self.function = function
        self.flags = flags
        self.lines: list[str] = []
        self.label = "entry"

    # --- raw -------------------------------------------------------------------------------------

    def raw(self, line: str) -> None:
        """Append one line unchanged."""
        self.lines.append("  " + line)

    def define(self, text: str, kind: str, lanes: int = 1) -> Value:
        """Append ``%name = text`` and return the value."""
        name = f"%{self.function.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return Value(name, kind, lanes)

    def pointer(self, text: str) -> str:
        """Append ``%name = text`` where text yields a pointer; return the name."""
        name = f"%{self.function.fresh('p')}"
        self.lines.append(f"  {name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a new basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    # --- constants and shapes --------------------------------------------------------------------

    def const(self, value: float, kind: str, lanes: int = 1) -> Value:
        """Return a number, splat over the lanes."""
        text = literal(value, kind)
        return Value(text if lanes == 1 else f"splat ({LLVM_TYPE[kind]} {text})", kind, lanes)

    def like(self, value: float, other: Value) -> Value:
        """Return a number of the kind and lanes of another value."""
        return self.const(value, other.kind, other.lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """Return the value in every lane."""
        if value.lanes == lanes:
            return value
        if not value.text.startswith("%"):
            return Value(f"splat ({LLVM_TYPE[value.kind]} {value.text})", value.kind, lanes)
        vector = type_name(value.kind, lanes)
        first = self.define(f"insertelement {vector} poison, {value.typed}, i64 0", value.kind, lanes)
        return self.define(
            f"shufflevector {first.typed}, {vector} poison, <{lanes} x i32> zeroinitializer", value.kind, lanes
        )

    def level(self, *values: Value) -> list[Value]:
        """Splat all to the widest."""
        lanes = max(value.lanes for value in values)
        return [self.splat(value, lanes) for value in values]

    def lane_numbers(self, lanes: int) -> Value:
        """Return the vector <0, 1, 2, ...>."""
        if lanes == 1:
            return Value("0", "i64")
        return Value("<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">", "i64", lanes)

    # --- arithmetic ------------------------------------------------------------------------------

    def binary(self, opcode: str, a: Value, b: Value, flags: str | None = None) -> Value:
        """Apply an opcode to two values of one kind."""
        a, b = self.level(a, b)
        if flags is None:
            flags = self.flags if is_float(a.kind) and opcode[0] == "f" else ""
        head = f"{opcode} {flags}" if flags else opcode
        return self.define(f"{head} {a.typed}, {b.text}", a.kind, a.lanes)

    def fadd(self, a: Value, b: Value) -> Value:
        return self.binary("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        return self.define(f"fneg {a.typed}", a.kind, a.lanes)

    def call(self, name: str, *args: Value, kind: str | None = None, flags: str = "") -> Value:
        """Call an overloaded intrinsic ``llvm.name`` whose type follows its first argument."""
        args = tuple(self.level(*args))
        kind = kind or args[0].kind
        lanes = args[0].lanes
        full = f"llvm.{name}.{suffix(args[0].kind, lanes)}"
        result = type_name(kind, lanes)
        self.function.module.declarations[full] = f"declare {result} @{full}({', '.join(arg.type for arg in args)})"
        head = f"call {flags} {result}" if flags else f"call {result}"
        return self.define(f"{head} @{full}({', '.join(arg.typed for arg in args)})", kind, lanes)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c with one rounding."""
        return self.call("fma", a, b, c)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """Compare; float predicates are LLVM's (olt, uno, ...), integer ones eq, ne, lt, le, gt, ge."""
        a, b = self.level(a, b)
        if is_float(a.kind):
            return self.define(f"fcmp {predicate} {a.typed}, {b.text}", "b1", a.lanes)
        if predicate not in {"eq", "ne"}:
            predicate = ("s" if is_signed(a.kind) else "u") + predicate
        return self.define(f"icmp {predicate} {a.typed}, {b.text}", "b1", a.lanes)

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        """a where the mask holds, else b."""
        if mask.lanes == 1:
            a, b = self.level(a, b)
        else:
            mask, a, b = self.level(mask, a, b)
        return self.define(f"select {mask.typed}, {a.typed}, {b.typed}", a.kind, a.lanes)

    def bitcast(self, value: Value, kind: str) -> Value:
        """Reinterpret the bits."""
        return self.define(f"bitcast {value.typed} to {type_name(kind, value.lanes)}", kind, value.lanes)

    def cast(self, value: Value, kind: str) -> Value:
        """Convert the number like NumPy's astype, where that is defined."""
        if "bf16" in (value.kind, kind) and value.kind != kind:
            return self._from_bfloat(value, kind) if value.kind == "bf16" else self._to_bfloat(value)
        if value.kind == kind or (LLVM_TYPE[value.kind] == LLVM_TYPE[kind] and kind != "b1"):
            return Value(value.text, kind, value.lanes)
        if kind == "b1":
            return self.compare("une" if is_float(value.kind) else "ne", value, self.like(0, value))
        if (value.kind, kind) == ("f64", "f16"):
            value = self._odd_float(value)
        return self.define(
            f"{_cast_opcode(value.kind, kind)} {value.typed} to {type_name(kind, value.lanes)}", kind, value.lanes
        )

    def _from_bfloat(self, value: Value, kind: str) -> Value:
        """Convert bfloat16 (the upper half of a float32) to another kind."""
        bits = self.define(f"zext {value.typed} to {type_name('u32', value.lanes)}", "u32", value.lanes)
        number = self.bitcast(self.binary("shl", bits, self.like(16, bits)), "f32")
        return self.cast(number, kind)

    def _to_bfloat(self, value: Value) -> Value:
        """Round to the nearest bfloat16, ties to even; NaN stays NaN.

        If the processor has an instruction for it, a vector of 16 takes one; that instruction treats denormals as 0.
        """
        value = self.cast(value, "f32")
        if self.function.module.has_bfloat and value.lanes == 16:
            name = "llvm.x86.avx512bf16.cvtneps2bf16.512"
            self.function.module.declarations[name] = f"declare <16 x bfloat> @{name}(<16 x float>)"
            half = self.define(f"call <16 x bfloat> @{name}({value.typed})", "bf16", 16).text
            return self.define(f"bitcast <16 x bfloat> {half} to <16 x i16>", "bf16", 16)
        bits = self.bitcast(value, "u32")
        odd = self.binary("and", self.binary("lshr", bits, self.like(16, bits)), self.like(1, bits))
        up = self.binary("add", self.binary("add", bits, self.like(0x7FFF, bits)), odd)
        quiet = self.binary("or", bits, self.like(1 << 22, bits))
        kept = self.select(self.compare("uno", value, value), quiet, up)
        upper = self.binary("lshr", kept, self.like(16, kept))
        return self.define(f"trunc {upper.typed} to {type_name('bf16', value.lanes)}", "bf16", value.lanes)

    def _odd_float(self, value: Value) -> Value:
        """Round float64 to float32 with rounding to odd: inexact values take the neighbour whose last bit is 1.

        A second rounding, to half precision, is then correct. Few processors convert in one step, and few C libraries
        have the function that LLVM would call instead (Boldo and Melquiond 2008, "Emulation of FMA and correctly
        rounded sums: proved algorithms using rounding to odd").
        """
        near = self.cast(value, "f32")
        back = self.cast(near, "f64")
        bits = self.bitcast(near, "u32")
        even = self.compare("eq", self.binary("and", bits, self.like(1, bits)), self.like(0, bits))
        moves = self.binary("and", even, self.compare("one", back, value))
        outwards = self.compare("ogt", self.call("fabs", value), self.call("fabs", back))
        one = self.like(1, bits)
        moved = self.select(outwards, self.binary("add", bits, one), self.binary("sub", bits, one))
        return self.bitcast(self.select(moves, moved, bits), "f32")


def shuffled(b: Builder, x: Value, y: Value, lanes: Sequence[int]) -> Value:
    """Return the elements at `lanes` of the concatenation of x and y."""
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    kind = type_name(x.kind, x.lanes)
    return b.define(f"shufflevector {kind} {x.text}, {kind} {y.text}, <{len(lanes)} x i32> <{mask}>", x.kind, x.lanes)


def _cast_opcode(source: str, target: str) -> str:
    if is_float(source):
        if is_float(target):
            return "fpext" if BITS[target] > BITS[source] else "fptrunc"
        return "fptosi" if is_signed(target) else "fptoui"
    if is_float(target):
        return "sitofp" if is_signed(source) else "uitofp"
    if BITS[target] < BITS[source]:
        return "trunc"
    return "sext" if is_signed(source) else "zext"


class Loop:
    """One open loop: its counter and the loop-carried values."""

    def __init__(self, counter: Value) -> None:
        self.counter = counter
        self.carried: list[tuple[Value, Value]] = []  # (phi, start)
        self.next: list[Value] = []

    def carry(self, builder: Builder, start: Value) -> Value:
        """Declare a loop-carried value; return its value at the start of an iteration."""
        phi = Value(f"%{builder.function.fresh('c')}", start.kind, start.lanes)
        self.carried.append((phi, start))
        return phi


class LoopNest:
    """Builders of nested loops. To place code before a loop that it does not depend on, append it to the builder
    of the enclosing loop, which is still open before the loop's head.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.stack: list[Builder] = [Builder(function)]

    @property
    def current(self) -> Builder:
        return self.stack[-1]

    @contextmanager
    def loop(self, start: str, stop: str, step: int | str) -> Iterator[Loop]:
        """Open ``for i in range(start, stop, step)``, which must have at least one iteration."""
        outer = self.current
        head = self.function.fresh("loop")
        inner = Builder(self.function, outer.flags)
        inner.label = head
        loop = Loop(Value(f"%{self.function.fresh('i')}", "i64"))
        self.stack.append(inner)
        yield loop
        self.stack.pop()
        self._close(loop, outer, inner, head, (start, stop, str(step)))

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run code only if a condition holds."""
        after, then = self.function.fresh("skip"), self.function.fresh("do")
        self.current.raw(f"br i1 {condition}, label %{then}, label %{after}")
        self.current.start(then)
        yield
        self.current.raw(f"br label %{after}")
        self.current.start(after)

    def _close(self, loop: Loop, outer: Builder, inner: Builder, head: str, bounds: tuple[str, str, str]) -> None:
        start, stop, step = bounds
        after = f"%{self.function.fresh('i')}"
        done = f"%{self.function.fresh('d')}"
        exit_label = self.function.fresh("after")
        entry_label = outer.label
        outer.raw(f"br label %{head}")
        outer.start(head)
        outer.raw(f"{loop.counter.text} = phi i64 [ {start}, %{entry_label} ], [ {after}, %{inner.label} ]")
        for (phi, first), latest in zip(loop.carried, loop.next, strict=True):
            sources = f"[ {first.text}, %{entry_label} ], [ {latest.text}, %{inner.label} ]"
            outer.raw(f"{phi.text} = phi {phi.type} {sources}")
        outer.lines += inner.lines
        outer.raw(f"{after} = add nuw nsw i64 {loop.counter.text}, {step}")
        outer.raw(f"{done} = icmp ult i64 {after}, {stop}")
        outer.raw(f"br i1 {done}, label %{head}, label %{exit_label}")
        outer.start(exit_label)


Emit = Callable[..., Value]
