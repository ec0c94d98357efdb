"""Rules about the weights of averages, and of noise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    both_ways,
    factors_of,
    has_attribute,
    is_op,
    method_of,
    object_of,
    only_target,
    within,
    without,
)
from glassgrad.doctor.reading.program import Program, argument, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import LOSSES, library_name

_FOLLOWER = re.compile(
    r"target|tgt|ema|shadow|avg|average|teacher|moving|momentum_?(enc|model|net)|slow", re.IGNORECASE
)

_BATCH = re.compile(r"batch_?size|(^|[._])bs$|^len\(", re.IGNORECASE)


def is_noise(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is a sample from a normal distribution."""
    return isinstance(node, ast.Call) and library_name(program, node) in {"randn", "randn_like", "normal"}


@reads("average follows at once")
def _follows(program: Program) -> Iterator[Spot]:
    """Find averages and targets whose new weights count for more than half."""
    nodes: list[ast.Assign | ast.Call] = [*program.every(ast.Assign), *program.calls]
    for node in nodes:
        found = _blend(program, node)
        if found is None:
            continue
        share, follower = found
        follower = f"{follower} {_source(program, follower, node)}"
        if share is not None and share > 0.5 and _FOLLOWER.search(follower):
            yield spot(node, text=shown(node), share=f"{share:g}")


def _source(program: Program, follower: str, node: ast.AST) -> str:
    """Return the source of a loop variable, such as `target.parameters()` in a loop over `zip`."""
    names = [one for one in within(node, ast.Name) if one.id == follower]
    return " ".join(ast.unparse(one) for name in names[:1] for one in flow(program).origins(name))


def _blend(program: Program, node: ast.AST) -> tuple[float | None, str] | None:
    """Return the weight of the new value in a moving average that a statement updates, and the text of the average."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        held = _plain(node.targets[0])
        return _share(program, node.value, held), held
    inner = object_of(node)
    if inner is None or not isinstance(node, ast.Call) or not node.args:
        return None
    name, held = method_of(node), _plain(inner)
    if name == "copy_" and isinstance(node.args[0], ast.BinOp):
        return _share(program, node.args[0], held), held
    if name == "lerp_" and len(node.args) > 1:
        return setting(program, node.args[1]), held
    if name == "add_" and method_of(inner) == "mul_":
        return setting(program, argument(node, "alpha")), _plain(without(inner, "mul_"))
    return None


def _plain(node: ast.expr) -> str:
    return ast.unparse(node).removesuffix(".data").replace(".detach()", "")


def _share(program: Program, value: ast.expr, held: str) -> float | None:
    """Return b of `a * held + b * new`, where a and b are numbers that add up to 1."""
    if not is_op(value, ast.Add):
        return None
    weights: dict[bool, float | None] = {}
    for side in (value.left, value.right):
        if not is_op(side, ast.Mult):
            return None
        for factor, other in both_ways(side):
            size = setting(program, factor)
            if size is not None:
                weights[_plain(other) == held] = size
                break
    old, new = weights.get(True), weights.get(False)
    return new if old is not None and new is not None and abs(old + new - 1) < 1e-6 else None


@reads("average pushed away")
def _pushed(program: Program) -> Iterator[Spot]:
    """Find `average += c * (average - new)`, and the same with a minus and the difference turned."""
    for node, held, change, sign in _moves(program):
        difference = _difference(program, change)
        if difference is None:
            continue
        sides = [_plain(one) for one in (difference.left, difference.right)]
        around = program.owner(node)
        names = [held, getattr(program.function(node), "name", ""), around.node.name if around is not None else ""]
        follows = _FOLLOWER.search(" ".join([*names, _source(program, held, node)]))
        if follows and sides[sign < 0] == held != sides[sign > 0]:
            yield spot(node, difference, text=shown(node), held=held, new=sides[sign > 0])


def _moves(program: Program) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.expr, int]]:
    """Yield the statements and calls that change a variable, the variable, what they add or subtract, and the sign."""
    for node in (one for one in program.nodes if isinstance(one, ast.AugAssign | ast.Assign | ast.Call)):
        if (found := _moved(node)) is not None:
            yield node, *found


def _moved(node: ast.AST) -> tuple[str, ast.expr, int] | None:
    """Return the variable that a statement changes, what it adds or subtracts, and the sign."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        return _plain(node.target), node.value, 1 if isinstance(node.op, ast.Add) else -1
    if method_of(node) in {"add_", "sub_"} and isinstance(node, ast.Call) and (inner := object_of(node)) is not None:
        return (_plain(inner), node.args[0], 1 if method_of(node) == "add_" else -1) if node.args else None
    target = only_target(node)
    value = node.value if isinstance(node, ast.Assign) and target is not None else None
    if not is_op(value, ast.Add | ast.Sub) or target is None or _plain(value.left) != _plain(target):
        return None
    return _plain(target), value.right, 1 if isinstance(value.op, ast.Add) else -1


def _difference(program: Program, change: ast.expr) -> ast.BinOp | None:
    """Return the difference in a product of a difference and one factor, or the difference itself."""
    for one in flow(program).origins(change):
        sides = [one]
        if is_op(one, ast.Mult):
            sides = [it for side in (one.left, one.right) for it in flow(program).origins(side)]
        for node in sides:
            if is_op(node, ast.Sub):
                return node
    return None


@reads("averaged twice")
def _divided(program: Program) -> Iterator[Spot]:
    """Find an update that divides the gradient of a mean loss by the size of the batch."""
    means = [loss for one in program.calls_of(".backward") if (loss := object_of(one)) and _is_mean(program, loss)]
    for node, _, change, sign in _moves(program) if means else ():
        for one in within(change, ast.BinOp) if sign < 0 else ():
            averages = isinstance(one.op, ast.Div) and _BATCH.search(ast.unparse(one.right))
            if averages and has_attribute(one.left, "grad"):
                yield spot(node, means[0], text=shown(node), size=shown(one.right), mean=shown(means[0]))
                break


def _is_mean(program: Program, value: ast.expr) -> bool:
    """Tell whether a loss is a mean over the batch: `x.mean()`, or a loss function without another reduction."""
    call = flow(program).origin(value)
    if not isinstance(call, ast.Call):
        return False
    if method_of(call) == "mean":
        return not call.args and not call.keywords
    return last(program.names.full(call.func)) in LOSSES.values() and argument(call, "reduction") is None


_SHAPES = named("view reshape unsqueeze expand to gather index_select")


@reads("noise level of a single step")
def _single_step(program: Program) -> Iterator[Spot]:
    """Find `sqrt(a) * x + sqrt(1 - a) * noise` with a = 1 - beta of one step, in a script that has their product."""
    if not any("cumprod" in {last(program.names.full(one.func)), method_of(one)} for one in program.calls):
        return
    for node in program.every(ast.BinOp):
        sides = [node.left, node.right]
        roots = [found for side in sides if (found := _root(side)) is not None] if is_op(node, ast.Add) else []
        if len(roots) < 2 or not all(map(_one_factor, sides)):
            continue
        if not any(is_noise(program, one) for one in _parts(program, sides)):
            continue
        taken = [way for one in roots if (way := _taken(program, one)) is not None]
        alike = len({ast.unparse(_bare(one)) for one in roots}) == 1
        if taken and (alike or len(taken[0]) == 1):
            yield spot(node, *taken[0], text=shown(node))


def _taken(program: Program, root: ast.expr) -> tuple[ast.stmt, ...] | None:
    """Return the statements that take the level of a single step and that make it; None if it is no such level."""
    node: ast.expr | None = _bare(root)
    found: list[ast.stmt] = []
    for _ in range(4):
        node = flow(program).origin(node) if node is not None else None
        if node is None:
            return None
        found.append(program.statement(node))
        if _is_step(node):
            return tuple(found)
        node = _bare(node)
    return None


def _one_factor(side: ast.expr) -> bool:
    """Tell whether a term is a root times one factor; in the mean of a step back, each has a variance as well."""
    return sum(number(one) is None for one in factors_of(side, ast.Mult | ast.Div)) < 3


def _parts(program: Program, sides: list[ast.expr]) -> list[ast.expr]:
    """Return what the operands of some products come from."""
    parts = [part for one in sides if isinstance(one, ast.BinOp) for part in (one.left, one.right)]
    return [end for part in parts for end in flow(program).origins(part)]


def _root(side: ast.expr) -> ast.expr | None:
    """Return the operand of a square root in a product."""
    for one in within(side, ast.Call):
        if method_of(one) == "sqrt":
            return one.args[0] if one.args else object_of(one)
    return None


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without its index, or `a` of `1 - a`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif method_of(node) in _SHAPES and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif _is_step(node) and isinstance(node, ast.BinOp):
            node = node.right
        else:
            return node


def _is_step(node: ast.expr) -> bool:
    """Tell whether a value is `1 - betas`, with one beta for each step."""
    return is_op(node, ast.Sub) and number(node.left) == 1


RULES = rules_of(globals())
