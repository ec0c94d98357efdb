"""Suspects about densities: scales of distributions, mixtures, flows and their inverses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.nodes import callee_of, is_negative, is_op, target_of, within
from glassgrad.doctor.reading.program import Class, Program, argument
from glassgrad.doctor.reading.rule import Spot, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects_each
from glassgrad.doctor.reading.suspects.lookup import text, text_around
from glassgrad.doctor.reading.suspects.models.layers import MATRICES, applied

_BACK = re.compile(r"^(inverse|_inverse|reverse|decode|sample|backward|inv|generate|invert)", re.IGNORECASE)
_LOG_DET = re.compile(r"log_?(abs_?)?(det|jac)|ldj|sldj|logdet|\bld\b", re.IGNORECASE)


@suspects_each("scale of a distribution", ast.Call)
def _scale(program: Program, call: ast.Call) -> object:
    """Find a raw output, a logarithm or a variance as the deviation of a normal distribution."""
    full = program.names.full(call.func)
    given = argument(call, "scale", 1) if full.endswith((".Normal", ".Laplace", ".LogNormal")) else None
    if given is None:
        return False
    held = program.written(given)
    said = text(held)
    raw = held is not None and applied(program, held)[0] in MATRICES | {"relu", "tanh"}
    doubled = re.search(r"log_?var|log_?sigma2", said) and not re.search(r"0\.5|/ 2|sqrt", said)
    halved = re.search(r"(0\.5 \* [\w.]*log_?(std|sigma|scale)|log_?(std|sigma|scale) / 2)\b", said)
    logarithm = "log" in said and "exp" not in said and "softplus" not in said
    return raw or logarithm or doubled or halved


_LOG_WEIGHT = re.compile(
    r"^(self\.)?log_?(pi|pis|mix\w*|coef\w*|weights?|w)$|^([\w.]*\b)?log_softmax\(|^(torch\.)?log\((pi|mix\w*|weights?)\b"
)
_LOG_DENSITY = re.compile(r"log_?p(rob\w*|df)?\b|logp|log_?lik|log_?dens|log_?n(ormal)?\b|gauss", re.IGNORECASE)


def _reduced(program: Program, node: ast.BinOp) -> bool:
    """Tell whether a sum, or the variable that holds it, goes into a mean or a sum, and never through exp."""
    statement = program.statement(node)
    said = text_around(program, node)
    held = target_of(statement) if isinstance(statement, ast.Assign) and statement.value is node else None
    whole = re.escape(text(held if held is not None else node))
    reduced = re.search(rf"(?<![\w.])\(?{whole}\)?\.(mean|sum)\(|\b(mean|sum)\({whole}[,)]", said)
    return reduced is not None and not re.search(
        r"log_?sum_?exp|(?<!log_)softmax\(|exp\(\)? *[.)]*(sum|mean)|(?<!soft)max\(", said
    )


@suspects_each("logarithms of a mixture added up", operations(ast.Mult | ast.Add))
def _mixture(program: Program, node: ast.BinOp) -> object:
    """Find `pi * log_prob`, and `(log_pi + log_prob).mean()` in a function without logsumexp."""
    names = [text(one) for one in (node.left, node.right)]
    if isinstance(node.op, ast.Add):
        weighs = any(_LOG_WEIGHT.match(one) for one in names) and any(_LOG_DENSITY.search(one) for one in names)
        return weighs and _reduced(program, node)
    weighs = any(re.match(r"^(self\.)?(pi|pis|mix\w*|mixture\w*|coef\w*)$", one) for one in names)
    return weighs and any(re.search(r"log_?prob|log_?pdf|log_?lik|log_?n\b|log_?dens", one) for one in names)


@suspects_each("log-determinant of a flow", ast.Assign | ast.AugAssign)
def _log_det(program: Program, node: ast.Assign | ast.AugAssign) -> object:
    """Find the lines that compute a log-determinant: its sign, its axes, and whether it adds up over the layers."""
    if program.function(node) is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    said = text(node.value)
    if not isinstance(target, ast.Name) or not _LOG_DET.search(target.id):
        return False
    lost = isinstance(node, ast.Assign) and program.loops(node) and target.id not in said
    falls = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub)
    return lost or falls or re.search(r"mean\(|\.sum\(\)|^-|^torch\.sum\(\w+\)$|abs|log\(", said)


@suspects_each("log-determinant joined with a density", operations(ast.Add | ast.Sub))
def _density(program: Program, node: ast.BinOp) -> object:
    sides = [text(one) for one in (node.left, node.right)]
    odd = re.search(r"log_?p|prior|base|log_prob|z\*\*2|pow\(2\)|z \*\* 2", sides[0]) and _LOG_DET.search(sides[1])
    return odd and look_at(node, sign="+" if isinstance(node.op, ast.Add) else "-")


@suspects_each("inverse of a flow", Program.modules)
def _inverse(program: Program, owner: Class) -> Iterator[Spot]:
    """Find inverses that run their layers in the order of the forward pass, or undo its steps in its own order."""
    whole = text(owner.node)
    flows = bool(_LOG_DET.search(whole))
    undone = list(_undone_in_order(program, owner.node))
    yield from (look_at(node, other) for node, other in undone)
    for name, method in owner.methods.items() if flows else ():
        for node in ast.walk(method) if _BACK.match(name) else ():
            over = text(node.iter) if isinstance(node, ast.For) else ""
            both = f"reversed({over})" in whole
            if re.match(r"self\.\w+$", over) and isinstance(node, ast.For) and not both:
                yield spot(node, text=f"for ... in {over}")
            said = text(node) if isinstance(node, ast.BinOp) else ""
            grows = re.match(r"^\(\w+ - [\w.]+\) \* (torch\.)?(exp\([a-z_.]+\)|[a-z_.]+\.exp\(\))$", said)
            early = re.match(r"^\w+ \* (torch\.exp\(-[\w.]+\)|\(-[\w.]+\)\.exp\(\)) - \w+$", said)
            known = [one.node for one in _affine(owner.node) if one.adds] if early else []
            if (grows or (early and not known)) and isinstance(node, ast.expr) and node not in dict(undone):
                yield look_at(node)


@dataclass(frozen=True)
class Affine:
    """`x * exp(s) + t`, or what undoes it.

    Attributes:
        node: the expression.
        scales_first: whether it multiplies before it adds.
        grows: whether it multiplies by exp(s), and does not divide by it.
        adds: whether it adds t, and does not subtract it.
        key: the texts of s and t.
    """

    node: ast.BinOp
    scales_first: bool
    grows: bool
    adds: bool
    key: tuple[str, str]


def _undone_in_order(program: Program, owner: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield `x * exp(-s) - t` with `x * exp(s) + t`, one of them in an inverse: the steps are not undone in reverse."""
    found = list(_affine(owner))
    for one in found:
        pairs = [it for it in found if it.key == one.key and it.adds and not one.adds]
        undoes = [it for it in pairs if it.scales_first != one.scales_first and it.grows != one.grows]
        backs = [_is_back(program, it.node) for it in pairs]
        if pairs and not undoes and any(back != _is_back(program, one.node) for back in backs):
            yield one.node, pairs[0].node


def _is_back(program: Program, node: ast.AST) -> bool:
    """Tell whether a line belongs to an inverse: a method of such a name, or a branch of such a parameter."""
    inner = node
    for outer in program.outward(node):
        if isinstance(outer, ast.If | ast.IfExp):
            test = text(outer.test)
            words = re.search(r"\b(not )?(self\.)?\w*(reverse|inverse|backward|back|invert|inv|sampling)\b", test)
            forwards = re.search(r"\bforward\b", test)
            first = inner is outer.body or (isinstance(outer, ast.If) and inner in outer.body)
            if words or forwards:
                return first == (bool(words) and not (words is not None and words[1]))
        if isinstance(outer, ast.FunctionDef):
            return bool(_BACK.match(outer.name))
        inner = outer
    return False


def _affine(owner: ast.ClassDef) -> Iterator[Affine]:
    """Yield the sums and products of a class that scale by an exponential and shift."""
    for node in within(owner, ast.BinOp):
        for sum_, product in ((node, node.left), (node, node.right), (node.left, node), (node.right, node)):
            shift, scale = _shifted(sum_, product), _scaled(product)
            if shift is not None and scale is not None:
                yield Affine(node, sum_ is node, scale[1], shift[1], (scale[0], shift[0]))


def _shifted(node: ast.expr, product: ast.expr) -> tuple[str, bool] | None:
    """Return t of `x + t`, `t + x * s` and `x - t`, and whether it is added."""
    if not is_op(node, ast.Add | ast.Sub):
        return None
    adds = isinstance(node.op, ast.Add)
    if product is node.right:
        return (text(node.left), adds) if adds else None
    return text(node.right), adds


def _scaled(node: ast.expr) -> tuple[str, bool] | None:
    """Return s of `x * exp(s)` and `x / exp(s)`, without its sign, and whether the product grows with it."""
    if not is_op(node, ast.Mult | ast.Div):
        return None
    calls = [one for one in (node.right, node.left) if isinstance(one, ast.Call) and callee_of(one) == "exp"]
    if not calls or (isinstance(node.op, ast.Div) and calls[0] is not node.right):
        return None
    call = calls[0]
    power = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else call
    minus = is_negative(power)
    bare = power.operand if isinstance(power, ast.UnaryOp) else power
    return text(bare), minus == isinstance(node.op, ast.Div)
