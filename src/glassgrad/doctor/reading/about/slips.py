"""Rules about slips: values that nothing uses, loops that end too early, and signs that stand for another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.iterations import Iteration, is_optimizer, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Function, Program, argument, constant, is_given
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import inside, layer, library_name, mentions

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


def _names(node: ast.AST) -> set[str]:
    """Return the variables that an expression or a statement reads."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _single(node: ast.stmt) -> str:
    """Return the only variable that a statement sets as a whole; empty if it sets another thing."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


# --- values that nothing uses ---


@reads("result never used")
def _unused(program: Program) -> Iterator[Spot]:
    """Find what a `forward` computes with a layer and sets anew before anything reads it."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        if forward is not None:
            yield from _unread(forward)
            yield from _unread_results(program, forward)
        for body in _blocks(forward) if forward is not None else ():
            for at, statement in enumerate(body):
                name = _single(statement)
                if name and isinstance(statement, ast.Assign) and _is_computed(program, statement.value):
                    later = _set_anew(body[at + 1 :], name)
                    if later is not None:
                        what = f"{shown(later)} sets {name} anew before anything reads it"
                        yield spot(later, statement, text=shown(statement), what=what)


def _unread(forward: Function) -> Iterator[Spot]:
    """Find `residual = x` that nothing adds again."""
    for node in ast.walk(forward):
        kept = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and _SHORTCUT.search(_single(node))
        if kept and isinstance(node, ast.Assign) and _single(node) not in _names(forward):
            yield spot(node, text=shown(node), what=f"nothing adds {_single(node)} to a result")


def _unread_results(program: Program, forward: Function) -> Iterator[Spot]:
    """Find `h = self.layer(x)` in a method that nowhere reads the variable."""
    for node in ast.walk(forward):
        name = _single(node) if isinstance(node, ast.Assign) else ""
        call = node.value if isinstance(node, ast.Assign) else None
        held = layer(program, call.func) if isinstance(call, ast.Call) else None
        if name and not name.startswith("_") and held is not None and name not in _names(forward):
            assert isinstance(node, ast.Assign)
            yield spot(node, text=shown(node), what=f"nothing reads {name}")


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _is_computed(program: Program, value: ast.expr) -> bool:
    """Tell whether a value is the result of a layer of the module, or a sum with one."""
    calls = [one for one in ast.walk(value) if isinstance(one, ast.Call)]
    layers = any(ast.unparse(one.func).startswith("self.") or layer(program, one.func) is not None for one in calls)
    return layers or (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add))


def _set_anew(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the statement that sets a variable anew, if none before it and not itself reads the variable."""
    for statement in body:
        if name in _names(statement):
            return None
        if _single(statement) == name:
            return statement
        if not isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign | ast.AugAssign | ast.Assert):
            return None  # a branch or a loop may set it or not
    return None


@reads("mask never used")
def _mask(program: Program) -> Iterator[Spot]:
    """Find a mask, or the ends of episodes, that a step takes out of its batch and that nothing reads."""
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(target, ast.Tuple) or not isinstance(node, ast.Assign):
            continue
        around = program.function(node) or program.tree
        if not _learns(around):
            continue
        for one in target.elts:
            known = isinstance(one, ast.Name) and (_MASKS.match(one.id) or (_NEXT.match(one.id) and _values(around)))
            mine = isinstance(one, ast.Name) and known and one.id not in _names(around)
            others = [other.id for other in target.elts if isinstance(other, ast.Name)]
            ready = any(_READY.search(name) for name in others)  # targets that were computed with the mask
            used = "mask" in getattr(one, "id", "") or any(
                _REWARD.match(name) and name in _names(around) for name in others
            )
            if mine and used and not ready and isinstance(one, ast.Name):
                yield spot(node, name=one.id)


def _values(around: ast.AST) -> bool:
    """Tell whether a function or a script values the next state: a discount or a target has a name there."""
    return any(_WORTH.search(name) for name in _names(around))


def _learns(around: ast.AST) -> bool:
    """Tell whether a function or a script holds a backward pass."""
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in ast.walk(around))


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
    body = getattr(program.parents.get(program.statement(backward)), "body", [])
    line = program.statement(backward).lineno
    yield from (node for node in body if isinstance(node, ast.For) and node.lineno < line and node is not one.node)


def _last_only(loop: ast.For, name: str, backward: ast.expr) -> Iterator[Spot]:
    setting = [one for one in loop.body if _single(one) == name]
    if len(setting) != 1 or len(setting) != sum(_single(one) == name for one in _statements(loop)):
        return
    read = any(name in _names(one) for one in loop.body)
    computed = isinstance(setting[0], ast.Assign) and isinstance(setting[0].value, ast.Call | ast.BinOp)
    if not read and computed:
        yield spot(setting[0], backward, name=name)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    yield from (one for one in ast.walk(node) if isinstance(one, ast.stmt))


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
        for call in ast.walk(one.node):
            loader = _began_anew(call)
            bound = program.bound(loader) if loader is not None else None
            made = bound.value if bound is not None else None
            if not isinstance(made, ast.Call) or library_name(program, made) != "DataLoader":
                continue
            shuffle = argument(made, "shuffle", 2)
            fixed = (shuffle is None or constant(shuffle) is False) and not is_given(made, "sampler", 3)
            if fixed and not is_given(made, "batch_sampler", 4) and isinstance(call, ast.Call):
                yield spot(call, made, text=shown(call))


def _began_anew(node: ast.AST) -> ast.Name | None:
    """Return the loader of `next(iter(loader))`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
        inner = node.args[0]
        known = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "iter"
        if known and isinstance(inner, ast.Call) and inner.args and isinstance(inner.args[0], ast.Name):
            return inner.args[0]
    return None


@reads("validation trains as well")
def _trains_in_each_phase(program: Program) -> Iterator[Spot]:
    """Find a loop over "train" and "val" whose step no condition keeps to the first."""
    for node in program.nodes:
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name) or not _is_phases(node.iter):
            continue
        inner = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        called = {
            one.func.id: one for one in inner if isinstance(one.func, ast.Name) and one.func.id in program.functions
        }
        for name, call in called.items():
            steps = [
                one for one in ast.walk(program.functions[name]) if isinstance(one, ast.Call) and _steps(program, one)
            ]
            if steps and not _is_kept(program, call, node) and not _is_kept(program, steps[0], program.functions[name]):
                yield spot(
                    steps[0], node, call, text=shown(steps[0]), loop=f"for {shown(node.target)} in {shown(node.iter)}"
                )
        own = [one for one in inner if _steps(program, one) and not _is_kept(program, one, node)]
        for one in own[:1]:
            yield spot(one, node, text=shown(one), loop=f"for {shown(node.target)} in {shown(node.iter)}")


def _is_phases(node: ast.expr) -> bool:
    """Tell whether an expression is a list of the names of training and of validation."""
    names = [str(constant(one)) for one in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
    begins = bool(names) and names[0].startswith("train")
    return begins and any(name.startswith(("val", "test", "eval", "dev")) for name in names[1:])


def _steps(program: Program, call: ast.Call) -> bool:
    """Tell whether a call is a step of an optimizer."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "step" and is_optimizer(program, call.func.value)


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
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node.lineno != node.value.lineno:
            continue
        first: ast.expr = node.value
        while isinstance(first, ast.BinOp):
            first = first.left
        plus = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.UAdd)
        between = node.value.col_offset - (node.targets[0].end_col_offset or 0)
        if plus and isinstance(first, ast.UnaryOp) and between <= 2:
            name = ast.unparse(node.targets[0])
            yield spot(node, name=name, remedy=f"{name} += {shown(node.value, 50).removeprefix('+')}")


@reads("added to itself")
def _doubled(program: Program) -> Iterator[Spot]:
    """Find `x = x + x` in a `forward`, where a residual connection adds what came before the layer."""
    for node in program.nodes:
        owner = program.owner(node)
        if (
            owner is None
            or not owner.is_module
            or not isinstance(node, ast.stmt)
            or not inside(program, node, "forward")
        ):
            continue
        value = node.value if isinstance(node, ast.Assign | ast.AugAssign | ast.Return) else None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            same = isinstance(value, ast.Name) and value.id == node.target.id
        else:
            added = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
            same = added and isinstance(value, ast.BinOp) and _is_name_twice(value)
        if same:
            yield spot(node, text=shown(node))


def _is_name_twice(value: ast.BinOp) -> bool:
    both = isinstance(value.left, ast.Name) and isinstance(value.right, ast.Name)
    return both and ast.unparse(value.left) == ast.unparse(value.right)


@reads("weights kept by reference")
def _kept(program: Program) -> Iterator[Spot]:
    """Find `best = model.state_dict()` in a loop, whose tensors the next steps change, and which is loaded later."""
    loaded = {ast.unparse(one.args[0]) for one in program.calls if _method(one) == "load_state_dict" and one.args}
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        place, value = _state_in(node)
        target = ast.unparse(place)
        again = program.loops(node) or isinstance(place, ast.Attribute)
        mixed = any(ast.unparse(one.func) == f"{target}.update" for one in program.calls_of(".update"))
        if mixed or not again or _COPIES.search(ast.unparse(value)):
            continue
        elsewhere = isinstance(place, ast.Attribute) and any(one.endswith(f".{place.attr}") for one in loaded)
        if _is_state(value) and (target in loaded or elsewhere or _returned(program, node)):
            yield spot(node, text=shown(node), remedy=f"{target} = copy.deepcopy({shown(value, 40)})")
        elif isinstance(value, ast.Name) and re.search("best", target) and _is_trained(program, value):
            yield spot(node, text=shown(node), remedy=f"{target} = copy.deepcopy({value.id})")


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
    name = getattr(value.func, "attr", getattr(value.func, "id", ""))
    if name == "state_dict":
        return True
    shallow = name in {"copy", "dict", "OrderedDict"}
    inner = value.args[0] if value.args else getattr(value.func, "value", None)
    return shallow and isinstance(inner, ast.Call) and _is_state(inner)


def _returned(program: Program, node: ast.Assign) -> bool:
    """Tell whether a function gives back what a statement sets, under a name that says it is kept."""
    function, name = program.function(node), ast.unparse(node.targets[0])
    given = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)] if function is not None else []
    return bool(_KEPT.search(name)) and any(one is not None and mentions(one, name) for one in given)


def _is_trained(program: Program, name: ast.Name) -> bool:
    """Tell whether a variable holds a module of the script."""
    return layer(program, name) is not None


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


@reads("target moves with the model")
def _alias(program: Program) -> Iterator[Spot]:
    """Find `target = model`: a second name of one module, where a copy is meant."""
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        for one in node.targets:
            name = one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else ""
            named = _FOLLOWS.search(name) and not _FOLLOWS.search(ast.unparse(node.value).rpartition(".")[2])
            if named and layer(program, node.value) is not None:
                held = shown(node.value)
                yield spot(node, text=shown(node), held=held, remedy=f"{shown(one)} = copy.deepcopy({held})")


@reads("moving average never updated")
def _never_follows(program: Program) -> Iterator[Spot]:
    """Find an average of weights of the script's own class that is applied, and whose update nothing calls."""
    methods = {ast.unparse(one.func) for one in program.calls if isinstance(one.func, ast.Attribute)}
    yield from _never_averaged(program)
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
            continue
        function = node.value.func
        owner = program.classes.get(function.id) if isinstance(function, ast.Name) else None
        updates = [name for name in owner.methods if _UPDATES.match(name)] if owner is not None else []
        held = ast.unparse(node.targets[0])
        used = [one for one in methods if one.startswith(f"{held}.")]
        follows = owner is not None and _AVERAGES.search(owner.node.name)
        if follows and updates and used and not any(one.rpartition(".")[2] in updates for one in methods):
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
    for node in program.nodes:
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _RETURNS:
            continue
        held = call.func.value
        inside_code = program.function(node) is not None or program.loops(node)  # a cell of a notebook shows its value
        if inside_code and isinstance(held, ast.Name) and held.id != "self" and not _is_object(program, held):
            yield spot(call, text=shown(call), name=held.id, remedy=f"{held.id} = {shown(call)}")


def _is_object(program: Program, name: ast.Name) -> bool:
    """Tell whether a name stands for a module or for an object of another class, whose methods may change it."""
    made = program.value_of(name)
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in {"to", "cuda"}:
        made = made.func.value
    kind = last(ast.unparse(made.func)) if isinstance(made, ast.Call) else ""
    is_tensor = kind.endswith(("Tensor", "Variable", "Parameter"))
    return layer(program, name) is not None or (kind[:1].isupper() and not is_tensor)


@reads("dropout off for good")
def _off_for_good(program: Program) -> Iterator[Spot]:
    """Find `self.p = self.p if self.training else 0`: after the first evaluation it stays 0."""
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.IfExp) or len(node.targets) != 1:
            continue
        target, value = ast.unparse(node.targets[0]), node.value
        kept = {ast.unparse(value.body), ast.unparse(value.orelse)}
        if target.startswith("self.") and target in kept and "training" in ast.unparse(value.test):
            yield spot(node, name=target, text=shown(node), remedy=shown(node).replace(target, target[5:], 1))


@reads("residual connection missing")
def _without_input(program: Program) -> Iterator[Spot]:
    """Find a residual block that returns what its layers make, and adds nothing."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        if forward is None or not _RESIDUAL.search(owner.node.name):
            continue
        nodes = list(ast.walk(forward))
        adds = any(isinstance(one, ast.Add) or (isinstance(one, ast.Attribute) and one.attr == "add") for one in nodes)
        calls = {ast.unparse(one.func).rpartition(".")[2] for one in nodes if isinstance(one, ast.Call)}
        given = [one for one in nodes if isinstance(one, ast.Return)]
        if given and not adds and not calls & {"cat", "concat", "sum", "add_", "lerp", "where"}:
            yield spot(given[-1], owner.node, name=owner.node.name, text=shown(given[-1]))


@reads("argmax over all axes")
def _whole_argmax(program: Program) -> Iterator[Spot]:
    """Find `(argmax(x) == y).sum()`: without an axis the answer is one place of the whole table."""
    for node in program.nodes:
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            continue
        outer = program.parents.get(node)
        counted = isinstance(outer, ast.Attribute) and outer.attr in {"sum", "float", "mean", "double", "to", "type"}
        for one in (node.left, node.comparators[0]) if counted else ():
            method = isinstance(one, ast.Call) and _method(one) == "argmax" and not program.names.full(one.func)
            function = isinstance(one, ast.Call) and program.names.full(one.func) == "torch.argmax"
            place = 1 if function else 0
            if not (method or function) or not isinstance(one, ast.Call) or is_given(one, "axis"):
                continue
            if not is_given(one, "dim", place):
                yield spot(one, node, text=shown(one), remedy=f"{shown(one)[:-1]}{', ' if one.args else ''}dim=1)")


RULES = rules_of(globals())
