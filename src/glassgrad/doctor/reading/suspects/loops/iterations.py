"""Suspects about the order of an iteration: gradients, steps, accumulation, clipping, scaling, by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import Event, Iteration, iterations, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import arguments, callee_of, is_op, mentions, names_in, within
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import has_call, source, text
from glassgrad.doctor.reading.suspects.loops.training import any_target_text, conditions, optimizers

_TRAINS = re.compile(r"(compute_|get_|training_)?(loss|criterion)|training_step|train_step")
_CLEARS = re.compile(r"zero_grad|\.grad = |\.grad\.(data\.)?(zero_|fill_)")
_LOGS = re.compile(r"log|print|eval|save|report|best|verbose|valid|rank|loss.* [<>]", re.IGNORECASE)
_OTHERS = re.compile(
    r"target|teacher|large|frozen|pretrain|soft|next|old|ref|fake|ema|noise|label|neg|momentum|mask|acc|pred|metric|critic|value|return",
    re.IGNORECASE,
)


# --- zero_grad, backward, step ---


@suspects_each("gradients that nothing clears", trainings)
def _never_cleared(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a backward pass and a step in a loop without zero_grad in that loop."""
    steps, passes = one.of("step"), one.own("backward")
    inside = one.of("zero") or _CLEARS.search(text(one.node)) or _calls_one_that_clears(program, one.node)
    known = one.whole or re.search(r"train|step|fit|update|epoch|optimi", getattr(one.node, "name", ""))
    closure = isinstance(one.node, FUNCTIONS) and all(it.loops for it in steps)
    if steps and not inside and known and not closure:
        elsewhere = "only outside of the loop" if "zero_grad" in source(program) else "nowhere"
        yield from (look_at(event.node, where=elsewhere) for event in (passes[0], steps[0]))


def _calls_one_that_clears(program: Program, node: ast.AST) -> bool:
    """Tell whether a part of a script calls a function that clears gradients by hand."""
    clears = {one.name for one in program.nodes if isinstance(one, FUNCTIONS) and _CLEARS.search(text(one))}
    return any(callee_of(one) in clears for one in within(node, ast.Call))


@suspects_each("gradients cleared in some rounds", trainings)
def _sometimes(program: Program, one: Iteration) -> object:
    """Find zero_grad under a condition that the step does not share."""
    zeros, steps = one.own("zero"), one.own("step")
    odd = zeros and steps and all(it.arms for it in zeros) and any(not it.arms for it in steps)
    return odd and look_at(zeros[0].node, steps[0].node, step=shown(steps[0].node))


@suspects_each("step behind the loop of its gradients", iterations)
def _behind(program: Program, one: Iteration) -> object:
    """Find a step behind an inner loop that clears and computes gradients in each round."""
    steps = [it for it in one.own("step") if it.sure]
    passes = [it for it in one.of("backward") if it.loops]
    places = list(one.events)
    if not steps or not passes or one.own("backward") or one.own("zero"):
        return False
    zeros = [it for it in one.of("zero") if it.loops == passes[0].loops]
    again = [it for it in one.of("step") if it.loops]
    odd = zeros and not again and places.index(steps[0]) > places.index(passes[-1])
    return odd and look_at(steps[0].node, zeros[0].node, zero=shown(zeros[0].node))


@suspects("gradients cleared before the step of their sum")
def _cleared(program: Program) -> Iterator[Spot]:
    """Find zero_grad in each round and a step in every n-th."""
    for one in trainings(program):
        zeros, steps = one.own("zero"), one.own("step")
        tests = [test for it in steps for test in conditions(program, it.node, one.node)]
        every = [test for test in tests if "%" in text(test)]
        before = zeros and one.events.index(zeros[0]) < one.events.index(one.own("backward")[0])
        never = all(it.sure for it in zeros) and not any(it.sure or _logs(program, it, cleared=True) for it in steps)
        if steps and every and before and never:
            yield look_at(zeros[0].node, steps[0].node, test=shown(every[0]))
    yield from _cleared_apart(program)


def _cleared_apart(program: Program) -> Iterator[Spot]:
    """Find a function that clears and computes gradients, beside another one that steps."""
    apart = [one for one in program.nodes if isinstance(one, FUNCTIONS) and ".step()" in text(one)]
    apart = [one for one in apart if not has_call(one, "backward", "zero_grad")]
    apart = [one for one in apart if re.search(r"opt\w*\.step\(\)", text(one))]
    for function in program.nodes if len(apart) == 1 else ():
        if isinstance(function, FUNCTIONS) and has_call(function, "backward") and not has_call(function, "step"):
            zeros = [one for one in within(function, ast.Call) if callee_of(one) == "zero_grad"]
            if zeros and program.owner(function) is program.owner(apart[0]):
                yield look_at(zeros[0], apart[0], test=f"{apart[0].name}()")


@suspects_each("step under another condition", trainings)
def _condition(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a step, not its backward pass, in the rounds that log, save or are the best."""
    cleared = any(it.sure for it in one.own("zero"))
    with_pass = {test for it in one.own("backward") for test in conditions(program, it.node, one.node)}
    for event in one.own("step"):
        for test in list(conditions(program, event.node, one.node))[:1]:
            logs = _LOGS.search(text(test)) or _logs(program, event, cleared)
            other = test not in with_pass and not re.search(r"train|accum|scaler", text(test))
            if event.arms and logs and other:
                yield look_at(event.node, test=shown(test))


def _logs(program: Program, event: Event, cleared: bool) -> bool:
    """Tell whether the branch of a step also prints, although each round clears the gradients."""
    around = program.nearest(event.node, ast.If)
    return cleared and around is not None and has_call(around, "print", "info", "log", "add_scalar", "write")


@suspects_each("rounds of an accumulation", trainings)
def _rounds(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find `i % n == 0` for a counter from 0, whose first step comes after one batch, and `i + 1 % n`."""
    summed = all(it.sure for it in one.own("backward"))
    for event in one.own("step") if summed else ():
        for test in conditions(program, event.node, one.node):
            if any(_misses(program, one.node, node) for node in ast.walk(test)):
                yield look_at(test, event.node)


def _misses(program: Program, loop: ast.AST, node: ast.AST) -> bool:
    """Tell whether a condition is true in the first round, or takes the remainder of 1."""
    modulo = node.left if isinstance(node, ast.Compare) else node
    if not is_op(modulo, ast.Mod):
        return False
    counter = text(modulo.left)
    zero = isinstance(node, ast.Compare) and number(node.comparators[0]) == 0
    return counter == "1" or (zero and counter.isidentifier() and _from_zero(program, loop, counter))


def _from_zero(program: Program, loop: ast.AST, counter: str) -> bool:
    """Tell whether a loop counts a variable from 0."""
    over = loop.iter if isinstance(loop, ast.For) else None
    counts = isinstance(loop, ast.For) and mentions(loop.target, counter)
    begins = isinstance(over, ast.Call) and callee_of(over) in {"enumerate", "range", "trange", "tqdm"}
    return counts and begins and not re.search(r"start=1|, 1\)$|range\(1", text(over))


_SIZE = re.compile(r"\w*batch_size\w*|bs|B|len\(\w+\)|\w+\.size\(0\)|\w+\.shape\[0\]|\w+\.batch_size")


@suspects("loss divided by the size of the batch")
def _divided(program: Program) -> Iterator[Spot]:
    """Find `loss / batch_size` before the backward pass of a loss that is a mean."""
    if re.search(r"reduction='(sum|none)'|size_average|\.sum\(", source(program)):
        return
    for one in trainings(program):
        for event in one.own("backward"):
            scaled = [it.node for it in flow(program).ends(event.value) if isinstance(it.node, ast.BinOp)]
            for node in scaled:
                by = text(node.right) if isinstance(node.op, ast.Div) else ""
                whole = re.escape(text(node.left))
                summed = re.search(rf"\b{whole} (\+=|= {whole} \+)", source(program))
                if not summed and _SIZE.fullmatch(by):
                    yield look_at(node, event.node)


@suspects_each("backward on a running sum", trainings)
def _running(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find `total = total + loss` and `total.backward()` in one loop."""
    for event in one.own("backward"):
        name = text(event.value.node)
        if not isinstance(one.node, LOOPS) or not name.isidentifier() or event.chain:
            continue
        sets = [node for node in within(one.node, ast.stmt) if any_target_text(node) == name]
        adds = [node for node in sets if _adds(node, name) and program.loops(node)[:1] == [one.node]]
        fresh = [node for node in sets if node not in adds]
        if adds and not fresh:
            yield look_at(adds[0], event.node)
            yield spot(event.node, text=shown(adds[0]))


def _adds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add)
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and mentions(node.value, name)


@suspects_each("graph kept in a training", trainings)
def _retained(program: Program, one: Iteration) -> Iterator[Spot]:
    passes = one.of("backward")
    for event in passes if len(passes) == 1 else ():
        if isinstance(event.node, ast.Call) and "retain_graph=True" in text(event.node):
            yield look_at(event.node)


@suspects_each("backward pass in some rounds", trainings)
def _some_passes(program: Program, one: Iteration) -> object:
    """Find a backward pass under a condition, and a step under none."""
    passes, steps = one.own("backward"), one.own("step")
    if len(passes) != 1 or not steps or passes[0].chain or any(it.chain for it in steps):
        return False
    tests = set(conditions(program, passes[0].node, one.node))
    odd = tests and not any(tests & set(conditions(program, it.node, one.node)) for it in steps)
    return odd and look_at(passes[0].node, steps[0].node, step=shown(steps[0].node))


@suspects_each("step that waits for a count", trainings)
def _counted(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find a step under `if count >= size`."""
    for event in one.own("step"):
        for test in list(conditions(program, event.node, one.node))[:1]:
            parts = within(test, ast.Compare)
            numbers = r"count|since|seen|accum|pending|num_|^n_|^n "
            counts = [part for part in parts if re.search(numbers, text(part.left))]
            if event.arms and counts and "%" not in text(test) and not isinstance(counts[0].ops[0], ast.In | ast.Is):
                yield look_at(test, event.node)
                yield spot(event.node, text=shown(test))


_PAIRS = {
    ("backward", "zero", "backward"): "clears the gradients of the pass before it, and no step has used them",
    ("backward", "step", "step"): "takes a second step with the same gradients",
    ("zero", "backward", "backward"): "adds the same gradients again",
}
"""Three events in a row, and what the wrong one of them does: the second, or the third if it repeats the second."""


@suspects_each("passes and steps that do not pair", trainings)
def _pairs(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find zero_grad between two backward passes of one step, one loss walked twice, and two steps of one pass."""
    plain = [it for it in one.events if it.sure and not it.loops and it.kind in {"zero", "backward", "step"}]
    for first, second, third in zip(plain, plain[1:], plain[2:], strict=False):
        how = _PAIRS.get((first.kind, second.kind, third.kind), "")
        if second.kind == "zero" and len({it.receiver for it in plain if it.kind == "zero"}) > 1:
            continue  # of another model
        repeats = second.kind == third.kind
        if how and (second.receiver == third.receiver or not repeats) and any(it.kind == "step" for it in plain):
            wrong = third if repeats else second
            yield look_at(wrong.node, first.node, how=how)


@suspects_each("loss changed behind its backward pass", trainings)
def _late(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find `loss += penalty` or `loss = loss / n` behind `loss.backward()`."""
    for event in one.own("backward"):
        name = text(event.value.node)
        around = [*program.loops(event.node)[:1], program.function(event.node)][0]
        for node in within(around, ast.stmt) if name.isidentifier() and around is not None else ():
            if _adds_to(node, name) and node.lineno > event.node.lineno:
                yield look_at(node, event.node, loss=name)


def _adds_to(node: ast.AST, name: str) -> bool:
    """Tell whether a statement adds something to a variable, or divides it, with its graph."""
    if any_target_text(node) != name or "item()" in text(node):
        return False
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add | ast.Div | ast.Sub)
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.BinOp) and mentions(value, name) and isinstance(value.op, ast.Add | ast.Div | ast.Sub)


_FORCED = (
    r"\w*loss\w*\.requires_grad( = True|_\()",
    r"\w*loss\w* = (\w+\.)*(Variable|tensor|Tensor)\(\w*loss\w*.*requires_grad=True",
)


@suspects_each("gradient switched on at the loss", ast.Assign | ast.Expr)
def _forced(program: Program, node: ast.Assign | ast.Expr) -> object:
    """Find `loss.requires_grad = True`, and a new tensor made of the loss."""
    return any(re.match(form, text(node)) for form in _FORCED)


# --- clipping and scaling ---


@suspects_each("bound of clipped gradients", ast.Call)
def _bound(program: Program, call: ast.Call) -> object:
    name = last(program.names.full(call.func))
    if name not in {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"}:
        return False
    given = argument(call, "clip_value" if "value" in name else "max_norm", 1)
    bound = setting(program, given) if given is not None else None
    rate = re.search(r"(^|_|\.)lr$|learning_rate", text(given))
    odd = rate or (bound is not None and not (0.001 if "value" in name else 0.05) < bound < 500)
    return odd and look_at(call, bound=text(given))


@suspects("other gradients are clipped")
def _other(program: Program) -> Iterator[Spot]:
    """Find a clip of a part of the weights of the only optimizer, or of another model in its function."""
    made = optimizers(program)
    trained = _owner(argument(made[0], "params", 0)) if len(made) == 1 else ""
    for call in program.calls if trained else ():
        clips = last(program.names.full(call.func)).startswith("clip_grad_")
        given = argument(call, "parameters", 0) if clips else None
        clipped = _owner(given)
        here = program.function(call) is program.function(made[0])
        if clipped.startswith(f"{trained}.") or (clipped and clipped != trained and here):
            yield look_at(call, made[0], trained=trained)


def _owner(node: ast.expr | None) -> str:
    """Return `a.b` of `a.b.parameters()`."""
    found = re.fullmatch(r"([\w.]+)\.parameters\(\)", text(node))
    return found[1] if found is not None else ""


@suspects_each("scaler used in part", trainings)
def _scaler(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find scaled passes with plain steps, scaled steps after plain passes, and no update()."""
    for event in one.own("backward"):
        beside = [it for it in one.own("step") if it.beside(event)]
        scaled = "scale(" in text(event.value.node)
        through = [it for it in beside if isinstance(it.node, ast.Call) and it.node.args]
        plain = [it for it in beside if it not in through]
        if scaled and plain and not through:
            yield look_at(plain[0].node, event.node, how="takes gradients that are scaled")
        elif scaled and through and not has_call(program.tree, "update", "amp_update"):
            how = "is never followed by update(), so the scale stays"
            yield look_at(through[0].node, event.node, how=how)
        elif not scaled and through and not plain and "scaler" in text(through[0].node):
            how = "divides gradients by a scale that no loss was multiplied with"
            yield spot(event.node, through[0].node, text=shown(through[0].node), how=how)


# --- gradients switched off ---


@suspects("part of the model without gradients")
def _switched(program: Program) -> Iterator[Spot]:
    """Find `with no_grad():` around a layer whose result the rest of the training or of forward uses."""
    for block in program.every(ast.With):
        if not any("no_grad" in text(one.context_expr) for one in block.items):
            continue
        around = _training_around(program, block)
        for node in block.body if around is not None else ():
            value = node.value if isinstance(node, ast.Assign) else None
            models = r"self\.|\w*model|\w*net\b|\w*encoder|\w*backbone"
            made = isinstance(value, ast.Call) and re.match(models, text(value))
            uses = [one for one in within(around or block, ast.Name) if one.id == any_target_text(node)]
            later = any(one.lineno > (block.end_lineno or 0) for one in uses)
            if made and later and not _OTHERS.search(f"{any_target_text(node)} {text(value)}"):
                yield spot(block, node, text=shown(node))
    for forward in (one.methods.get("forward") for one in program.modules()):
        for call in ast.walk(forward) if forward is not None else ():
            entered = program.method(program.owner(call), callee_of(call)) if isinstance(call, ast.Call) else None
            for mark in entered.decorator_list if entered is not None else ():
                if "no_grad" in text(mark) and isinstance(call, ast.Call) and text(call.func).startswith("self."):
                    yield spot(mark, call, text=shown(call))


def _training_around(program: Program, block: ast.With) -> ast.AST | None:
    """Return the loop or function that holds a block and, behind it, a backward pass, or the forward method."""
    function = program.function(block)
    if function is not None and function.name == "forward":
        return function
    around: list[ast.AST] = [*program.loops(block)[:1], *([function] if function is not None else [])]
    for one in around:
        inside = [call for call in program.calls if one in program.outward(call)]
        if any(callee_of(call) == "backward" and call.lineno > block.lineno for call in inside):
            return one
    return None


@suspects("gradients switched off for good")
def _off(program: Program) -> Iterator[Spot]:
    """Find `set_grad_enabled(False)` without a return, and functions that train under a decorator no_grad."""
    calls = [one for one in program.calls if callee_of(one) == "set_grad_enabled"]
    off = [one for one in calls if text(one.args[0] if one.args else None) == "False"]
    bare = [one for one in off if isinstance(program.parents.get(one), ast.Expr)]
    if bare and len(off) == len(calls) and has_call(program.tree, "backward"):
        yield look_at(bare[0])
    for function in program.nodes:
        marks = function.decorator_list if isinstance(function, FUNCTIONS) else []
        marks = [one for one in marks if re.search(r"no_grad|inference_mode", text(one))]
        if (
            isinstance(function, FUNCTIONS)
            and marks
            and (has_call(function, "backward") or _TRAINS.fullmatch(function.name))
        ):
            yield spot(marks[0], function, text=f"@{shown(marks[0])}")


# --- updates by hand ---


@suspects("update that makes a new tensor")
def _rebound(program: Program) -> Iterator[Spot]:
    """Find `w = w - lr * w.grad`, and `p = p - ...` for the variable of a loop over parameters."""
    for node in program.every(ast.Assign):
        target, value = node.targets[0], node.value
        plain = isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and text(target) in names_in(value)
        if plain and re.search(rf"\b{text(target)}\.grad\b", text(value)):
            around = program.around(node)
            name = text(target)
            kept = re.search(rf"{name}\.(requires_grad_|retain_grad)|{name}\.requires_grad = True", text(around))
            if not kept:
                yield look_at(node, name=text(target))


@suspects("update up the slope")
def _up(program: Program) -> Iterator[Spot]:
    """Find `w += lr * w.grad`."""
    for node in program.nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target, value = text(node.target), node.value
            signed = any(isinstance(one, ast.USub | ast.Sub) for one in ast.walk(value))
            slope = re.search(r"\.grad\b", text(value)) and isinstance(value, ast.BinOp)
            if slope and not signed and "grad" not in target:
                yield look_at(node)
        elif isinstance(node, ast.Call) and callee_of(node) == "add_" and isinstance(node.func, ast.Attribute):
            given = " ".join(text(one) for one in arguments(node))
            held = re.match(r"(p|w|param|weight|\w+\.weight|\w+\.data|\w+\.bias)(\.data)?$", text(node.func.value))
            if held and re.search(r"\.grad\b", given) and "-" not in given:
                yield look_at(node)


@suspects_each("gradients changed before the step", ast.stmt)
def _gradients(program: Program, node: ast.stmt) -> object:
    """Find factors on gradients, and clamps of them that change nothing."""
    value = text(node.value) if isinstance(node, ast.Assign | ast.Expr) else ""
    target = any_target_text(node) if re.search(r"\.grad(\.data)?$", any_target_text(node)) else ""
    changed = re.search(r"\.grad\b.*\.(clamp|clip|mul|div|add)\(|^\w+\.clamp\(.*\.grad\b", value)
    lost = changed and isinstance(node, ast.Expr)
    scaled = isinstance(node, ast.AugAssign) and target
    turned = target and re.search(r"^-|\* -1|-1 \*", value)
    return lost or scaled or turned


_ZEROED = r"zero_grad|\.grad = None|grad(\.data)?\.(zero|fill)_|autograd\.grad|zeros_like\(.*grad"


@suspects("gradients of parameters never zeroed")
def _manual(program: Program) -> Iterator[Spot]:
    """Find an update by hand in a script that zeroes no gradient."""
    if re.search(_ZEROED, source(program)) or not has_call(program.tree, "backward"):
        return
    for node in program.every(ast.AugAssign):
        if re.search(r"\.grad\b", text(node.value)) and program.loops(node):
            yield look_at(node)
