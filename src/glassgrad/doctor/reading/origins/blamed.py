"""Which value each finding of a run blames, and where the script makes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.origins.chains import REORDERING, Chain, chain
from glassgrad.doctor.reading.origins.places import Places
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.values import LOSSES, end_of_layer, layer

_MOST = 2
"""The most lines that are named beside that of the finding."""
_SIGMOIDS = named("Sigmoid sigmoid LogSigmoid")
_BOUNDS = named("max min amax amin maximum minimum topk clamp")
_OP = re.compile(r"\b(\w+) at (\S+?):(\d+)")


@dataclass(frozen=True)
class Origin:
    """A line of the script that a finding should name, in words such as "the targets are made".

    `certain` tells whether the fault was made there and not where the run has seen it.
    """

    what: str
    line: int
    certain: bool = True


@dataclass(frozen=True)
class Blamed:
    """A finding of a run, and the script and its lines that the finding names."""

    finding: Finding
    places: Places
    lines: tuple[int, ...]

    @property
    def program(self) -> Program:
        """The script."""
        return self.places.program


Role = Callable[[Blamed], Iterator[Origin]]


def lines_of(text: str, file: str) -> tuple[int, ...]:
    """Return the lines of a file that a text names, in their order.

    Example:
        >>> lines_of("the step at train.py:12 uses what train.py:9 made", "train.py")
        (12, 9)
    """
    return tuple(dict.fromkeys(int(one) for one in re.findall(rf"(?<![\w/.]){re.escape(file)}:(\d+)", text)))


def origins(blamed: Blamed) -> list[Origin]:
    """Return the lines where what a finding blames was made, without those that it names already; few, or none."""
    found: dict[int, Origin] = {}
    for role in (_ROLES.get(blamed.finding.rule), _layers):
        for one in role(blamed) if role is not None else ():
            if one.line not in blamed.lines:
                found.setdefault(one.line, one)
    return list(found.values()) if len(found) <= _MOST else []


# --- data ---


def _made(told: str, way: Chain, certain: bool = True) -> Iterator[Origin]:
    """Yield the lines where a chain of values begins, if it is clear which ones these are."""
    lines = sorted({one.node.lineno for one in way.ends})
    if 0 < len(lines) <= _MOST:
        yield from (Origin(told, line, certain) for line in lines)


def _targets(blamed: Blamed) -> Chain:
    return chain(blamed.program, *(one for line in blamed.lines for one in blamed.places.targets(line)))


def _inputs(blamed: Blamed) -> Chain:
    return chain(blamed.program, *blamed.places.entering("forward")[:1])


def _targets_made(blamed: Blamed) -> Iterator[Origin]:
    yield from _made("the targets are made", _targets(blamed))


def _inputs_made(blamed: Blamed) -> Iterator[Origin]:
    yield from _made("the inputs are made", _inputs(blamed))


def _both_made(blamed: Blamed) -> Iterator[Origin]:
    inputs, targets = ([*_made(f"the {what} are made", way)] for what, way in _pairs(blamed))
    if len(inputs) == len(targets) == 1:
        yield from (*inputs, *targets)
    elif len(inputs) == 1:
        yield from inputs


def _pairs(blamed: Blamed) -> tuple[tuple[str, Chain], ...]:
    return ("inputs", _inputs(blamed)), ("targets", _targets(blamed))


def _held_apart(blamed: Blamed) -> Iterator[Origin]:
    """Yield where the way of the held-out inputs leaves that of the training inputs."""
    places = blamed.places
    training = chain(blamed.program, *places.entering("forward")[:1])
    held = chain(blamed.program, *places.entering("held")[:1])
    apart = [one.node for one in held.values if one.node.lineno not in training.lines]
    if apart and training.values:
        yield Origin("the held-out examples are made", apart[-1].lineno)
        mine = [one.node for one in training.values if one.node.lineno not in held.lines]
        if mine and blamed.finding.rule in _SCALED:
            yield Origin("those of the training", mine[-1].lineno)


_SCALED = frozenset({"held-out inputs of another scale"})


def _shifts(blamed: Blamed) -> Iterator[Origin]:
    """Yield the lines that cut a stretch of the targets off which begins later."""
    way = _targets(blamed)
    more = [chain(blamed.program, Value(one.node.value, one.frame, one.path)) for one in way.ends if _is_shift(one.node)]
    nodes = [one.node for found in (way, *more) for one in found.ends if _is_shift(one.node)]
    yield from (Origin("the targets are shifted", node.lineno) for node in nodes)


def _is_shift(node: ast.expr) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(one, ast.Slice) and one.lower is not None for one in parts)


def _reordered(blamed: Blamed) -> Iterator[Origin]:
    """Yield the lines that put either inputs or targets, and not both, into another order."""
    (_, inputs), (_, targets) = _pairs(blamed)
    for what, mine, other in (("inputs", inputs, targets), ("targets", targets, inputs)):
        for one in mine.values:
            if one.node.lineno not in other.lines and _reorders(blamed.program, one.node):
                yield Origin(f"the {what} get another order", one.node.lineno)


def _reorders(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        return isinstance(node.slice.step, ast.UnaryOp)  # x[::-1]
    inside = [node.slice] if isinstance(node, ast.Subscript) else [node] if isinstance(node, ast.Call) else []
    for part in inside:
        for one in flow(program).ends(part):
            if isinstance(one.node, ast.Call) and _called(program, one.node) in REORDERING:
                return True
    return False


def _called(program: Program, call: ast.Call) -> str:
    return last(program.names.full(call.func)) or getattr(call.func, "attr", getattr(call.func, "id", ""))


# --- the model and its loss ---


def _layers(blamed: Blamed) -> Iterator[Origin]:
    """Yield the lines that make the layers whose ops a finding names where they are called."""
    program, places = blamed.program, blamed.places
    for name, file, line in _OP.findall(blamed.finding.what):
        if file != places.file:
            continue
        for node in places.nodes(int(line)):
            made = layer(program, node.func) if isinstance(node, ast.Call) else None
            if made is None or made.owner is not None or made.call is node:
                continue
            known = end_of_layer(program, made)
            if name == LOSSES.get(made.name) or (known is not None and known.op == name and made.name != "Sequential"):
                yield Origin(f"{made.name} is made", made.call.lineno, made.name not in LOSSES)
            elif known is not None and known.op == name and isinstance(known.node, ast.Call):
                yield Origin(f"{name} comes from the layer made", known.node.lineno)


def _sigmoids(blamed: Blamed) -> Iterator[Origin]:
    """Yield the lines that make or call the sigmoids of a deep net."""
    calls = [call for call in blamed.program.calls if _called(blamed.program, call) in _SIGMOIDS]
    given = [node for node in blamed.program.nodes if isinstance(node, ast.Attribute | ast.Name)]
    full = [node for node in given if last(blamed.program.names.full(node)) in _SIGMOIDS]
    for line in sorted({node.lineno for node in (*calls, *full)}):
        yield Origin("the sigmoids are made", line)


def _mask(blamed: Blamed) -> Iterator[Origin]:
    """Yield where a mask is applied that a finding names where it is made."""
    for call in blamed.program.calls:
        name = _called(blamed.program, call)
        if name in {"masked_fill", "masked_fill_"}:
            yield Origin("the mask is applied", call.lineno, certain=False)
        else:
            given = next((one for key in _MASKS if (one := argument(call, key)) is not None), None)
            if given is not None and constant(given) is None and layer(blamed.program, call.func) is None:
                continue
            if given is not None and not isinstance(given, ast.Constant):
                yield Origin("the mask is given", call.lineno, certain=False)


_MASKS = named("attn_mask key_padding_mask src_key_padding_mask")


def _bounds(blamed: Blamed) -> Iterator[Origin]:
    """Yield the maximum or minimum behind a loss of 0, and the line that writes infinity into its operand."""
    program = blamed.program
    for line in blamed.lines:
        for node in blamed.places.nodes(line):
            for call in _behind(program, node):
                if _called(program, call) in _BOUNDS and call.lineno not in blamed.lines:
                    yield Origin(f"{_called(program, call)} is taken", call.lineno)
                elif re.search(r"\binf\b", ast.unparse(call)):
                    yield Origin("infinity is written", call.lineno)
        return


def _behind(program: Program, node: ast.expr) -> Iterable[ast.Call]:
    """Return the calls whose results a value depends on in its function, and the writes into these."""
    function, found, seen = program.function(node), [], set()
    waiting: list[ast.AST] = [node]
    while waiting and len(seen) < 60:
        names = []
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Call):
                found.append(part)
            elif isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                names.append(part)
        for name in names:
            waiting += [one.value for one in program.bindings(program.scope(name), name.id) if one.value is not None]
            for call in program.calls:
                root = _root(call.func)
                writes = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
                if writes and root == name.id and program.function(call) is function:
                    found.append(call)
    return dict.fromkeys(found)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- the loop ---


def _guards(blamed: Blamed) -> Iterator[Origin]:
    """Yield the condition that keeps the optimizer from its step, and the step."""
    program = blamed.program
    for call in program.calls_of(".step"):
        if program.names.full(call.func) or not re.search(r"opt|adam|sgd|solver|trainer", ast.unparse(call.func), re.I):
            continue
        around = next((one for one in program.outward(call) if isinstance(one, ast.If)), None)
        if around is not None:
            yield Origin("the condition never holds", around.test.lineno)
            yield Origin("for the step", call.lineno)


def _optimizer(blamed: Blamed) -> Iterator[Origin]:
    """Yield the call of the script's function that made the optimizer."""
    outer = [line for file, line, *_ in blamed.places.trails.get("built", ())[1:] if file == blamed.places.file]
    if outer:
        yield Origin("the function is called", outer[0], certain=False)


_ROLES: dict[str, Role] = {
    **dict.fromkeys(
        (
            "labels alike",
            "targets out of range",
            "targets unnormalised",
            "output cannot reach the targets",
            "classes as numbers",
            "targets of 0 instead of -1",
            "same targets in each step",
            "labels out of range",
            "labels begin at 1",
            "classes that never come",
            "targets of cross entropy do not add up",
            "NaN in the targets",
        ),
        _targets_made,
    ),
    **dict.fromkeys(("inputs unnormalised", "inputs constant", "NaN in the data"), _inputs_made),
    "target among the inputs": _both_made,
    "held-out inputs of another scale": _held_apart,
    "validated on training data": _held_apart,
    "targets shifted twice": _shifts,
    "labels do not belong to the inputs": _reordered,
    "sigmoids too deep": _sigmoids,
    "mask inverted": _mask,
    "loss is 0": _bounds,
    "no step": _guards,
    "parameters without an optimizer": _optimizer,
}
"""For each finding, the value whose origin is to be named."""
