"""Suspects about models: normalisation, dropout, noise and shortcuts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import ident, is_name, is_op, within
from glassgrad.doctor.reading.program import Class, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, shown
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import text
from glassgrad.doctor.reading.suspects.models.layers import (
    NORMALISING,
    applied,
    axes,
    forwards,
    in_forward,
    last_op,
    plain,
    rows,
)
from glassgrad.doctor.reading.values import library_name

_SHORTCUT = re.compile(r"^(identity|residual|shortcut|skip|res)\d?$")


# --- normalisation ---


@suspects_each("reduced without keepdim", operations(ast.Div | ast.Sub))
def _broadcasts(program: Program, node: ast.BinOp) -> object:
    """Find `x / x.sum(1)` and `x - x.mean(-1)`, whose two sides line up by their last axes."""
    left, right = text(node.left), node.right
    right = right.left if is_op(right, ast.Add) else right
    held = program.written(right)
    name, operand = applied(program, held) if held is not None else ("", None)
    along = axes(program, held) if isinstance(held, ast.Call) else None
    if name not in {"sum", "mean", "norm", "std", "var", "amax", "amin", "logsumexp"} or not along or 0 in along:
        return False
    keeps = isinstance(held, ast.Call) and any(one.arg in {"keepdim", "keepdims"} for one in held.keywords)
    keeps |= isinstance(held, ast.Call) and any(constant(one) is True for one in held.args)
    return operand is not None and text(operand) == left and not keeps


@suspects_rows("statistics of the whole batch", forwards)
def _whole_batch(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    """Find `(x - x.mean()) / x.std()` and `x / x.norm()` in a forward pass."""
    for node in within(forward, ast.BinOp):
        right = node.right if is_op(node, ast.Div) else None
        right = right.left if isinstance(right, ast.BinOp) else right
        held = program.written(right)
        name, operand = applied(program, held) if held is not None else ("", None)
        single = isinstance(held, ast.Call) and axes(program, held) == () and len(held.args) < 2
        same = operand is not None and text(operand) in text(node.left)
        known = name in {"norm", "std", "max", "sum", "var", "amax"} and single and same
        if known:
            yield look_at(node, name=owner.node.name)


@suspects_each("normalised by the variance", operations(ast.Div))
def _by_variance(program: Program, node: ast.BinOp) -> object:
    if not isinstance(node.left, ast.BinOp):
        return False
    right = node.right.left if isinstance(node.right, ast.BinOp) else node.right
    name = right.func.attr if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) else ""
    name = name or ident(right)
    centred = isinstance(node.left.op, ast.Sub) and re.search(r"mean|mu|avg", text(node.left.right))
    return centred and re.match(r"^(batch_|running_|_)*var(iance)?$", name)


@suspects_rows("normalisation written by hand", forwards)
def _own_norm(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    """Find the means and deviations of a module that is a norm by its name."""
    if not re.search(r"norm", owner.node.name, re.IGNORECASE):
        return
    for call in within(forward, ast.Call):
        if applied(program, call)[0] in {"mean", "var", "std", "norm"}:
            yield look_at(call, program.statement(call))


@suspects_each("second argument of a norm is eps", ast.Call)
def _large_eps(program: Program, call: ast.Call) -> object:
    name = plain(library_name(program, call))
    given = argument(call, "eps", 2 if name == "groupnorm" else 1) if name in NORMALISING else None
    value = setting(program, given)
    unsaid = isinstance(given, ast.Name) and value is None and not re.search("eps", given.id, re.IGNORECASE)
    odd = (value is not None and value >= 0.01) or (unsaid and name.startswith("batch") and len(call.args) > 1)
    return odd and look_at(call, eps=shown(given) if given is not None else "")


@suspects_each("momentum of a norm out of the usual", ast.Call)
def _norm_momentum(program: Program, call: ast.Call) -> object:
    name = plain(library_name(program, call))
    value = setting(program, argument(call, "momentum", 2)) if name.startswith("batchnorm") else None
    return value is not None and (value <= 0.02 or value >= 0.5) and look_at(call, value=f"{value:g}")


@suspects_each("norm without running statistics", ast.Call)
def _batch_only(program: Program, call: ast.Call) -> object:
    name = library_name(program, call)
    off = name.startswith("BatchNorm") and constant(argument(call, "track_running_stats", 4)) is False
    trains = name == "batch_norm" and constant(argument(call, "training", 5)) in {True, None}
    given = argument(call, "training", 5)
    return off or (trains and (given is None or isinstance(given, ast.Constant)))


# --- arguments of activations, dropout ---


@suspects_each("activation with another's argument", ast.Call)
def _misread(program: Program, call: ast.Call) -> object:
    name = last(program.names.full(call.func)) if library_name(program, call) else ""
    first = constant(call.args[0]) if call.args else None
    leaks = name == "LeakyReLU" and (first is True or (isinstance(first, int | float) and abs(first) > 0.5))
    plain_relu = name in {"ReLU", "ReLU6", "SELU", "SiLU"} and isinstance(first, float)
    return leaks or plain_relu or (name.startswith("Dropout") and first is True)


@suspects("channels dropped from features")
def _whole_channels(program: Program) -> Iterator[Spot]:
    for row in rows(program):
        for at, (name, made) in enumerate(row):
            flat = any(one in {"linear", "flatten"} for one, _ in row[:at])
            if name in {"dropout2d", "dropout3d"} and flat:
                yield look_at(made)
    for call in in_forward(program):
        name, operand = applied(program, call)
        said = text(operand)
        flat = operand is not None and (last_op(program, operand) or ("",))[0] == "linear"
        if name in {"dropout2d", "dropout3d"} and (flat or re.search(r"\bfc|linear|dense|flatten", said)):
            yield look_at(call)


@suspects_each("much dropout", ast.Call)
def _much(program: Program, call: ast.Call) -> object:
    name = plain(library_name(program, call))
    given = argument(call, "p", 1 if name == library_name(program, call) else 0) if "dropout" in name else None
    share = setting(program, given)
    return (share is not None and 0.6 < share < 1) or (given is not None and "keep" in text(given))


@suspects_rows("dropout by hand", forwards)
def _own_dropout(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    """Find a random mask in a forward pass without `self.training`, or without the factor 1 / (1 - p)."""
    said = text(owner.node)
    for node in within(forward, ast.expr):
        compares = isinstance(node, ast.Compare) and re.search(r"\brand(_like)?\(", text(node.left))
        draws = compares or (isinstance(node, ast.Call) and "bernoulli" in text(node.func))
        scaled = re.search(r"/ \(?(1(\.0)? - |self\.keep|keep)|/ self\.\w*keep|div_?\(|/ keep", said)
        if draws and not (scaled and "training" in said):
            yield look_at(node, program.statement(node))


@suspects_rows("noise in every forward pass", forwards)
def _noise(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    said = text(owner.node)
    if "training" in said or re.search(r"log_?var|std|sigma|repar|diffus|gumbel|noise_level", said, re.IGNORECASE):
        return
    for node in within(forward, ast.Call):
        if applied(program, node)[0] in {"randnlike", "randlike", "randn", "rand"}:
            outer = [one for one in program.outward(node) if isinstance(one, ast.BinOp)]
            if any(isinstance(one.op, ast.Add) for one in outer):
                yield look_at(node, program.statement(node))


# --- shortcuts ---


@suspects_rows("shortcut taken late", forwards)
def _late(program: Program, _: Class, forward: Function) -> Iterator[Spot]:
    """Find `identity = x` behind a layer that has changed x, and a shortcut that starts at the normalised input."""
    for at, node in enumerate(forward.body):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, text(node.value)
        before = [one for one in forward.body[:at] if isinstance(one, ast.Assign)]
        changed = any(text(one.targets[0]) == value and isinstance(one.value, ast.Call) for one in before)
        added = re.search(rf"\b{name} \+|\+=? {name}\b", "\n".join(map(text, forward.body[at:])))
        if _SHORTCUT.match(name) and isinstance(node.value, ast.Name) and changed and added:
            yield look_at(node, source=value)
        kind, operand = applied(program, node.value)
        again = is_name(operand, name) and kind in NORMALISING
        after = text(forward.body[at + 1]) if at + 1 < len(forward.body) else ""
        if again and re.search(rf"= {name} \+ self|return {name} \+ self", after):
            yield look_at(node, forward.body[at + 1], source=name)


@suspects_rows("batch norm of a sequence", forwards)
def _over_time(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    """Find `x = self.bn(x)` in front of a recurrent layer that takes (batch, time, features)."""
    made = {name: bounds[-1].value for name, bounds in owner.attributes.items() if bounds}
    layers = {f"self.{name}": one for name, one in made.items() if isinstance(one, ast.Call)}
    first = {name for name, one in layers.items() if constant(argument(one, "batch_first")) is True}
    calls = within(forward, ast.Call)
    fed = {text(one.args[0]) for one in calls if text(one.func) in first and one.args}
    for node in within(forward, ast.Assign):
        value = node.value
        norm = layers.get(text(value.func)) if isinstance(value, ast.Call) else None
        if norm is None or not isinstance(value, ast.Call):
            continue
        plain_input = bool(value.args) and isinstance(value.args[0], ast.Name)
        if plain_input and library_name(program, norm) == "BatchNorm1d" and text(node.targets[0]) in fed:
            yield look_at(node)
