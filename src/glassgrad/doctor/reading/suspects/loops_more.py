"""Suspects about the order of an iteration: gradients, steps, accumulation, clipping, mixed precision, batches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import Event, iterations, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS, Loop, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.training import (
    called,
    conditions,
    has_call,
    is_within,
    names_in,
    optimizer_name,
    optimizers,
    source,
    text,
)
from glassgrad.doctor.reading.values import mentions

_LOGS = re.compile(r"log|print|eval|save|report|best|verbose|valid", re.IGNORECASE)
_OTHERS = re.compile(
    r"target|teacher|next|old|ref|fake|ema|noise|label|neg|momentum|mask|acc|pred|metric", re.IGNORECASE
)


# --- zero_grad, backward, step ---


@suspects("gradients that nothing clears")
def _never_cleared(program: Program) -> Iterator[Spot]:
    """Find a backward pass and a step in a loop without zero_grad in that loop."""
    for one in trainings(program):
        steps, passes = one.of("step"), one.own("backward")
        inside = one.of("zero") or re.search(r"zero_grad|\.grad = None|\.grad\.zero_|\.grad\.fill_", text(one.node))
        if steps and not inside and not _is_bare(one.node, steps):
            elsewhere = "only outside of the loop" if "zero_grad" in source(program) else "nowhere"
            for event in (passes[0], steps[0]):
                yield spot(event.node, text=shown(event.node), where=elsewhere)


def _is_bare(node: ast.AST, steps: list[Event]) -> bool:
    """Tell whether a part of a training is a closure, or steps in an inner loop."""
    return isinstance(node, FUNCTIONS) and all(one.loops for one in steps)


@suspects("gradients cleared in some rounds")
def _sometimes(program: Program) -> Iterator[Spot]:
    """Find zero_grad under a condition that the step does not share."""
    for one in trainings(program):
        zeros, steps = one.own("zero"), one.own("step")
        if zeros and steps and all(it.arms for it in zeros) and any(not it.arms for it in steps):
            yield spot(zeros[0].node, steps[0].node, text=shown(zeros[0].node), step=shown(steps[0].node))


@suspects("step behind the loop of its gradients")
def _behind(program: Program) -> Iterator[Spot]:
    """Find a step behind an inner loop that clears and computes gradients in each round."""
    for one in iterations(program):
        steps = [it for it in one.own("step") if it.sure]
        passes = [it for it in one.of("backward") if it.loops]
        places = list(one.events)
        if not steps or not passes or one.own("backward") or one.own("zero"):
            continue
        zeros = [it for it in one.of("zero") if it.loops == passes[0].loops]
        again = [it for it in one.of("step") if it.loops]
        if zeros and not again and places.index(steps[0]) > places.index(passes[-1]):
            for event in (steps[0], passes[0], zeros[0]):
                yield spot(event.node, text=shown(steps[0].node), zero=shown(zeros[0].node))


@suspects("gradients cleared before the step of their sum")
def _cleared(program: Program) -> Iterator[Spot]:
    """Find zero_grad in each round and a step in every n-th."""
    for one in trainings(program):
        zeros, steps = one.own("zero"), one.own("step")
        tests = [test for it in steps for test in conditions(program, it.node, one.node)]
        every = [test for test in tests if "%" in text(test)]
        before = zeros and one.events.index(zeros[0]) < one.events.index(one.own("backward")[0])
        if steps and every and before and all(it.sure for it in zeros) and not any(it.sure for it in steps):
            yield spot(zeros[0].node, steps[0].node, text=shown(zeros[0].node), test=shown(every[0]))


@suspects("step under another condition")
def _condition(program: Program) -> Iterator[Spot]:
    """Find a step in the rounds that log, save or are the best."""
    for one in trainings(program):
        for event in one.own("step"):
            for test in list(conditions(program, event.node, one.node))[:1]:
                if event.arms and _LOGS.search(text(test)) and not re.search(r"train|accum|scaler", text(test)):
                    yield spot(event.node, text=shown(event.node), test=shown(test))


@suspects("rounds of an accumulation")
def _rounds(program: Program) -> Iterator[Spot]:
    """Find `i % n == 0` for a counter from 0, whose first step comes after one batch, and `i + 1 % n`."""
    for one in trainings(program):
        for event in one.own("step"):
            for test in conditions(program, event.node, one.node):
                for node in ast.walk(test):
                    modulo = node.left if isinstance(node, ast.Compare) else node
                    plain = isinstance(modulo, ast.BinOp) and isinstance(modulo.op, ast.Mod)
                    counter = text(modulo.left) if isinstance(modulo, ast.BinOp) and plain else ""
                    zero = isinstance(node, ast.Compare) and number(node.comparators[0]) == 0
                    first = zero and re.fullmatch(r"i|idx|batch_idx|batch_i|it|j|k|b|step|n|batch|i_batch", counter)
                    if counter == "1" or (first and _from_zero(program, one.node, counter)):
                        yield spot(test, event.node, text=shown(test))
                        break


def _from_zero(program: Program, loop: ast.AST, counter: str) -> bool:
    """Tell whether a loop counts a variable from 0."""
    over = loop.iter if isinstance(loop, ast.For) else None
    counts = isinstance(loop, ast.For) and mentions(loop.target, counter)
    begins = isinstance(over, ast.Call) and called(over) in {"enumerate", "range", "trange", "tqdm"}
    return counts and begins and not re.search(r"start=1|, 1\)$|range\(1", text(over))


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
                if re.fullmatch(r"\w*batch_size\w*|bs|B|len\(\w+\)|\w+\.size\(0\)|\w+\.shape\[0\]|\w+\.batch_size", by):
                    yield spot(node, event.node, text=shown(node))


@suspects("backward on a running sum")
def _running(program: Program) -> Iterator[Spot]:
    """Find `total = total + loss` and `total.backward()` in one loop."""
    for one in trainings(program):
        for event in one.own("backward"):
            name = text(event.value.node)
            if not isinstance(one.node, LOOPS) or not name.isidentifier() or event.chain:
                continue
            sets = [node for node in ast.walk(one.node) if _assigned(node) == name]
            adds = [node for node in sets if _adds(node, name) and _loops_of(program, node) == [one.node]]
            fresh = [node for node in sets if node not in adds]
            if adds and not fresh:
                yield spot(adds[0], event.node, text=shown(adds[0]))
                yield spot(event.node, text=shown(adds[0]))


def _assigned(node: ast.AST) -> str:
    if isinstance(node, ast.Assign):
        return text(node.targets[0])
    return text(node.target) if isinstance(node, ast.AugAssign) else ""


def _adds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add)
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and mentions(node.value, name)


def _loops_of(program: Program, node: ast.AST) -> list[Loop]:
    return program.loops(node)[:1]


@suspects("graph kept in a training")
def _retained(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        passes = one.of("backward")
        for event in passes if len(passes) == 1 else ():
            if isinstance(event.node, ast.Call) and "retain_graph=True" in text(event.node):
                yield spot(event.node, text=shown(event.node))


# --- clipping and scaling ---


@suspects("bound of clipped gradients")
def _bound(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = last(program.names.full(call.func))
        if name not in {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"}:
            continue
        given = argument(call, "clip_value" if "value" in name else "max_norm", 1)
        bound = setting(program, given) if given is not None else None
        rate = re.search(r"(^|_|\.)lr$|learning_rate", text(given))
        if rate or (bound is not None and not (0.001 if "value" in name else 0.05) < bound < 500):
            yield spot(call, text=shown(call), bound=text(given))


@suspects("other gradients are clipped")
def _other(program: Program) -> Iterator[Spot]:
    """Find a clip of other weights than those of the only optimizer."""
    made = optimizers(program)
    trained = text(argument(made[0], "params", 0)) if len(made) == 1 else ""
    for call in program.calls if re.fullmatch(r"[\w.]+\.parameters\(\)", trained) else ():
        given = (
            text(argument(call, "parameters", 0)) if last(program.names.full(call.func)) == "clip_grad_norm_" else ""
        )
        here = program.function(call) is program.function(made[0])
        if (re.fullmatch(r"[\w.]+\.parameters\(\)", given) and given != trained and here) or given.startswith(
            f"{trained.removesuffix('.parameters()')}."
        ):
            yield spot(call, made[0], text=shown(call), trained=trained)


@suspects("scaler used in part")
def _scaler(program: Program) -> Iterator[Spot]:
    """Find a gradient scaler without update(), a plain step after a scaled pass, and a scaled step after a plain one."""
    for one in trainings(program):
        for event in one.own("backward"):
            beside = [it for it in one.own("step") if it.beside(event)]
            scaled = "scale(" in text(event.value.node)
            through = [it for it in beside if isinstance(it.node, ast.Call) and it.node.args]
            plain = [it for it in beside if it not in through]
            if scaled and plain and not through:
                yield spot(plain[0].node, event.node, text=shown(plain[0].node), how="takes gradients that are scaled")
            elif scaled and through and not has_call(program.tree, "update", "amp_update"):
                how = "is never followed by update(), so the scale stays"
                yield spot(through[0].node, event.node, text=shown(through[0].node), how=how)
            elif not scaled and through and not plain and "scaler" in text(through[0].node):
                how = "divides gradients by a scale that no loss was multiplied with"
                yield spot(event.node, through[0].node, text=shown(through[0].node), how=how)


# --- gradients switched off ---


@suspects("part of the model without gradients")
def _switched(program: Program) -> Iterator[Spot]:
    """Find `with no_grad():` around a layer whose result the rest of the function uses."""
    for block in program.nodes:
        if not isinstance(block, ast.With) or not any("no_grad" in text(one.context_expr) for one in block.items):
            continue
        function = program.function(block)
        around: ast.AST = function if function is not None else program.tree
        if not (has_call(around, "backward") or (function is not None and function.name == "forward")):
            continue
        for node in block.body:
            name = _assigned(node)
            value = node.value if isinstance(node, ast.Assign) else None
            called_here = isinstance(value, ast.Call) and re.match(r"self\.|model|net|encoder|backbone", text(value))
            uses = [one for one in ast.walk(around) if isinstance(one, ast.Name) and one.id == name]
            later = [one for one in uses if one.lineno > (block.end_lineno or 0)]
            if called_here and later and not _OTHERS.search(f"{name} {text(value)}"):
                yield spot(block, node, text=shown(node))
                yield spot(node, text=shown(node))


@suspects("gradients switched off for good")
def _off(program: Program) -> Iterator[Spot]:
    """Find `set_grad_enabled(False)` without a return, and functions that train under a decorator no_grad."""
    calls = [one for one in program.calls if called(one) == "set_grad_enabled"]
    off = [one for one in calls if text(one.args[0] if one.args else None) == "False"]
    bare = [one for one in off if isinstance(program.parents.get(one), ast.Expr)]
    if bare and len(off) == len(calls) and has_call(program.tree, "backward"):
        yield spot(bare[0], text=shown(bare[0]))
    for function in program.nodes:
        marks = function.decorator_list if isinstance(function, FUNCTIONS) else []
        marks = [one for one in marks if re.search(r"no_grad|inference_mode", text(one))]
        if isinstance(function, FUNCTIONS) and marks and (has_call(function, "backward") or _is_loss(function.name)):
            yield spot(marks[0], function, text=f"@{shown(marks[0])}")


def _is_loss(name: str) -> bool:
    return bool(re.fullmatch(r"(compute_|get_|training_)?(loss|criterion)|training_step|train_step", name))


# --- batches ---


@suspects("iterator that ends with the first epoch")
def _exhausted(program: Program) -> Iterator[Spot]:
    """Find a loop over an iterator, a generator, `zip` or `enumerate` that was made before the epochs."""
    for loop in program.nodes:
        over = loop.iter if isinstance(loop, ast.For) else None
        inner = (
            over.args[0] if isinstance(over, ast.Call) and called(over) in {"enumerate", "tqdm"} and over.args else over
        )
        bound = program.bound(inner) if isinstance(inner, ast.Name) else None
        value = bound.value if bound is not None and bound.item is None else None
        outer = program.loops(loop)
        if (
            not isinstance(loop, ast.For)
            or not outer
            or bound is None
            or is_within(program, bound.statement, outer[-1])
        ):
            continue
        if _runs_out(program, value) and (has_call(outer[-1], "backward") or has_call(outer[-1], "step")):
            yield spot(loop, program.statement(value) if value is not None else loop, text=shown(over or loop))
            yield spot(program.statement(value) if value is not None else loop, text=shown(over or loop))


def _runs_out(program: Program, value: ast.expr | None) -> bool:
    """Tell whether an expression is an iterator."""
    if isinstance(value, ast.GeneratorExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Name) and value.func.id in {"iter", "enumerate", "zip", "map", "filter", "reversed"}:
        return True
    function = program.functions.get(called(value))
    inner = ast.walk(function) if function is not None and program.owner(function) is None else ()
    return any(isinstance(one, ast.Yield) and program.function(one) is function for one in inner)


@suspects("one batch for the whole training")
def _one_batch(program: Program) -> Iterator[Spot]:
    """Find a batch that was taken before the loop, and a loop that trains on it."""
    for node in program.nodes:
        value = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not re.match(r"next\(iter\(", text(value)) or program.loops(node):
            continue
        names = names_in(node.targets[0])
        for one in trainings(program):
            same = program.function(one.node) is program.function(node) and one.node.lineno > node.lineno
            counted = isinstance(one.node, ast.For) and text(one.node.iter).startswith(("range(", "trange("))
            used = names & names_in(one.node)
            if same and counted and used and not any(_assigned(part) in used for part in ast.walk(one.node)):
                yield spot(node, one.node, text=shown(node))


@suspects("slice that does not move on")
def _slices(program: Program) -> Iterator[Spot]:
    """Find `x[i:i + size]` where i counts batches: the batches overlap and stay at the beginning."""
    for node in program.nodes:
        cut = node.slice if isinstance(node, ast.Subscript) else None
        cut = cut.elts[0] if isinstance(cut, ast.Tuple) and cut.elts else cut
        low, high = (cut.lower, cut.upper) if isinstance(cut, ast.Slice) else (None, None)
        if not isinstance(node, ast.Subscript) or not isinstance(low, ast.Name) or not isinstance(high, ast.BinOp):
            continue
        bound = program.bound(low)
        loop = bound.statement if bound is not None else None
        over = loop.iter if isinstance(loop, ast.For) and mentions(loop.target, low.id) else None
        size = text(high.right if text(high.left) == low.id else high.left)
        counted = isinstance(over, ast.Call) and called(over) in {"range", "trange"} and len(over.args) < 3
        batches = counted and re.search(r"//|/ |n(um)?_batch|steps|batches", text(over))
        if batches and re.search(r"batch|bs|size|^B$|^\d+$", size) and isinstance(loop, ast.For):
            yield spot(program.statement(node), loop, text=shown(node), over=shown(loop.iter))


@suspects("permutation without a use")
def _permuted(program: Program) -> Iterator[Spot]:
    """Find a permutation that nothing reads."""
    for node in program.nodes:
        value = node.value if isinstance(node, ast.Assign) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        drawn = isinstance(value, ast.Call) and called(value) in {"randperm", "permutation"}
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and drawn:
            reads = [one for one in program.nodes if isinstance(one, ast.Name) and one.id == target.id]
            if not any(isinstance(one.ctx, ast.Load) for one in reads):
                yield spot(node, text=shown(node), name=target.id)


@suspects("random numbers begun again in a loop")
def _seeded(program: Program) -> Iterator[Spot]:
    """Find a generator with a fixed seed, made in a loop or in a function that a loop calls."""
    for call in program.calls:
        if called(call) not in {"default_rng", "manual_seed", "RandomState", "seed", "seed_everything"}:
            continue
        given = text(call.args[0]) if call.args else ""
        function = program.function(call)
        loops = list(program.loops(call))
        if function is not None and function.name not in {"main", "__init__", "set_seed", "seed_everything"}:
            loops += [loop for use in program.calls_of(function.name) for loop in program.loops(use)]
        names = {name for loop in loops if isinstance(loop, ast.For) for name in names_in(loop.target)}
        parts = set(re.findall(r"\w+", given))
        if loops and given and not parts & names and re.search(r"seed|^\d+$", given, re.IGNORECASE):
            if any(has_call(loop, "backward", "step") for loop in loops) and not re.search(
                r"seed|fold|run", " ".join(names)
            ):
                yield spot(call, program.statement(call), text=shown(call))


@suspects("loop left early")
def _early(program: Program) -> Iterator[Spot]:
    """Find `if i == 10: break` in a training loop, and a stop that leaves only the loop over batches."""
    for node in program.nodes:
        test = program.parents.get(node) if isinstance(node, ast.Break) else None
        loops = program.loops(node) if isinstance(node, ast.Break) else []
        if not isinstance(test, ast.If) or not isinstance(node, ast.Break) or not loops or node in test.orelse:
            continue
        trains = has_call(loops[0], "backward", "step") and len(loops) > 1
        counts = re.fullmatch(r"(i|idx|batch_idx|it|step|j|batch|b|batch_i) (==|>=|>) (\d+)", text(test.test))
        stops = re.search(r"patien|early|stop|wait", text(test.test), re.IGNORECASE)
        if len(loops) > 1 and ((trains and counts) or (stops and not _leaves_outer(test, loops))):
            yield spot(test, node, text=shown(test.test))


def _leaves_outer(test: ast.If, loops: list[Loop]) -> bool:
    """Tell whether an outer loop asks for the same condition."""
    return text(loops[1]).count(text(test.test)) > 1


@suspects("one variable for two loops")
def _shadowed(program: Program) -> Iterator[Spot]:
    """Find an inner loop, or a loop over parts, that takes the variable of the outer loop or of its own source."""
    for loop in program.nodes:
        if not isinstance(loop, ast.For):
            continue
        names = names_in(loop.target) - {"_"}
        outer = [one for one in program.loops(loop) if isinstance(one, ast.For) and names_in(one.target) & names]
        if outer and has_call(outer[0], "backward", "step"):
            yield spot(loop, outer[0], text=shown(loop.iter), name=min(names_in(outer[0].target) & names))
        own = names & names_in(loop.iter)
        if own and re.search(r"optim|model|net|sched", min(own)):
            yield spot(loop, text=shown(loop.iter), name=min(own))


@suspects("errors swallowed around the step")
def _swallowed(program: Program) -> Iterator[Spot]:
    """Find `try: ... backward ... except: pass`."""
    for node in program.nodes:
        if not isinstance(node, ast.Try) or not any(has_call(one, "backward", "step") for one in node.body):
            continue
        for handler in node.handlers:
            quiet = all(isinstance(one, ast.Pass | ast.Continue) or _prints(one) for one in handler.body)
            broad = text(handler.type) in {"", "Exception", "BaseException", "RuntimeError", "ValueError"}
            if quiet and broad and program.loops(node):
                yield spot(handler_place(node), text=f"except {text(handler.type)}".strip())


def handler_place(node: ast.Try) -> ast.stmt:
    """Return the first statement of a handler, which says where errors go."""
    return node.handlers[0].body[0]


def _prints(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in {"print", "write"}


@suspects("closure of an optimizer")
def _closure(program: Program) -> Iterator[Spot]:
    """Find a closure for L-BFGS that clears or computes no gradients, and L-BFGS on batches."""
    if not any(optimizer_name(program, one) == "LBFGS" for one in optimizers(program)):
        return
    for call in program.calls_of(".step"):
        function = program.functions.get(text(call.args[0])) if call.args else None
        if function is None:
            continue
        lacks = [one for one in ("zero_grad", "backward") if one not in text(function)]
        loops = [one for one in program.loops(call) if isinstance(one, ast.For) and "load" in text(one.iter)]
        if lacks:
            yield spot(function, call, text=function.name, how=f"calls no {lacks[0]}")
        elif loops:
            yield spot(call, loops[0], text=shown(call), how="sees another batch in each step")


@suspects("steps of one process")
def _ranks(program: Program) -> Iterator[Spot]:
    """Find gradients summed over processes and not divided, and samplers without set_epoch."""
    words = source(program)
    for call in program.calls:
        if called(call) == "all_reduce" and call.args and ".grad" in text(call.args[0]):
            around = program.function(call) or program.tree
            if not re.search(r"/=|\.div_?\(|/ (world|size|n|float|dist)|\.mul_\(|AVG", text(around)):
                yield spot(call, text=shown(call), how="adds the gradients of all processes, and nothing divides them")
        if called(call) == "DistributedSampler" and "set_epoch" not in words and "shuffle=False" not in text(call):
            yield spot(call, text=shown(call), how="draws the same order in each epoch unless set_epoch is called")


SUSPECTS = suspects_of(globals())
