"""Rules about labels, statistics, splits and mutable defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import (
    callee_of,
    compares,
    ident,
    is_op,
    method_of,
    names_in,
    object_of,
    only_target,
    set_by,
    target_text,
    within,
)
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
    for node in program.every(ast.Assign):
        call = node.value
        if not isinstance(call, ast.Call) or not _EVALUATES.search(callee_of(call)):
            continue
        names = [ident(one) for target in node.targets for one in ast.walk(target)]
        held = [name for name in names if _RESULT.search(name)]
        given = [ident(one) for one in call.args]
        data = [one for one in given if _TRAIN.search(one) and re.search(r"load|set|data|dl|x", one, re.IGNORECASE)]
        if held and data and not any(map(_TRAIN.search, names)) and not any(map(_HELD_OUT.search, given)):
            yield spot(call, loader=held[0], data=data[0])


@reads("labels overwritten while they are read")
def _overwritten(program: Program) -> Iterator[Spot]:
    """Find `new = old; for i ...: new[old == i] = ...`, where both names mean the same array."""
    for node in program.every(ast.Assign):
        target = only_target(node)
        test = target.slice if isinstance(target, ast.Subscript) else None
        if not isinstance(target, ast.Subscript) or not compares(test, ast.Eq) or isinstance(node.value, ast.Constant):
            continue
        names = names_in(*(loop.target for loop in program.loops(node) if isinstance(loop, ast.For)))
        both = names & names_in(node.value) and names & names_in(test.comparators[0])
        if both and _is_alias(program, target.value, test.left):
            kept = program.bound(target.value)
            also = [kept.statement] if kept is not None and isinstance(kept.statement, ast.stmt) else []
            yield spot(node, *also, text=shown(node), name=shown(test.left))


def _is_alias(program: Program, one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions name the same array."""
    source = program.source_of(one)
    same = isinstance(source, ast.Name) and ast.unparse(source) == ast.unparse(other)
    return same or ast.unparse(one) == ast.unparse(other)


@reads("statistics before the split")
def _before_split(program: Program) -> Iterator[Spot]:
    """Find `x = scaler.fit_transform(x)` before the script splits x into training and validation."""
    scaled = [node.value for node in program.every(ast.Assign) if _own_statistics(node.value)]
    fitted = [call for call in program.calls_of(".fit_transform") if call.args]
    for call in [*fitted, *scaled]:
        made = set_by(program.statement(call))
        for other in program.calls:
            splits = callee_of(other) in {"train_test_split", "random_split"} and other.lineno > call.lineno
            mine = made & names_in(*other.args) and program.scope(other) is program.scope(call)
            if splits and mine and _fits_inputs(call):
                yield spot(call, other, text=shown(call), split=shown(other, 40))
                break


def _own_statistics(node: ast.expr) -> str:
    """Return x of `(x - x.mean(0)) / x.std(0)` over all examples; empty for other expressions."""
    if not is_op(node, ast.Div) or not is_op(node.left, ast.Sub):
        return ""
    name = ast.unparse(node.left.left)
    mean, spread = ast.unparse(node.left.right), ast.unparse(node.right)
    axes = r"\((0|dim=0|axis=0|0, keepdims?=True|axis=0, keepdims=True|dim=0, keepdim=True)?\)"
    centred = re.fullmatch(rf"{re.escape(name)}\.mean{axes}", mean)
    return name if centred and re.match(rf"\(?{re.escape(name)}\.std{axes}", spread) else ""


def on_test(program: Program) -> Iterator[Spot]:
    """Yield held-out data that the script scales by their own mean and standard deviation."""
    for node in program.every(ast.Assign):
        name = _own_statistics(node.value)
        if name and _HELD_OUT.search(name.rpartition(".")[2]):
            yield spot(node.value, text=shown(node.value), remedy=f"({name} - train.mean(0)) / train.std(0)")
    for function in program.functions.values():
        parameters = [one.arg for one in function.args.args]
        results = [one.value for one in within(function, ast.Return) if one.value is not None]
        if len(results) != 1 or _own_statistics(results[0]) not in parameters:
            continue
        calls = [(one, getattr(one.args[0], "id", "")) for one in program.calls_of(function.name) if len(one.args) == 1]
        for call, name in calls if any(_TRAIN.search(name) for _, name in calls) else ():
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
        held = object_of(node) if method_of(node) in _ADDING else None
        if held is not None and ast.unparse(held) == name:
            return True
        if target_text(node) == name:
            return False
    return False


@reads("labels of a regression cut")
def _cut_labels(program: Program) -> Iterator[Spot]:
    """Find targets of a regression that the script converts to integers."""
    for one in losses(program):
        for call in within(one.target, ast.Call) if one.kind in ELEMENTWISE else ():
            if method_of(call) in {"long", "int"}:
                yield spot(call, one.call, text=shown(call))


RULES = rules_of(globals())
