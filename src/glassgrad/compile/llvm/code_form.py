"""The form of each primitive's native code, for the op table of the documentation."""

from __future__ import annotations

from glassgrad.compile.ir.passes.decompose import DECOMPOSE
from glassgrad.compile.llvm.loops.composite import FORWARDS
from glassgrad.compile.llvm.module.solid import SOLIDS
from glassgrad.compile.llvm.table import LOOPS
from glassgrad.compile.llvm.without_code import PARTLY, WITHOUT_CODE
from glassgrad.compile.plan.native_form import NATIVE_FORM
from glassgrad.ops.core import Primitive


def forms_of(prim: Primitive) -> list[str]:
    """Return every form of a primitive; an op of the table has at least one, or "host"."""
    name = prim.name
    forms = {
        "forward": name in FORWARDS,
        "view": prim.indices is not None,
        "loop": name in LOOPS and name not in FORWARDS and prim.indices is None,
        "kernel": name in SOLIDS,
        "parts": prim.decompose is not None or bool(DECOMPOSE[name]) or (bool(NATIVE_FORM[name]) and name not in LOOPS),
        "host": name in WITHOUT_CODE,
    }
    return [form for form, has in forms.items() if has]


def native_code(prim: Primitive) -> str:
    """Return the form of a primitive's native code in words, with the reason if it has none."""
    forms = forms_of(prim)
    if forms == ["host"]:
        return f"none: {WITHOUT_CODE[prim.name]}"
    partly = f"; {PARTLY[prim.name]}" if prim.name in PARTLY else ""
    return (forms[0] if forms else "") + partly
