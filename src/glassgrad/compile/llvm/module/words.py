"""Short methods for LLVM's instructions on sizes and addresses, for functions whose sizes are arguments."""

from __future__ import annotations

from contextlib import AbstractContextManager

from glassgrad.compile.llvm.module.ir import Builder, LoopNest
from glassgrad.compile.llvm.products.tiles import place


class Words:
    """Writes code on 64-bit integers and on addresses in arrays of one element kind."""

    def __init__(self, code: LoopNest, kind: str) -> None:
        self.code, self.kind = code, kind

    @property
    def b(self) -> Builder:
        return self.code.current

    def _op(self, name: str, a: str, b: str) -> str:
        return self.b.define(f"{name} i64 {a}, {b}", "i64").text

    def _times(self, a: str, b: str) -> str:
        return self._op("mul", a, b)

    def _up(self, a: str, b: str) -> str:
        """a / b, rounded up."""
        return self._op("udiv", self._op("add", a, self._op("sub", b, "1")), b)

    def _is(self, how: str, a: str, b: str) -> str:
        return self.b.define(f"icmp {how} i64 {a}, {b}", "b1").text

    def _least(self, a: str, b: str) -> str:
        return self._select(self._is("ult", a, b), a, b)

    def _most(self, a: str, b: str) -> str:
        return self._select(self._is("ult", a, b), b, a)

    def _select(self, condition: str, a: str, b: str) -> str:
        return self.b.define(f"select i1 {condition}, i64 {a}, i64 {b}", "i64").text

    def _pick(self, condition: str, a: str, b: str) -> str:
        return self.b.pointer(f"select i1 {condition}, ptr {a}, ptr {b}")

    def _place(self, base: str, offset: str) -> str:
        return place(self.b, self.kind, base, offset)

    def _if(self, condition: str) -> AbstractContextManager[None]:
        return self.code.when(condition)

    def _either(self, condition: str, one: str, other: str, arguments: str) -> None:
        """Call one function or the other."""
        with self._if(condition):
            self.b.raw(f"call void @{one}({arguments})")
        with self._if(self.b.define(f"xor i1 {condition}, true", "b1").text):
            self.b.raw(f"call void @{other}({arguments})")
