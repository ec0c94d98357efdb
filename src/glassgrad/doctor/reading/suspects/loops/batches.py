"""Suspects about the batches of a training: iterators, slices, orders, what begins anew, and hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import rounds, trainings
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS, Function, Loop, Program, argument, number, place_of
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.loops.training import (
    assigned,
    called,
    conditions,
    has_call,
    is_within,
    optimizer_name,
    optimizers,
)
from glassgrad.doctor.reading.suspects.spelling import names_in, source, text
from glassgrad.doctor.reading.values import mentions, returns


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
            stored = {part.id for part in ast.walk(one.node) if isinstance(part, ast.Name) and _is_set(part)}
            if same and counted and used and not stored & used:
                yield spot(node, one.node, text=shown(node))


def _is_set(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


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
        given = over.args if isinstance(over, ast.Call) else []
        ends = " ".join(text(end.node) for part in given for end in flow(program).ends(part))
        batches = counted and re.search(r"//|/ |n(um)?_batch|steps|batches", f"{text(over)} {ends}")
        if batches and re.search(r"batch|bs|size|^B$|^\d+$", size, re.IGNORECASE) and isinstance(loop, ast.For):
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
        fixed = loops and not parts & names and re.search(r"seed|^\d+$", given, re.IGNORECASE)
        varied = re.search(r"seed|fold|run", " ".join(names))
        if fixed and not varied and any(has_call(loop, "backward", "step") for loop in loops):
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


@suspects("rounds passed over")
def _skipped(program: Program) -> Iterator[Spot]:
    """Find `if loss > limit: continue` before the step."""
    for one in trainings(program):
        steps = [it.node.lineno for it in one.own("step") if not it.chain]
        for node in ast.walk(one.node) if isinstance(one.node, LOOPS) and steps else ():
            leaves = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue) and len(node.body) < 3
            if not isinstance(node, ast.If) or not leaves or program.loops(node)[:1] != [one.node]:
                continue
            chosen = re.search(r"loss|epoch|%", text(node.test)) and not re.search(r"nan|inf", text(node.test))
            if chosen and node.lineno < max(steps):
                yield spot(node.body[-1], node, text=shown(node.test))


@suspects("stop at the first worse value")
def _impatient(program: Program) -> Iterator[Spot]:
    """Find `if val_loss > best: break`."""
    for node in program.nodes:
        test = node.test if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Break) else None
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            sides = f"{text(test.left)} {text(test.comparators[0])}"
            held = re.search(r"(best|prev|last|old)\w*", sides) and re.search(r"loss|acc|err|score", sides)
            if held and not re.search(r"patien|wait|count", sides) and program.loops(node):
                yield spot(test, text=shown(test))


@suspects("one variable for two loops")
def _shadowed(program: Program) -> Iterator[Spot]:
    """Find an inner loop, or a loop over parts, that takes the variable of the outer loop or of its own source."""
    for loop in program.nodes:
        if not isinstance(loop, ast.For):
            continue
        names = names_in(loop.target) - {"_"}
        outer = [one for one in program.loops(loop) if isinstance(one, ast.For) and names_in(one.target) & names]
        if outer and has_call(outer[0], "backward", "step") and _reads_behind(outer[0], loop, names):
            yield spot(loop, outer[0], text=shown(loop.iter), name=min(names_in(outer[0].target) & names))
        own = names & names_in(loop.iter)
        if own and re.search(r"optim|model|net|sched", min(own)) and _reads_behind(program.scope(loop), loop, own):
            yield spot(loop, text=shown(loop.iter), name=min(own))


def _reads_behind(outer: ast.AST, inner: ast.For, names: set[str]) -> bool:
    """Tell whether the block around a loop reads one of the loop's variables behind it."""
    end = inner.end_lineno or inner.lineno
    body = getattr(outer, "body", [])  # without what follows a loop's `else`
    reads = (one for part in body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id in names)
    return any(isinstance(one.ctx, ast.Load) and one.lineno > end for one in reads)


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
        passes = [one for one in program.calls_of(".backward") if is_within(program, one, function)]
        if lacks:
            yield spot(passes[0] if passes else function, call, text=function.name, how=f"calls no {lacks[0]}")
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


# --- what begins anew ---


@suspects("begun anew in each round")
def _anew(program: Program) -> Iterator[Spot]:
    """Find a model, a best value or a patience that each epoch sets again."""
    for outer in rounds(program):
        counted = text(outer.node.target) if isinstance(outer.node, ast.For) else "epoch"
        for node in outer.node.body if isinstance(outer.node, LOOPS) and "epoch" in counted else ():
            value = node.value if isinstance(node, ast.Assign) else None
            name = assigned(node)
            model = (
                isinstance(value, ast.Call)
                and re.search(r"(^|_|\.)(model|net)$", name)
                and text(value.func) in program.classes
            )
            kept = re.search(r"(^|_)best|patience|no_improve|bad_epochs", name) and (
                number(value) is not None or "inf" in text(value)
            )
            if isinstance(node, ast.Assign) and (model or kept):
                yield spot(node, text=shown(node), name=name)


@suspects("patience counted on success")
def _patience(program: Program) -> Iterator[Spot]:
    """Find a counter that grows where the best value improves."""
    for node in program.nodes:
        if not isinstance(node, ast.If) or not re.search(r"best", text(node.test)):
            continue
        counts = [one for one in node.body if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add)]
        counts = [
            one for one in counts if re.search(r"patien|wait|counter|no_improve|bad|stale|stall", text(one.target))
        ]
        improves = any(re.search(r"(^|_|\.)best", assigned(one)) for one in node.body)
        if counts and improves:
            yield spot(counts[0], node, text=shown(counts[0]), test=shown(node.test))


@suspects("best file written in each round")
def _saved(program: Program) -> Iterator[Spot]:
    """Find `torch.save(..., "best.pt")` under no condition."""
    for call in program.calls_of(".save"):
        given = " ".join(text(one) for one in call.args[1:])
        loops = program.loops(call)
        plain = loops and not list(conditions(program, call, loops[-1]))
        if plain and re.search(r"best", given, re.IGNORECASE) and program.names.full(call.func) == "torch.save":
            yield spot(call, text=shown(call))


@suspects("training of a copy")
def _copy(program: Program) -> Iterator[Spot]:
    """Find `model = copy.deepcopy(model)` in a function that trains the copy and does not return it."""
    for node in program.nodes:
        value = node.value if isinstance(node, ast.Assign) else None
        function = program.function(node)
        copies = isinstance(value, ast.Call) and called(value) == "deepcopy" and function is not None
        name = assigned(node)
        if not isinstance(node, ast.Assign) or not copies or function is None or not name.isidentifier():
            continue
        results = [one for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None]
        trained = f"{name}.parameters()" in text(function) and has_call(function, "backward")
        used = any(isinstance(one, ast.With) and f"{name}(" in text(one) for one in ast.walk(function))
        used |= bool(re.search(rf"zip\([^)]*\(\), {name}\.parameters|zip\({name}\.parameters", text(function)))
        if trained and not used and not results:
            yield spot(node, text=shown(node), name=name)


@suspects("states of one model collected")
def _states(program: Program) -> Iterator[Spot]:
    """Find a loop that collects `model.state_dict()` of one model: all are the same tensors, which training changes."""
    for call in program.calls_of(".append"):
        loops = program.loops(call)
        for part in _members(call.args[0]) if loops and len(call.args) == 1 else ():
            made = [one for loop in loops for one in ast.walk(loop) if isinstance(one, ast.Name | ast.Attribute)]
            yield from _live(program, part, {text(one) for one in made if isinstance(one.ctx, ast.Store)}, call)
    for node in program.nodes:
        if isinstance(node, ast.ListComp):
            own = {text(one) for it in node.generators for one in ast.walk(it.target) if isinstance(one, ast.Name)}
            for part in _members(node.elt):
                yield from _live(program, part, own, node)


def _members(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def _live(program: Program, part: ast.expr, own: set[str], whole: ast.expr) -> Iterator[Spot]:
    """Yield the call of `state_dict()` that gives a part, if its model is not among the names that a loop makes."""
    bound = program.bound(part) if isinstance(part, ast.Name) else None
    value, item = (bound.value, bound.item) if bound is not None else (part, None)
    if not isinstance(value, ast.Call) or (isinstance(part, ast.Name) and part.id not in own):
        return
    if called(value) == "state_dict" and isinstance(value.func, ast.Attribute):
        if _lasts(value.func.value, own):
            yield spot(value, whole, text=shown(value))
        return
    function = _entered(program, value)
    for one in returns(program, function) if function is not None else ():
        parts = [one.value] if item is None else _members(one.value)[item : item + 1] if one.value is not None else []
        for state in parts:
            given = _given_model(program, function, state, value) if function is not None else None
            if given is not None and state is not None and _lasts(given, own):
                yield spot(state, whole, value, text=shown(state))


def _entered(program: Program, call: ast.Call) -> Function | None:
    """Return the function of the script that a call enters; for an unknown object the only method of that name."""
    entered = flow(program).entered(call)
    if entered is not None:
        return entered[0].function if isinstance(entered[0].function, FUNCTIONS) else None
    alike = [one for one in program.nodes if isinstance(one, FUNCTIONS) and one.name == called(call)]
    return alike[0] if isinstance(call.func, ast.Attribute) and len(alike) == 1 else None


def _given_model(program: Program, function: Function, state: ast.expr | None, call: ast.Call) -> ast.expr | None:
    """Return the model that a call gives to a function which returns the model's `state_dict()` itself."""
    receiver = state.func.value if isinstance(state, ast.Call) and isinstance(state.func, ast.Attribute) else None
    kept = isinstance(state, ast.Call) and called(state) == "state_dict" and isinstance(receiver, ast.Name)
    if not kept or not isinstance(receiver, ast.Name) or program.bindings(function, receiver.id):
        return None
    return argument(call, receiver.id, place_of(function, receiver.id) - (program.owner(function) is not None))


def _lasts(model: ast.expr, own: set[str]) -> bool:
    """Tell whether a model is one object for all rounds of a loop."""
    plain = isinstance(model, ast.Name | ast.Attribute)
    return plain and not any(text(one) in own for one in ast.walk(model) if isinstance(one, ast.Name | ast.Attribute))


@suspects("weights loaded in each round")
def _loaded(program: Program) -> Iterator[Spot]:
    """Find `model.load_state_dict(best)` in the loop over epochs, under no condition."""
    for outer in rounds(program):
        for node in outer.node.body if isinstance(outer.node, LOOPS) else ():
            call = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(call, ast.Call) or called(call) != "load_state_dict" or not call.args:
                continue
            kept = re.search(r"best|saved|state|checkpoint|initial", text(call.args[0]), re.IGNORECASE)
            if kept and not re.search(r"\.state_dict\(\)|opt|sched|target|ema", text(call)):
                yield spot(call, outer.node, text=shown(call))


@suspects("training behind the loop over batches")
def _outside(program: Program) -> Iterator[Spot]:
    """Find a training step with the variables of a loop over a loader, written behind that loop."""
    for one in trainings(program):
        body = one.node.body
        for at, loop in enumerate(body):
            over = text(loop.iter) if isinstance(loop, ast.For) else ""
            if not isinstance(loop, ast.For) or not re.search(r"load|batches|train|dl\b", over):
                continue
            later = ast.Module(list(body[at + 1 :]), [])
            used = names_in(loop.target) & names_in(later)
            passes = [one for one in ast.walk(later) if isinstance(one, ast.Call) and called(one) == "backward"]
            if used and passes and not has_call(loop, "backward", "append", "extend"):
                yield spot(passes[0], loop, text=over, name=min(used))


# --- hooks ---


@suspects("hook in a loop")
def _hooks(program: Program) -> Iterator[Spot]:
    """Find hooks registered in each round of a training, and hooks whose result replaces what they watch."""
    for call in program.calls:
        name = called(call)
        if not re.fullmatch(r"register_(forward_|full_backward_|backward_|forward_pre_)?hook", name):
            continue
        loops = [one for one in program.loops(call) if has_call(one, "backward", "step")]
        hook = call.args[0] if call.args else None
        if loops and ".remove()" not in source(program):
            yield spot(call, text=shown(call), how="adds one more hook in each round")
        elif (isinstance(hook, ast.Lambda) and isinstance(hook.body, ast.BinOp)) or _replaces(program, name, hook):
            yield spot(call, text=shown(call), how="replaces what it sees by its result")


def _replaces(program: Program, name: str, hook: ast.expr | None) -> bool:
    """Tell whether a forward hook returns a value."""
    if name != "register_forward_hook" or hook is None:
        return False
    if isinstance(hook, ast.Lambda):
        return isinstance(hook.body, ast.Call) and called(hook.body) in {"detach", "clone", "relu", "mean", "dropout"}
    function = program.functions.get(text(hook))
    inner = ast.walk(function) if isinstance(function, FUNCTIONS) else ()
    return any(isinstance(one, ast.Return) and one.value is not None and text(one.value) != "None" for one in inner)


SUSPECTS = suspects_of(globals())
