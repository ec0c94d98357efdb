"""Rules about the weights of averages, and of noise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.names import last
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
    for node in program.nodes:
        found = _blend(program, node)
        if found is None:
            continue
        share, follower = found
        follower = f"{follower} {_source(program, follower, node)}"
        if share is not None and share > 0.5 and _FOLLOWER.search(follower):
            assert isinstance(node, ast.expr | ast.stmt)
            yield spot(node, text=shown(node), share=f"{share:g}")


def _source(program: Program, follower: str, node: ast.AST) -> str:
    """Return the source of a loop variable, such as `target.parameters()` in a loop over `zip`."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == follower]
    return " ".join(ast.unparse(one.node) for name in names[:1] for one in flow(program).ends(name))


def _blend(program: Program, node: ast.AST) -> tuple[float | None, str] | None:
    """Return the weight of the new value in a moving average that a statement updates, and the text of the average."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        held = _plain(node.targets[0])
        return _share(program, node.value, held), held
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    held = _plain(node.func.value)
    if node.func.attr == "copy_" and isinstance(node.args[0], ast.BinOp):
        return _share(program, node.args[0], held), held
    if node.func.attr == "lerp_" and len(node.args) > 1:
        return setting(program, node.args[1]), held
    inner = node.func.value
    if node.func.attr == "add_" and isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") == "mul_":
        assert isinstance(inner.func, ast.Attribute)
        return setting(program, argument(node, "alpha")), _plain(inner.func.value)
    return None


def _plain(node: ast.expr) -> str:
    return ast.unparse(node).removesuffix(".data").replace(".detach()", "")


def _share(program: Program, value: ast.expr, held: str) -> float | None:
    """Return b of `a * held + b * new`, where a and b are numbers that add up to 1."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    weights: dict[bool, float | None] = {}
    for side in (value.left, value.right):
        if not isinstance(side, ast.BinOp) or not isinstance(side.op, ast.Mult):
            return None
        for factor, other in ((side.left, side.right), (side.right, side.left)):
            size = setting(program, factor)
            if size is not None:
                weights[_plain(other) == held] = size
                break
    old, new = weights.get(True), weights.get(False)
    return new if old is not None and new is not None and abs(old + new - 1) < 1e-6 else None


@reads("average pushed away")
def _pushed(program: Program) -> Iterator[Spot]:
    """Find `average += c * (average - new)`, and the same with a minus and the difference turned."""
    for node in program.nodes:
        found = _moved(node)
        if found is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        held, change, sign = found
        difference = _difference(program, change)
        if difference is None:
            continue
        sides = [_plain(one) for one in (difference.left, difference.right)]
        around = program.owner(node)
        names = [held, getattr(program.function(node), "name", ""), around.node.name if around is not None else ""]
        if sides[sign < 0] == held != sides[sign > 0] and _FOLLOWER.search(
            " ".join([*names, _source(program, held, node)])
        ):
            yield spot(node, difference, text=shown(node), held=held, new=sides[sign > 0])


def _moved(node: ast.AST) -> tuple[str, ast.expr, int] | None:
    """Return the variable that a statement changes, what it adds or subtracts, and the sign."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        return _plain(node.target), node.value, 1 if isinstance(node.op, ast.Add) else -1
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"add_", "sub_"}:
        return (_plain(node.func.value), node.args[0], 1 if node.func.attr == "add_" else -1) if node.args else None
    value = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if (
        not isinstance(value, ast.BinOp)
        or not isinstance(value.op, ast.Add | ast.Sub)
        or not isinstance(node, ast.Assign)
    ):
        return None
    held = _plain(node.targets[0])
    return (held, value.right, 1 if isinstance(value.op, ast.Add) else -1) if _plain(value.left) == held else None


def _difference(program: Program, change: ast.expr) -> ast.BinOp | None:
    """Return the difference in a product of a difference and one factor, or the difference itself."""
    for one in flow(program).ends(change):
        sides = [one.node]
        if isinstance(one.node, ast.BinOp) and isinstance(one.node.op, ast.Mult):
            sides = [it.node for side in (one.node.left, one.node.right) for it in flow(program).ends(side)]
        for node in sides:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                return node
    return None


@reads("averaged twice")
def _divided(program: Program) -> Iterator[Spot]:
    """Find an update that divides the gradient of a mean loss by the size of the batch."""
    losses = [one.func.value for one in program.calls_of(".backward") if isinstance(one.func, ast.Attribute)]
    means = [one for one in losses if _is_mean(program, one)]
    for node in program.nodes if means else ():
        found = _moved(node)
        if found is None or found[2] > 0 or not isinstance(node, ast.expr | ast.stmt):
            continue
        quotients = [one for one in ast.walk(found[1]) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)]
        for one in quotients:
            grads = any(isinstance(it, ast.Attribute) and it.attr == "grad" for it in ast.walk(one.left))
            if grads and _BATCH.search(ast.unparse(one.right)):
                yield spot(node, means[0], text=shown(node), size=shown(one.right), mean=shown(means[0]))
                break


def _is_mean(program: Program, value: ast.expr) -> bool:
    """Tell whether a loss is a mean over the batch: `x.mean()`, or a loss function without another reduction."""
    one = flow(program).end(value)
    call = one.node if one is not None else None
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr == "mean":
        return not call.args and not call.keywords
    return last(program.names.full(call.func)) in LOSSES.values() and argument(call, "reduction") is None


@reads("noise level of a single step")
def _single_step(program: Program) -> Iterator[Spot]:
    """Find `sqrt(a) * x + sqrt(1 - a) * noise` with a = 1 - beta of one step, in a script that has their product."""
    if not any(
        last(program.names.full(one.func)) == "cumprod" or getattr(one.func, "attr", "") == "cumprod"
        for one in program.calls
    ):
        return
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        roots = [_root(program, side) for side in (node.left, node.right)]
        if None in roots or not all(map(_one_factor, (node.left, node.right))):
            continue
        if not any(is_noise(program, end.node) for end in _noises(program, node)):
            continue
        ends = [flow(program).end(_bare(root)) for root in roots if root is not None]
        steps = [end for end in ends if end is not None and _is_step(end.node)]
        if steps:
            yield spot(node, program.statement(steps[0].node), text=shown(node))


def _one_factor(side: ast.expr) -> bool:
    """Tell whether a term is a root times one factor; in the mean of a step back, each has a variance as well."""
    waiting, factors = [side], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult | ast.Div):
            waiting += [one.left, one.right]
        else:
            factors += number(one) is None
    return factors < 3


def _noises(program: Program, node: ast.BinOp) -> list[Value]:
    sides = [one for one in (node.left, node.right) if isinstance(one, ast.BinOp)]
    return [end for one in sides for part in (one.left, one.right) for end in flow(program).ends(part)]


def _root(program: Program, side: ast.expr) -> ast.expr | None:
    """Return the operand of a square root in a product."""
    for one in ast.walk(side):
        if (
            isinstance(one, ast.Call)
            and getattr(one.func, "attr", "") == "sqrt"
            and isinstance(one.func, ast.Attribute)
        ):
            return one.args[0] if one.args else one.func.value
    return None


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without its index, or `a` of `1 - a`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and number(node.left) == 1:
            node = node.right
        else:
            return node


def _is_step(node: ast.expr) -> bool:
    """Tell whether a value is `1 - betas`, with one beta for each step."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and number(node.left) == 1


RULES = rules_of(globals())
