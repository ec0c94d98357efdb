"""Functions that a printed program defines: what NumPy lacks (`helpers`), and ops written from their forwards."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Sequence
from functools import lru_cache

from glassgrad.compile.ir.graph import Params
from glassgrad.compile.numpy.text import Text, call
from glassgrad.compile.numpy.text_space import TextSpace, formula, is_short, statements, term, why_no_formula, written
from glassgrad.compile.source import helpers
from glassgrad.ops import activation, special  # noqa: F401 - importing them fills the registry
from glassgrad.ops.core import PRIMITIVES, REGISTRY, Elementwise

HELPERS = {name: function for name, function in vars(helpers).items() if inspect.isfunction(function)}


def is_defined(name: str) -> bool:
    """Tell whether a program that calls this function must define it."""
    return name in HELPERS or definition(name) is not None


def _space(op: str) -> TextSpace:
    return TextSpace(lambda name: name != op and is_defined(name))


@lru_cache(maxsize=1024)
def definition(op: str) -> str | None:
    """Return the function of an elementwise op, by its forward; None if that is short or not a formula."""
    prim = PRIMITIVES.get(op)
    if not isinstance(prim, Elementwise) or isinstance(prim.forward, str) or op in HELPERS:
        return None
    _, *arguments = inspect.signature(prim.forward).parameters.values()
    terms = {argument.name: term(Text(argument.name)) for argument in arguments}
    options = {one.name: terms.pop(one.name) for one in arguments if one.kind is one.KEYWORD_ONLY}
    found = formula(prim, list(terms.values()), options, _space(op))
    if found is None or is_short(found):
        return None
    names = [argument.name for argument in arguments]
    body = "".join(f"    {line}\n" for line in statements(found, names))
    return f'def {op}({", ".join(names)}):\n    """{prim.formula}."""\n{body}'


def applied(op: str, operands: Sequence[Text], params: Params) -> Text | None:
    """Return an elementwise op applied to expressions; None if its forward is not a formula."""
    if is_defined(op):
        return call(op, *operands, **params)
    found = formula(PRIMITIVES.get(op), list(map(term, operands)), params, _space(op))
    return None if found is None else written(found)


def why_not_applied(op: str, operands: Sequence[Text], params: Params) -> str:
    """Return the reason for which `applied` returns None."""
    return why_no_formula(PRIMITIVES.get(op), list(map(term, operands)), params, _space(op))


def definitions(names: Iterable[str]) -> str:
    """Return the source of functions, each after those that it calls."""
    found: dict[str, str] = {}

    def add(name: str) -> None:
        source = inspect.getsource(HELPERS[name]) if name in HELPERS else definition(name) or ""
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Name(id=other)) if other not in {name, *found} and is_defined(other):
                    add(other)
        found[name] = source

    order = list(HELPERS)
    for name in sorted(names, key=lambda name: (order.index(name) if name in HELPERS else -1, name)):
        add(name)
    return "\n\n".join(found.values())


# The names of all such functions; values of a program must not have them.
NAMES = {*HELPERS, *filter(is_defined, REGISTRY)}
