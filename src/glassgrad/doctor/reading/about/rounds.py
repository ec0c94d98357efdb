"""Rules about epochs: schedules, folds, the best model, and variables that last from round to round."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, optimizer, setting, trained_by
from glassgrad.doctor.reading.flow import Value, flow, frames_of
from glassgrad.doctor.reading.iterations import Event, Iteration, iterations, rounds, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import mentions

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
        zeros = [event for event in one.of("zero") if event.arms]
        if count is None or not zeros or len(zeros) != len(one.of("zero")) or (setting(program, count) or 2) <= 1:
            continue
        if not _is_divided(program, passes[0], count):
            yield spot(passes[0].node, steps[0].node, *_sets(program, passes[0]), count=shown(count, 30))


def _every(test: ast.expr) -> ast.expr | None:
    """Return n of `i % n == 0`, also as one side of an `or`."""
    if isinstance(test, ast.BoolOp):
        return next((found for part in test.values if (found := _every(part)) is not None), None)
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod):
        return test.left.right
    return None


def _sets(program: Program, event: Event) -> list[ast.stmt]:
    node = event.value.node
    bound = program.bound(node) if isinstance(node, ast.Name) else None
    return [bound.statement] if bound is not None and isinstance(bound.statement, ast.stmt) else []


def _is_divided(program: Program, event: Event, count: ast.expr) -> bool:
    """Tell whether the function of a backward pass divides or averages a loss or a gradient."""
    around = program.function(event.node) or program.tree
    for node in ast.walk(around):
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
            call = event.node
            if not event.loops or not event.sure or epochs is None or not isinstance(call, ast.Call):
                continue
            schedule = flow(program).end(event.value)
            length = _length(program, schedule) if schedule is not None else None
            trained = [one for one in outer.of("backward") if one.loops == event.loops]
            if trained and schedule is not None and length is not None and epochs >= 3 and length <= epochs:
                yield spot(call, schedule.node, schedule=shown(schedule.node))


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
    if name == "MultiStepLR":
        steps = argument(call, "milestones", 1)
        end = flow(program).end(Value(steps, schedule.frame)) if steps is not None else None
        sizes = (
            [setting(program, one) for one in end.node.elts]
            if end and isinstance(end.node, ast.List | ast.Tuple)
            else []
        )
        known = [one for one in sizes if one is not None]
        return min(known) if known and len(known) == len(sizes) else None
    return None


def _epochs(program: Program, outer: Iteration) -> float | None:
    """Return the number of rounds of a loop over a range."""
    source = outer.node.iter if isinstance(outer.node, ast.For) else None
    if not isinstance(source, ast.Call) or getattr(source.func, "id", "") not in {"range", "trange"} or not source.args:
        return None
    numbers = [setting(program, one) for one in source.args[:2]]
    if None in numbers:
        return None
    known = [one for one in numbers if one is not None]
    return known[-1] - (known[0] if len(known) > 1 else 0)


@reads("schedule beyond the run")
def _beyond(program: Program) -> Iterator[Spot]:
    """Find a schedule that is stepped once an epoch and whose first change comes after the last epoch."""
    for outer in rounds(program):
        epochs = _epochs(program, outer)
        for event in outer.own("schedule"):
            schedule = flow(program).end(event.value)
            name = _name_of(program, schedule)
            length = _length(program, schedule) if schedule is not None else None
            if name not in {"StepLR", "MultiStepLR"} or length is None or epochs is None or schedule is None:
                continue
            if length >= epochs > 1:
                facts = {"length": f"{length:g}", "epochs": f"{epochs:g}"}
                yield spot(schedule.node, event.node, text=shown(schedule.node), **facts)


def _name_of(program: Program, value: Value | None) -> str:
    call = value.node if value is not None else None
    return last(program.names.full(call.func)) if isinstance(call, ast.Call) else ""


@reads("schedule never stepped")
def _never(program: Program) -> Iterator[Spot]:
    """Find a schedule that nothing steps, in a script that trains."""
    stepped = list(program.calls_of(".step"))
    for call in program.calls:
        statement = program.parents.get(call)
        full = program.names.full(call.func)
        if "lr_scheduler." not in full or not last(full)[:1].isupper() or not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        text = ast.unparse(target)
        if not isinstance(target, ast.Name | ast.Attribute) or not stepped:
            continue
        reads_it = [node for node in program.nodes if _reads(node, text.removeprefix("self."))]
        trains = any(one.of("step") for one in trainings(program))
        if trains and not reads_it:
            yield spot(call, name=text, text=shown(call))


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def per_epoch(program: Program) -> Iterator[Spot]:
    """Yield schedules that are stepped once an epoch, although `len(loader)` in their length counts batches."""
    for outer in rounds(program):
        inner = [one for one in outer.of("backward") if one.loops]
        for event in outer.own("schedule"):
            schedule = flow(program).end(event.value)
            call = schedule.node if schedule is not None else None
            if inner and isinstance(call, ast.Call) and _over_batches(program, call):
                yield spot(event.node, call, schedule=shown(call))


def _over_batches(program: Program, call: ast.Call) -> bool:
    """Tell whether the length of a schedule contains the length of a loader, and so is a number of batches."""
    places = {"CosineAnnealingLR": ("T_max", 1), "OneCycleLR": ("total_steps", 2)}
    name = last(program.names.full(call.func))
    given = argument(call, *places[name]) if name in places else None
    end = flow(program).end(given) if given is not None else None
    return end is not None and bool(re.search(r"len\(\w*(loader|dl|batches)\w*\)", ast.unparse(end.node)))


@reads("warm-up counts another number")
def _warm(program: Program) -> Iterator[Spot]:
    """Find `if step < warmup: share = i / warmup`, where i is only one summand of `step`."""
    for node in program.nodes:
        if not isinstance(node, ast.If | ast.IfExp) or not isinstance(node.test, ast.Compare):
            continue
        test = node.test
        count, limit = test.left, test.comparators[0]
        if not isinstance(test.ops[0], ast.Lt | ast.LtE) or not _WARM.search(ast.unparse(limit)):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        for one in (part for statement in body for part in ast.walk(statement)):
            division = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)
            if not division or not isinstance(one, ast.BinOp) or ast.unparse(one.right) != ast.unparse(limit):
                continue
            if _is_part(program, one.left, count):
                yield spot(one, node.test, text=shown(one), count=shown(count), limit=shown(limit))


def _is_part(program: Program, used: ast.expr, count: ast.expr) -> bool:
    """Tell whether a variable is one summand of the compared number."""
    if not isinstance(used, ast.Name) or not isinstance(count, ast.Name) or used.id == count.id:
        return False
    bound = program.bound(count)
    value = bound.value if bound is not None else None
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and mentions(value, used.id)


# --- folds ---


@reads("folds share one model")
def _folds(program: Program) -> Iterator[Spot]:
    """Find a loop over folds that trains a model which the script made before the loop."""
    for one in iterations(program):
        if not isinstance(one.node, ast.For) or not _over_folds(program, one.node) or not one.of("step"):
            continue
        for event in one.of("step"):
            made_by = optimizer(program, event.value)
            mine = trained_by(program, made_by) if made_by is not None else None
            for have in mine or []:
                held = modules(program, have)
                inside = any(node is have.node for node in ast.walk(one.node)) or _entered_within(have, one.node)
                anew = re.search(
                    r"reset_parameters|load_state_dict|deepcopy|apply\(|init_weights", ast.unparse(one.node)
                )
                if held and not inside and not anew:
                    place: list[ast.expr] = [frame.call for frame in frames_of(have.frame)]
                    place = place[-1:] or [have.node]
                    yield spot(place[0], one.node, *event.chain[:1], loop=shown(one.node.iter, 40))
                    return


def _entered_within(value: Value, loop: ast.For) -> bool:
    frame = value.frame
    while frame is not None:
        if any(node is frame.call for node in ast.walk(loop)):
            return True
        frame = frame.outer
    return False


def _over_folds(program: Program, loop: ast.For) -> bool:
    names = [one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)]
    if any(_FOLD.search(name) for name in names):
        return True
    calls = [one for one in ast.walk(loop.iter) if isinstance(one, ast.Call)]
    return any(re.search(r"k_?fold", ast.unparse(one.func), re.IGNORECASE) or _kfold(program, one) for one in calls)


def _kfold(program: Program, call: ast.Call) -> bool:
    if getattr(call.func, "attr", "") != "split" or not isinstance(call.func, ast.Attribute):
        return False
    end = flow(program).end(call.func.value)
    return end is not None and isinstance(end.node, ast.Call) and "KFold" in ast.unparse(end.node.func)


# --- the best model ---


@reads("best value never changes")
def _best(program: Program) -> Iterator[Spot]:
    """Find `best = inf` with `if loss > best`, and `best = 0` with `if accuracy < best`."""
    for node in program.nodes:
        test, unset = _test_of(node) if isinstance(node, ast.If) else (None, False)
        if not isinstance(node, ast.If) or test is None:
            continue
        sides = (test.left, test.comparators[0], test.ops[0]), (test.comparators[0], test.left, _mirrored(test.ops[0]))
        for value, best, operation in sides:
            sets = [one for one in node.body if isinstance(one, ast.Assign) and _assigns(one, best, value)]
            begin = math.nan if sets and unset else _begin(program, best) if sets else None
            if begin is None or not isinstance(operation, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            rises = isinstance(operation, ast.Gt | ast.GtE)
            never = (rises and begin == math.inf) or (not rises and begin == -math.inf)
            wrong = not rises and begin == 0 and _RISES.search(ast.unparse(value)) is not None
            small = not rises and begin == 0 and _FALLS.search(ast.unparse(value)) is not None
            falls = _FALLS.search(ast.unparse(value)) is not None
            turned = unset and falls is rises and bool(falls or _RISES.search(ast.unparse(value)))
            if never or wrong or small or turned:
                facts = {"best": ast.unparse(best), "begin": "None" if unset else f"{begin:g}"}
                yield spot(test, sets[0], text=shown(test), **facts)


def _test_of(node: ast.If) -> tuple[ast.Compare | None, bool]:
    """Return the comparison in a condition, and whether `best is None or` precedes it."""
    test = node.test
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and len(test.values) == 2:
        first, second = test.values
        unset = isinstance(first, ast.Compare) and isinstance(first.ops[0], ast.Is)
        return (second, True) if unset and isinstance(second, ast.Compare) and len(second.ops) == 1 else (None, False)
    return (test, False) if isinstance(test, ast.Compare) and len(test.ops) == 1 else (None, False)


def _mirrored(operation: ast.cmpop) -> ast.cmpop:
    turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
    return turned[type(operation)]() if type(operation) in turned else operation


def _assigns(node: ast.Assign, best: ast.expr, value: ast.expr) -> bool:
    target, given = node.targets[0], node.value
    pairs = [(target, given)]
    if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple) and len(target.elts) == len(given.elts):
        pairs = list(zip(target.elts, given.elts, strict=True))
    return any(
        ast.unparse(one) == ast.unparse(best) and ast.unparse(other) == ast.unparse(value) for one, other in pairs
    )


def _begin(program: Program, best: ast.expr) -> float | None:
    """Return the first value of the best value."""
    if isinstance(best, ast.Name):
        found = [
            one.value for one in program.bindings(program.scope(best), best.id) if not program.loops(one.statement)
        ]
    elif isinstance(best, ast.Attribute):
        found = [one.value for one in program.attribute(program.owner(best), best.attr) if one.path == ()][:1]
    else:
        return None
    return _infinite(program, found[0]) if found and found[0] is not None else None


def _infinite(program: Program, node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
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
    for node in program.nodes:
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add) or constant(node.value) != 1:
            continue
        name = ast.unparse(node.target)
        branch = next((one for one in program.outward(node) if isinstance(one, ast.If)), None)
        within = _repeated(program, node)
        if not _WAITED.search(name) or branch is None or not within:
            continue
        better = (
            branch.body if not any(one is node for part in branch.body for one in ast.walk(part)) else branch.orelse
        )
        other = [one for part in better for one in ast.walk(part) if isinstance(one, ast.Assign)]
        keeps = any("best" in ast.unparse(target) for one in other for target in one.targets)
        ends = any(isinstance(one, ast.Compare) and name in ast.unparse(one) for one in program.nodes)
        every = [one for part in within for one in ast.walk(part) if isinstance(one, ast.Assign)]
        resets = [one for one in every if _sets_anew(one, name)]
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
    for loop in program.nodes:
        around = program.function(loop) if isinstance(loop, ast.For) else None
        if not isinstance(loop, ast.For) or around is None or not _over_layers(program, loop):
            continue
        sets = [one for one in ast.walk(loop) if isinstance(one, ast.Assign) and _asks_layer(one, loop)]
        names = {it.id for one in sets for it in ast.walk(one.targets[0]) if isinstance(it, ast.Name)}
        for name in sorted(names):
            mine = [one for one in sets if _sets_anew(one, name)]
            uses = [one for one in ast.walk(around) if isinstance(one, ast.Name) and one.id == name]
            inside = {one for one in ast.walk(loop) if isinstance(one, ast.Name)}
            alone = sum(one in inside for one in uses) == len(mine) == 1
            later = [one for one in uses if isinstance(one.ctx, ast.Load) and one.lineno > (loop.end_lineno or 0)]
            if alone and later and _begins_at_zero(program, around, name, loop):
                over = f"for {shown(loop.target)} in {shown(loop.iter)}"
                yield spot(mine[0], loop, text=shown(mine[0]), name=name, loop=over)


def _over_layers(program: Program, loop: ast.For) -> bool:
    """Tell whether a loop goes to its end over the parts of a model: layers, modules or parameters."""
    ends = any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(loop))
    over = ast.unparse(loop.iter)
    targets = [one for one in ast.walk(loop.target) if isinstance(one, ast.Name)]
    held = any(modules(program, Value(one)) is not None for one in targets)
    owner = program.owner(loop)
    inside = "self." in over and owner is not None and owner.is_module
    parts = re.search(r"(^|[._])(\w*layers?|flows?|bijectors?|couplings?)\b|(modules|children|parameters)\(", over)
    return not ends and (held or inside or bool(parts))


def _asks_layer(node: ast.Assign, loop: ast.For) -> bool:
    """Tell whether a value comes from a call of what a loop goes over, or of a method of it."""
    names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    called = node.value.func if isinstance(node.value, ast.Call) else None
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in names


def _begins_at_zero(program: Program, around: ast.AST, name: str, loop: ast.For) -> bool:
    """Tell whether a name holds zeros when a loop begins."""
    scope = program.scope(loop)
    before = [one for one in program.bindings(scope, name) if one.line < loop.lineno]
    value = before[-1].value if before and scope is around and before[-1].item is None else None
    made = value.func if isinstance(value, ast.Call) else None
    kind = getattr(made, "attr", getattr(made, "id", ""))
    zero = kind == "tensor" and isinstance(value, ast.Call) and bool(value.args) and number(value.args[0]) == 0
    return number(value) == 0 or kind in {"zeros", "zeros_like", "new_zeros"} or zero


RULES = rules_of(globals())
