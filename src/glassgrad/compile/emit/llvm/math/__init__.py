"""Our own exp, log, tanh, erf, pow, sin, cos, ... on scalars and vectors, accurate and without branches."""

from __future__ import annotations

from glassgrad.compile.emit.llvm.ir import Builder, Value


def math_call(b: Builder, name: str, *args: Value) -> Value:
    return b.call({"power": "pow"}.get(name, name), *args)
