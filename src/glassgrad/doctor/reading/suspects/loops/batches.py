"""Suspects about the batches of a training: iterators, slices, orders, what begins anew, and hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import Iteration, rounds, trainings
from glassgrad.doctor.reading.nodes import callee_of, mentions, names_in, within
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS, Function, Program, argument, number, place_of
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import calls_of, has_call, source, text
from glassgrad.doctor.reading.suspects.loops.training import any_target_text, conditions, optimizer_name, optimizers
from glassgrad.doctor.reading.values import returns


@suspects_each("iterator that ends with the first epoch", ast.For)
def _exhausted(program: Program, loop: ast.For) -> Iterator[Spot]:
    """Find a loop over an iterator, a generator, `zip` or `enumerate` that was made before the epochs."""
    over = loop.iter
    wrapped = callee_of(over) in {"enumerate", "tqdm"}
    inner = over.args[0] if wrapped and isinstance(over, ast.Call) and over.args else over
    bound, value = program.bound(inner), program.value_of(inner)
    outer = program.loops(loop)
    if not outer or bound is None or outer[-1] in program.outward(bound.statement):
        return
    if _runs_out(program, value) and has_call(outer[-1], "backward", "step"):
        made = program.statement(value) if value is not None else loop
        yield spot(loop, made, text=shown(over))
        yield spot(made, text=shown(over))


def _runs_out(program: Program, value: ast.expr | None) -> bool:
    """Tell whether an expression is an iterator."""
    if isinstance(value, ast.GeneratorExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Name) and value.func.id in {"iter", "enumerate", "zip", "map", "filter", "reversed"}:
        return True
    function = program.functions.get(callee_of(value))
    inner = ast.walk(function) if function is not None and program.owner(function) is None else ()
    return any(isinstance(one, ast.Yield) and program.function(one) is function for one in inner)


@suspects_each("one batch for the whole training", ast.Assign)
def _one_batch(program: Program, node: ast.Assign) -> Iterator[Spot]:
    """Find a batch that was taken before the loop, and a loop that trains on it."""
    value = node.value
    if not re.match(r"next\(iter\(", text(value)) or program.loops(node):
        return
    names = names_in(node.targets[0])
    for one in trainings(program):
        same = program.function(one.node) is program.function(node) and one.node.lineno > node.lineno
        counted = isinstance(one.node, ast.For) and text(one.node.iter).startswith(("range(", "trange("))
        used = names & names_in(one.node)
        stored = {part.id for part in within(one.node, ast.Name) if isinstance(part.ctx, ast.Store)}
        if same and counted and used and not stored & used:
            yield look_at(node, one.node)


@suspects_each("slice that does not move on", ast.Subscript)
def _slices(program: Program, node: ast.Subscript) -> object:
    """Find `x[i:i + size]` where i counts batches: the batches overlap and stay at the beginning."""
    cut = node.slice
    cut = cut.elts[0] if isinstance(cut, ast.Tuple) and cut.elts else cut
    low, high = (cut.lower, cut.upper) if isinstance(cut, ast.Slice) else (None, None)
    bound = program.bound(low) if isinstance(low, ast.Name) and isinstance(high, ast.BinOp) else None
    loop = bound.statement if bound is not None else None
    if not isinstance(loop, ast.For) or not isinstance(low, ast.Name) or not isinstance(high, ast.BinOp):
        return False
    over = loop.iter if mentions(loop.target, low.id) else None
    if not isinstance(over, ast.Call) or callee_of(over) not in {"range", "trange"} or len(over.args) >= 3:
        return False
    size = text(high.right if text(high.left) == low.id else high.left)
    ends = " ".join(text(end.node) for part in over.args for end in flow(program).ends(part))
    batches = re.search(r"//|/ |n(um)?_batch|steps|batches", f"{text(over)} {ends}")
    sized = batches and re.search(r"batch|bs|size|^B$|^\d+$", size, re.IGNORECASE)
    return sized and spot(program.statement(node), loop, text=shown(node), over=shown(loop.iter))


@suspects("permutation without a use")
def _permuted(program: Program) -> Iterator[Spot]:
    """Find a permutation that nothing reads."""
    for node in program.every(ast.Assign):
        target, value = node.targets[0], node.value
        drawn = callee_of(value) in {"randperm", "permutation"}
        if isinstance(target, ast.Name) and drawn:
            reads = [one for one in program.every(ast.Name) if one.id == target.id]
            if not any(isinstance(one.ctx, ast.Load) for one in reads):
                yield look_at(node, name=target.id)


@suspects_each("random numbers begun again in a loop", ast.Call)
def _seeded(program: Program, call: ast.Call) -> object:
    """Find a generator with a fixed seed, made in a loop or in a function that a loop calls."""
    if callee_of(call) not in {"default_rng", "manual_seed", "RandomState", "seed", "seed_everything"}:
        return False
    given = text(call.args[0]) if call.args else ""
    function = program.function(call)
    loops = list(program.loops(call))
    if function is not None and function.name not in {"main", "__init__", "set_seed", "seed_everything"}:
        loops += [loop for use in program.calls_of(function.name) for loop in program.loops(use)]
    names = {name for loop in loops if isinstance(loop, ast.For) for name in names_in(loop.target)}
    parts = set(re.findall(r"\w+", given))
    fixed = loops and not parts & names and re.search(r"seed|^\d+$", given, re.IGNORECASE)
    varied = re.search(r"seed|fold|run", " ".join(names))
    odd = fixed and not varied and any(has_call(loop, "backward", "step") for loop in loops)
    return odd and look_at(call, program.statement(call))


@suspects_each("loop left early", ast.Break)
def _early(program: Program, node: ast.Break) -> object:
    """Find `if i == 10: break` in a training loop, and a stop that leaves only the loop over batches."""
    test = program.parents.get(node)
    loops = program.loops(node)
    if not isinstance(test, ast.If) or not loops or node in test.orelse:
        return False
    trains = has_call(loops[0], "backward", "step") and len(loops) > 1
    counts = re.fullmatch(r"(i|idx|batch_idx|it|step|j|batch|b|batch_i) (==|>=|>) (\d+)", text(test.test))
    stops = re.search(r"patien|early|stop|wait", text(test.test), re.IGNORECASE)
    asked_again = text(loops[1]).count(text(test.test)) > 1 if len(loops) > 1 else True
    odd = len(loops) > 1 and ((trains and counts) or (stops and not asked_again))
    return odd and spot(test, node, text=shown(test.test))


@suspects_each("rounds passed over", trainings)
def _skipped(program: Program, one: Iteration) -> Iterator[Spot]:
    """Find `if loss > limit: continue` before the step."""
    steps = [it.node.lineno for it in one.own("step") if not it.chain]
    for node in within(one.node, ast.If) if isinstance(one.node, LOOPS) and steps else ():
        leaves = isinstance(node.body[-1], ast.Continue) and len(node.body) < 3
        if not leaves or program.loops(node)[:1] != [one.node]:
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
                yield look_at(test)


@suspects_each("one variable for two loops", ast.For)
def _shadowed(program: Program, loop: ast.For) -> Iterator[Spot]:
    """Find an inner loop, or a loop over parts, that takes the variable of the outer loop or of its own source."""
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
    reads = (one for part in body for one in within(part, ast.Name) if one.id in names)
    return any(isinstance(one.ctx, ast.Load) and one.lineno > end for one in reads)


@suspects_each("errors swallowed around the step", ast.Try)
def _swallowed(program: Program, node: ast.Try) -> Iterator[Spot]:
    """Find `try: ... backward ... except: pass`."""
    if not any(has_call(one, "backward", "step") for one in node.body):
        return
    for handler in node.handlers:
        quiet = all(isinstance(one, ast.Pass | ast.Continue) or _prints(one) for one in handler.body)
        broad = text(handler.type) in {"", "Exception", "BaseException", "RuntimeError", "ValueError"}
        if quiet and broad and program.loops(node):
            yield spot(node.handlers[0].body[0], text=f"except {text(handler.type)}".strip())


def _prints(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and callee_of(node.value) in {"print", "write"}


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
        passes = [one for one in program.calls_of(".backward") if function in program.outward(one)]
        if lacks:
            yield spot(passes[0] if passes else function, call, text=function.name, how=f"calls no {lacks[0]}")
        elif loops:
            yield look_at(call, loops[0], how="sees another batch in each step")


@suspects_each("steps of one process", ast.Call)
def _ranks(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find gradients summed over processes and not divided, and samplers without set_epoch."""
    words = source(program)
    if callee_of(call) == "all_reduce" and call.args and ".grad" in text(call.args[0]):
        around = program.around(call)
        if not re.search(r"/=|\.div_?\(|/ (world|size|n|float|dist)|\.mul_\(|AVG", text(around)):
            yield look_at(call, how="adds the gradients of all processes, and nothing divides them")
    if callee_of(call) == "DistributedSampler" and "set_epoch" not in words and "shuffle=False" not in text(call):
        yield look_at(call, how="draws the same order in each epoch unless set_epoch is called")


# --- what begins anew ---


@suspects_each("begun anew in each round", rounds)
def _anew(program: Program, outer: Iteration) -> Iterator[Spot]:
    """Find a model, a best value or a patience that each epoch sets again."""
    counted = text(outer.node.target) if isinstance(outer.node, ast.For) else "epoch"
    for node in outer.node.body if isinstance(outer.node, LOOPS) and "epoch" in counted else ():
        value = node.value if isinstance(node, ast.Assign) else None
        name = any_target_text(node)
        made = isinstance(value, ast.Call) and text(value.func) in program.classes
        model = made and re.search(r"(^|_|\.)(model|net)$", name)
        plain = number(value) is not None or "inf" in text(value)
        kept = plain and re.search(r"(^|_)best|patience|no_improve|bad_epochs", name)
        if isinstance(node, ast.Assign) and (model or kept):
            yield look_at(node, name=name)


@suspects_each("patience counted on success", ast.If)
def _patience(program: Program, node: ast.If) -> object:
    """Find a counter that grows where the best value improves."""
    if not re.search(r"best", text(node.test)):
        return False
    counts = [one for one in node.body if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add)]
    counts = [one for one in counts if re.search(r"patien|wait|counter|no_improve|bad|stale|stall", text(one.target))]
    improves = any(re.search(r"(^|_|\.)best", any_target_text(one)) for one in node.body)
    return counts and improves and look_at(counts[0], node, test=shown(node.test))


@suspects_each("best file written in each round", calls_of(".save"))
def _saved(program: Program, call: ast.Call) -> object:
    """Find `torch.save(..., "best.pt")` under no condition."""
    given = " ".join(text(one) for one in call.args[1:])
    loops = program.loops(call)
    plain = loops and not list(conditions(program, call, loops[-1]))
    return plain and re.search(r"best", given, re.IGNORECASE) and program.names.full(call.func) == "torch.save"


@suspects_each("training of a copy", ast.Assign)
def _copy(program: Program, node: ast.Assign) -> object:
    """Find `model = copy.deepcopy(model)` in a function that trains the copy and does not return it."""
    value = node.value
    function = program.function(node)
    copies = callee_of(value) == "deepcopy" and function is not None
    name = any_target_text(node)
    if not copies or function is None or not name.isidentifier():
        return False
    results = [one for one in within(function, ast.Return) if one.value is not None]
    trained = f"{name}.parameters()" in text(function) and has_call(function, "backward")
    used = any(f"{name}(" in text(one) for one in within(function, ast.With))
    used |= bool(re.search(rf"zip\([^)]*\(\), {name}\.parameters|zip\({name}\.parameters", text(function)))
    return trained and not used and not results and look_at(node, name=name)


@suspects("states of one model collected")
def _states(program: Program) -> Iterator[Spot]:
    """Find a loop that collects `model.state_dict()` of one model: all are the same tensors, which training changes."""
    for call in program.calls_of(".append"):
        loops = program.loops(call)
        for part in _members(call.args[0]) if loops and len(call.args) == 1 else ():
            made = [one for loop in loops for one in ast.walk(loop) if isinstance(one, ast.Name | ast.Attribute)]
            yield from _live(program, part, {text(one) for one in made if isinstance(one.ctx, ast.Store)}, call)
    for node in program.every(ast.ListComp):
        own = {text(one) for it in node.generators for one in within(it.target, ast.Name)}
        for part in _members(node.elt):
            yield from _live(program, part, own, node)


def _members(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def _live(program: Program, part: ast.expr, own: set[str], whole: ast.expr) -> Iterator[Spot]:
    """Yield the call of `state_dict()` that gives a part, if its model is not among the names that a loop makes."""
    bound = program.bound(part)
    value, item = (bound.value, bound.item) if bound is not None else (part, None)
    if not isinstance(value, ast.Call) or (isinstance(part, ast.Name) and part.id not in own):
        return
    if callee_of(value) == "state_dict" and isinstance(value.func, ast.Attribute):
        if _lasts(value.func.value, own):
            yield look_at(value, whole)
        return
    function = _entered(program, value)
    for one in returns(program, function) if function is not None else ():
        parts = [one.value] if item is None else _members(one.value)[item : item + 1] if one.value is not None else []
        for state in parts:
            given = _given_model(program, function, state, value) if function is not None else None
            if given is not None and state is not None and _lasts(given, own):
                yield look_at(state, whole, value)


def _entered(program: Program, call: ast.Call) -> Function | None:
    """Return the function of the script that a call enters; for an unknown object the only method of that name."""
    entered = flow(program).entered(call)
    if entered is not None:
        return entered[0].function if isinstance(entered[0].function, FUNCTIONS) else None
    alike = [one for one in program.nodes if isinstance(one, FUNCTIONS) and one.name == callee_of(call)]
    return alike[0] if isinstance(call.func, ast.Attribute) and len(alike) == 1 else None


def _given_model(program: Program, function: Function, state: ast.expr | None, call: ast.Call) -> ast.expr | None:
    """Return the model that a call gives to a function which returns the model's `state_dict()` itself."""
    receiver = state.func.value if isinstance(state, ast.Call) and isinstance(state.func, ast.Attribute) else None
    kept = callee_of(state) == "state_dict" and isinstance(receiver, ast.Name)
    if not kept or not isinstance(receiver, ast.Name) or program.bindings(function, receiver.id):
        return None
    return argument(call, receiver.id, place_of(function, receiver.id) - (program.owner(function) is not None))


def _lasts(model: ast.expr, own: set[str]) -> bool:
    """Tell whether a model is one object for all rounds of a loop."""
    plain = isinstance(model, ast.Name | ast.Attribute)
    return plain and not any(text(one) in own for one in ast.walk(model) if isinstance(one, ast.Name | ast.Attribute))


@suspects_each("weights loaded in each round", rounds)
def _loaded(program: Program, outer: Iteration) -> Iterator[Spot]:
    """Find `model.load_state_dict(best)` in the loop over epochs, under no condition."""
    for node in outer.node.body if isinstance(outer.node, LOOPS) else ():
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or callee_of(call) != "load_state_dict" or not call.args:
            continue
        kept = re.search(r"best|saved|state|checkpoint|initial", text(call.args[0]), re.IGNORECASE)
        if kept and not re.search(r"\.state_dict\(\)|opt|sched|target|ema", text(call)):
            yield look_at(call, outer.node)


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
            passes = [one for one in within(later, ast.Call) if callee_of(one) == "backward"]
            if used and passes and not has_call(loop, "backward", "append", "extend"):
                yield spot(passes[0], loop, text=over, name=min(used))


# --- hooks ---


@suspects_each("hook in a loop", ast.Call)
def _hooks(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find hooks registered in each round of a training, and hooks whose result replaces what they watch."""
    name = callee_of(call)
    if not re.fullmatch(r"register_(forward_|full_backward_|backward_|forward_pre_)?hook", name):
        return
    loops = [one for one in program.loops(call) if has_call(one, "backward", "step")]
    hook = call.args[0] if call.args else None
    if loops and ".remove()" not in source(program):
        yield look_at(call, how="adds one more hook in each round")
    elif (isinstance(hook, ast.Lambda) and isinstance(hook.body, ast.BinOp)) or _replaces(program, name, hook):
        yield look_at(call, how="replaces what it sees by its result")


def _replaces(program: Program, name: str, hook: ast.expr | None) -> bool:
    """Tell whether a forward hook returns a value."""
    if name != "register_forward_hook" or hook is None:
        return False
    if isinstance(hook, ast.Lambda):
        return callee_of(hook.body) in {"detach", "clone", "relu", "mean", "dropout"}
    function = program.functions.get(text(hook))
    inner = ast.walk(function) if isinstance(function, FUNCTIONS) else ()
    return any(isinstance(one, ast.Return) and one.value is not None and text(one.value) != "None" for one in inner)
