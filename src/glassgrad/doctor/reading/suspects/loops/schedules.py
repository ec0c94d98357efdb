"""Suspects about schedules of the rate: where they are stepped, and their numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import Iteration, iterations, rounds, trainings
from glassgrad.doctor.reading.nodes import arguments, callee_of, factors_of, ident, is_op, names_in, within
from glassgrad.doctor.reading.program import LOOPS, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import source, text
from glassgrad.doctor.reading.suspects.loops.training import (
    conditions,
    given_number,
    optimizers,
    schedule_name,
    schedule_of,
    schedules,
)

_RATE = r"^(((base|init|initial|max|min|peak|start|end|final|top)_?)?(lr|learning_rate|rate)|lr_?(0|init|max|min))$"


@suspects_each("schedule in the loop over batches", rounds)
def _in_batches(program: Program, outer: Iteration) -> Iterator[Spot]:
    trained = [one.loops for one in outer.of("backward")]
    for event in outer.of("schedule"):
        made = schedule_of(program, event)
        if event.loops and event.loops in trained and made is not None and _of_epochs(program, made.node):
            yield look_at(event.node, made.node, made=shown(made.node))


def _of_epochs(program: Program, call: ast.expr) -> bool:
    """Tell whether a schedule looks as if its numbers counted epochs."""
    name = schedule_name(program, call)
    given = arguments(call)[1:] if isinstance(call, ast.Call) else []
    words = " ".join([text(call), *(text(one.node) for part in given for one in flow(program).ends(part))])
    if not isinstance(call, ast.Call) or re.search(r"iter|len\(|batch|\bsteps|_steps", words):
        return False
    if name in {"ExponentialLR", "MultiplicativeLR"}:
        return (given_number(program, call, "gamma", 1) or 0.9) < 0.998
    length = given_number(program, call, "step_size", 1) if name == "StepLR" else None
    if name == "CosineAnnealingLR":
        length = given_number(program, call, "T_max", 1)
        return "epoch" in text(call) or (length is not None and length <= 50)
    return name in {"StepLR", "MultiStepLR", "ReduceLROnPlateau"} and (length is None or length <= 100)


@suspects("schedule in the loop over epochs")
def _in_epochs(program: Program) -> Iterator[Spot]:
    for outer in rounds(program):
        inner = [one for one in outer.of("backward") if one.loops]
        for event in outer.own("schedule"):
            made = schedule_of(program, event)
            name = schedule_name(program, made.node) if made is not None else ""
            steps = made is not None and (_of_batches(name, made.node) or _of_steps(program, name, made.node))
            if made is not None and inner and name and steps:
                yield look_at(event.node, made.node, made=shown(made.node))
    yield from _by_lightning(program)


def _by_lightning(program: Program) -> Iterator[Spot]:
    """Find a schedule of batches that `configure_optimizers` returns: Lightning steps it once an epoch."""
    for name, made in schedules(program):
        function = program.function(made)
        theirs = function is not None and function.name == "configure_optimizers" and "interval" not in text(function)
        if theirs and _of_batches(name, made):
            yield spot(made, text="step() by Lightning", made=shown(made))


def _of_batches(name: str, made: ast.expr) -> bool:
    """Tell whether the numbers of a schedule count batches."""
    counts = re.search(r"len\(|steps_per_epoch|total_steps|training_steps|iters", text(made))
    return name in {"OneCycleLR", "CyclicLR"} or counts is not None


def _of_steps(program: Program, name: str, made: ast.expr) -> bool:
    """Tell whether the function of a schedule counts steps by its parameter and warms up, or is Vaswani's formula."""
    given = argument(made, "lr_lambda", 1) if name == "LambdaLR" and isinstance(made, ast.Call) else None
    for one in flow(program).ends(given) if given is not None else ():
        function = program.functions.get(one.node.id) if isinstance(one.node, ast.Name) else one.node
        if not isinstance(function, ast.Lambda | ast.FunctionDef) or not function.args.args:
            continue
        counts = re.search(r"(?i)^(step|it|iter|batch|update)", function.args.args[0].arg) and "epoch" not in text(made)
        if counts and re.search(r"warm|\*\* \(?-", text(function)):
            return True
    return False


@suspects_rows("factor of a schedule", schedules)
def _factor(program: Program, name: str, made: ast.Call) -> object:
    """Find factors that raise the rate or end the training at once."""
    key, place = {
        "StepLR": ("gamma", 2),
        "MultiStepLR": ("gamma", 2),
        "ExponentialLR": ("gamma", 1),
        "ReduceLROnPlateau": ("factor", 2),
    }.get(name, ("", -1))
    factor = given_number(program, made, key, place) if key else None
    least = 0.65 if name == "ExponentialLR" else 0.02
    each = name == "StepLR" and given_number(program, made, "step_size", 1) == 1 and (factor or 0.1) <= 0.5
    return (each or (factor is not None and (factor > 1 or factor <= least))) and look_at(made)


@suspects_each("length of a cosine", rounds)
def _cosine(program: Program, outer: Iteration) -> Iterator[Spot]:
    """Find a T_max below the number of epochs: the rate rises again."""
    epochs = _epochs(program, outer)
    for event in outer.own("schedule"):
        made = schedule_of(program, event)
        call = made.node if made is not None else None
        if not isinstance(call, ast.Call) or schedule_name(program, call) != "CosineAnnealingLR":
            continue
        length = given_number(program, call, "T_max", 1)
        if length is not None and epochs is not None and not 0.9 * epochs <= length <= 1.2 * epochs:
            yield look_at(call, event.node, length=f"{length:g}", epochs=f"{epochs:g}")


def _epochs(program: Program, outer: Iteration) -> float | None:
    source_ = outer.node.iter if isinstance(outer.node, ast.For) else None
    if isinstance(source_, ast.Call) and callee_of(source_) in {"range", "trange"} and len(source_.args) == 1:
        return setting(program, source_.args[0])
    return None


@suspects_rows("multiplier that is a rate", schedules)
def _multiplier(program: Program, name: str, made: ast.Call) -> Iterator[Spot]:
    """Find a function for LambdaLR that returns a rate instead of a factor."""
    given = argument(made, "lr_lambda", 1) if name == "LambdaLR" else None
    if any(given_number(program, one, "lr", 1) == 1 for one in optimizers(program)):
        return  # the product with 1 is the rate
    for one in flow(program).ends(given) if given is not None else ():
        function = _function(program, one)
        for result in _results(function) if function is not None else ():
            if _is_rate(result):
                yield look_at(result, made, made=shown(made))


def _function(program: Program, value: Value) -> ast.AST | None:
    if isinstance(value.node, ast.Lambda):
        return value.node
    name = value.node.id if isinstance(value.node, ast.Name) else ""
    name = value.node.attr if isinstance(value.node, ast.Attribute) else name
    return program.functions.get(name)


def _results(function: ast.AST) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [one.value for one in within(function, ast.Return) if one.value is not None]


def _is_rate(node: ast.expr) -> bool:
    if any(isinstance(one, ast.Div | ast.FloorDiv) for one in ast.walk(node)) and "lr" in text(node).lower():
        last_part = [one for one in ast.walk(node) if is_op(one, ast.Div)]
        if any(re.search(r"lr|rate", text(one.right), re.IGNORECASE) for one in last_part):
            return False
    factors = [ident(it) for one in within(node, ast.BinOp) for it in factors_of(one)]
    names = {one for one in (*names_in(node), *factors) if re.fullmatch(_RATE, one, re.IGNORECASE)}
    value = number(node)
    return bool(names) or "['lr']" in text(node) or (value is not None and 0 < value < 0.02)


@suspects_each("warm-up by a whole number", operations(ast.Div | ast.FloorDiv))
def _warm(program: Program, node: ast.BinOp) -> object:
    """Find `step // warmup`, and `warmup / step` outside of a root."""
    left, right = text(node.left), text(node.right)
    if "warm" not in f"{left} {right}".lower():
        return False
    whole = isinstance(node.op, ast.FloorDiv) and re.search(r"warm", right, re.IGNORECASE)
    turned = isinstance(node.op, ast.Div) and re.fullmatch(r"([\w.]+ \* )?[\w.]*warm[\w.]*", left, re.IGNORECASE)
    counts = re.search(r"step|epoch|iter|\bi\b|\bt\b", left if whole else right)
    rooted = any("sqrt" in text(one) or "** 0.5" in text(one) for one in list(program.outward(node))[:3])
    odd = counts and (whole or (turned and not rooted)) and not re.search(r"len\(|total|max|num", right)
    return odd and look_at(node, program.statement(node))


@suspects_each("power before a division", ast.expr)
def _power(program: Program, node: ast.expr) -> object:
    """Find `gamma ** epoch // 30`, which Python reads as `(gamma ** epoch) // 30`."""
    left = node.left if is_op(node, ast.FloorDiv) else None
    while is_op(left, ast.Mult):
        left = left.right
    exponent = text(left.right) if is_op(left, ast.Pow) else ""
    return re.search(r"epoch|step|iter|\bi\b|\bt\b", exponent) and look_at(node, program.statement(node))


@suspects("decay upon decay")
def _compound(program: Program) -> Iterator[Spot]:
    """Find `lr = lr * gamma ** epoch` in a loop, which multiplies all earlier decays."""
    for node in program.nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
            target, value = text(node.target), node.value
        elif isinstance(node, ast.Assign) and text(node.targets[0]) in text(node.value):
            target, value = text(node.targets[0]), node.value
        else:
            continue
        powers = [one for one in ast.walk(value) if is_op(one, ast.Pow)]
        grows = [one for one in powers if re.search(r"epoch|step|iter", text(one.right))]
        used = isinstance(node, ast.AugAssign) or re.search(rf"(?<![\w'.])({re.escape(target)})(?!\w)", text(value))
        if grows and used and re.search(r"lr|rate|eps|beta|temp", target, re.IGNORECASE):
            yield look_at(node)


@suspects_each("rate multiplied at each batch", trainings)
def _each_batch(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find `group["lr"] *= 0.1` in the loop over batches."""
    outer = any(isinstance(node, LOOPS) for node in program.outward(one.node))
    for node in within(one.node, ast.AugAssign) if isinstance(one.node, LOOPS) and outer else ():
        less = isinstance(node.op, ast.Mult | ast.Div)
        if less and text(node.target).endswith(("['lr']", ".lr")):
            counted = any("%" in text(test) for test in conditions(program, node, one.node))
            if not counted or any("epoch" in text(test) for test in conditions(program, node, one.node)):
                yield look_at(node)


@suspects_each("argument of a schedule's step", iterations)
def _metric(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a metric given to a schedule that counts, an epoch given to a plateau, and the loss of one batch."""
    for event in one.own("schedule"):
        made = schedule_of(program, event)
        name = schedule_name(program, made.node) if made is not None else ""
        call = event.node
        if not name or not isinstance(call, ast.Call) or len(arguments(call)) != 1:
            continue
        given = text(arguments(call)[0])
        metric = re.search(r"loss|acc|metric|score|err", given, re.IGNORECASE)
        count = re.fullmatch(r"epoch|step|i|it|iteration|global_step|self\.epoch|epoch \+ 1", given)
        plateau = name == "ReduceLROnPlateau"
        if (metric and not plateau) or (count and plateau):
            yield look_at(call, made.node if made is not None else call, name=name)


@suspects_rows("schedule that counts examples", schedules)
def _examples(program: Program, _: str, made: ast.Call) -> Iterator[Spot]:
    """Find `steps_per_epoch=len(dataset)`, a number of examples instead of batches."""
    for given in arguments(made)[1:]:
        for one in (given, *(end.node for end in flow(program).ends(given))):
            examples = r"len\((self\.)?(\w*(data|set|ds)|x\w*|inputs?|\w*examples|\w+\.dataset)\)"
            found = re.search(examples, text(one), re.IGNORECASE)
            if found and "//" not in text(one) and "/ " not in text(one) and "loader" not in found[0]:
                yield look_at(made, given, length=found[0])
                break


@suspects("two schedules of one optimizer")
def _twice(program: Program) -> Iterator[Spot]:
    """Find two schedules with two names that change the rate of the same optimizer."""
    seen: dict[tuple[str, ast.AST | None], str] = {}
    if re.search(r"SequentialLR|ChainedScheduler", source(program)):
        return
    for _, made in schedules(program):
        kept = program.parents.get(made)
        key = (text(argument(made, "optimizer", 0)), program.function(made))
        alone = not any(isinstance(one, ast.If | ast.Match) for one in program.outward(made))
        if not alone or not isinstance(kept, ast.Assign):
            continue
        if seen.setdefault(key, text(kept.targets[0])) != text(kept.targets[0]):
            yield look_at(made, optimizer=key[0])


@suspects_each("cosine without pi", ast.Call)
def _angle(program: Program, call: ast.Call) -> object:
    """Find `cos(epoch / epochs)` for a rate, which never leaves the neighbourhood of 1."""
    given = text(call.args[0]) if callee_of(call) == "cos" and len(call.args) == 1 else ""
    share = re.search(r"(epoch|step|iter|\bt|\bi)\w* / |progress", given)
    odd = share and not re.search(r"pi\b|PI\b|3\.14|div_term|freq|theta|\bbeta\b", given)
    return odd and look_at(call, program.statement(call))
