"""What only suspects look up in a script: texts and words, calls by name, the sides of sums, values by their names."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, KeysView

from glassgrad.doctor.reading.nodes import callee_of, ident, is_negative, is_op, within
from glassgrad.doctor.reading.program import FUNCTIONS, Class, Function, Program

Named = tuple[str, ast.expr, ast.stmt]
"""A name, the value that it gets, and the statement."""


# --- texts, names and words ---


def text(node: ast.AST | None) -> str:
    """Return an expression or a statement as source; empty for none."""
    return "" if node is None else ast.unparse(node)


def source(program: Program) -> str:
    """Return a script as one text, without comments."""
    found = program.memo.get("source")
    if not isinstance(found, str):
        found = program.memo["source"] = ast.unparse(program.tree)
    return found


def receiver(node: ast.expr, program: Program | None = None) -> ast.expr:
    """Return x of `x.a().b()`; with a program, functions of libraries such as `torch.exp(x)` stay as they are."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if program is not None and program.names.full(node.func):
            break
        node = node.func.value
    return node


def stem_of(node: ast.AST | None) -> str:
    """Return the name of a variable, an attribute, or what an index selects from; empty for other expressions."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ident(node)


def text_around(program: Program, node: ast.AST) -> str:
    """Return the source of the function around a node; of the whole script if there is none."""
    outer = program.around(node)
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
    return dict.fromkeys(name for one in ast.walk(node) if (name := ident(one))).keys()


# --- calls, terms and assignments ---


def sides_of(node: ast.AST | None) -> list[tuple[int, ast.expr]]:
    """Return a and b of `a + b` and `a - b`, and a of `-a`, each with its sign; nothing for other expressions."""
    if is_negative(node):
        return [(-1, node.operand)]
    if is_op(node, ast.Add | ast.Sub):
        return [(1, node.left), (1 if isinstance(node.op, ast.Add) else -1, node.right)]
    return []


def has_call(node: ast.AST, *names: str) -> bool:
    """Tell whether a part of the script calls a function or method of one of these names."""
    return any(callee_of(one) in names for one in within(node, ast.Call))


def named_values(program: Program) -> list[Named]:
    """Return each assigned name with its value and statement; a returned value has the name of its function."""
    found = program.memo.get("named values")
    if not isinstance(found, list):
        found = program.memo["named values"] = list(_named_values(program))
    return found


def _named_values(program: Program) -> Iterator[Named]:
    for node in program.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _pairs(node.target, node.value, node)
        elif isinstance(node, ast.Return) and node.value is not None:
            function = program.function(node)
            yield (function.name if function is not None else ""), node.value, node


def _pairs(target: ast.expr, value: ast.expr, statement: ast.stmt) -> Iterator[Named]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, part, statement)
    elif isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
        yield stem_of(target), value, statement


@functools.lru_cache(maxsize=64)  # a dozen suspects walk the same functions: without it a long script takes minutes
def assigned(root: ast.AST) -> tuple[tuple[ast.expr, ast.expr, ast.Assign], ...]:
    """Return the targets of assignments with their values, paired within tuples, and the statements."""
    found: list[tuple[ast.expr, ast.expr, ast.Assign]] = []
    for node in within(root, ast.Assign):
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else []
            values = node.value.elts if isinstance(node.value, ast.Tuple) else []
            paired = zip(parts, values, strict=True) if parts and len(parts) == len(values) else [(target, node.value)]
            found += [(one, value, node) for one, value in paired]
    return tuple(found)


def assignments(program: Program) -> tuple[tuple[ast.expr, ast.expr, ast.Assign], ...]:
    """Return the targets of all assignments of a script with their values and statements."""
    return assigned(program.tree)


def targets_of(program: Program, node: ast.AST) -> str:
    """Return the text of what the statement around a node assigns to."""
    statement = program.statement(node)
    return ", ".join(text(one) for one in statement.targets) if isinstance(statement, ast.Assign) else ""


def calls_of(*names: str) -> Callable[[Program], list[ast.Call]]:
    """Return a function that finds the calls of some functions by name, and of methods by name after a dot."""
    return lambda program: [call for name in names for call in program.calls_of(name)]


def functions(program: Program) -> list[Function]:
    """Return the functions of a script, the last one of each name."""
    return list(program.functions.values())


def classes(program: Program) -> list[Class]:
    """Return the classes of a script."""
    return list(program.classes.values())
