"""Rules about the order of the calls in a training loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.learning import uncleared
from glassgrad.doctor.reading.about.modes import draws_examples, moded
from glassgrad.doctor.reading.about.rounds import PER_STEP, falls_slowly, per_batch, per_epoch
from glassgrad.doctor.reading.actors import makes_optimizer, modules, related, stepped
from glassgrad.doctor.reading.iterations import Event, Iteration, Reader, iterations, made, rounds, trainings, trains
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import (
    arguments,
    callee_of,
    holds,
    is_name,
    mentions,
    method_of,
    object_of,
    set_by,
    target_of,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import DEEPEST, Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import (
    DRAWING,
    NORMS,
    Layer,
    has_weights,
    kinds,
    layer,
    library_name,
    optimizes,
    repeats,
)

_LENGTHS = {
    "CosineAnnealingLR": ("T_max", 1),
    "LinearLR": ("total_iters", 3),
    "PolynomialLR": ("total_iters", 1),
    "WarmupCosineLR": ("total", 2),
}
_ANEW = re.compile(
    r"deepcopy|load_state_dict|reset_parameters|clone|apply|make|build|create|get_|new|[A-Z]\w*(Net|Model|LP)$"
)
"""Calls that make a model, or give it other weights."""
_UNCALLED = frozenset({"backward", "zero_grad", "step", "eval", "train"})


def _places(one: Event) -> list[ast.expr]:
    """Return the calls that lead to an event, and its own."""
    return [*one.chain, one.node]


@reads("zero_grad is missing")
def _no_zero(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        steps, passes = one.own("step"), one.own("backward")
        if one.whole and one.is_known and steps and not one.of("zero") and not _around(program, one, "zero"):
            yield spot(passes[0].node, *_places(steps[0]), step=shown(steps[0].node))
        elif (late := _late_step(program, one)) is not None and program.loops(one.node):
            yield spot(passes[0].node, late.node, step=shown(late.node))
    yield from uncleared(program)


def _late_step(program: Program, one: Iteration) -> Event | None:
    """Return the step behind a loop that computes gradients, in a script that never zeroes any."""
    if not one.whole or not one.is_known or one.of("step", "zero") or {"zero_grad", "grad"} & _attributes(program):
        return None
    return next((event for event in _behind(program, one) if event.kind == "step"), None)


def _around(program: Program, inner: Iteration, kind: str) -> bool:
    """Tell whether a loop around one has an event of a kind."""
    outer = [one for one in iterations(program) if one.whole and holds(one.node, inner.node) and one is not inner]
    return any(event.kind == kind and not holds(inner.node, event.node) for one in outer for event in one.events)


@reads("gradients never used")
def _step_outside(program: Program) -> Iterator[Spot]:
    """Find loops that zero and compute gradients, while the step stands behind them."""
    for one in trainings(program):
        zeroed = any(event.sure for event in one.own("zero"))
        late = _late_step(program, one)
        if late is not None and not program.loops(one.node) and _counts_only(one.node):
            why = "and no gradient is used before: all rounds make one step"
            yield spot(late.node, one.own("backward")[0].node, step=shown(late.node), why=why)
        if not one.whole or one.of("step", "opaque", "grad") or not zeroed:
            continue
        steps = [event for event in _behind(program, one) if event.kind == "step"]
        if steps:
            why = "which zeroes the gradients in each round: only those of the last batch are used"
            yield spot(steps[0].node, one.own("backward")[0].node, step=shown(steps[0].node), why=why)


def _counts_only(loop: ast.AST) -> bool:
    """Tell whether a loop is `for epoch in range(n)`, and not over parts of the data, whose gradients may be summed."""
    count, target = _count_of(loop), loop.target if isinstance(loop, ast.For) else None
    parts = [one.slice for one in within(loop, ast.Subscript)]
    return count is not None and isinstance(target, ast.Name) and not any(mentions(one, target.id) for one in parts)


def _behind(program: Program, inner: Iteration) -> Iterator[Event]:
    """Yield the events behind a loop, in the block around it, up to the next backward pass."""
    around = (node for node in program.outward(inner.node) if isinstance(node, ast.For | ast.While | ast.FunctionDef))
    body = next(around, program.tree).body
    end = inner.node.end_lineno or 0
    for event in Reader(program).events_of(body):
        if event.node.lineno > end and not event.chain:
            if event.kind == "backward" or event.loops:
                return
            yield event


@reads("no step")
def _no_step(program: Program) -> Iterator[Spot]:
    has = any(library_name(program, one) and ".optim." in f"{program.names.full(one.func)}." for one in program.calls)
    all_steps = any(one.of("step") for one in iterations(program)) or any(
        name == "step" or name.startswith("step_") for name in _attributes(program)
    )
    for one in trainings(program):
        if has and one.whole and one.is_known and one.own("zero") and not all_steps:
            yield spot(one.own("backward")[0].node, loop=f"line {one.node.lineno}")


def _attributes(program: Program) -> set[str]:
    """Return the names of the methods that a script calls on optimizers, or on what may be one."""
    return {one.attr for one in program.every(ast.Attribute) if isinstance(one.ctx, ast.Load)}


@reads("no backward pass")
def _no_backward(program: Program) -> Iterator[Spot]:
    for one in iterations(program):
        steps, zeros = one.own("step"), one.own("zero")
        given = any(  # by another process, say
            isinstance(node, ast.Attribute) and node.attr in {"grad", "_grad"} and isinstance(node.ctx, ast.Store)
            for node in ast.walk(one.node)
        )
        if one.whole and one.is_known and steps and zeros and not one.of("backward") and not given:
            yield spot(steps[0].node, step=shown(steps[0].node))


def _single(one: Iteration, *wanted: str) -> list[Event] | None:
    """Return the only event of each kind in an iteration, if all are there in this order and under no condition."""
    found = [event for event in one.events if event.kind in wanted]
    only = [event.kind for event in found] == [*wanted] and all(event.sure and not event.loops for event in found)
    return found if only else None


def _order(one: Iteration, event: Event) -> int:
    return next(at for at, known in enumerate(one.events) if known is event)


def _in_order(program: Program, *kinds: str) -> Iterator[list[Event]]:
    """Yield the events of the trainings that have one of each of these kinds, in this order."""
    for one in trainings(program):
        if (found := _single(one, *kinds)) is not None:
            yield found


@reads("step before backward")
def _early_step(program: Program) -> Iterator[Spot]:
    for zero, step, backward in _in_order(program, "zero", "step", "backward"):
        yield spot(step.node, backward.node, zero.node, backward=shown(backward.node))


@reads("no gradients in a step")
def _zeroed_between(program: Program) -> Iterator[Spot]:
    for backward, zero, step in _in_order(program, "backward", "zero", "step"):
        yield spot(zero.node, step.node, backward.node, zero=shown(zero.node))


@reads("clipping before backward")
def _early_clip(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        clips, passes, steps = one.own("clip"), one.own("backward"), one.own("step")
        if len(clips) != 1 or len(passes) != 1 or not steps:
            continue
        if _order(one, clips[0]) < _order(one, passes[0]) < _order(one, steps[0]):
            yield spot(clips[0].node, passes[0].node, clip=shown(clips[0].node))


@reads("clipping after the step")
def _late_clip(program: Program) -> Iterator[Spot]:
    for _, step, clip in _in_order(program, "backward", "step", "clip"):
        yield spot(clip.node, step.node, clip=shown(clip.node))


@reads("clipping scaled gradients")
def _clipped_scaled(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        scaled = [event for event in one.own("backward") if ".scale(" in event.receiver]
        clips = one.own("clip")
        if scaled and clips and not one.of("unscale"):
            yield spot(clips[0].node, scaled[0].node, clip=shown(clips[0].node))


@reads("graph retained")
def _retained(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        passes = one.of("backward")
        call = passes[0].node
        if len(passes) == 1 and one.whole and isinstance(call, ast.Call) and not one.of("grad"):
            kept = constant(argument(call, "retain_graph", 1)) is True
            if kept and not is_given(call, "create_graph", 2):
                yield spot(call, text=shown(call))


# --- schedules ---


@reads("schedule before the step")
def _schedule_first(program: Program) -> Iterator[Spot]:
    for one in iterations(program):
        steps = [event for event in one.of("step") if event.sure]
        schedules = [event for event in one.own("schedule") if event.sure]
        if len(schedules) != 1 or not steps or not one.whole:
            continue
        call = schedules[0].node
        bare = isinstance(call, ast.Call) and not arguments(call)
        if bare and _order(one, schedules[0]) < _order(one, steps[0]):
            yield spot(call, steps[0].node, schedule=shown(call))


@reads("schedule stepped for each batch")
def _schedule_per_batch(program: Program) -> Iterator[Spot]:
    for outer in rounds(program):
        for event in outer.of("schedule"):
            if not event.loops or not event.sure:
                continue
            trained = [one for one in outer.of("backward") if one.loops == event.loops]
            schedule = made(program, object_of(event.node))
            if trained and schedule is not None and _counts_epochs(program, schedule, outer.node):
                yield spot(event.node, schedule, schedule=shown(schedule))
    yield from per_batch(program)


def _counts_epochs(program: Program, schedule: ast.Call, loop: ast.AST) -> bool:
    """Tell whether the numbers of a schedule are numbers of epochs."""
    name = last(program.names.full(schedule.func))
    if name == "StepLR":
        size = number(argument(schedule, "step_size", 1))
        return size is not None and size <= 50 and not falls_slowly(schedule)
    if name == "ExponentialLR":
        factor = number(argument(schedule, "gamma", 1))
        return factor is not None and factor < PER_STEP
    if name == "MultiStepLR":
        steps = argument(schedule, "milestones", 1)
        sizes = [number(one) for one in steps.elts] if isinstance(steps, ast.List | ast.Tuple) else []
        return bool(sizes) and all(size is not None and size <= 200 for size in sizes)
    if name in _LENGTHS:
        length, bound = argument(schedule, *_LENGTHS[name]), _count_of(loop)
        return length is not None and bound is not None and ast.unparse(length) == ast.unparse(bound)
    return False


def _count_of(loop: ast.AST) -> ast.expr | None:
    """Return n of `for ... in range(n)`."""
    source = loop.iter if isinstance(loop, ast.For) else None
    counted = isinstance(source, ast.Call) and is_name(source.func, "range") and len(source.args) in {1, 2}
    return source.args[-1] if counted and isinstance(source, ast.Call) else None


@reads("schedule stepped for each epoch")
def _schedule_per_epoch(program: Program) -> Iterator[Spot]:
    for outer in rounds(program):
        for event in outer.own("schedule"):
            schedule = made(program, object_of(event.node))
            name = last(program.names.full(schedule.func)) if schedule is not None else ""
            if schedule is not None and name == "OneCycleLR" and is_given(schedule, "steps_per_epoch", 4):
                yield spot(event.node, schedule, schedule=shown(schedule))
    yield from per_epoch(program)


# --- optimizers and models ---


@reads("optimizer made in the loop")
def _optimizer_in_loop(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        loops = program.loops(call) if makes_optimizer(program, call) else []
        if any(trains(program, loop) and not makes_model(program, loop) for loop in loops):
            yield spot(call, optimizer=shown(call))


def makes_model(program: Program, loop: ast.AST) -> bool:
    """Tell whether a loop makes, copies, restores or draws a model anew, as over folds or settings."""
    return any(
        _ANEW.match(callee_of(one))
        or (isinstance(program.parents.get(one), ast.Assign) and layer(program, one) is not None)
        for one in within(loop, ast.Call)
    )


@reads("parameters without an optimizer")
def _replaced_head(program: Program) -> Iterator[Spot]:
    """Find `model.head = nn.Linear(...)` behind `optimizer = Adam(model.parameters())` in one block."""
    for call in program.calls:
        if not program.names.full(call.func).startswith("torch.optim.") or not call.args:
            continue
        model = _whose_parameters(call)
        if not model or program.loops(call) or _given_later(program, call, model.partition(".")[0]):
            continue
        for node in _after(program, program.statement(call)):
            target = target_of(node)
            value = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
            if target is None or value is None:
                continue
            part = ast.unparse(target)
            inside = isinstance(target, ast.Attribute | ast.Subscript) and ast.unparse(target.value) == model
            if inside and has_weights(program, value):
                yield spot(node, call, part=part, model=model, what="is put in")
            elif part == model and layer(program, value) is not None and not mentions(value, model):
                yield spot(node, call, part=part, model=model, what="is made anew")


def _whose_parameters(call: ast.Call) -> str:
    held = object_of(call.args[0]) if method_of(call.args[0]) == "parameters" else None
    return "" if held is None else ast.unparse(held)


def _given_later(program: Program, call: ast.Call, model: str) -> bool:
    """Tell whether the script later adds parameters to the optimizer, or makes another optimizer of the model."""
    names = set_by(program.statement(call))
    again = any(one.lineno > call.lineno and target_text(one) in names for one in program.every(ast.Assign))
    behind = (one for one in program.calls if one.lineno > call.lineno and mentions(one, model))
    return bool(program.calls_of(".add_param_group")) or again or any(optimizes(program, one) for one in behind)


def _after(program: Program, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements behind one in its block."""
    outer = program.parents.get(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and statement in block:
            return block[block.index(statement) + 1 :]
    return []


# --- modes ---


@reads("evaluation mode in training")
def _never_back(program: Program) -> Iterator[Spot]:
    given = {_whose_parameters(one) for one in program.calls if one.args} - {""}
    for one in (*rounds(program), *trainings(program)):
        rests = [event for event in one.of("eval") if not one.own("backward") or not event.loops]
        if not rests or one.of("train") or not one.is_known or not one.whole:
            continue
        first = rests[0]
        trained = first.receiver in given or _is_trained(program, one, first)
        if trained and _is_stochastic(program, first) is not False:
            yield spot(first.node, *first.chain, model=first.receiver)
            return


def _is_trained(program: Program, one: Iteration, event: Event) -> bool:
    """Tell whether an optimizer that steps in an iteration holds the weights of the model of an event."""
    held = modules(program, event.value) or []
    known = [have for step in one.of("step") for have in stepped(program, step.value)[1]]
    return bool(held) and all(any(related(it.made, have) for have in known) for it in held)


def _is_stochastic(program: Program, event: Event) -> bool | None:
    """Tell whether a model has dropout or batch normalisation; None if its parts are not known."""
    held = modules(program, event.value)
    found = Layer(held[0].name, held[0].call, held[0].owner) if held else None
    parts = kinds(program, found) if found is not None else None
    return None if parts is None else bool(parts & (DRAWING | NORMS))


@reads("training mode in evaluation")
def _never_eval(program: Program) -> Iterator[Spot]:
    """Find a model with dropout or batch normalisation that is called without gradients, in a script without eval."""
    attributes = _attributes(program)
    if "backward" not in attributes or "eval" in attributes or _sets_training(program):
        return
    for node in program.every(ast.With):
        if not any(_is_no_grad(program, one.context_expr) for one in node.items):
            continue
        for call in within(node, ast.Call):
            found = layer(program, call.func) if isinstance(call.func, ast.Name) else None
            parts = kinds(program, found) if found is not None else None
            resting = sorted((parts or set()) & moded(program))
            if resting and not repeats(program, call) and not draws_examples(program, call):
                yield spot(call, model=callee_of(call), parts=" and ".join(resting))
                break


def _sets_training(program: Program) -> bool:
    """Tell whether a script sets the mode in another way: `train(False)`, or by the attribute."""
    by_attribute = (one.attr == "training" and isinstance(one.ctx, ast.Store) for one in program.every(ast.Attribute))
    return any(arguments(one) for one in program.calls_of(".train")) or any(by_attribute)


def _is_no_grad(program: Program, node: ast.expr) -> bool:
    full = program.names.full(node.func) if isinstance(node, ast.Call) else ""
    return full in {"torch.no_grad", "torch.inference_mode"}


_SWITCHES = frozenset({"set_grad_enabled", "no_grad", "inference_mode"})


@reads("gradients in evaluation")
def _recorded(program: Program) -> Iterator[Spot]:
    """Find loops behind `model.eval()` that call the model with gradients switched on, and walk no graph."""
    if "backward" not in _attributes(program):
        return
    for call in program.calls:
        model = object_of(call) if method_of(call) == "eval" else None
        if model is None or _is_switched(program, call):
            continue
        for loop in _after(program, program.statement(call)):
            calls = within(loop, ast.Call) if isinstance(loop, ast.For) else []
            used = [one for one in calls if ast.unparse(one.func) == ast.unparse(model)]
            named = {method_of(one) for one in calls}
            switched = any(callee_of(one) in _SWITCHES for one in calls)
            if used and not switched and not named & {"backward", "grad", "requires_grad_"}:
                yield spot(used[0], call, model=ast.unparse(model))
                break


def _is_switched(program: Program, call: ast.Call, depth: int = 0) -> bool:
    """Tell whether gradients may be off around a call: by a block, a decorator, or where its function is called."""
    function = program.function(call)
    if any(_SWITCHES & set(re.findall(r"\w+", ast.unparse(one))) for one in program.heads(call)):
        return True
    if any(callee_of(one) == "set_grad_enabled" for one in within(program.around(call), ast.Call)):
        return True
    if function is None or depth > DEEPEST:
        return False
    callers = [one for one in program.uses(function) if program.function(one) is not function]
    return any(_is_switched(program, one, depth + 1) for one in callers)


@reads("method not called")
def _uncalled(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.Expr):
        if isinstance(node.value, ast.Attribute) and node.value.attr in _UNCALLED:
            yield spot(node, text=shown(node), remedy=f"{shown(node)}()")


@reads("no_grad without a block")
def _no_block(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.Expr):
        if _is_no_grad(program, node.value):
            yield spot(node, remedy=f"with {shown(node)}:")


RULES = rules_of(globals())
