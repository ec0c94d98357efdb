"""Rules about slips: values that nothing uses, loops that end too early, and signs that stand for another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.iterations import Iteration, is_optimizer, trainings
from glassgrad.doctor.reading.nodes import (
    both_ways,
    callee_of,
    compares,
    has_attribute,
    ident,
    is_name,
    is_op,
    mentions,
    method_of,
    object_of,
    only_target,
    reads_in,
    target_text,
    within,
    without,
)
from glassgrad.doctor.reading.program import Function, Program, argument, constant, is_given
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import inside, layer, library_name

_MASKS = re.compile(r"^(dones?|terminals?|terminated|is_done|not_done|\w*mask\w*)(_batch|s|_b)?$", re.IGNORECASE)
_NEXT = re.compile(r"^((next|new)_(state|obs|observation)|s_next|next_s|s_)(_batch|_b|s)?$", re.IGNORECASE)
_WORTH = re.compile(r"gamma|discount|target", re.IGNORECASE)
"""Names of what makes the value of the next state a part of the target."""
_READY = re.compile(r"target|adv|returns?$|gae", re.IGNORECASE)
_REWARD = re.compile(r"^(r|rew|rewards?)(_batch|_b|s)?$", re.IGNORECASE)
_KEPT = re.compile(r"best|snapshot|saved|checkpoint|backup|before|old|initial|original", re.IGNORECASE)
_FOLLOWS = re.compile(r"(^|_)(target|tgt|teacher|ema|shadow|frozen|old|prev|reference|ref)(_|\d|$)", re.IGNORECASE)
"""Names of models that follow another one more slowly."""
_AVERAGES = re.compile(r"ema|average|shadow|polyak", re.IGNORECASE)
_RETURNS = frozenset(
    {"detach", "squeeze", "unsqueeze", "view", "reshape", "permute", "transpose", "flatten", "clamp", "masked_fill"}
)
"""Methods of tensors that return a new one."""
_UPDATES = re.compile(r"^(update|step)", re.IGNORECASE)
_RESIDUAL = re.compile(r"^(pre)?res(idual)?_?(net)?_?(block|unit|layer)|residual_?(block|unit|layer)", re.IGNORECASE)
_SHORTCUT = re.compile(r"^(resid|identity|shortcut|skip)")
_COPIES = re.compile(r"deepcopy|clone|numpy\(|tensor\(")


def _single(node: ast.stmt) -> str:
    """Return the only variable that a statement sets as a whole; empty if it sets another thing."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


# --- values that nothing uses ---


@reads("result never used")
def _unused(program: Program) -> Iterator[Spot]:
    """Find what a `forward` computes with a layer and sets anew before anything reads it."""
    for _, forward in program.forwards():
        yield from _unread(program, forward)
        for body in _blocks(forward):
            for at, statement in enumerate(body):
                name = _single(statement)
                if name and isinstance(statement, ast.Assign) and _is_computed(program, statement.value):
                    later = _set_anew(body[at + 1 :], name)
                    if later is not None:
                        what = f"{shown(later)} sets {name} anew before anything reads it"
                        yield spot(later, statement, text=shown(statement), what=what)


def _unread(program: Program, forward: Function) -> Iterator[Spot]:
    """Find `residual = x` that nothing adds again, and `h = self.layer(x)` that nothing reads."""
    read = reads_in(forward)
    for node in within(forward, ast.Assign):
        name, value = _single(node), node.value
        if name in {"", *read}:
            continue
        if isinstance(value, ast.Name) and _SHORTCUT.search(name):
            yield spot(node, text=shown(node), what=f"nothing adds {name} to a result")
        elif not name.startswith("_") and isinstance(value, ast.Call) and layer(program, value.func) is not None:
            yield spot(node, text=shown(node), what=f"nothing reads {name}")


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _is_computed(program: Program, value: ast.expr) -> bool:
    """Tell whether a value is the result of a layer of the module, or a sum with one."""
    calls = within(value, ast.Call)
    layers = any(ast.unparse(one.func).startswith("self.") or layer(program, one.func) is not None for one in calls)
    return layers or is_op(value, ast.Add)


def _set_anew(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the statement that sets a variable anew, if none before it and not itself reads the variable."""
    for statement in body:
        if name in reads_in(statement):
            return None
        if _single(statement) == name:
            return statement
        if not isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign | ast.AugAssign | ast.Assert):
            return None  # a branch or a loop may set it or not
    return None


@reads("mask never used")
def _mask(program: Program) -> Iterator[Spot]:
    """Find a mask, or the ends of episodes, that a step takes out of its batch and that nothing reads."""
    for node in program.every(ast.Assign):
        target, around = only_target(node), program.around(node)
        if not isinstance(target, ast.Tuple) or not has_attribute(around, "backward"):
            continue
        read = reads_in(around)
        names = [one.id for one in target.elts if isinstance(one, ast.Name)]
        rewarded = any(_REWARD.match(name) for name in names if name in read)
        ready = any(map(_READY.search, names))  # targets that were computed with the mask
        valued = any(map(_WORTH.search, read))  # a discount or a target has a name there
        for name in names:
            known = _MASKS.match(name) or (_NEXT.match(name) and valued)
            if known and name not in read and ("mask" in name or rewarded) and not ready:
                yield spot(node, name=name)


@reads("loss overwritten")
def _overwritten(program: Program) -> Iterator[Spot]:
    """Find a loss that an inner loop sets in each round, while the backward pass stands behind the loop."""
    for one in trainings(program):
        for event in one.own("backward"):
            if event.chain or not event.receiver.isidentifier():
                continue
            for loop in _inner_loops(program, one, event.node):
                yield from _last_only(loop, event.receiver, event.node)


def _inner_loops(program: Program, one: Iteration, backward: ast.expr) -> Iterator[ast.For]:
    """Yield the loops before a backward pass in its own block."""
    statement = program.statement(backward)
    body = getattr(program.parents.get(statement), "body", [])
    before = (node for node in body if isinstance(node, ast.For) and node.lineno < statement.lineno)
    yield from (node for node in before if node is not one.node)


def _last_only(loop: ast.For, name: str, backward: ast.expr) -> Iterator[Spot]:
    sets = [one for one in within(loop, ast.Assign) if _single(one) == name]
    read = any(name in reads_in(one) for one in loop.body)
    if len(sets) == 1 and sets[0] in loop.body and not read and isinstance(sets[0].value, ast.Call | ast.BinOp):
        yield spot(sets[0], backward, name=name)


# --- loops ---


@reads("loop ends in its first round")
def _first_round(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        body = one.node.body
        ends = body[-1] if isinstance(one.node, ast.For) else None
        goes_on = any(isinstance(node, ast.Continue) for node in ast.walk(one.node))
        if isinstance(ends, ast.Return) and not goes_on and one.own("step"):
            yield spot(ends, text=shown(ends, 30))


@reads("same batch in each step")
def _same_batch(program: Program) -> Iterator[Spot]:
    """Find `next(iter(loader))` in a loop that trains, if the loader has a fixed order."""
    for one in trainings(program):
        for call in within(one.node, ast.Call):
            made = program.source_of(_began_anew(call))
            if not isinstance(made, ast.Call) or library_name(program, made) != "DataLoader":
                continue
            shuffle = argument(made, "shuffle", 2)
            fixed = (shuffle is None or constant(shuffle) is False) and not is_given(made, "sampler", 3)
            if fixed and not is_given(made, "batch_sampler", 4):
                yield spot(call, made, text=shown(call))


def _began_anew(call: ast.Call) -> ast.expr | None:
    """Return the loader of `next(iter(loader))`."""
    inner = call.args[0] if is_name(call.func, "next") and call.args else None
    return inner.args[0] if isinstance(inner, ast.Call) and is_name(inner.func, "iter") and inner.args else None


@reads("validation trains as well")
def _trains_in_each_phase(program: Program) -> Iterator[Spot]:
    """Find a loop over "train" and "val" whose step no condition keeps to the first."""
    for node in program.every(ast.For):
        if not isinstance(node.target, ast.Name) or not _is_phases(node.iter):
            continue
        loop = f"for {shown(node.target)} in {shown(node.iter)}"
        inner = within(node, ast.Call)
        called = {one.func.id: one for one in inner if isinstance(one.func, ast.Name)}
        for name, call in called.items():
            function = program.functions.get(name)
            steps = [one for one in within(function, ast.Call) if _steps(program, one)]
            kept = _is_kept(program, call, node) or (function and steps and _is_kept(program, steps[0], function))
            if steps and not kept:
                yield spot(steps[0], node, call, text=shown(steps[0]), loop=loop)
        own = [one for one in inner if _steps(program, one) and not _is_kept(program, one, node)]
        for one in own[:1]:
            yield spot(one, node, text=shown(one), loop=loop)


def _is_phases(node: ast.expr) -> bool:
    """Tell whether an expression is a list of the names of training and of validation."""
    names = [str(constant(one)) for one in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
    begins = bool(names) and names[0].startswith("train")
    return begins and any(name.startswith(("val", "test", "eval", "dev")) for name in names[1:])


def _steps(program: Program, call: ast.Call) -> bool:
    """Tell whether a call is a step of an optimizer."""
    return method_of(call) == "step" and is_optimizer(program, object_of(call))


def _is_kept(program: Program, node: ast.AST, within: ast.AST) -> bool:
    """Tell whether a condition stands around a node, or one before it leaves the function or the round."""
    for one in program.outward(node):
        if one is within:
            break
        if isinstance(one, ast.If | ast.IfExp):
            return True
    return any(
        isinstance(one, ast.If) and one.lineno < getattr(node, "lineno", 0) and _leaves(one.body)
        for one in ast.walk(within)
    )


def _leaves(body: list[ast.stmt]) -> bool:
    return any(isinstance(one, ast.Return | ast.Continue) for one in body)


# --- signs and names ---


@reads("sign instead of a sum")
def _sign(program: Program) -> Iterator[Spot]:
    """Find `loss =+ term`, which sets the loss to the term."""
    for node in program.every(ast.Assign):
        target, first = only_target(node), node.value
        while isinstance(first, ast.BinOp):
            first = first.left
        plus = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.UAdd) and node.lineno == node.value.lineno
        if target is not None and plus and node.value.col_offset - (target.end_col_offset or 0) <= 2:
            name = ast.unparse(target)
            yield spot(node, name=name, remedy=f"{name} += {shown(node.value, 50).removeprefix('+')}")


@reads("added to itself")
def _doubled(program: Program) -> Iterator[Spot]:
    """Find `x = x + x` in a `forward`, where a residual connection adds what came before the layer."""
    for node in program.every(ast.stmt):
        owner = program.owner(node)
        if owner is None or not owner.is_module or not inside(program, node, "forward"):
            continue
        value = node.value if isinstance(node, ast.Assign | ast.AugAssign | ast.Return) else None
        sides = [value.left, value.right] if is_op(value, ast.Add) else []
        if isinstance(node, ast.AugAssign):
            sides = [node.target, node.value] if isinstance(node.op, ast.Add) else []
        if sides and isinstance(sides[0], ast.Name) and is_name(sides[1], sides[0].id):
            yield spot(node, text=shown(node))


@reads("weights kept by reference")
def _kept(program: Program) -> Iterator[Spot]:
    """Find `best = model.state_dict()` in a loop, whose tensors the next steps change, and which is loaded later."""
    loads = [one for one in program.calls_of(".load_state_dict") if one.args]
    loaded = {ast.unparse(one.args[0]) for one in loads}
    for node in program.every(ast.Assign):
        if len(node.targets) != 1:
            continue
        place, value = _state_in(node)
        target = ast.unparse(place)
        again = program.loops(node) or isinstance(place, ast.Attribute)
        mixed = any(ast.unparse(one.func) == f"{target}.update" for one in program.calls_of(".update"))
        if mixed or not again or _COPIES.search(ast.unparse(value)):
            continue
        elsewhere = isinstance(place, ast.Attribute) and any(one.endswith(f".{place.attr}") for one in loaded)
        here = any(
            ast.unparse(one.args[0]) == target for one in loads if program.function(one) is program.function(node)
        )
        state = _is_state(value) and (here or elsewhere or _returned(program, node))
        model = isinstance(value, ast.Name) and "best" in target and layer(program, value) is not None
        if state or model:
            yield spot(node, text=shown(node), remedy=f"{target} = copy.deepcopy({shown(value, 40)})")


def _state_in(node: ast.Assign) -> tuple[ast.expr, ast.expr]:
    """Return the target and the value of a statement; of `best, kept = score, model.state_dict()` the second pair."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = [pair for pair in zip(target.elts, value.elts, strict=True) if _is_state(pair[1])]
        return pairs[0] if pairs else (target, value)
    return target, value


def _is_state(value: ast.expr) -> bool:
    """Tell whether a value is `model.state_dict()`, or a container with the same tensors."""
    if isinstance(value, ast.DictComp):
        source = value.generators[0].iter
        plain = isinstance(value.value, ast.Name)
        return plain and isinstance(source, ast.Call) and "state_dict()" in ast.unparse(source)
    if not isinstance(value, ast.Call):
        return False
    inner = value.args[0] if value.args else object_of(value)
    shallow = callee_of(value) in {"copy", "dict", "OrderedDict"}
    return callee_of(value) == "state_dict" or (shallow and isinstance(inner, ast.Call) and _is_state(inner))


def _returned(program: Program, node: ast.Assign) -> bool:
    """Tell whether a function gives back what a statement sets, under a name that says it is kept."""
    name = target_text(node)
    given = [one.value for one in within(program.function(node), ast.Return)]
    return bool(_KEPT.search(name)) and any(one is not None and mentions(one, name) for one in given)


@reads("target moves with the model")
def _alias(program: Program) -> Iterator[Spot]:
    """Find `target = model`: a second name of one module, where a copy is meant."""
    for node in program.every(ast.Assign):
        if not isinstance(node.value, ast.Name | ast.Attribute) or _FOLLOWS.search(ident(node.value)):
            continue
        for one in node.targets:
            if _FOLLOWS.search(ident(one)) and layer(program, node.value) is not None:
                held = shown(node.value)
                yield spot(node, text=shown(node), held=held, remedy=f"{shown(one)} = copy.deepcopy({held})")


@reads("moving average never updated")
def _never_follows(program: Program) -> Iterator[Spot]:
    """Find an average of weights of the script's own class that is applied, and whose update nothing calls."""
    yield from _never_averaged(program)
    methods = {ast.unparse(one.func) for one in program.calls if isinstance(one.func, ast.Attribute)}
    for node in program.every(ast.Assign):
        function = node.value.func if isinstance(node.value, ast.Call) and len(node.targets) == 1 else None
        owner = program.classes.get(function.id) if isinstance(function, ast.Name) else None
        if owner is None or not _AVERAGES.search(owner.node.name):
            continue
        updates = [name for name in owner.methods if _UPDATES.match(name)]
        held = target_text(node)
        used = [one for one in methods if one.startswith(f"{held}.")]
        if updates and used and not any(one.rpartition(".")[2] in updates for one in methods):
            calls = [one for one in program.calls if ast.unparse(one.func) in used]
            yield spot(calls[0], node, text=shown(node), held=held, used=used[0], update=updates[0])


def _never_averaged(program: Program) -> Iterator[Spot]:
    """Find an `AveragedModel` that the script calls but never updates."""
    if program.calls_of(".update_parameters"):
        return
    for call in program.calls:
        statement = program.parents.get(call)
        if program.names.full(call.func).endswith("swa_utils.AveragedModel") and isinstance(statement, ast.Assign):
            held = ast.unparse(statement.targets[0])
            uses = [one for one in program.calls if ast.unparse(one.func) == held]
            if uses:
                yield spot(uses[0], call, text=shown(call), held=held, used=held, update="update_parameters")


@reads("result thrown away")
def _thrown(program: Program) -> Iterator[Spot]:
    """Find `x.detach()` on a line of its own. The method returns a new tensor and does not change x."""
    for node in program.every(ast.Expr):
        call = node.value
        held = object_of(call) if method_of(call) in _RETURNS else None
        inside_code = program.function(node) is not None or program.loops(node)  # a cell of a notebook shows its value
        if inside_code and isinstance(held, ast.Name) and held.id != "self" and not _is_object(program, held):
            yield spot(call, text=shown(call), name=held.id, remedy=f"{held.id} = {shown(call)}")


def _is_object(program: Program, name: ast.Name) -> bool:
    """Tell whether a name stands for a module or for an object of another class, whose methods may change it."""
    made = program.value_of(name)
    kind = callee_of(made if made is None else without(made, "to", "cuda"))
    is_tensor = kind.endswith(("Tensor", "Variable", "Parameter"))
    return layer(program, name) is not None or (kind[:1].isupper() and not is_tensor)


@reads("dropout off for good")
def _off_for_good(program: Program) -> Iterator[Spot]:
    """Find `self.p = self.p if self.training else 0`: after the first evaluation it stays 0."""
    for node in program.every(ast.Assign):
        name, value = target_text(node), node.value
        if not isinstance(value, ast.IfExp) or len(node.targets) != 1 or "training" not in ast.unparse(value.test):
            continue
        if name.startswith("self.") and name in {ast.unparse(value.body), ast.unparse(value.orelse)}:
            yield spot(node, name=name, text=shown(node), remedy=shown(node).replace(name, name[5:], 1))


@reads("residual connection missing")
def _without_input(program: Program) -> Iterator[Spot]:
    """Find a residual block that returns what its layers make, and adds nothing."""
    for owner, forward in program.forwards():
        adds = has_attribute(forward, "add") or any(isinstance(one, ast.Add) for one in ast.walk(forward))
        calls = {ast.unparse(one.func).rpartition(".")[2] for one in within(forward, ast.Call)}
        given = within(forward, ast.Return)
        joins = adds or calls & {"cat", "concat", "sum", "add_", "lerp", "where"}
        if _RESIDUAL.search(owner.node.name) and given and not joins:
            yield spot(given[-1], owner.node, name=owner.node.name, text=shown(given[-1]))


@reads("argmax over all axes")
def _whole_argmax(program: Program) -> Iterator[Spot]:
    """Find `(argmax(x) == y).sum()`: without an axis the answer is one place of the whole table."""
    for node in program.every(ast.Compare):
        outer = program.parents.get(node)
        counted = isinstance(outer, ast.Attribute) and outer.attr in {"sum", "float", "mean", "double", "to", "type"}
        equal = len(node.ops) == 1 and compares(node, ast.Eq)
        calls = [one for one in both_ways(node)[0] if isinstance(one, ast.Call)] if counted and equal else []
        for one in calls:
            full = program.names.full(one.func)
            known = full == "torch.argmax" or (not full and method_of(one) == "argmax")
            if known and not is_given(one, "axis") and not is_given(one, "dim", 1 if full else 0):
                yield spot(one, node, text=shown(one), remedy=f"{shown(one)[:-1]}{', ' if one.args else ''}dim=1)")


RULES = rules_of(globals())
