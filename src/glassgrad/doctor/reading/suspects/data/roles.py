"""What suspects look up in data: the roles of names, loaders, drawn orders, and where the training is."""

from __future__ import annotations

import ast
import re

from glassgrad.doctor.reading.iterations import iterations
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import LOOPS, Function, Loop, Program, argument, constant, number
from glassgrad.doctor.reading.suspects.lookup import stem_of, targets_of, text, words_in
from glassgrad.doctor.reading.values import library_name

_ENDING = r"(_|\d|$|[^a-z0-9]|set|loader|data|ds|dl|iter|part)"
HELD_OUT = re.compile(
    rf"(?<![a-z0-9])(val|valid|validation|test|testing|eval|dev|held|holdout|te|va){_ENDING}|\b[xy](val|test|te)\b",
    re.IGNORECASE,
)
TRAIN = re.compile(rf"(?<![a-z0-9])(train|training|tr){_ENDING}|\b[xy](train|tr)\b", re.IGNORECASE)
LABELS = re.compile(
    r"label|target|truth|answer|(^|[_.])(y|ys|yb|lbls?|gt|tags?|cls)(_|\d|$|train|test|val)", re.IGNORECASE
)
DRAWN = named(
    "randperm permutation permuted shuffle sample choice choices multinomial RandomSampler SubsetRandomSampler "
    "WeightedRandomSampler random_split train_test_split KFold StratifiedKFold"
)
"""Calls that draw an order or rows."""


def loaders(program: Program) -> list[tuple[ast.Call, str]]:
    """Return the loaders of a script, each with the text of what holds it, or its key in a dictionary."""
    found = []
    for call in program.calls:
        if library_name(program, call) == "DataLoader":
            outer = program.parents.get(call)
            pairs = zip(outer.keys, outer.values, strict=True) if isinstance(outer, ast.Dict) else ()
            keys = [str(constant(key)) for key, value in pairs if value is call]
            found.append((call, keys[0] if keys else targets_of(program, call)))
    return found


def shuffles(program: Program) -> bool:
    """Tell whether a script draws an order or rows anywhere."""
    calls = program.calls
    return any(program.called(one) in DRAWN or constant(argument(one, "shuffle")) is True for one in calls)


def shuffles_first(program: Program) -> bool:
    """Tell whether a script draws an order or rows outside of loaders and of the training."""
    drawn = [one for one in program.calls if program.called(one) in DRAWN and "Sampler" not in program.called(one)]
    loops = [one for one in program.nodes if isinstance(one, LOOPS) and trains(program, one)]
    inside = {id(one) for loop in loops for one in ast.walk(loop)}
    return any(id(one) not in inside for one in drawn)


def training_loops(program: Program) -> list[Loop]:
    """Return the loops with a backward pass in them, the innermost ones."""
    return [one.node for one in iterations(program) if one.is_innermost and isinstance(one.node, LOOPS)]


def trains(program: Program, node: ast.AST) -> bool:
    """Tell whether a part of a script, or a function that it calls, has a backward pass."""
    return any(one.node is node and one.of("backward") for one in iterations(program)) or "backward" in words_in(node)


def is_drawn(program: Program, node: ast.AST) -> bool:
    """Tell whether an expression draws random numbers."""
    for one in ast.walk(node):
        full = program.names.full(one.func) if isinstance(one, ast.Call) else ""
        name = program.called(one)
        drawn = re.fullmatch(r"(rand|randn|randint|normal|uniform)(_like)?|random|coin", name)
        if drawn or full.startswith(("random.", "numpy.random.")):
            return True
    return False


def are_in_rows(program: Program) -> bool:
    """Tell whether a script writes its examples class after class."""
    for node in program.nodes:
        name = program.called(node)
        if name in {"repeat", "repeat_interleave", "full"} and LABELS.search(targets_of(program, node)):
            return True
        if isinstance(node, ast.For) and _goes_through_classes(node) and not trains(program, node):
            return True
        said = text(node) if name in {"cat", "concatenate", "hstack"} else ""
        if "zeros(" in said and "ones(" in said and LABELS.search(targets_of(program, node)):
            return True
    return False


def _goes_through_classes(loop: ast.For) -> bool:
    """Tell whether a loop over classes collects examples."""
    names = [stem_of(one) for one in ast.walk(loop.target)]
    classes = any(LABELS.search(one) or re.search(r"class|kind|categ", one) for one in names)
    listed = re.search(r"range|enumerate|classes|kinds|items", text(loop.iter))
    return classes and listed is not None and bool({"append", "extend"} & words_in(loop))


def uses_of(program: Program, function: Function) -> list[ast.Call]:
    """Return the calls of a function; for an `__init__`, those of its class."""
    owner = program.owner(function)
    return program.calls_of(owner.node.name if owner is not None and function.name == "__init__" else function.name)


def unscaled(node: ast.expr) -> ast.expr:
    """Return the variable in `100 * total`, `float(total)`, `total.item()`."""
    while isinstance(node, ast.BinOp | ast.Call):
        if isinstance(node, ast.BinOp):
            node = node.right if number(node.left) is not None else node.left
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            node = node.args[0] if node.args else node.func
    return node
