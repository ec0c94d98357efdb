"""Rules about labels, statistics, splits and mutable defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.program import FUNCTIONS, Program
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import ELEMENTWISE, losses

_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|eval|dev)(_|\d|$)", re.IGNORECASE)
_RESULT = re.compile(r"(^|_)(val|valid|validation|test)(_|\d|$)", re.IGNORECASE)
_TRAIN = re.compile(r"(^|_)(train|training)(_|\d|$)", re.IGNORECASE)
_ADDING = frozenset({"append", "extend", "insert", "update", "setdefault", "add"})
_EVALUATES = re.compile(r"^_?(eval|evaluate|validate|validation|test|score|accuracy)", re.IGNORECASE)


def trained_on(program: Program) -> Iterator[Spot]:
    """Yield passes over the training data whose result has the name of a validation."""
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        names = [getattr(one, "id", getattr(one, "attr", "")) for target in node.targets for one in ast.walk(target)]
        held = [name for name in names if isinstance(name, str) and _RESULT.search(name)]
        other = [name for name in names if isinstance(name, str) and _TRAIN.search(name)]
        given = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in call.args]
        data = [one for one in given if _TRAIN.search(one) and re.search(r"load|set|data|dl|x", one, re.IGNORECASE)]
        if held and not other and data and _EVALUATES.search(named) and not any(_HELD_OUT.search(one) for one in given):
            yield spot(call, loader=held[0], data=data[0])


@reads("labels overwritten while they are read")
def _overwritten(program: Program) -> Iterator[Spot]:
    """Find `new = old; for i ...: new[old == i] = ...`, where both names mean the same array."""
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(target, ast.Subscript)
            or not isinstance(target.slice, ast.Compare)
        ):
            continue
        loops = program.loops(node)
        compare = target.slice
        if not loops or not isinstance(compare.ops[0], ast.Eq) or isinstance(node.value, ast.Constant):
            continue
        names = {
            one.id
            for loop in loops
            if isinstance(loop, ast.For)
            for one in ast.walk(loop.target)
            if isinstance(one, ast.Name)
        }
        changes = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)} & names
        reads_it = {one.id for one in ast.walk(compare.comparators[0]) if isinstance(one, ast.Name)} & names
        if changes and reads_it and _is_alias(program, target.value, compare.left):
            kept = program.bound(target.value) if isinstance(target.value, ast.Name) else None
            also = [kept.statement] if kept is not None and isinstance(kept.statement, ast.stmt) else []
            yield spot(node, *also, text=shown(node), name=shown(compare.left))


def _is_alias(program: Program, one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions name the same array."""
    if ast.unparse(one) == ast.unparse(other):
        return True
    bound = program.bound(one) if isinstance(one, ast.Name) else None
    return bound is not None and isinstance(bound.value, ast.Name) and ast.unparse(bound.value) == ast.unparse(other)


@reads("statistics before the split")
def _before_split(program: Program) -> Iterator[Spot]:
    """Find `x = scaler.fit_transform(x)` before the script splits x into training and validation."""
    scaled = [node for node in program.nodes if isinstance(node, ast.Assign) and _own_statistics(node.value)]
    fitted = [call for call in program.calls if getattr(call.func, "attr", "") == "fit_transform" and call.args]
    for call in [*fitted, *(node.value for node in scaled)]:
        statement = program.statement(call)
        made = {ast.unparse(one) for one in getattr(statement, "targets", [])}
        for other in program.calls:
            name = other.func.attr if isinstance(other.func, ast.Attribute) else getattr(other.func, "id", "")
            splits = name in {"train_test_split", "random_split"} and other.lineno > call.lineno
            given = {one.id for arg in other.args for one in ast.walk(arg) if isinstance(one, ast.Name)}
            if splits and made & given and program.scope(other) is program.scope(call) and _fits_inputs(call):
                yield spot(call, other, text=shown(call), split=shown(other, 40))
                break


def _own_statistics(node: ast.expr) -> str:
    """Return x of `(x - x.mean(0)) / x.std(0)` over all examples; empty for other expressions."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.BinOp):
        return ""
    name = ast.unparse(node.left.left)
    mean, spread = ast.unparse(node.left.right), ast.unparse(node.right)
    axes = r"\((0|dim=0|axis=0|0, keepdims?=True|axis=0, keepdims=True|dim=0, keepdim=True)?\)"
    whole = re.fullmatch(rf"{re.escape(name)}\.mean{axes}", mean) and re.match(
        rf"\(?{re.escape(name)}\.std{axes}", spread
    )
    return name if whole and isinstance(node.left.op, ast.Sub) else ""


def on_test(program: Program) -> Iterator[Spot]:
    """Yield held-out data that the script scales by their own mean and standard deviation."""
    for node in program.nodes:
        if not isinstance(node, ast.Assign):
            continue
        name = _own_statistics(node.value)
        if name and _HELD_OUT.search(name.rpartition(".")[2]):
            yield spot(node.value, text=shown(node.value), remedy=f"({name} - train.mean(0)) / train.std(0)")
    for function in program.functions.values():
        parameters = [one.arg for one in function.args.args]
        results = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None]
        if len(results) != 1 or _own_statistics(results[0]) not in parameters:
            continue
        calls = [(one, getattr(one.args[0], "id", "")) for one in program.calls_of(function.name) if len(one.args) == 1]
        if any(_TRAIN.search(name) for _, name in calls):
            for call, name in calls:
                if _HELD_OUT.search(name):
                    yield spot(call, results[0], text=shown(call), remedy=f"({name} - train.mean(0)) / train.std(0)")


def _fits_inputs(call: ast.expr) -> bool:
    return not re.search(r"encoder|label|\by\b|vectorizer|tokeni", ast.unparse(call), re.IGNORECASE)


@reads("default shared by all calls")
def _shared_default(program: Program) -> Iterator[Spot]:
    """Find a default list or dictionary that the function adds to."""
    for node in program.nodes:
        if not isinstance(node, FUNCTIONS):
            continue
        given = node.args
        places = [*given.posonlyargs, *given.args]
        pairs = [*zip(places[len(places) - len(given.defaults) :], given.defaults, strict=True)]
        for one, default in pairs:
            if isinstance(default, ast.List | ast.Dict) and _is_changed(node, one.arg):
                yield spot(default, node, name=one.arg, function=node.name)


def _is_changed(function: ast.AST, name: str) -> bool:
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if called is not None and called.attr in _ADDING and ast.unparse(called.value) == name:
            return True
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return False
    return False


@reads("labels of a regression cut")
def _cut_labels(program: Program) -> Iterator[Spot]:
    """Find targets of a regression that the script converts to integers."""
    for one in losses(program):
        if one.kind not in ELEMENTWISE or one.target is None:
            continue
        for call in ast.walk(one.target):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in {"long", "int"}:
                yield spot(call, one.call, text=shown(call))


RULES = rules_of(globals())
