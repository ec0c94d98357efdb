"""Rules about epochs: schedules, folds, the best model, and variables that last from round to round."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, setting, stepped
from glassgrad.doctor.reading.flow import Value, flow, frames_of
from glassgrad.doctor.reading.iterations import Event, Iteration, iterations, rounds, setting_of, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import (
    both_ways,
    callee_of,
    compares,
    elements,
    holds,
    ident,
    is_negative,
    is_op,
    mentions,
    method_of,
    names_in,
    object_of,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import Bound, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import library_name

_FALLS = re.compile(r"loss|err|mse|mae|rmse|perplexity|ppl|nll", re.IGNORECASE)
_RISES = re.compile(r"acc|score|f1|auc|dice|iou|reward|precision|recall|bleu|r2", re.IGNORECASE)
_FOLD = re.compile(r"fold|kf|cv", re.IGNORECASE)
_WARM = re.compile(r"warm", re.IGNORECASE)
_WAITED = re.compile(
    r"patien|wait|counter|no_?improv|not_improved|bad_epochs|stall|stale|since|without|early_?stop", re.IGNORECASE
)


# --- divided gradients ---


@reads("accumulated without division")
def _undivided(program: Program) -> Iterator[Spot]:
    """Find `if (i + 1) % n == 0: step` where no loss is divided by n."""
    for one in trainings(program):
        steps, passes = one.own("step"), one.own("backward")
        if len(steps) != 1 or len(passes) != 1 or not passes[0].sure or steps[0].sure or not steps[0].arms:
            continue
        count = _every(steps[0].arms[-1][0].test) if steps[0].arms[-1][2] else None
        zeros = one.of("zero")
        if count is None or not zeros or not all(event.arms for event in zeros) or (setting(program, count) or 2) <= 1:
            continue
        if not _is_divided(program, passes[0], count):
            yield spot(passes[0].node, steps[0].node, *setting_of(program, passes[0]), count=shown(count, 30))


def _every(test: ast.expr) -> ast.expr | None:
    """Return n of `i % n == 0`, also as one side of an `or`."""
    if isinstance(test, ast.BoolOp):
        return next((found for part in test.values if (found := _every(part)) is not None), None)
    return test.left.right if isinstance(test, ast.Compare) and is_op(test.left, ast.Mod) else None


def _is_divided(program: Program, event: Event, count: ast.expr) -> bool:
    """Tell whether the function of a backward pass divides or averages a loss or a gradient."""
    for node in ast.walk(program.around(event.node)):
        operation = node.op if isinstance(node, ast.BinOp | ast.AugAssign) else None
        text = ast.unparse(node) if isinstance(operation, ast.Div | ast.Mult) else ""
        if "loss" in text.lower() or ".grad" in text or ast.unparse(count) in text:
            return True
    return any("sum" in str(constant(argument(one, "reduction"))) for one in program.calls)


# --- schedules ---


PER_STEP = 0.99
"""A factor for each step from which a schedule may well be meant for steps: 0.999 halves the rate in 700."""


def falls_slowly(schedule: ast.Call) -> bool:
    """Tell whether a StepLR lowers the rate by little in each step."""
    size, factor = number(argument(schedule, "step_size", 1)), number(argument(schedule, "gamma", 2))
    return size is not None and size > 0 and factor is not None and factor > 0 and factor ** (1 / size) >= PER_STEP


def per_batch(program: Program) -> Iterator[Spot]:
    """Yield schedules that the loop over batches steps, although their numbers are numbers of epochs."""
    for outer in rounds(program):
        epochs = _epochs(program, outer)
        for event in outer.of("schedule"):
            schedule = flow(program).end(event.value)
            if not event.loops or not event.sure or epochs is None or schedule is None:
                continue
            length = _length(program, schedule)
            trained = any(one.loops == event.loops for one in outer.of("backward"))
            if trained and length is not None and epochs >= 3 and length <= epochs:
                yield spot(event.node, schedule.node, schedule=shown(schedule.node))


def _length(program: Program, schedule: Value) -> float | None:
    """Return the number of steps after which a schedule first lowers the rate, or after which it ends."""
    call = schedule.node
    if not isinstance(call, ast.Call):
        return None
    name = last(program.names.full(call.func))
    places = {"StepLR": ("step_size", 1), "CosineAnnealingLR": ("T_max", 1), "LinearLR": ("total_iters", 3)}
    if name in places and not (name == "StepLR" and falls_slowly(call)):
        given = argument(call, *places[name])
        return setting(program, Value(given, schedule.frame)) if given is not None else None
    steps = argument(call, "milestones", 1) if name == "MultiStepLR" else None
    written = flow(program).origin(Value(steps, schedule.frame)) if steps is not None else None
    sizes = [setting(program, one) for one in elements(written)]
    known = [one for one in sizes if one is not None]
    return min(known) if known and len(known) == len(sizes) else None


def _epochs(program: Program, outer: Iteration) -> float | None:
    """Return the number of rounds of a loop over a range."""
    source = outer.node.iter if isinstance(outer.node, ast.For) else None
    if not isinstance(source, ast.Call) or getattr(source.func, "id", "") not in {"range", "trange"}:
        return None
    numbers = [setting(program, one) for one in source.args[:2]]
    known = [one for one in numbers if one is not None]
    if not known or len(known) < len(numbers):
        return None
    return known[-1] - (known[0] if len(known) > 1 else 0)


@reads("schedule beyond the run")
def _beyond(program: Program) -> Iterator[Spot]:
    """Find a schedule that is stepped once an epoch and whose first change comes after the last epoch."""
    for outer in rounds(program):
        epochs = _epochs(program, outer)
        for event in outer.own("schedule") if epochs is not None else ():
            schedule = flow(program).end(event.value)
            if schedule is None or library_name(program, schedule.node) not in {"StepLR", "MultiStepLR"}:
                continue
            length = _length(program, schedule)
            if length is not None and epochs is not None and length >= epochs > 1:
                facts = {"length": f"{length:g}", "epochs": f"{epochs:g}"}
                yield spot(schedule.node, event.node, text=shown(schedule.node), **facts)


@reads("schedule never stepped")
def _never(program: Program) -> Iterator[Spot]:
    """Find a schedule that nothing steps, in a script that trains."""
    if not program.calls_of(".step") or not any(one.of("step") for one in trainings(program)):
        return
    for call in program.calls:
        full, statement = program.names.full(call.func), program.parents.get(call)
        if "lr_scheduler." not in full or not last(full)[:1].isupper() or not isinstance(statement, ast.Assign):
            continue
        text = target_text(statement)
        plain = isinstance(statement.targets[0], ast.Name | ast.Attribute)
        if plain and not any(_reads(node, text.removeprefix("self.")) for node in program.nodes):
            yield spot(call, name=text, text=shown(call))


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and ident(node) == name


def per_epoch(program: Program) -> Iterator[Spot]:
    """Yield schedules that are stepped once an epoch, although `len(loader)` in their length counts batches."""
    for outer in rounds(program):
        if any(one.loops for one in outer.of("backward")):
            for event in outer.own("schedule"):
                call = flow(program).origin(event.value)
                if isinstance(call, ast.Call) and _over_batches(program, call):
                    yield spot(event.node, call, schedule=shown(call))


def _over_batches(program: Program, call: ast.Call) -> bool:
    """Tell whether the length of a schedule contains the length of a loader, and so is a number of batches."""
    places = {"CosineAnnealingLR": ("T_max", 1), "OneCycleLR": ("total_steps", 2)}
    name = last(program.names.full(call.func))
    given = argument(call, *places[name]) if name in places else None
    length = flow(program).origin(given) if given is not None else None
    return length is not None and bool(re.search(r"len\(\w*(loader|dl|batches)\w*\)", ast.unparse(length)))


@reads("warm-up counts another number")
def _warm(program: Program) -> Iterator[Spot]:
    """Find `if step < warmup: share = i / warmup`, where i is only one summand of `step`."""
    for node in program.nodes:
        test = node.test if isinstance(node, ast.If | ast.IfExp) else None
        if not isinstance(node, ast.If | ast.IfExp) or not compares(test, ast.Lt | ast.LtE):
            continue
        count, limit = test.left, test.comparators[0]
        if not _WARM.search(ast.unparse(limit)):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        for one in (part for statement in body for part in ast.walk(statement)):
            divides = is_op(one, ast.Div) and ast.unparse(one.right) == ast.unparse(limit)
            if divides and isinstance(one, ast.BinOp) and _is_part(program, one.left, count):
                yield spot(one, test, text=shown(one), count=shown(count), limit=shown(limit))


def _is_part(program: Program, used: ast.expr, count: ast.expr) -> bool:
    """Tell whether a variable is one summand of the compared number."""
    if not isinstance(used, ast.Name) or not isinstance(count, ast.Name) or used.id == count.id:
        return False
    value = program.source_of(count)
    return is_op(value, ast.Add) and mentions(value, used.id)


# --- folds ---


@reads("folds share one model")
def _folds(program: Program) -> Iterator[Spot]:
    """Find a loop over folds that trains a model which the script made before the loop."""
    for one in iterations(program):
        loop = one.node
        anew = re.search(r"reset_parameters|load_state_dict|deepcopy|apply\(|init_weights", ast.unparse(loop))
        if not isinstance(loop, ast.For) or anew or not _over_folds(program, loop):
            continue
        for event in one.of("step"):
            for have in stepped(program, event.value)[1]:
                calls: list[ast.expr] = [frame.call for frame in frames_of(have.frame)]
                inside = any(holds(loop, place) for place in (have.node, *calls))
                if modules(program, have) and not inside:
                    place = calls[-1] if calls else have.node
                    yield spot(place, loop, *event.chain[:1], loop=shown(loop.iter, 40))
                    return


def _over_folds(program: Program, loop: ast.For) -> bool:
    if any(map(_FOLD.search, names_in(loop.target))):
        return True
    calls = within(loop.iter, ast.Call)
    return any(re.search(r"k_?fold", ast.unparse(one.func), re.IGNORECASE) or _kfold(program, one) for one in calls)


def _kfold(program: Program, call: ast.Call) -> bool:
    held = object_of(call) if method_of(call) == "split" else None
    made = flow(program).origin(held) if held is not None else None
    return isinstance(made, ast.Call) and "KFold" in ast.unparse(made.func)


# --- the best model ---


@reads("best value never changes")
def _best(program: Program) -> Iterator[Spot]:
    """Find `best = inf` with `if loss > best`, and `best = 0` with `if accuracy < best`."""
    for node in program.every(ast.If):
        test, unset = _test_of(node)
        if test is None:
            continue
        for (value, best), turned in zip(both_ways(test), (False, True), strict=True):
            sets = [one for one in node.body if isinstance(one, ast.Assign) and _assigns(one, best, value)]
            begin = math.nan if sets and unset else _begin(program, best) if sets else None
            if begin is None or not compares(test, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            rises = isinstance(test.ops[0], ast.Gt | ast.GtE) is not turned
            falls = _FALLS.search(ast.unparse(value)) is not None
            named_so = falls or _RISES.search(ast.unparse(value)) is not None
            never = begin == (math.inf if rises else -math.inf)
            if never or (not rises and begin == 0 and named_so) or (unset and falls is rises and named_so):
                facts = {"best": ast.unparse(best), "begin": "None" if unset else f"{begin:g}"}
                yield spot(test, sets[0], text=shown(test), **facts)


def _test_of(node: ast.If) -> tuple[ast.Compare | None, bool]:
    """Return the comparison in a condition, and whether `best is None or` precedes it."""
    test, unset = node.test, False
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and compares(test.values[0], ast.Is):
        test, unset = test.values[-1] if len(test.values) == 2 else test, True
    return (test, unset) if isinstance(test, ast.Compare) and len(test.ops) == 1 else (None, False)


def _assigns(node: ast.Assign, best: ast.expr, value: ast.expr) -> bool:
    target, given = node.targets[0], node.value
    pairs = [(target, given)]
    if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple) and len(target.elts) == len(given.elts):
        pairs = list(zip(target.elts, given.elts, strict=True))
    wanted = ast.unparse(best), ast.unparse(value)
    return any((ast.unparse(one), ast.unparse(other)) == wanted for one, other in pairs)


def _begin(program: Program, best: ast.expr) -> float | None:
    """Return the first value of the best value."""
    bounds: list[Bound] = []
    if isinstance(best, ast.Name):
        bounds = program.bindings(program.scope(best), best.id)
        bounds = [one for one in bounds if not program.loops(one.statement)]
    elif isinstance(best, ast.Attribute):
        bounds = [one for one in program.attribute(program.owner(best), best.attr) if not one.path]
    first = bounds[0].value if bounds else None
    return None if first is None else _infinite(program, first)


def _infinite(program: Program, node: ast.expr) -> float | None:
    if is_negative(node):
        inner = _infinite(program, node.operand)
        return -inner if inner is not None else None
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float" and node.args:
        text = str(constant(node.args[0])).lower().strip()
        return {"inf": math.inf, "-inf": -math.inf, "infinity": math.inf}.get(text)
    if program.names.full(node) in {"math.inf", "numpy.inf", "torch.inf"}:
        return math.inf
    return number(node)


@reads("patience never reset")
def _patience(program: Program) -> Iterator[Spot]:
    """Find a counter of rounds without improvement that no improvement sets to 0."""
    for node in program.every(ast.AugAssign):
        name = ast.unparse(node.target)
        branch, repeated = program.nearest(node, ast.If), _repeated(program, node)
        counts = isinstance(node.op, ast.Add) and constant(node.value) == 1 and _WAITED.search(name)
        if not counts or branch is None or not repeated:
            continue
        better = branch.orelse if any(holds(part, node) for part in branch.body) else branch.body
        other = [one for part in better for one in within(part, ast.Assign)]
        keeps = any("best" in ast.unparse(target) for one in other for target in one.targets)
        ends = any(name in ast.unparse(one) for one in program.every(ast.Compare))
        resets = any(_sets_anew(one, name) for part in repeated for one in within(part, ast.Assign))
        if keeps and ends and not resets:
            yield spot(node, branch, name=name)


def _repeated(program: Program, node: ast.AST) -> list[ast.AST]:
    """Return the code around a statement that runs repeatedly: a loop, or the methods of its class."""
    loops, owner = program.loops(node), program.owner(node)
    if loops:
        return [loops[-1]]
    return [method for name, method in owner.methods.items() if name != "__init__"] if owner is not None else []


def _sets_anew(node: ast.Assign, name: str) -> bool:
    parts = [one for target in node.targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return any(ast.unparse(one) == name for one in parts)


# --- totals ---


@reads("total of the last layer only")
def _last_layer(program: Program) -> Iterator[Spot]:
    """Find `total = 0` before `for layer in layers: x, total = layer(x)`, and a total that only a later line reads."""
    for loop in program.every(ast.For):
        around = program.function(loop)
        if around is None or not _over_layers(program, loop):
            continue
        sets = [one for one in within(loop, ast.Assign) if _asks_layer(one, loop)]
        for name in sorted(names_in(*(one.targets[0] for one in sets))):
            mine = [one for one in sets if _sets_anew(one, name)]
            uses = [one for one in within(around, ast.Name) if one.id == name]
            inside = set(within(loop, ast.Name))
            alone = sum(one in inside for one in uses) == len(mine) == 1
            later = any(isinstance(one.ctx, ast.Load) and one.lineno > (loop.end_lineno or 0) for one in uses)
            if alone and later and _begins_at_zero(program, around, name, loop):
                over = f"for {shown(loop.target)} in {shown(loop.iter)}"
                yield spot(mine[0], loop, text=shown(mine[0]), name=name, loop=over)


def _over_layers(program: Program, loop: ast.For) -> bool:
    """Tell whether a loop goes to its end over the parts of a model: layers, modules or parameters."""
    ends = any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(loop))
    over = ast.unparse(loop.iter)
    held = any(modules(program, Value(one)) is not None for one in within(loop.target, ast.Name))
    owner = program.owner(loop)
    inside = "self." in over and owner is not None and owner.is_module
    parts = re.search(r"(^|[._])(\w*layers?|flows?|bijectors?|couplings?)\b|(modules|children|parameters)\(", over)
    return not ends and (held or inside or bool(parts))


def _asks_layer(node: ast.Assign, loop: ast.For) -> bool:
    """Tell whether a value comes from a call of what a loop goes over, or of a method of it."""
    called = node.value.func if isinstance(node.value, ast.Call) else None
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in names_in(loop.target)


def _begins_at_zero(program: Program, around: ast.AST, name: str, loop: ast.For) -> bool:
    """Tell whether a name holds zeros when a loop begins."""
    scope = program.scope(loop)
    before = [one for one in program.bindings(scope, name) if one.line < loop.lineno]
    value = before[-1].value if before and scope is around and before[-1].item is None else None
    kind = callee_of(value)
    given = value.args[0] if isinstance(value, ast.Call) and kind == "tensor" and value.args else value
    return number(given) == 0 or kind in {"zeros", "zeros_like", "new_zeros"}


RULES = rules_of(globals())
