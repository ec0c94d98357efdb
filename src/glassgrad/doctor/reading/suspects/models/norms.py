"""Suspects about models: normalisation, dropout, noise and shortcuts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
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


@suspects("reduced without keepdim")
def _broadcasts(program: Program) -> Iterator[Spot]:
    """Find `x / x.sum(1)` and `x - x.mean(-1)`, whose two sides line up by their last axes."""
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.Sub):
            continue
        left, right = ast.unparse(node.left), node.right
        right = right.left if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add) else right
        held = program.value_of(right) if isinstance(right, ast.Name) else right
        name, operand = applied(program, held) if held is not None else ("", None)
        along = axes(program, held) if isinstance(held, ast.Call) else None
        if name not in {"sum", "mean", "norm", "std", "var", "amax", "amin", "logsumexp"} or not along or 0 in along:
            continue
        keeps = isinstance(held, ast.Call) and any(one.arg in {"keepdim", "keepdims"} for one in held.keywords)
        keeps |= isinstance(held, ast.Call) and any(constant(one) is True for one in held.args)
        if operand is not None and ast.unparse(operand) == left and not keeps:
            yield spot(node, text=shown(node))


@suspects("statistics of the whole batch")
def _whole_batch(program: Program) -> Iterator[Spot]:
    """Find `(x - x.mean()) / x.std()` and `x / x.norm()` in a forward pass."""
    for owner, forward in forwards(program):
        for node in ast.walk(forward):
            right = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
            right = right.left if isinstance(right, ast.BinOp) else right
            held = program.value_of(right) if isinstance(right, ast.Name) else right
            name, operand = applied(program, held) if held is not None else ("", None)
            single = isinstance(held, ast.Call) and axes(program, held) == () and len(held.args) < 2
            same = (
                isinstance(node, ast.BinOp) and operand is not None and ast.unparse(operand) in ast.unparse(node.left)
            )
            known = name in {"norm", "std", "max", "sum", "var", "amax"} and single and same
            if known and isinstance(node, ast.BinOp):
                yield spot(node, text=shown(node), name=owner.node.name)


@suspects("normalised by the variance")
def _by_variance(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.BinOp):
            continue
        right = node.right.left if isinstance(node.right, ast.BinOp) else node.right
        name = right.func.attr if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) else ""
        name = name or getattr(right, "id", getattr(right, "attr", ""))
        centred = isinstance(node.left.op, ast.Sub) and re.search(r"mean|mu|avg", ast.unparse(node.left.right))
        if centred and re.match(r"^(batch_|running_|_)*var(iance)?$", name):
            yield spot(node, text=shown(node))


@suspects("normalisation written by hand")
def _own_norm(program: Program) -> Iterator[Spot]:
    """Find the means and deviations of a module that is a norm by its name."""
    for owner, forward in forwards(program):
        if re.search(r"norm", owner.node.name, re.IGNORECASE):
            for call in ast.walk(forward):
                if applied(program, call)[0] in {"mean", "var", "std", "norm"} and isinstance(call, ast.Call):
                    yield spot(call, program.statement(call), text=shown(call))


@suspects("second argument of a norm is eps")
def _large_eps(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = plain(library_name(program, call))
        given = argument(call, "eps", 2 if name == "groupnorm" else 1) if name in NORMALISING else None
        value = setting(program, given)
        unsaid = isinstance(given, ast.Name) and value is None and not re.search("eps", given.id, re.IGNORECASE)
        if (value is not None and value >= 0.01) or (unsaid and name.startswith("batch") and len(call.args) > 1):
            yield spot(call, text=shown(call), eps=shown(given) if given is not None else "")


@suspects("momentum of a norm out of the usual")
def _norm_momentum(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = plain(library_name(program, call))
        value = setting(program, argument(call, "momentum", 2)) if name.startswith("batchnorm") else None
        if value is not None and (value <= 0.02 or value >= 0.5):
            yield spot(call, text=shown(call), value=f"{value:g}")


@suspects("norm without running statistics")
def _batch_only(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        off = name.startswith("BatchNorm") and constant(argument(call, "track_running_stats", 4)) is False
        trains = name == "batch_norm" and constant(argument(call, "training", 5)) in {True, None}
        given = argument(call, "training", 5)
        if off or (trains and (given is None or isinstance(given, ast.Constant))):
            yield spot(call, text=shown(call))


# --- arguments of activations, dropout ---


@suspects("activation with another's argument")
def _misread(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = last(program.names.full(call.func)) if library_name(program, call) else ""
        first = constant(call.args[0]) if call.args else None
        leaks = name == "LeakyReLU" and (first is True or (isinstance(first, int | float) and abs(first) > 0.5))
        plain_relu = name in {"ReLU", "ReLU6", "SELU", "SiLU"} and isinstance(first, float)
        if leaks or plain_relu or (name.startswith("Dropout") and first is True):
            yield spot(call, text=shown(call))


@suspects("channels dropped from features")
def _whole_channels(program: Program) -> Iterator[Spot]:
    for row in rows(program):
        for at, (name, made) in enumerate(row):
            flat = any(one in {"linear", "flatten"} for one, _ in row[:at])
            if name in {"dropout2d", "dropout3d"} and flat:
                yield spot(made, text=shown(made))
    for call in in_forward(program):
        name, operand = applied(program, call)
        text = ast.unparse(operand) if operand is not None else ""
        flat = operand is not None and (last_op(program, operand) or ("",))[0] == "linear"
        if name in {"dropout2d", "dropout3d"} and (flat or re.search(r"\bfc|linear|dense|flatten", text)):
            yield spot(call, text=shown(call))


@suspects("much dropout")
def _much(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = plain(library_name(program, call))
        given = argument(call, "p", 1 if name == library_name(program, call) else 0) if "dropout" in name else None
        share = setting(program, given)
        if (share is not None and 0.6 < share < 1) or (given is not None and "keep" in ast.unparse(given)):
            yield spot(call, text=shown(call))


@suspects("dropout by hand")
def _own_dropout(program: Program) -> Iterator[Spot]:
    """Find a random mask in a forward pass without `self.training`, or without the factor 1 / (1 - p)."""
    for owner, forward in forwards(program):
        text = ast.unparse(owner.node)
        for node in ast.walk(forward):
            compares = isinstance(node, ast.Compare) and re.search(r"\brand(_like)?\(", ast.unparse(node.left))
            draws = compares or (isinstance(node, ast.Call) and "bernoulli" in ast.unparse(node.func))
            scaled = re.search(r"/ \(?(1(\.0)? - |self\.keep|keep)|/ self\.\w*keep|div_?\(|/ keep", text)
            if draws and isinstance(node, ast.expr) and not (scaled and "training" in text):
                yield spot(node, program.statement(node), text=shown(node))


@suspects("noise in every forward pass")
def _noise(program: Program) -> Iterator[Spot]:
    for owner, forward in forwards(program):
        text = ast.unparse(owner.node)
        if "training" in text or re.search(r"log_?var|std|sigma|repar|diffus|gumbel|noise_level", text, re.IGNORECASE):
            continue
        for node in ast.walk(forward):
            if isinstance(node, ast.Call) and applied(program, node)[0] in {"randnlike", "randlike", "randn", "rand"}:
                outer = [one for one in program.outward(node) if isinstance(one, ast.BinOp)]
                if any(isinstance(one.op, ast.Add) for one in outer):
                    yield spot(node, program.statement(node), text=shown(node))


# --- shortcuts ---


@suspects("shortcut taken late")
def _late(program: Program) -> Iterator[Spot]:
    """Find `identity = x` behind a layer that has changed x, and a shortcut that starts at the normalised input."""
    for _, forward in forwards(program):
        for at, node in enumerate(forward.body):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name, value = node.targets[0].id, ast.unparse(node.value)
            before = [one for one in forward.body[:at] if isinstance(one, ast.Assign)]
            changed = any(ast.unparse(one.targets[0]) == value and isinstance(one.value, ast.Call) for one in before)
            added = re.search(rf"\b{name} \+|\+=? {name}\b", "\n".join(map(ast.unparse, forward.body[at:])))
            if _SHORTCUT.match(name) and isinstance(node.value, ast.Name) and changed and added:
                yield spot(node, text=shown(node), source=value)
            kind, operand = applied(program, node.value)
            again = isinstance(operand, ast.Name) and operand.id == name and kind in NORMALISING
            after = ast.unparse(forward.body[at + 1]) if at + 1 < len(forward.body) else ""
            if again and re.search(rf"= {name} \+ self|return {name} \+ self", after):
                yield spot(node, forward.body[at + 1], text=shown(node), source=name)


@suspects("batch norm of a sequence")
def _over_time(program: Program) -> Iterator[Spot]:
    """Find `x = self.bn(x)` in front of a recurrent layer that takes (batch, time, features)."""
    for owner, forward in forwards(program):
        made = {name: bounds[-1].value for name, bounds in owner.attributes.items() if bounds}
        layers = {f"self.{name}": one for name, one in made.items() if isinstance(one, ast.Call)}
        first = {name for name, one in layers.items() if constant(argument(one, "batch_first")) is True}
        calls = [one for one in ast.walk(forward) if isinstance(one, ast.Call)]
        fed = {ast.unparse(one.args[0]) for one in calls if ast.unparse(one.func) in first and one.args}
        for node in ast.walk(forward):
            value = node.value if isinstance(node, ast.Assign) else None
            norm = layers.get(ast.unparse(value.func)) if isinstance(value, ast.Call) else None
            if norm is None or not isinstance(value, ast.Call) or not isinstance(node, ast.Assign):
                continue
            plain_input = bool(value.args) and isinstance(value.args[0], ast.Name)
            if plain_input and library_name(program, norm) == "BatchNorm1d" and ast.unparse(node.targets[0]) in fed:
                yield spot(node, text=shown(node))


SUSPECTS = suspects_of(globals())
