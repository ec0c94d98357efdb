"""Rules about losses whose gradients reach no weights, the wrong model, or weights that should stay fixed."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator

from glassgrad.doctor.reading.actors import modules, optimizer, related, spread, stepped, trained_by
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.gradients import Reach, reach, switched_off
from glassgrad.doctor.reading.iterations import Event, Iteration, setting_of, trainings
from glassgrad.doctor.reading.nodes import both_ways, has_attribute, is_op, method_of, object_of, within
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
    return not any(isinstance(one, ast.Name | ast.Constant) for one in flow(program).origins(event.value))


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
    known = next(found for one in term.factors if (found := loss(program, one.node)) is not None)
    why = f"has no gradient, since {shown(node)} switches it off"
    place = known.input
    while (value := program.value_of(place)) is not None:
        place = value
    if isinstance(place, ast.Name) or switched_off(program, place) is not None:
        return spot(node, *also, text=shown(known.call), why=why)
    why = f"has no gradient, since {shown(place)} uses only what {shown(node)} has cut off"
    return spot(place, *also, node, text=shown(known.call), why=why)


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
    return any(loss(program, one.node) is not None for one in term.factors)


def _statements(program: Program, term: Term) -> list[ast.stmt]:
    """Return the statements of the factors of a term, those that compute something first."""
    factors = sorted(term.factors, key=lambda one: not isinstance(one.node, ast.Call))
    return [program.statement(one.node) for one in factors]


def cut_layers(program: Program) -> Iterator[Spot]:
    """Yield the code that detaches the output of trained layers, if no loss reaches these layers by another path."""
    if any(one.attr.startswith("requires_grad") for one in program.every(ast.Attribute)):
        return  # some weights may be frozen
    for one in trainings(program):
        found = [reach(program, event.value) for event in one.of("backward")]
        steps = [stepped(program, event.value) for event in one.of("step")]
        if (
            not one.is_known
            or not all(it.known and it.learns for it in found)
            or any(made is None for made, _ in steps)
        ):
            continue
        learns = spread(program, [made for it in found for made in it.learns])
        mine = [have for _, trained in steps for have in trained]
        taught = any(related(have, it) for have in mine for it in learns)
        for have, node in [pair for it in found for pair in it.cut] if taught else ():
            inside = method_of(node) == "detach" and not _is_meant(program, node) and program.owner(node) is not None
            lost = inside and not any(related(have, it) for it in learns)
            if lost and any(related(have, own) for own in mine):
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
    for one, other in both_ways(node) if is_op(node, ast.Add) else ():
        cut = other.func if isinstance(other, ast.Call) and not other.args else other
        inner = cut.value if isinstance(cut, ast.Attribute) and cut.attr in {"detach", "data"} else None
        if is_op(inner, ast.Sub) and ast.unparse(inner.right) == ast.unparse(one):
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
    inner = object_of(held.node) if held is not None and not held.path and method_of(held.node) == "detach" else None
    return Value(inner, held.frame) if held is not None and inner is not None else None


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
            made, mine = stepped(program, event.value)
            if made is None or not mine or any(related(have, it) for have in mine for it in learns):
                continue
            if _held_by(program, mine) & _held_by(program, learns):
                continue  # the script makes it again under the same name
            if all(modules(program, have) is not None for have in mine):
                pairs = sorted(zip(passes, found, strict=True), key=lambda pair: _after(one, pair[0], event))
                cut = [node for _, it in pairs for have, node in it.cut if any(related(have, own) for own in mine)]
                place: ast.expr | ast.stmt = cut[0] if cut else made.node
                why = f"{shown(cut[0])} cuts it off" if cut else "it holds the weights of another model"
                nearest = pairs[0]
                if not cut and _steps_twice(program, one, nearest[0], event):
                    place = next(iter(setting_of(program, nearest[0])), nearest[0].node)
                    why = f"the loss before it, {shown(place)}, does not use them"
                yield spot(place, event.node, made.node, passes[0].node, step=shown(event.node), why=why)
                break


@reads("loss of a copy")
def _copied(program: Program) -> Iterator[Spot]:
    """Find a step of an optimizer of a model behind a backward pass that reaches nothing but copies of this model."""
    if any(one.attr == "grad" and not program.names.full(one) for one in program.every(ast.Attribute)):
        return  # the script may carry gradients over by itself
    seen: set[ast.AST] = set()
    for one in trainings(program):
        for step in one.of("step"):
            around = program.function(step.node)
            passes = [it for it in one.of("backward") if program.function(it.node) is around]
            _, mine = stepped(program, step.value)
            found = [reach(program, it.value) for it in passes]
            if step.node in seen or not mine or not found or any(not it.known or not it.learns for it in found):
                continue
            learns = {made for it in found for made in it.learns}
            origins = [(have, it.copied) for have in learns for it in modules(program, have) or () if it.copied]
            theirs = [have for have, origin in origins if any(related(origin, own) for own in mine)]
            if len(theirs) == len(learns) and not any(related(have, own) for have in learns for own in mine):
                seen.add(step.node)
                place = theirs[0].node
                changes = _changes_of_data(program, place)
                yield spot(place, *changes, passes[0].node, step.node, text=shown(place), step=shown(step.node))


def _changes_of_data(program: Program, node: ast.AST) -> list[ast.stmt]:
    """Return the statements that change numbers by `.data` in the function around a place."""
    changed = [one for one in within(program.function(node), ast.Attribute) if one.attr == "data"]
    return [program.statement(one) for one in changed if isinstance(one.ctx, ast.Store)]


def _steps_twice(program: Program, one: Iteration, backward: Event, step: Event) -> bool:
    """Tell whether a pass stands before a step, and a step of another optimizer before both: each has its own loss."""
    order, (mine, _) = list(one.events), stepped(program, step.value)
    earlier = [it for it in one.of("step") if order.index(it) < order.index(backward) < order.index(step)]
    return any(made is not None and made != mine for made, _ in (stepped(program, it.value) for it in earlier))


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


@reads("target with gradients")
def _moving(program: Program) -> Iterator[Spot]:
    """Find `loss(q(s), r + gamma * q(s'))`, whose gradient also flows through the target into the model."""
    for one in losses(program):
        if one.kind not in ELEMENTWISE or one.target is None:
            continue
        ends = [node for node in flow(program).origins(one.target) if _GAMMA.search(ast.unparse(node))]
        if not any(isinstance(node, ast.BinOp) for node in ends):
            continue
        mine, theirs = reach(program, one.input), reach(program, one.target)
        shared = [it for it in theirs.learns if any(related(it, have) for have in mine.learns)]
        if shared and has_attribute(program.tree, "backward"):
            yield spot(ends[0], one.call, program.statement(ends[0]), text=shown(ends[0]))


@reads("advantage with gradients")
def _advantage(program: Program) -> Iterator[Spot]:
    """Find `log_prob * (returns - value)` with gradients into the critic, which then learns from the policy's loss."""
    for one in trainings(program):
        for event in one.own("backward"):
            yield from itertools.islice(_weights_with_gradients(program, event), 1)


def _weights_with_gradients(program: Program, event: Event) -> Iterator[Spot]:
    """Yield the products of a log-probability and an advantage in the function of a backward pass."""
    for call in within(program.around(event.node), ast.BinOp):
        for policy, gain in both_ways(call) if is_op(call, ast.Mult) else ():
            if not _is_policy(program, Value(policy, event.frame)):
                continue
            for end in flow(program).ends(Value(gain, event.frame)):
                if is_op(end.node, ast.Sub) and reach(program, Value(end.node.right, end.frame)).learns:
                    also = call, program.statement(end.node), program.statement(call)
                    yield spot(end.node, *also, text=shown(end.node))


def _is_policy(program: Program, value: Value) -> bool:
    node = value.node
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    inner = Value(node, value.frame)
    named_so = _LOG_PROB.search(ast.unparse(node))
    likely = named_so or any(method_of(one) == "log_prob" for one in flow(program).origins(inner))
    return bool(likely and reach(program, inner).learns)


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
            made, mine = stepped(program, event.value)
            begin = _cleared_at(program, places, event, mine) if mine else None
            if made is None or begin is None:
                continue
            between = places[begin : places.index(event)]
            passes = [it for it in between if it.kind == "backward" and _reaches(program, it, mine)]
            others = [it for it in between if it.kind == "step" and optimizer(program, it.value) != made]
            if len(passes) > 1 and any(_between(places, passes[0], it, passes[-1]) for it in others):
                facts = {"step": shown(event.node), "loss": shown(passes[0].value.node)}
                yield spot(passes[0].node, event.node, made.node, **facts)
                break


def _between(places: list[Event], first: Event, middle: Event, last: Event) -> bool:
    return places.index(first) < places.index(middle) < places.index(last)


def _cleared_at(program: Program, places: list[Event], step: Event, mine: list[Value]) -> int | None:
    """Return the index of the last event before a step that clears the gradients of its weights."""
    found: int | None = None
    for at, event in enumerate(places[: places.index(step)]):
        known = _cleared_by(program, event) if event.kind == "zero" else []
        if known is None:
            return None
        if any(related(it, have) for it in known for have in mine):
            found = at
    return found


@reads("penalty without a graph")
def _penalty(program: Program) -> Iterator[Spot]:
    """Find penalties on gradients from `autograd.grad` without `create_graph`."""
    for call in program.calls:
        function = program.function(call)
        gradients = program.names.full(call.func).endswith("autograd.grad") and not is_given(call, "create_graph", 4)
        if function is None or not gradients or not re.search(r"penalty|(^|_)gp(_|$)", function.name):
            continue
        squares = re.search(r"\.norm\(|\*\* 2|\.pow\(|sqrt\(", ast.unparse(function))
        if squares and not switched_off(program, call):
            remedy = f"{shown(call)[:-1]}, create_graph=True)"
            yield spot(call, program.statement(call), text=shown(call), remedy=remedy)


@reads("rate set where nothing reads it")
def _unread(program: Program) -> Iterator[Spot]:
    """Find `optimizer.lr = rate`, and `group["learning_rate"] = rate`."""
    for node in program.every(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr in _SETTINGS:
            if optimizer(program, target.value) is not None:
                key = _SETTINGS[target.attr]
                yield spot(node, text=shown(node), wanted=f"'{key}'", key=key)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name | ast.Subscript):
            bound = program.bound(target.value)
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
    for event in one.own("backward") if zeros and one.is_known else ():
        mine = [it for it in one.own("step") if it.beside(event) and it.arms == event.arms]
        if mine and event.arms and not any(it.beside(event) for it in zeros):
            yield spot(event.node, mine[0].node, *event.chain, step=shown(mine[0].node))


def _of_an_optimizer(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a step of an optimizer in a loop that clears only the gradients of other optimizers."""
    zeros = one.of("zero")
    cleared = [_cleared_by(program, event) for event in zeros]
    known = [have for part in cleared if part is not None for have in part]
    seen = {made for event in zeros if (made := optimizer(program, event.value)) is not None}
    for event in one.own("step") if zeros and one.is_known and None not in cleared else ():
        made, mine = stepped(program, event.value)
        if made is None or not mine or made in seen or any(related(it, have) for it in mine for have in known):
            continue
        seen.add(made)
        before = [it for it in one.of("backward") if _reaches(program, it, mine)]
        if before:
            yield spot(before[0].node, event.node, made.node, step=shown(event.node))


def _cleared_by(program: Program, event: Event) -> list[Value] | None:
    """Return the modules and parameters whose gradients an event clears; None if they are unknown."""
    made = optimizer(program, event.value)
    if made is not None:
        return trained_by(program, made)
    held = modules(program, event.value)
    return None if held is None else list(spread(program, [it.made for it in held]))


def _reaches(program: Program, event: Event, mine: list[Value]) -> bool:
    found = reach(program, event.value)
    return any(related(have, it) for it in spread(program, found.learns) for have in mine)


RULES = rules_of(globals())
