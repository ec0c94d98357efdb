"""Write formulas of the op table as text and LaTeX, with actual names substituted and slightly simplified."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from glassgrad.base.tables import words
from glassgrad.ops.core import Array, Primitive

FUNCTIONS = {
    *words("""
    abs sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh exp log log2 sqrt sign max min
    floor sigmoid softplus softmax logsumexp digamma erfc sum pi g
    """)
}


def number(value: complex) -> str:
    """Write a number briefly."""
    return f"{value:.6g}"


def number_latex(text: str) -> str:
    r"""Write a number in LaTeX: 1e-05 as a power of ten. Anything else is left as it is.

    Example:
        >>> number_latex("1.5e-05"), number_latex("-2")
        ('1.5 \\cdot 10^{-5}', '-2')
    """
    match = re.fullmatch(r"(-?[\d.]+)e(-?)\+?0*(\d+)", text)
    if match is None:
        return text
    power = f"10^{{{match[2]}{match[3]}}}"
    return power if match[1] == "1" else rf"{match[1]} \cdot {power}"


def expression(prim: Primitive, arguments: Sequence[str], params: Mapping[str, Any]) -> str:
    """A step's formula with the arguments substituted, or name(arguments) if the formula is prose."""
    text = _substituted(prim.formula, prim, arguments, None)
    if text is not None:
        return text
    options = [f"{name}={value!r}" for name, value in params.items() if _worth_showing(value)]
    return f"{prim.name}({', '.join([*arguments, *options])})"


def _worth_showing(value: Array) -> bool:
    return value is not None and value is not False and value != () and len(repr(value)) < 40


def derivative(prim: Primitive, position: int, arguments: Sequence[str], result: str) -> str:
    """The local derivative with respect to one argument, or the table's description of the cotangent."""
    parts = _split(prim.derivative)
    text = parts[position] if position < len(parts) else prim.derivative
    replaced = _substituted(text, prim, arguments, result)
    return text if replaced is None else replaced


def _split(text: str) -> list[str]:
    """Split at commas outside brackets; drop remarks after a semicolon."""
    parts, depth, start = [], 0, 0
    text = text.partition(";")[0]
    for i, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


@lru_cache(maxsize=1024)
def _argument_names(prim: Primitive, count: int) -> list[str]:
    """The letters of the arguments in the table's formulas."""
    for rule in getattr(prim, "partials", ()):
        target = getattr(rule, "mask", rule)
        if callable(target):
            letters = list(inspect.signature(target).parameters)[1 : count + 1]
            if len(letters) == count and all(letter in re.findall(r"\w+", prim.formula) for letter in letters):
                return letters
    if count == 2 and {"x", "w"} <= set(re.findall(r"[a-z]", prim.formula)):
        return ["x", "w"]  # a linear layer without a bias
    return {1: ["x"], 2: ["a", "b"], 3: ["x", "w", "b"]}.get(count, [f"x{i + 1}" for i in range(count)])


def _substituted(text: str, prim: Primitive, arguments: Sequence[str], result: str | None) -> str | None:
    """Substitute names in a formula; None if it is prose rather than an expression."""
    known = dict(zip(_argument_names(prim, len(arguments)), arguments, strict=True))
    if result is not None:
        known["y"] = result
    if not all(map(str.isidentifier, known.values())):  # simplify the formula for numbers
        return _put_in(text, known)
    template = _template(text, tuple(known))
    return None if template is None else _PLACE.sub(lambda found: known[found[1]], template)


_PLACE = re.compile(r"\bplace_of_(\w+)_here\b")


@lru_cache(maxsize=1024)
def _template(text: str, letters: tuple[str, ...]) -> str | None:
    """Return a formula with a placeholder for each argument. It is cached: calls differ only in the names."""
    return _put_in(text, {letter: f"place_of_{letter}_here" for letter in letters})


def _put_in(text: str, known: Mapping[str, str]) -> str | None:
    # The table writes |x| for abs(x) and xT for the transpose of x.
    tree = _parse(re.sub(r"\b([abgwxy])T\b", r"\1.T", re.sub(r"\|(\w+)\|", r"abs(\1)", text)))
    if tree is None:
        return None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not used <= known.keys() | FUNCTIONS:
        return None
    parsed = {name: _parse(value) or ast.Name(value, ast.Load()) for name, value in known.items()}
    return ast.unparse(_Simplify().visit(_Replace(parsed).visit(tree)))


def _parse(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


class _Replace(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(arg) for arg in node.args]  # the function's own name stays
        return node


class _Simplify(ast.NodeTransformer):
    """Simplify the results of substituting numbers: 2 - 1 is 1, x**1 is x, 1 * x is x."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        left, right = _constant(node.left), _constant(node.right)
        if left is not None and right is not None and not isinstance(node.op, ast.Div | ast.Pow):
            return _number({ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)])
        if isinstance(node.op, ast.Pow) and right == 1:
            return node.left
        if isinstance(node.op, ast.Mult) and left == 1:
            return node.right
        if isinstance(node.op, ast.Mult | ast.Div) and right == 1:
            return node.left
        return node


def _constant(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return None


def _number(value: float) -> ast.expr:
    whole = int(value) if float(value).is_integer() else value
    return ast.Constant(whole) if whole >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-whole))


# --- LaTeX --------------------------------------------------------------------------------------

_POWER, _PRODUCT, _SUM = 3, 2, 1


def latex(text: str) -> str:
    """Write a formula in LaTeX; prose becomes text."""
    tree = _parse(text)
    return _words(text) if tree is None else _latex(tree)[0]


def _words(text: str) -> str:
    return rf"\text{{{text.replace('_', chr(92) + '_')}}}"


def name_latex(name: str) -> str:
    """Write a variable: v12 as v_{12}, a long name upright."""
    match = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if match:
        return f"{match[1]}_{{{match[2]}}}"
    return name if len(name) == 1 else rf"\mathit{{{name.replace('_', chr(92) + '_')}}}"


def _latex(node: ast.expr) -> tuple[str, int]:
    """Return LaTeX and its operator precedence."""
    match node:
        case ast.Name(id=name):
            return (r"\pi" if name == "pi" else name_latex(name)), 4
        case ast.Attribute(value=owner, attr="T"):
            return f"{_bracketed(owner, 4)}^{{\\top}}", _POWER
        case ast.Attribute():
            return name_latex(ast.unparse(node).replace(".", "_")), 4
        case ast.Constant(value=value):
            text = number_latex(number(value)) if isinstance(value, int | float) else _words(str(value))
            return text, _PRODUCT if "^" in text else 4
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{_bracketed(operand, _PRODUCT)}", _SUM
        case ast.BinOp():
            return _binary(node)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_latex(arg)[0] for arg in args]), 4
    return _words(ast.unparse(node)), 4


def _binary(node: ast.BinOp) -> tuple[str, int]:
    left, right = node.left, node.right
    match node.op:
        case ast.Add():
            return f"{_bracketed(left, _SUM)} + {_bracketed(right, _SUM)}", _SUM
        case ast.Sub():
            return f"{_bracketed(left, _SUM)} - {_bracketed(right, _PRODUCT)}", _SUM
        case ast.Mult():
            return rf"{_bracketed(left, _PRODUCT)} \cdot {_bracketed(right, _PRODUCT)}", _PRODUCT
        case ast.MatMult():
            return f"{_bracketed(left, _PRODUCT)} \\, {_bracketed(right, _PRODUCT)}", _PRODUCT
        case ast.Div():
            return rf"\frac{{{_latex(left)[0]}}}{{{_latex(right)[0]}}}", _POWER
        case ast.Pow():
            return f"{_bracketed(left, 4)}^{{{_latex(right)[0]}}}", _POWER
    return _words(ast.unparse(node)), 4


def _bracketed(node: ast.expr, needed: int) -> str:
    text, binding = _latex(node)
    return text if binding >= needed else rf"\left({text}\right)"


def _call(name: str, args: list[str]) -> str:
    if name == "sqrt":
        return rf"\sqrt{{{args[0]}}}"
    if name == "abs":
        return rf"\left|{args[0]}\right|"
    known = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "max", "min"}
    head = rf"\{name}" if name in known else rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
    return rf"{head}\left({', '.join(args)}\right)"
