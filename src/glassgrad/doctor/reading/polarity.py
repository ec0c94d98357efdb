"""The meaning of true in a mask, "keep" or "drop", as far as the source defines it."""

from __future__ import annotations

import ast
import re

from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import ident, method_of
from glassgrad.doctor.reading.program import Program, argument, constant, number

_PAD = re.compile(r"(^|_)(pad|padding)(_|$|\d|idx|id)|^<pad>$|pad_token|padding_idx", re.IGNORECASE)
_SAME = named(
    "bool to unsqueeze view reshape expand repeat float clone contiguous squeeze byte type cuda detach int long"
)
_TURNED = {"keep": "drop", "drop": "keep"}


def polarity(program: Program, value: Value | ast.expr, depth: int = 0) -> str:
    """Return whether a mask marks positions to "keep" or to "drop" by true or 1; empty if this is unknown.

    A causal mask drops the future, and a padding mask drops the padding.
    """
    found = {_end(program, one, depth) for one in flow(program).ends(value)} if depth < 8 else {""}
    return found.pop() if len(found) == 1 else ""


def _end(program: Program, one: Value, depth: int) -> str:
    node, frame = one.node, one.frame
    if isinstance(node, ast.Subscript):
        return polarity(program, Value(node.value, frame), depth + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        return _TURNED.get(polarity(program, Value(node.operand, frame), depth + 1), "")
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(program, node, one, depth)
    if isinstance(node, ast.BinOp):
        return _operation(program, node, one, depth)
    return _call(program, node, one, depth) if isinstance(node, ast.Call) else ""


def _operation(program: Program, node: ast.BinOp, one: Value, depth: int) -> str:
    left = polarity(program, Value(node.left, one.frame), depth + 1)
    right = polarity(program, Value(node.right, one.frame), depth + 1)
    if isinstance(node.op, ast.Sub) and number(node.left) == 1:
        return _TURNED.get(right, "")
    if isinstance(node.op, ast.BitAnd | ast.Mult):
        return left if left == right else ("keep" if "keep" in {left, right} and "drop" not in {left, right} else "")
    return left if isinstance(node.op, ast.BitOr) and left == right else ""


def _compared(program: Program, node: ast.Compare, one: Value, depth: int) -> str:
    """Return the polarity of `mask == 0`, `tokens != pad` or `place < length`."""
    left, right = node.left, node.comparators[0]
    equal = isinstance(node.ops[0], ast.Eq)
    if isinstance(node.ops[0], ast.Eq | ast.NotEq):
        inner = polarity(program, Value(left, one.frame), depth + 1)
        if inner and number(right) in {0, 1}:
            same = (number(right) == 1) is equal
            return inner if same else _TURNED[inner]
        if is_padding(right):
            return "drop" if equal else "keep"
        return ""
    if _is_places(program, left, one) and re.search(r"len", ast.unparse(right)):
        return "keep" if isinstance(node.ops[0], ast.Lt) else "drop" if isinstance(node.ops[0], ast.GtE) else ""
    return ""


def _is_places(program: Program, node: ast.expr, one: Value) -> bool:
    found = flow(program).ends(Value(node, one.frame))
    return bool(found) and all("arange" in ast.unparse(end.node) for end in found)


def is_padding(node: ast.expr) -> bool:
    """Tell by its name whether an expression is the index of padding."""
    text = str(constant(node.slice)) if isinstance(node, ast.Subscript) else ident(node)
    return bool(text) and bool(_PAD.search(text))


def _call(program: Program, node: ast.Call, one: Value, depth: int) -> str:
    full = program.names.full(node.func)
    name, inner = last(full) or method_of(node), program.operand(node)
    if inner is None:
        return ""
    if name in {"triu", "tril", "triu_", "tril_"}:
        return _triangle(node, inner, name.rstrip("_"), 1 if full or not method_of(node) else 0)
    if name == "logical_not":
        return _TURNED.get(polarity(program, Value(inner, one.frame), depth + 1), "")
    if name in {"eq", "ne"} and node.args and is_padding(node.args[-1]):
        return "drop" if name == "eq" else "keep"
    if name in _SAME | {"tensor", "as_tensor", "from_numpy", "logical_and"}:
        return polarity(program, Value(inner, one.frame), depth + 1)
    return ""


def _triangle(node: ast.Call, inner: ast.expr, name: str, place: int) -> str:
    """Return the polarity of a triangle of ones: the future is above the diagonal, the past and the present below."""
    given = argument(node, "diagonal", place) or argument(node, "k", place)
    diagonal = 0.0 if given is None else number(given)
    ones = re.search(r"ones|full\(.*True", ast.unparse(inner)) and not re.search(r"inf|-1e|min", ast.unparse(inner))
    if not ones:
        return ""
    return {("triu", 1.0): "drop", ("tril", 0.0): "keep"}.get((name, diagonal), "") if diagonal is not None else ""


def kind(program: Program, value: Value | ast.expr) -> str:
    """Return "bool" for a mask of booleans, such as the result of a comparison or of `bool()`; empty for others."""
    found = {_kind(program, one) for one in flow(program).ends(value)}
    return found.pop() if len(found) == 1 else ""


def _kind(program: Program, one: Value) -> str:
    while isinstance(one.node, ast.Subscript):
        inner = flow(program).end(Value(one.node.value, one.frame))
        if inner is None:
            return ""
        one = inner
    text = re.search(r"\.bool\(\)|dtype=\w+\.bool|logical_not", ast.unparse(one.node))
    turned = isinstance(one.node, ast.UnaryOp) and isinstance(one.node.op, ast.Invert)
    return "bool" if text or turned or isinstance(one.node, ast.Compare) else ""
