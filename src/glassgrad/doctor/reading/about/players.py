"""Rules about returns of episodes, and about generators and what judges them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, optimizer
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import Event, setting_of, trainings
from glassgrad.doctor.reading.nodes import (
    both_ways,
    callee_of,
    holds,
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
from glassgrad.doctor.reading.program import Program, argument, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.terms import Term, terms
from glassgrad.doctor.reading.values import library_name, loss

_GAMMA = re.compile(r"gamma|discount", re.IGNORECASE)
_REWARDS = re.compile(r"reward|(^|_)rs?(_|$)|rews?", re.IGNORECASE)
_TARGET = re.compile(r"(^|_)(target|tgt)(_|\d|$)|target$", re.IGNORECASE)


# --- returns ---


@reads("returns summed forwards")
def _forwards(program: Program) -> Iterator[Spot]:
    """Find `for r in rewards: total = r + gamma * total`, which needs the rewards in reverse order."""
    for node in program.every(ast.For):
        text = ast.unparse(node.iter)
        turned = re.search(r"revers|\[::-1\]|-1, -1|flip", text)
        if not _REWARDS.search(text) or turned or _reversed_before(program, node):
            continue
        for one in node.body:
            if isinstance(one, ast.Assign) and _is_discounted(one, node.target):
                kept = _kept(node, target_text(one))
                stored = f", and {shown(kept)} in line {kept.lineno} keeps them in this order" if kept else ""
                loop = f"for {shown(node.target)} in {shown(node.iter)}"
                also = [node, kept] if kept else [node]
                yield spot(one, *also, text=shown(one), loop=loop, line=str(node.lineno), kept=stored)


def _kept(loop: ast.For, total: str) -> ast.Call | None:
    """Return the call in a loop that stores a running sum."""
    stores = [one for one in within(loop, ast.Call) if method_of(one) in {"append", "insert", "appendleft"}]
    return next((one for one in stores if one.args and ast.unparse(one.args[-1]) == total), None)


def _reversed_before(program: Program, loop: ast.For) -> bool:
    around, names = program.around(loop), names_in(loop.iter)
    turned = [one.value for one in within(around, ast.Assign) if set_by(one) & names]
    called = any(one.lineno < loop.lineno for one in within(around, ast.Call) if method_of(one) == "reverse")
    return called or any(re.search(r"revers|\[::-1\]|flip", ast.unparse(one)) for one in turned)


def _is_discounted(node: ast.Assign, target: ast.expr) -> bool:
    """Tell whether a statement is `total = r + gamma * total`."""
    total, value = target_text(node), node.value
    for reward, rest in both_ways(value) if is_op(value, ast.Add) else ():
        mine = names_in(reward) & names_in(target)
        if is_op(rest, ast.Mult) and mine and _GAMMA.search(ast.unparse(rest)):
            return total in {ast.unparse(rest.left), ast.unparse(rest.right)}
    return False


@reads("returns in reverse order")
def _backwards(program: Program) -> Iterator[Spot]:
    """Find returns that the script appends from the last reward to the first and never reverses."""
    for node in program.every(ast.For):
        turned = re.search(r"reversed\(|\[::-1\]", ast.unparse(node.iter))
        sums = [one for one in node.body if isinstance(one, ast.Assign) and _is_discounted(one, node.target)]
        for one in node.body if turned and sums else ():
            call = one.value if isinstance(one, ast.Expr) else None
            held = object_of(call) if method_of(call) == "append" else None
            if call is None or held is None:
                continue
            name = ast.unparse(held)
            again = rf"{re.escape(name)}\[::-1\]|reversed\({re.escape(name)}\)|{re.escape(name)}\.reverse|flip\("
            if not re.search(again, ast.unparse(program.around(node))) and not _turned_outside(program, node):
                yield spot(call, node, text=shown(call), name=name)


def _turned_outside(program: Program, loop: ast.For) -> bool:
    """Tell whether a caller reverses the result of a function."""
    function = program.function(loop)
    texts = [ast.unparse(program.statement(one)) for one in (program.uses(function) if function is not None else ())]
    return any(re.search(r"\[::-1\]|reversed|flip|reverse", text) for text in texts)


# --- targets ---


@reads("copy never updated")
def _never_copied(program: Program) -> Iterator[Spot]:
    """Find a target network of a value model that nothing ever updates, and models that get their own weights."""
    for call in program.calls:
        name = _from_itself(program, call)
        if name:
            what = f"{shown(call)} copies the weights of {name} into {name} itself, which changes nothing"
            yield spot(call, what=what, name=name)
    yield from _left_alone(program)


def _from_itself(program: Program, call: ast.Call) -> str:
    """Return the model of `m.load_state_dict(m.state_dict())`, or of a copy from one to the other that are the same."""
    given = [ast.unparse(one) for one in call.args[:2]]
    held = object_of(call) if method_of(call) == "load_state_dict" else None
    if held is not None and given:
        name = ast.unparse(held)
        return name if given[0] == f"{name}.state_dict()" else ""
    if len(call.args) < 2 or given[0] != given[1]:
        return ""
    if callee_of(call) == "zip" and len(call.args) == 2:
        copies = isinstance(loop := program.parents.get(call), ast.For) and re.search(r"\.copy_\(", ast.unparse(loop))
        model = re.fullmatch(r"([\w.]+)\.parameters\(\)", given[0])
        return model[1] if model and copies else ""
    inner = flow(program).callee(call)
    moves = inner is not None and re.search(r"\.load_state_dict\(|\.copy_\(", ast.unparse(inner.function))
    return given[0] if moves and modules(program, call.args[0]) is not None else ""


def _left_alone(program: Program) -> Iterator[Spot]:
    """Yield the target networks that the script never changes."""
    if not any(_GAMMA.search(ident(node)) for node in program.nodes):
        return
    for node in program.every(ast.Assign):
        name = ident(only_target(node))
        if not _TARGET.search(name) or not isinstance(node.value, ast.Call) or modules(program, node.value) is None:
            continue
        uses = [one for one in program.nodes if ident(one) == name]
        calls = [one for one in uses if _is_called(program, one)]
        if calls and all(_is_harmless(program, one, node) for one in uses):
            what = f"{name}, made by {shown(node)}, computes targets, but nothing ever copies newer weights into it"
            yield spot(node, program.statement(calls[0]), what=what, name=name)


def _is_called(program: Program, node: ast.AST) -> bool:
    outer = program.parents.get(node)
    return isinstance(outer, ast.Call) and outer.func is node


def _is_harmless(program: Program, node: ast.AST, made: ast.Assign) -> bool:
    """Tell whether a use cannot change a model's weights later: the script calls it, makes it or calls `eval`."""
    if _is_called(program, node) or holds(made, node):
        return True
    outer, function = program.parents.get(node), program.function(node)
    if not isinstance(outer, ast.Attribute):
        return False
    begins = not program.loops(node) and (function is None or function.name == "__init__")
    return outer.attr in {"eval", "requires_grad_", "train", "to"} or (
        outer.attr in {"load_state_dict", "parameters"} and begins
    )


# --- two players ---


def _judged(program: Program, event: Event) -> list[tuple[ast.Call, str, bool]]:
    """Return the binary losses of a backward pass, each with its label 0 or 1, and whether its examples are fakes."""
    found: list[tuple[ast.Call, str, bool]] = []
    for one in (part for term in terms(program, event.value) for part in term.factors):
        known = loss(program, one.node)
        if known is None or known.target is None or "binary" not in known.kind:
            continue
        label = _label(program, Value(known.target, one.frame))
        if label:
            found.append((known.call, label, _is_generated(program, Value(known.input, one.frame))))
    return found


def _label(program: Program, value: Value) -> str:
    """Return "0" or "1" for targets that are all zeros or all ones."""
    node = flow(program).origin(value)
    while isinstance(node, ast.Subscript):
        node = flow(program).origin(Value(node.value, value.frame))
    if not isinstance(node, ast.Call):
        return ""
    name, held = library_name(program, node), object_of(node)
    if name in {"ones", "ones_like", "zeros", "zeros_like"}:
        return "1" if name.startswith("ones") else "0"
    if name in {"full", "full_like"} and len(node.args) > 1:
        size = number(node.args[1])
        return "" if size is None else "1" if size > 0.5 else "0"
    if held is not None and method_of(node) in {"to", "float", "cuda", "view", "expand"}:
        return _label(program, Value(held, value.frame))
    return ""


def _is_generated(program: Program, value: Value) -> bool:
    """Tell whether the input of a discriminator is the output of another model."""
    found = _judge_call(program, value)
    call = found.node if found is not None else None
    given = call.args if isinstance(call, ast.Call) else []
    return found is not None and any(_from_model(program, Value(one, found.frame), 0) for one in given)


def _judge_call(program: Program, value: Value) -> Value | None:
    """Return the call of a model that gives a score, looking through names and methods."""
    one: Value | None = value
    for _ in range(6):
        held = object_of(one.node) if one is not None else None
        if one is None or (isinstance(one.node, ast.Call) and modules(program, Value(one.node.func, one.frame))):
            break
        if isinstance(one.node, ast.Name):
            one = _before(program, one)
        else:
            one = Value(held, one.frame) if held is not None else None
    return one if one is not None and isinstance(one.node, ast.Call) else None


def _before(program: Program, value: Value) -> Value | None:
    """Return what a name holds: by the calls that lead to it, or its last binding; None if that is open."""
    found = flow(program).before(value)
    if found is not None and len(found) == 1 and not found[0].path:
        return found[0]
    source = program.source_of(value.node)
    return None if source is None else Value(source, value.frame)


def _from_model(program: Program, value: Value, depth: int) -> bool:
    node, frame = value.node, value.frame
    if depth > 5:
        return False
    if isinstance(node, ast.Name):
        before = _before(program, value)
        return before is not None and _from_model(program, before, depth + 1)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _from_model(program, Value(node.value, frame), depth + 1)
    if not isinstance(node, ast.Call):
        return False
    if modules(program, Value(node.func, frame)) is not None:
        return True
    held = object_of(node) if method_of(node) in {"detach", "view", "reshape", "to"} else None
    if held is not None:
        return _from_model(program, Value(held, frame), depth + 1)
    inner = flow(program).callee(node, frame)
    text = ast.unparse(inner.function) if inner is not None else ""
    return "randn" in text and bool(re.search(r"generator|\bgen\b|netG|self\.g\(", text, re.IGNORECASE))


@reads("both examples judged alike")
def _alike(program: Program) -> Iterator[Spot]:
    """Find a discriminator that learns the same label for real and for generated examples."""
    for one in trainings(program):
        for event in one.own("backward"):
            found = _judged(program, event)
            if len(found) == 2 and found[0][1] == found[1][1] and found[0][2] != found[1][2]:
                fake = next(call for call, _, is_fake in found if is_fake)
                yield spot(fake, event.node, program.statement(fake), text=shown(fake), label=found[0][1])


@reads("generator helps its judge")
def _helps(program: Program) -> Iterator[Spot]:
    """Find a generator whose loss gives its examples the label that the discriminator learns for fakes."""
    for one in trainings(program):
        passes = [(event, _judged(program, event)) for event in one.own("backward")]
        pairs = [found for _, found in passes if len(found) == 2 and len({label for _, label, _ in found}) == 2]
        judge = [label for found in pairs for _, label, fake in found if fake]
        judge += _single(passes)
        for event, found in passes:
            same = len(found) == 1 and found[0][2] and len(set(judge)) == 1 and found[0][1] == judge[0]
            if same and _steps_generator(program, one.own("step"), event, one.events):
                call = found[0][0]
                yield spot(call, event.node, program.statement(call), text=shown(call), label=judge[0])


def _single(passes: list[tuple[Event, list[tuple[ast.Call, str, bool]]]]) -> list[str]:
    """Return the label of fakes if real and fake examples have separate backward passes."""
    real = [at for at, (_, found) in enumerate(passes) if len(found) == 1 and not found[0][2]]
    after = [found[0][1] for at, (_, found) in enumerate(passes) if len(found) == 1 and found[0][2] and at - 1 in real]
    return after[:1] if len(passes) > 2 else []


def _steps_generator(program: Program, steps: list[Event], event: Event, events: tuple[Event, ...]) -> bool:
    """Tell whether the step after a pass belongs to another optimizer than that of the discriminator."""
    order = list(events)
    behind = [step for step in steps if order.index(step) > order.index(event)]
    before = [step for step in steps if order.index(step) < order.index(event)]
    mine = optimizer(program, behind[0].value) if behind else None
    others = [optimizer(program, step.value) for step in before]
    return mine is not None and any(one is not None and one != mine for one in others)


# --- critics ---


@reads("generator and critic with one sign")
def _one_sign(program: Program) -> Iterator[Spot]:
    """Find a generator whose loss has the score of its fakes with the sign that the critic's loss gives it."""
    seen: set[ast.expr] = set()
    uphill = any(given.arg == "maximize" for call in program.calls for given in call.keywords)
    for one in trainings(program) if not uphill else ():
        passes = [(event, _scored(program, event)) for event in one.of("backward")]
        critics = [([event], found) for event, found in passes if len(found) == 2]
        critics += [
            ([event, other], [*first, *second])
            for (event, first), (other, second) in itertools.pairwise(passes)
            if len(first) == len(second) == 1
        ]
        against = [
            row for row in critics if {fake for _, fake in row[1]} == {True, False} == {s > 0 for s, _ in row[1]}
        ]
        signs = {sign for _, found in against for sign, fake in found if fake}
        mine = {event.node for events, _ in against for event in events}
        for event, found in passes:
            if len(signs) != 1 or found != [(*signs, True)] or event.node in mine | seen:
                continue
            if _steps_generator(program, one.of("step"), event, one.events):
                seen.add(event.node)
                yield spot(event.node, *setting_of(program, event), text=shown(event.value.node))


def _scored(program: Program, event: Event) -> list[tuple[int, bool]]:
    """Return the scores in the loss of a pass, each with its sign and whether it judges a fake."""
    call = event.node
    given = argument(call, "gradient", 0) if isinstance(call, ast.Call) else None
    sign = 1 if given is None else _sign(program, Value(given, event.frame))
    found: list[tuple[int, bool]] = []
    for term in terms(program, event.value) if sign else ():
        for one in term.factors:
            node = one.node
            if not isinstance(node, ast.Call) or loss(program, node) is not None or len(node.args) != 1:
                continue
            if modules(program, Value(node.func, one.frame)) is not None:
                found.append((sign * term.sign, _is_generated(program, one)))
    return found


def _sign(program: Program, value: Value) -> int:
    """Return the sign of a tensor of ones, or of one that is written as a number; 0 if it is unknown."""
    signs = {_sign_of(program, one) for one in terms(program, value)}
    return signs.pop() if len(signs) == 1 else 0


def _sign_of(program: Program, term: Term) -> int:
    node = term.factors[0].node
    if len(term.factors) != 1 or not isinstance(node, ast.Call):
        return 0
    kind, held = callee_of(node), object_of(node)
    if held is not None and kind in {"cuda", "to", "float", "double"}:
        return term.sign * _sign(program, Value(held, term.factors[0].frame))
    if kind in {"ones", "ones_like"}:
        return term.sign
    given = node.args[0] if node.args and re.fullmatch(r"tensor|as_tensor|\w*Tensor", kind) else None
    given = given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else given
    size = number(given)
    return 0 if not size else term.sign * (1 if size > 0 else -1)


RULES = rules_of(globals())
