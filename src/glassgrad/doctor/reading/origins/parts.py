"""Where the layers, settings, masks and calls of a training come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from glassgrad.doctor.reading.actors import makes_optimizer
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.gradients import reach
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import is_name, is_op, method_of, object_of, root_of, within
from glassgrad.doctor.reading.origins.asked import Asked, Origin, made
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.values import LOSSES, end_of_layer, layer

_SIGMOIDS = named("Sigmoid sigmoid LogSigmoid")
_BOUNDS = named("max min amax amin maximum minimum topk clamp")
_LINEAR = named("Linear LazyLinear Conv1d Conv2d")
_ANEW = named("tensor as_tensor from_numpy requires_grad_ detach")
_MASKS = named("attn_mask key_padding_mask src_key_padding_mask")
_OP = re.compile(r"\b(\w+) at (\S+?):(\d+)")
_SETTINGS = {"learning rate": ("lr", 1), "weight decay": ("weight_decay", -1), "rate": ("lr", 1), "dropout": ("p", 0)}
"""The argument that a finding is about, by the first words of its title."""


def layers(asked: Asked) -> Iterator[Origin]:
    """Yield the lines that make the layers whose ops a finding names where they are called."""
    for name, file, line in _OP.findall(asked.finding.what):
        for node in asked.places.nodes(int(line)) if file == asked.places.file else ():
            if isinstance(node, ast.Call):
                yield from _made_of(asked.program, node, name)


def _made_of(program: Program, call: ast.Call, name: str) -> Iterator[Origin]:
    """Yield where the layer that a call runs is made, if its last op has a name."""
    held = layer(program, call.func)
    if held is None or held.owner is not None or held.call is call:
        return
    known = end_of_layer(program, held)
    if name == LOSSES.get(held.name):
        yield Origin(f"{held.name} is made", held.call.lineno, certain=False)
    elif known is not None and known.op == name:
        place = known.node if isinstance(known.node, ast.Call) else held.call
        yield Origin(f"{program.called(place)} is made", place.lineno)


def sigmoids(asked: Asked) -> Iterator[Origin]:
    """Yield the lines that make or call the sigmoids of a deep net."""
    program = asked.program
    given = [node for node in program.nodes if isinstance(node, ast.Attribute | ast.Name)]
    calls = [call for call in program.calls if program.called(call) in _SIGMOIDS]
    full = [node for node in given if last(program.names.full(node)) in _SIGMOIDS]
    for line in sorted({node.lineno for node in (*calls, *full)}):
        yield Origin("the sigmoids are made", line)


def linear(asked: Asked) -> Iterator[Origin]:
    """Yield the lines that make the linear layers of the model that a finding names where it is called."""
    program = asked.program
    for node in asked.calls():
        held = layer(program, node.func)
        if held is None or held.call not in program.parents:
            continue
        calls = within(program.function(held.call) or held.call, ast.Call)
        for one in sorted({one.lineno for one in calls if program.called(one) in _LINEAR}):
            yield Origin("the layers are made", one)


def predictions(asked: Asked) -> Iterator[Origin]:
    """Yield where the outputs that a loss takes are made."""
    yield from made("the outputs are made", asked.predictions())


def setting(asked: Asked) -> Iterator[Origin]:
    """Yield the line that sets the option of the optimizer or the layer that a finding is about."""
    title = asked.finding.rule
    name, place = next(given for words, given in _SETTINGS.items() if title.startswith(words))
    for node in asked.calls():
        given = argument(node, name, place) if _takes(asked, node, name) else None
        if given is not None and (found := _set_at(asked, given)):
            yield Origin(f"{name} is set", found)
            return


def _takes(asked: Asked, call: ast.Call, name: str) -> bool:
    kind = asked.program.called(call)
    full = asked.program.names.full(call.func)
    return kind.startswith(("Dropout", "dropout")) if name == "p" else full.startswith("torch.optim.")


def _set_at(asked: Asked, given: ast.expr) -> int:
    """Return the line of the number that an option gets: a constant, a field of a class, or an argument's default."""
    one = flow(asked.program).origin(asked.places.value(given, "built"))
    if not isinstance(one, ast.Attribute):
        return one.lineno if isinstance(one, ast.Constant) else 0
    fields = [node for node in asked.program.every(ast.AnnAssign) if is_name(node.target, one.attr)]
    options = [node for node in asked.program.calls if asked.program.called(node) == "add_argument"]
    flagged = [node for node in options if one.attr in {_flag(constant(it)) for it in node.args}]
    found = [*(node.lineno for node in fields), *(node.lineno for node in flagged)]
    return found[0] if len(found) == 1 else 0


def weights(asked: Asked) -> Iterator[Origin]:
    """Yield where the weights of the classes are made that a loss gets."""
    for call in asked.program.calls:
        name = asked.program.called(call)
        given = argument(call, "weight") if name in LOSSES or name in LOSSES.values() else None
        if given is not None:
            way = asked.from_(asked.places.value(given))
            for before in (asked.program.bound(_unscaled(one.node)) for one in way.ends):
                assigned = before is not None and isinstance(before.statement, ast.Assign)
                if assigned and before is not None and isinstance(before.value, ast.Name | ast.BinOp):
                    yield Origin("the weights are made", before.line)
            yield from made("the weights are made", way)


def _unscaled(node: ast.expr) -> ast.expr:
    """Return x of `x / x.sum() * n`: the numbers before they are scaled together."""
    while is_op(node, ast.Mult) and is_op(node.left, ast.Div):
        node = node.left
    below = object_of(node.right) if is_op(node, ast.Div) else None
    scaled = is_op(node, ast.Div) and below is not None and ast.unparse(below) == ast.unparse(node.left)
    return node.left if scaled and is_op(node, ast.Div) else node


# --- masks and bounds ---


def mask(asked: Asked) -> Iterator[Origin]:
    """Yield where a mask is applied that a finding names where it is made."""
    for call in asked.program.calls:
        given = next((one for key in _MASKS if (one := argument(call, key)) is not None), None)
        if asked.program.called(call) in {"masked_fill", "masked_fill_"}:
            yield Origin("the mask is applied", call.lineno, certain=False)
        elif given is not None and not isinstance(given, ast.Constant):
            yield Origin("the mask is given", call.lineno, certain=False)


def bounds(asked: Asked) -> Iterator[Origin]:
    """Yield the maximum or minimum behind a loss of 0, and the line that writes infinity into its operand."""
    for node in asked.places.nodes(asked.lines[0]) if asked.lines else ():
        for call in _behind(asked.program, node):
            if asked.program.called(call) in _BOUNDS:
                yield Origin(f"{asked.program.called(call)} is taken", call.lineno)
            elif re.search(r"\binf\b", ast.unparse(call)):
                yield Origin("infinity is written", call.lineno)


def _behind(program: Program, node: ast.expr) -> Iterable[ast.Call]:
    """Return the calls whose results a value depends on in its function, and the writes into these."""
    function = program.function(node)
    seen: set[str] = set()
    found: list[ast.Call] = []
    waiting: list[ast.AST] = [node]
    while waiting and len(seen) < 60:
        for part in list(ast.walk(waiting.pop())):
            if isinstance(part, ast.Call):
                found.append(part)
            elif isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                bound = program.bindings(program.scope(part), part.id)
                waiting += [one.value for one in bound if one.value is not None]
                found += [
                    call for call in program.calls if _writes(call, part.id) and program.function(call) is function
                ]
    return dict.fromkeys(found)


def _flag(text: object) -> str:
    """Return the name of the value that an option such as "--batch-size" sets."""
    return str(text).lstrip("-").replace("-", "_")


def _writes(call: ast.Call, name: str) -> bool:
    """Tell whether a call writes into a variable or a view of it, such as `x.diagonal().fill_(0)`."""
    return method_of(call).endswith("_") and is_name(root_of(call), name)


# --- the loop ---


def guards(asked: Asked) -> Iterator[Origin]:
    """Yield the condition that keeps the optimizer from its step, and the step."""
    program = asked.program
    for call in program.calls_of(".step"):
        optimizes = re.search(r"opt|adam|sgd|solver", ast.unparse(call.func), re.IGNORECASE)
        around = program.nearest(call, ast.If)
        if around is not None and optimizes and not program.names.full(call.func):
            yield Origin("the condition never holds", around.test.lineno)
            yield Origin("for the step", call.lineno)


def optimizer(asked: Asked) -> Iterator[Origin]:
    """Yield the call of the script's function that made the optimizer."""
    outer = [line for file, line, *_ in asked.places.trails.get("built", ())[1:] if file == asked.places.file]
    if outer:
        yield Origin("the function is called", outer[0], certain=False)


def lacking(asked: Asked) -> Iterator[Origin]:
    """Yield where the parameters are listed that the optimizer of a training gets, and where it gets them."""
    program, passed = asked.program, {line for file, line, *_ in asked.places.trails.get("built", ())}
    calls = [one for one in program.calls if makes_optimizer(program, one)]
    calls = [one for one in calls if one.lineno in passed] or calls
    given = argument(calls[0], "params", 0) if len(calls) == 1 else None
    if given is None or "belongs to no optimizer" not in asked.finding.what:
        return  # a plain list of layers is mended where the model makes it
    listed = {one.lineno for one in flow(program).origins(asked.places.value(given, "built"))} - {calls[0].lineno}
    if len(listed) == 1:
        yield Origin("the parameters to train are listed", listed.pop())
    yield Origin("the optimizer that lacks them is made", calls[0].lineno)


def schedule(asked: Asked) -> Iterator[Origin]:
    """Yield where the schedule is made that takes its step at a line of the finding."""
    for node in asked.calls():
        held = object_of(node) if method_of(node) == "step" else None
        for one in flow(asked.program).origins(held) if held is not None else ():
            if isinstance(one, ast.Call) and "lr_scheduler" in asked.program.names.full(one.func):
                yield Origin("the schedule is made", one.lineno, certain=False)


def cut(asked: Asked) -> Iterator[Origin]:
    """Yield the place that cuts a loss off its history."""
    for node in asked.calls():
        held = object_of(node) if method_of(node) == "backward" else None
        if held is not None:
            loss = asked.places.value(held, "backward")
            for _, place in reach(asked.program, loss).cut:
                yield Origin("the history ends", place.lineno)
            for one in flow(asked.program).origins(loss):
                if asked.program.called(one) in _ANEW:
                    yield Origin("the history ends", one.lineno)
