"""What all suspects read: the text of a script and of its parts, and the names in it. `nodes` finds the parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, KeysView

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import FUNCTIONS, Program


def text(node: ast.AST | None) -> str:
    """Return an expression or a statement as source; empty for none."""
    return "" if node is None else ast.unparse(node)


def source(program: Program) -> str:
    """Return a script as one text, without comments."""
    found = program.memo.get("source")
    if not isinstance(found, str):
        found = program.memo["source"] = ast.unparse(program.tree)
    return found


def called(program: Program, call: ast.AST) -> str:
    """Return the last name of what is called: "mean" for `torch.mean(x)` and for `x.mean()`; empty for no call."""
    if not isinstance(call, ast.Call):
        return ""
    return last(program.names.full(call.func)) or getattr(call.func, "attr", getattr(call.func, "id", ""))


def operand(program: Program, call: ast.Call) -> ast.expr | None:
    """Return the object of a method, or the first argument of a function of a library."""
    if isinstance(call.func, ast.Attribute) and not program.names.full(call.func):
        return call.func.value
    return call.args[0] if call.args else None


def receiver(node: ast.expr, program: Program | None = None) -> ast.expr:
    """Return x of `x.a().b()`; with a program, functions of libraries such as `torch.exp(x)` stay as they are."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if program is not None and program.names.full(node.func):
            break
        node = node.func.value
    return node


def ident(node: ast.AST | None) -> str:
    """Return the name of a variable, an attribute, or what an index selects from; empty for other expressions."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def names_in(node: ast.AST) -> set[str]:
    """Return the variables in an expression or a statement."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def callee(call: ast.Call) -> str:
    """Return the last name of what a call calls: `step` of `a.b.step()`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def around(program: Program, node: ast.AST) -> str:
    """Return the source of the function around a node; of the whole script if there is none."""
    outer = program.function(node) or program.tree
    known = program.memo.setdefault("texts", {})
    assert isinstance(known, dict)
    if outer not in known:
        known[outer] = text(outer)
    return str(known[outer])


def mentions_any(program: Program, pattern: re.Pattern[str]) -> bool:
    """Tell whether a name, an attribute, a parameter or a function of the script matches."""
    known = program.memo.get("all names")
    if not isinstance(known, frozenset):
        known = program.memo["all names"] = frozenset(_all_names(program))
    return any(pattern.search(one) for one in known)


def _all_names(program: Program) -> Iterator[str]:
    kinds = ((ast.Name, "id"), (ast.Attribute, "attr"), (ast.arg, "arg"), ((*FUNCTIONS, ast.ClassDef), "name"))
    return (getattr(node, key) for node in program.nodes for kind, key in kinds if isinstance(node, kind))


def words_in(node: ast.AST) -> KeysView[str]:
    """Return the names and attributes in an expression, in the order of the first use of each."""
    found = (getattr(one, "id", None) or getattr(one, "attr", None) for one in ast.walk(node))
    return dict.fromkeys(one for one in found if isinstance(one, str)).keys()
