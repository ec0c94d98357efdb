"""A hand-written derivation as steps: one statement each, with the gradients that it assigns."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from glassgrad import errors


@dataclass(frozen=True)
class Step:
    """One top-level statement. `targets` are the gradients that it assigns or changes: spelling and variable."""

    number: int
    line: int
    source: str
    node: ast.stmt
    targets: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Derivation:
    """The statements of a derivation, and the names that its code can see besides the forward pass."""

    steps: list[Step]
    file: str
    names: dict[str, Any]


def parse(source: str | Callable[..., Any], variables: Iterable[str]) -> Derivation:
    """Split a derivation, given as text or as a function, into its statements.

    A gradient is an assignment to `dNAME` or `d_NAME` with NAME a variable of the forward pass. A returned
    value and a docstring are left out.
    """
    names: dict[str, Any] = {}
    file, first_line = "<derivation>", 1
    if callable(source):
        function = inspect.unwrap(source)
        closure = inspect.getclosurevars(function)
        names = {**getattr(function, "__globals__", {}), **closure.nonlocals}
        lines, first_line = inspect.getsourcelines(function)
        file, text = inspect.getsourcefile(function) or file, textwrap.dedent("".join(lines))
        body = next(node.body for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    else:
        text = textwrap.dedent(source)
        body = ast.parse(text).body
    known = {spelling: name for name in variables for spelling in (f"d{name}", f"d_{name}")}
    steps: list[Step] = []
    for node in body:
        if isinstance(node, ast.Return) or _is_docstring(node):
            continue
        targets = tuple(dict.fromkeys((name, known[name]) for name in assigned(node) if name in known))
        segment = ast.get_source_segment(text, node) or ast.unparse(node)
        steps.append(Step(len(steps), node.lineno + first_line - 1, segment.strip(), node, targets))
    if not any(step.targets for step in steps):
        raise errors.CHECK_NOTHING_ASSIGNED(names=", ".join(f"d{name}" for name in variables))
    return Derivation(steps, file, names)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def assigned(node: ast.AST) -> Iterable[str]:
    """Yield the names that a statement binds or changes in place, also inside loops and conditions."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assign):
            yield from (name for target in part.targets for name in base_names(target))
        elif isinstance(part, ast.AugAssign | ast.AnnAssign):
            yield from base_names(part.target)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            # A call whose result is discarded changes something: np.add.at(dw, i, g), dw.fill_(0)
            call = part.value
            owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            yield from (name for changed in (*owner, *call.args[:1]) for name in base_names(changed))


def base_names(target: ast.expr) -> Iterable[str]:
    """Yield x for x, x[i] and x.part, and both names of a tuple."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Starred(value=inner):
            yield from base_names(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from base_names(part)
