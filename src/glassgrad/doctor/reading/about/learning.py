"""Rules about losses whose gradients reach no weights, the wrong model, or weights that should stay fixed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from glassgrad.doctor.reading.actors import modules, optimizer, related, spread, trained_by
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.gradients import Reach, reach, switched_off
from glassgrad.doctor.reading.iterations import Event, Iteration, trainings
from glassgrad.doctor.reading.program import Program, constant, is_given
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.terms import Term, terms
from glassgrad.doctor.reading.values import ELEMENTWISE, loss, losses

_GAMMA = re.compile(r"gamma|discount", re.IGNORECASE)
_SETTINGS = {"lr": "lr", "learning_rate": "lr", "weight_decay": "weight_decay", "momentum": "momentum"}
"""Attributes that users set on an optimizer by mistake, and the key in its groups."""
_LOG_PROB = re.compile(r"log_?p|logp", re.IGNORECASE)


def detached(program: Program) -> Iterator[Spot]:
    """Yield backward passes that reach no weights, because an op or a block cuts off the gradient."""
    for one in trainings(program):
        for event in one.own("backward"):
            found = reach(program, event.value)
            if found.known and not found.learns and found.cut and _is_loss(program, event):
                node = found.cut[0][1]
                yield spot(node, event.node, program.statement(node), text=shown(node))


def _is_loss(program: Program, event: Event) -> bool:
    """Tell whether a pass begins at a computed value, not at a leaf that gets `requires_grad`."""
    ends = flow(program).ends(event.value)
    return all(not isinstance(one.node, ast.Name | ast.Constant) for one in ends)


def cut_terms(program: Program) -> Iterator[Spot]:
    """Yield the terms of a loss that reach no weights, although other terms do."""
    for one in trainings(program):
        for event in one.own("backward"):
            found = terms(program, event.value)
            reached = [_together(program, term) for term in found]
            if not any(it.learns for it in reached):
                continue
            for term, it in zip(found, reached, strict=True):
                if it.known and not it.learns and it.cut and _is_computed(program, term):
                    yield _blamed(program, term, it.cut[0][1], event)


def _blamed(program: Program, term: Term, node: ast.expr | ast.stmt, event: Event) -> Spot:
    """Return the place that cuts a term off: an op, or what is computed of the results of a block without gradients."""
    also: list[ast.expr | ast.stmt] = [event.node, *_statements(program, term)]
    if not _is_block(program, node):
        return spot(node, *also, text=shown(node), why="is a number")
    call = next(one.node for one in term.factors if isinstance(one.node, ast.Call) and loss(program, one.node))
    why = f"has no gradient, since {shown(node)} switches it off"
    place = known.input if (known := loss(program, call)) is not None else call
    while isinstance(place, ast.Name) and (value := program.value_of(place)) is not None:
        place = value
    if isinstance(place, ast.Name) or switched_off(program, place) is not None:
        return spot(node, *also, text=shown(call), why=why)
    why = f"has no gradient, since {shown(place)} uses only what {shown(node)} has cut off"
    return spot(place, *also, node, text=shown(call), why=why)


def _is_block(program: Program, node: ast.AST) -> bool:
    """Tell whether a place is the head of a block, or a decorator, that switches gradients off."""
    outer = program.parents.get(node)
    return isinstance(outer, ast.withitem) or node in getattr(outer, "decorator_list", ())


def _together(program: Program, term: Term) -> Reach:
    total = Reach()
    for one in term.factors:
        total = total.and_(reach(program, one))
    return total


def _is_computed(program: Program, term: Term) -> bool:
    """Tell whether a term is a loss of the library. Other terms without gradients are often weights or baselines."""
    calls = [one.node for one in term.factors if isinstance(one.node, ast.Call)]
    return any(loss(program, one) is not None for one in calls)


def _statements(program: Program, term: Term) -> list[ast.stmt]:
    """Return the statements of the factors of a term, those that compute something first."""
    factors = sorted(term.factors, key=lambda one: not isinstance(one.node, ast.Call))
    return [program.statement(one.node) for one in factors]


def cut_layers(program: Program) -> Iterator[Spot]:
    """Yield the code that detaches the output of trained layers, if no loss reaches these layers by another path."""
    if any(getattr(node, "attr", "").startswith("requires_grad") for node in program.nodes):
        return  # some weights may be frozen
    for one in trainings(program):
        found = [reach(program, event.value) for event in one.of("backward")]
        makers = [optimizer(program, event.value) for event in one.of("step")]
        known = one.is_known and all(it.known and it.learns for it in found) and None not in makers
        if not known:
            continue
        learns = spread(program, [made for it in found for made in it.learns])
        mine = [have for made in makers if made is not None for have in trained_by(program, made) or []]
        taught = any(related(have, it) for have in mine for it in learns)
        for have, node in [pair for it in found for pair in it.cut]:
            inside = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "detach"
            inside = inside and not _is_meant(program, node)
            lost = inside and taught and not any(related(have, it) for it in learns)
            if lost and any(related(have, own) for own in mine) and program.owner(node) is not None:
                yield spot(node, program.statement(node), text=shown(node))


def _is_meant(program: Program, node: ast.AST) -> bool:
    """Tell whether `a.detach()` is half of a straight-through estimate, or stands for the target of a loss."""
    outer = program.parents.get(node)
    if isinstance(outer, ast.keyword):
        outer = program.parents.get(outer)
    if isinstance(outer, ast.Call):
        found = loss(program, outer)
        return found is not None and found.kind in ELEMENTWISE
    return isinstance(outer, ast.BinOp) and passed_through(outer) is not None


def passed_through(node: ast.AST) -> ast.expr | None:
    """Return the value that gets the whole gradient of a straight-through estimate: x of `x + (z - x).detach()`.

    Example:
        >>> found = passed_through(ast.parse("x + (z - x).detach()", mode="eval").body)
        >>> ast.unparse(found)
        'x'
    """
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        cut = other.func if isinstance(other, ast.Call) and not other.args else other
        if isinstance(cut, ast.Attribute) and cut.attr in {"detach", "data"} and isinstance(cut.value, ast.BinOp):
            inner = cut.value
            if isinstance(inner.op, ast.Sub) and ast.unparse(inner.right) == ast.unparse(one):
                return one
    return None


@reads("codebook loss without the codes")
def _without_codes(program: Program) -> Iterator[Spot]:
    """Find `loss(x + (z - x).detach(), x.detach())`, whose gradient moves x away from z and never moves z."""
    for one in losses(program):
        if one.kind not in ELEMENTWISE or one.target is None:
            continue
        for side, other in ((one.input, one.target), (one.target, one.input)):
            still = _cut_of(program, other)
            if still is None:
                continue
            ends = flow(program).ends(side)
            through = [(it, Value(x, it.frame)) for it in ends if (x := passed_through(it.node)) is not None]
            origin = set(flow(program).ends(still))
            if through and len(through) == len(ends) and all(origin & set(flow(program).ends(x)) for _, x in through):
                yield spot(one.call, through[0][0].node, program.statement(one.call), text=shown(one.call))
                break


def _cut_of(program: Program, node: ast.expr) -> Value | None:
    """Return what an expression, or the variable that holds it, detaches: x of `x.detach()`."""
    held = flow(program).end(node)
    call = held.node if held is not None and not held.path else None
    method = call.func if isinstance(call, ast.Call) else None
    if held is None or not isinstance(method, ast.Attribute) or method.attr != "detach":
        return None
    return Value(method.value, held.frame)


# --- whose gradients ---


@reads("optimizer of another model")
def _stranger(program: Program) -> Iterator[Spot]:
    """Find a step of an optimizer whose weights get no gradient from any backward pass of its loop."""
    for one in trainings(program):
        passes = one.of("backward")
        found = [reach(program, event.value) for event in passes]
        if not one.is_known or any(not it.known or not it.learns for it in found):
            continue
        learns = spread(program, [made for it in found for made in it.learns])
        for event in one.of("step"):
            made = optimizer(program, event.value)
            mine = trained_by(program, made) if made is not None else None
            if made is None or not mine or any(related(have, it) for have in mine for it in learns):
                continue
            if _held_by(program, mine) & _held_by(program, learns):
                continue  # the script makes it again under the same name
            if all(_is_module(program, have) for have in mine):
                order = [
                    it
                    for _, it in sorted(zip(passes, found, strict=True), key=lambda pair: _after(one, pair[0], event))
                ]
                cut = [node for it in order for have, node in it.cut if any(related(have, own) for own in mine)]
                place = cut[0] if cut else made.node
                why = f"{shown(cut[0])} cuts it off" if cut else "it holds the weights of another model"
                yield spot(place, event.node, made.node, passes[0].node, step=shown(event.node), why=why)
                break


@reads("loss of a copy")
def _copied(program: Program) -> Iterator[Spot]:
    """Find a step of an optimizer of a model behind a backward pass that reaches nothing but copies of this model."""
    if any(getattr(node, "attr", "") == "grad" and not program.names.full(node) for node in program.nodes):
        return  # the script may carry gradients over by itself
    seen: set[ast.AST] = set()
    for one in trainings(program):
        for step in one.of("step"):
            around = program.function(step.node)
            passes = [it for it in one.of("backward") if program.function(it.node) is around]
            maker = optimizer(program, step.value)
            mine = trained_by(program, maker) if maker is not None else None
            found = [reach(program, it.value) for it in passes]
            if step.node in seen or not mine or not found or any(not it.known or not it.learns for it in found):
                continue
            learns = {made for it in found for made in it.learns}
            origins = [(have, it.copied) for have in learns for it in modules(program, have) or () if it.copied]
            theirs = [have for have, origin in origins if any(related(origin, own) for own in mine)]
            if len(theirs) == len(learns) and not any(related(have, own) for have in learns for own in mine):
                seen.add(step.node)
                changes = _changes_of_data(program, theirs[0].node)
                place = theirs[0].node
                yield spot(place, *changes, passes[0].node, step.node, text=shown(place), step=shown(step.node))


def _changes_of_data(program: Program, node: ast.AST) -> list[ast.stmt]:
    """Return the statements that change numbers by `.data` in the function around a place."""
    around = program.function(node)
    changed = [one for one in ast.walk(around or program.tree) if isinstance(one, ast.Attribute) and one.attr == "data"]
    found = [program.statement(one) for one in changed if isinstance(one.ctx, ast.Store)]
    return found if around is not None else []


def _after(one: Iteration, backward: Event, step: Event) -> tuple[bool, int]:
    """Return a key that sorts passes by their distance before a step, the nearest one first."""
    places = list(one.events)
    distance = places.index(step) - places.index(backward)
    return distance < 0, distance


def _held_by(program: Program, values: Iterable[Value]) -> set[str]:
    """Return the variables that hold modules."""
    statements = [program.statement(one.node) for one in values if one.node in program.parents]
    plain = [one.targets[0] for one in statements if isinstance(one, ast.Assign)]
    return {ast.unparse(one) for one in plain if isinstance(one, ast.Name | ast.Attribute)}


def _is_module(program: Program, value: Value) -> bool:
    return modules(program, value) is not None


@reads("target with gradients")
def _moving(program: Program) -> Iterator[Spot]:
    """Find `loss(q(s), r + gamma * q(s'))`, whose gradient also flows through the target into the model."""
    for one in losses(program):
        if one.kind not in ELEMENTWISE or one.target is None or not _discounted(program, one.target):
            continue
        mine, theirs = reach(program, one.input), reach(program, one.target)
        shared = [it for it in theirs.learns if any(related(it, have) for have in mine.learns)]
        if shared and _is_trained(program, one.call):
            node = _discounting(program, one.target)
            yield spot(node, one.call, program.statement(node), text=shown(node))


def _discounting(program: Program, target: ast.expr) -> ast.expr:
    """Return the expression with the discount that computes a target."""
    for end in flow(program).ends(target):
        if _GAMMA.search(ast.unparse(end.node)):
            return end.node
    return target


def _discounted(program: Program, target: ast.expr) -> bool:
    return any(
        isinstance(end.node, ast.BinOp) and _GAMMA.search(ast.unparse(end.node)) for end in flow(program).ends(target)
    )


def _is_trained(program: Program, node: ast.AST) -> bool:
    """Tell whether the function around a node, or any other code of the script, calls `backward`."""
    around = program.function(node) or program.tree
    held = any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in ast.walk(around))
    return held or any(getattr(one.func, "attr", "") == "backward" for one in program.calls)


@reads("advantage with gradients")
def _advantage(program: Program) -> Iterator[Spot]:
    """Find `log_prob * (returns - value)` with gradients into the critic, which then learns from the policy's loss."""
    for one in trainings(program):
        for event in one.own("backward"):
            yield from _weights_with_gradients(program, one, event)


def _weights_with_gradients(program: Program, one: Iteration, event: Event) -> Iterator[Spot]:
    for call in _products(program, event):
        for policy, gain in ((call.left, call.right), (call.right, call.left)):
            if not _is_policy(program, Value(policy, event.frame)):
                continue
            for end in flow(program).ends(Value(gain, event.frame)):
                difference = isinstance(end.node, ast.BinOp) and isinstance(end.node.op, ast.Sub)
                if difference and isinstance(end.node, ast.BinOp) and _is_critic(program, end):
                    yield spot(
                        end.node, call, program.statement(end.node), program.statement(call), text=shown(end.node)
                    )
                    return


def _products(program: Program, event: Event) -> Iterator[ast.BinOp]:
    """Yield the products in the function of a backward pass, and in the loops that compute its loss."""
    around = program.function(event.node) or program.tree
    for node in ast.walk(around):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            yield node


def _is_policy(program: Program, value: Value) -> bool:
    node = value.node
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if not _LOG_PROB.search(ast.unparse(node)) and not _log_probability(program, Value(node, value.frame)):
        return False
    found = reach(program, Value(node, value.frame))
    return bool(found.learns)


def _log_probability(program: Program, value: Value) -> bool:
    ends = flow(program).ends(value)
    return any(isinstance(one.node, ast.Call) and getattr(one.node.func, "attr", "") == "log_prob" for one in ends)


def _is_critic(program: Program, end: Value) -> bool:
    """Tell whether a model computes the subtracted value, with gradients."""
    node = end.node
    assert isinstance(node, ast.BinOp)
    found = reach(program, Value(node.right, end.frame))
    return bool(found.learns)


def exchanged(program: Program) -> Iterator[Spot]:
    """Yield divergences whose first argument has no gradient, although the second has one."""
    for one in losses(program):
        if one.kind != "kl_div" or one.target is None or (one.call.keywords and one.call.keywords[0].arg == "input"):
            continue
        mine, theirs = reach(program, one.input), reach(program, one.target)
        if mine.known and not mine.learns and mine.cut and theirs.learns and not theirs.cut:
            remedy = f"{shown(one.call.func)}({shown(one.target, 30)}, {shown(one.input, 30)})"
            yield spot(one.call, given=shown(one.input, 30), output=shown(one.target, 30), remedy=remedy)


@reads("gradients of another loss")
def _mixed(program: Program) -> Iterator[Spot]:
    """Find a step that also uses the gradients of an earlier loss, which belongs to another optimizer."""
    for one in trainings(program):
        places = list(one.events)
        if not one.is_known or not all(event.sure and not event.loops for event in places):
            continue
        for event in one.own("step"):
            made = optimizer(program, event.value)
            mine = trained_by(program, made) if made is not None else None
            if made is None or not mine:
                continue
            begin = _cleared_at(program, places, event, mine)
            if begin is None:
                continue
            between = places[begin : places.index(event)]
            passes = [it for it in between if it.kind == "backward" and _reaches(program, it, mine)]
            others = [it for it in between if it.kind == "step" and optimizer(program, it.value) != made]
            if len(passes) > 1 and any(_between(places, passes[0], it, passes[-1]) for it in others):
                yield spot(
                    passes[0].node, event.node, made.node, step=shown(event.node), loss=shown(passes[0].value.node)
                )
                break


def _between(places: list[Event], first: Event, middle: Event, last: Event) -> bool:
    return places.index(first) < places.index(middle) < places.index(last)


def _cleared_at(program: Program, places: list[Event], step: Event, mine: list[Value]) -> int | None:
    """Return the index of the last event before a step that clears the gradients of its weights."""
    found: int | None = None
    for at, event in enumerate(places[: places.index(step)]):
        if event.kind != "zero":
            continue
        made = optimizer(program, event.value)
        held = modules(program, event.value) if made is None else None
        known = trained_by(program, made) if made is not None else [it.made for it in held] if held else None
        if known is None:
            return None
        if any(related(it, have) for it in known for have in mine):
            found = at
    return found


@reads("penalty without a graph")
def _penalty(program: Program) -> Iterator[Spot]:
    """Find penalties on gradients from `autograd.grad` without `create_graph`."""
    for call in program.calls:
        full = program.names.full(call.func)
        if not full.endswith("autograd.grad") or is_given(call, "create_graph", 4):
            continue
        function = program.function(call)
        around = ast.unparse(function) if function is not None else ""
        named_so = function is not None and re.search(r"penalty|(^|_)gp(_|$)", function.name)
        if named_so and re.search(r"\.norm\(|\*\* 2|\.pow\(|sqrt\(", around) and not switched_off(program, call):
            yield spot(
                call, program.statement(call), text=shown(call), remedy=f"{shown(call)[:-1]}, create_graph=True)"
            )


@reads("rate set where nothing reads it")
def _unread(program: Program) -> Iterator[Spot]:
    """Find `optimizer.lr = rate`, and `group["learning_rate"] = rate`."""
    for node in (one for one in program.nodes if isinstance(one, ast.Assign)):
        target = node.targets[0]
        if (
            isinstance(target, ast.Attribute)
            and target.attr in _SETTINGS
            and optimizer(program, target.value) is not None
        ):
            key = _SETTINGS[target.attr]
            yield spot(node, text=shown(node), wanted=f"'{key}'", key=key)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name | ast.Subscript):
            bound = program.bound(target.value) if isinstance(target.value, ast.Name) else None
            loop = bound.statement if bound is not None else None
            groups = ast.unparse(loop.iter) if isinstance(loop, ast.For) else ast.unparse(target.value)
            if "param_groups" in groups and constant(target.slice) in {"learning_rate", "rate", "learningrate"}:
                yield spot(node, text=shown(node), wanted="'lr'", key="lr")


# --- who clears them ---


def uncleared(program: Program) -> Iterator[Spot]:
    """Yield backward passes in one branch, or for one optimizer, whose gradients nothing clears."""
    for one in trainings(program):
        if not one.whole and not one.of("zero"):
            continue
        yield from _of_an_arm(one)
        yield from _of_an_optimizer(program, one)


def _of_an_arm(one: Iteration) -> Iterator[Spot]:
    zeros = one.of("zero")
    for event in one.own("backward"):
        steps = [it for it in one.own("step") if it.beside(event)]
        mine = [it for it in steps if _same_arm(it, event)]
        if zeros and mine and event.arms and not any(it.beside(event) for it in zeros) and one.is_known:
            yield spot(event.node, mine[0].node, *event.chain, step=shown(mine[0].node))


def _same_arm(one: Event, other: Event) -> bool:
    return one.arms == other.arms


def _of_an_optimizer(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a step of an optimizer in a loop that clears only the gradients of other optimizers."""
    cleared: list[Value] = []
    makers: list[Value] = []
    for event in one.of("zero"):
        made = optimizer(program, event.value)
        held = modules(program, event.value) if made is None else None
        known = list(spread(program, [it.made for it in held])) if held is not None else None
        known = trained_by(program, made) if made is not None else known
        if known is None:
            return
        cleared += known
        makers += [made] if made is not None else []
    seen: set[Value] = set()
    for event in one.own("step") if one.of("zero") and one.is_known else ():
        made = optimizer(program, event.value)
        mine = trained_by(program, made) if made is not None and made not in makers else None
        if made is None or not mine or made in seen or any(related(it, have) for it in mine for have in cleared):
            continue
        seen.add(made)
        before = [it for it in one.of("backward") if _reaches(program, it, mine)]
        if before:
            yield spot(before[0].node, event.node, made.node, step=shown(event.node))


def _reaches(program: Program, event: Event, mine: list[Value]) -> bool:
    found = reach(program, event.value)
    return any(related(have, it) for it in spread(program, found.learns) for have in mine)


RULES = rules_of(globals())
