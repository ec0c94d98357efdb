"""A hand-written derivation as steps: one statement each, with the gradients that it assigns."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from glassgrad import errors
from glassgrad.verify.words import of_import, spoken, translated


@dataclass(frozen=True)
class Step:
    """One top-level statement. `targets` are the gradients that it assigns or changes, as spelling and variable."""

    number: int
    line: int
    source: str
    node: ast.stmt
    targets: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Derivation:
    """The statements of a derivation, and the names available to its code besides the forward pass."""

    steps: list[Step]
    file: str
    names: dict[str, Any]

    @property
    def in_torch(self) -> bool:
        """Tell whether the derivation names PyTorch's module or functions."""
        return spoken(step.node for step in self.steps)


def execute(statement: ast.stmt, names: dict[str, Any], file: str) -> Exception | None:
    """Execute a user's statement, possibly edited; return the exception that it raised, or None."""
    module = ast.fix_missing_locations(ast.Module([statement], []))
    try:
        exec(compile(module, file, "exec"), names)  # noqa: S102 - running the user's lines is its purpose
    except Exception as error:  # noqa: BLE001 - the caller judges it
        return error
    return None


_OF_LOSS = ("L", "l", "J", "E", "C", "loss", "cost", "out")
_SHOWN = {"cmp", "compare", "display"}  # functions that notebooks call to show something


def spellings(name: str) -> Iterator[str]:
    """Yield the usual spellings of the gradient of a variable: dx, d_x, dL_dx, dLdx, grad_x, x_grad, ..."""
    yield from (f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"g_{name}", f"delta_{name}")
    yield from (f"d{loss}{between}d{name}" for loss in _OF_LOSS for between in ("_", ""))


def spelled(variables: Iterable[str]) -> dict[str, str]:
    """Map every spelling of a gradient to its variable, except spellings that are themselves variables."""
    variables = list(variables)
    return {text: name for name in variables for text in spellings(name) if text not in variables}


def parse(source: str | Callable[..., Any], variables: Iterable[str]) -> Derivation:
    """Split a derivation, given as text or as a function, into its statements.

    A gradient is an assignment to `dNAME`, or another of the `spellings`, with NAME a variable of the forward pass. A
    return statement, a docstring, imports of PyTorch, and calls that only show something are left out.
    """
    names: dict[str, Any] = {}
    file, first_line = "<derivation>", 1
    if callable(source):
        function = inspect.unwrap(source)
        closure = inspect.getclosurevars(function)
        names = {**getattr(function, "__globals__", {}), **closure.nonlocals}
        try:
            lines, first_line = inspect.getsourcelines(function)
        except OSError:
            raise errors.CHECK_NO_SOURCE(name=function.__name__) from None
        file, text = inspect.getsourcefile(function) or file, textwrap.dedent("".join(lines))
    else:
        text = _of_cell(source)
    body = _parsed(text)
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    if functions and (callable(source) or not any(isinstance(node, ast.Assign | ast.AugAssign) for node in body)):
        body = functions[0].body
    known = spelled(variables)
    if body and isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Name | ast.Attribute | ast.Tuple):
        body = body[:-1]  # the value that a cell shows at its end
    steps: list[Step] = []
    for node in body:
        bound = of_import(node)
        names.update(bound or {})
        if bound is not None or isinstance(node, ast.Return) or _is_docstring(node) or _only_shows(node):
            continue
        targets = tuple(dict.fromkeys((name, known[name]) for name in assigned(node) if name in known))
        segment = ast.get_source_segment(text, node) or ast.unparse(node)
        steps.append(Step(len(steps), node.lineno + first_line - 1, segment.strip(), node, targets))
    if not any(step.targets for step in steps):
        raise errors.CHECK_NOTHING_ASSIGNED(names=", ".join(f"d{name}" for name in variables))
    used = {part.id for step in steps for part in ast.walk(step.node) if isinstance(part, ast.Name)}
    return Derivation(steps, file, translated(names, used))


def _of_cell(text: str) -> str:
    """Return the Python code of a notebook cell or a session, without magics and prompts."""
    lines = [re.sub(r"^(\s*)(?:>>> ?|\.\.\. ?|In \[\d*\]: ?)", r"\1", line) for line in text.splitlines()]
    lines = ["" if re.match(r"\s*[%!?]", line) else line for line in lines]
    return textwrap.dedent("\n".join(lines))


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise errors.CHECK_SYNTAX(line=error.lineno, why=error.msg, text=(error.text or "").strip()) from None


def _only_shows(node: ast.stmt) -> bool:
    """Tell whether a statement is print(...), or a call of the training loop, not of the derivation."""
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id in _SHOWN
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"backward", "retain_grad", "zero_grad"}


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
