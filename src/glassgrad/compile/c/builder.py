"""Statements of C through the interface by which native code is written.

`compile.llvm` writes exp, floor division and the other functions of a number as calls of a `Builder`. `CBuilder` is a
builder that appends statements of C, so each function is stated once for both targets and rounds alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.compile.c.words import TYPES, literal
from glassgrad.compile.llvm.module.ir import BITS, Builder, Function, Module, Value, is_float, is_signed

if TYPE_CHECKING:
    from glassgrad.compile.c.helpers import Helpers

_FLOAT_SIGNS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
_WRAPPING = {"add": "+", "sub": "-", "mul": "*", "shl": "<<", "lshr": ">>"}
_PLAIN = {"and": "&", "or": "|", "xor": "^", "sdiv": "/", "udiv": "/", "srem": "%", "urem": "%", "ashr": ">>"}
_ROUNDING = frozenset({"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "fmod"})
_PREDICATES = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class CBuilder(Builder):
    """Appends statements of C; values are scalars."""

    def __init__(self, helpers: Helpers) -> None:
        super().__init__(Function(Module(0)), flags="")
        self.helpers = helpers

    def set(self, text: str, kind: str) -> Value:
        """Append ``const type name = text;`` and return the value."""
        name = self.function.fresh()
        self.lines.append(f"const {TYPES[kind]} {name} = {text};")
        return Value(name, kind)

    def const(self, value: float, kind: str, lanes: int = 1) -> Value:
        return Value(literal(value, kind), kind)

    def binary(self, opcode: str, a: Value, b: Value, flags: str | None = None) -> Value:
        return self.set(binary_text(opcode, a.text, b.text, a.kind), a.kind)

    def fneg(self, a: Value) -> Value:
        return self.set(f"-{a.text}", a.kind)

    def call(self, name: str, *args: Value, kind: str | None = None, flags: str = "") -> Value:
        a, *rest = args
        if name == "fma":
            macro = "GG_FMAF" if a.kind == "f32" else "GG_FMA"
            return self.set(f"{macro}({', '.join(arg.text for arg in args)})", a.kind)
        if name in {"maximum", "minimum"}:
            return self.set(f"{self.helpers.extreme(name, a.kind)}({a.text}, {rest[0].text})", a.kind)
        if name in {"smax", "umax", "smin", "umin"}:
            sign = ">" if name.endswith("max") else "<"
            return self.set(f"{a.text} {sign} {rest[0].text} ? {a.text} : {rest[0].text}", a.kind)
        assert name in _ROUNDING, name
        return self.set(f"{c_function(name, a.kind)}({', '.join(arg.text for arg in args)})", a.kind)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.set(compare_text(predicate, a.text, b.text, a.kind), "b1")

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        return self.set(f"{mask.text} ? {a.text} : {b.text}", a.kind)

    def bitcast(self, value: Value, kind: str) -> Value:
        if value.kind == kind:
            return value
        if is_float(value.kind) == is_float(kind):
            return self.set(f"({TYPES[kind]}){value.text}", kind)
        return self.set(f"{self.helpers.bits(value.kind, kind)}({value.text})", kind)

    def cast(self, value: Value, kind: str) -> Value:
        if value.kind == kind:
            return value
        return self.set(cast_text(value.text, value.kind, kind, self.helpers), kind)


def c_function(name: str, kind: str) -> str:
    """Return the name of a function of the C library for an element kind."""
    return name + ("f" if kind == "f32" else "")


def binary_text(opcode: str, a: str, b: str, kind: str) -> str:
    """Return an operation on two simple texts. Integers wrap, as in NumPy, so they are computed without a sign."""
    if opcode in _FLOAT_SIGNS:
        return f"{a} {_FLOAT_SIGNS[opcode]} {b}"
    if opcode == "frem":
        return f"{c_function('fmod', kind)}({a}, {b})"
    if kind == "b1":
        return f"{a} {_PLAIN[opcode]} {b}"
    if opcode in _PLAIN:
        return f"({TYPES[kind]})({a} {_PLAIN[opcode]} {b})"
    wide = "uint64_t" if BITS[kind] == 64 else "uint32_t"
    narrow = f"u{BITS[kind]}"
    if opcode == "lshr":
        return f"({TYPES[kind]})(({TYPES[narrow]}){a} >> {b})"
    return f"({TYPES[kind]})(({wide}){a} {_WRAPPING[opcode]} ({wide}){b})"


def compare_text(predicate: str, a: str, b: str, kind: str) -> str:
    """Return a comparison of two simple texts."""
    if not is_float(kind):
        return f"{a} {_PREDICATES[predicate]} {b}"
    if predicate == "uno":
        return f"{a} != {a}" if a == b else f"({a} != {a}) | ({b} != {b})"
    if predicate == "ord":
        return f"{a} == {a}" if a == b else f"({a} == {a}) & ({b} == {b})"
    order, name = predicate[0], predicate[1:]
    if order == "u" and name in _OPPOSITE:  # true with NaN, where every comparison of C but != is false
        return f"!({a} {_PREDICATES[_OPPOSITE[name]]} {b})"
    return f"{a} {_PREDICATES[name]} {b}"


def cast_text(text: str, source: str, kind: str, helpers: Helpers) -> str:
    """Return a simple text converted to another element kind, like NumPy's astype."""
    if kind == "b1":
        return f"{text} != 0"
    if is_float(source) and not is_float(kind):
        wide = "i64" if is_signed(kind) or BITS[kind] < 64 else "u64"
        whole = f"{helpers.truncation(source, wide)}({text})"
        return whole if wide == kind else f"({TYPES[kind]}){whole}"
    return f"({TYPES[kind]}){text}"
