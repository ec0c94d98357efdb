"""Suspects about optimizers: the weights that they get, and their numbers."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import arguments, callee_of, object_of, target_of, target_text
from glassgrad.doctor.reading.program import Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import has_call, source, text
from glassgrad.doctor.reading.suspects.loops.training import (
    given_number,
    optimizer_makers,
    optimizer_name,
    optimizers,
    schedules,
)
from glassgrad.doctor.reading.values import WITH_WEIGHTS
from glassgrad.doctor.reading.values import layer as layer_of

_RATES = {
    "SGD": (2e-6, 1.5),
    "Adam": (1e-6, 0.03),
    "AdamW": (1e-6, 0.03),
    "NAdam": (1e-6, 0.03),
    "RMSprop": (1e-6, 0.03),
    "Adagrad": (1e-5, 1.0),
    "Adadelta": (0.02, 2.0),
    "Adamax": (1e-6, 0.05),
}
"""The usual rates: from, to."""
_CHANGES = re.compile(
    r"replace|deepcopy|convert|swap|quanti|prune|inject|lora|resize_|add_head|new_head|expand|grow", re.IGNORECASE
)
_OWN = frozenset({"to", "cuda", "cpu", "train", "eval", "DataParallel", "DistributedDataParallel", "compile"})
_DEAD_KEYS = frozenset({"learning_rate", "wd", "decay", "l2", "weightdecay", "rate", "lr_mult", "momemtum", "beta"})
_REPEATED = re.compile(r"fold|split|trial|seed|run|task|config|size|rate|lr|arch|depth|width|name", re.IGNORECASE)


# --- the weights that an optimizer gets ---


@suspects_each("model changed behind its optimizer", optimizer_makers)
def _changed(program: Program, made: ast.Call) -> Iterator[Spot]:
    """Find `optimizer = Adam(model.parameters())` before `model.fc = ...`, `model = ...` or `replace(model)`."""
    kept = program.parents.get(made)
    name = target_text(kept)
    roots = _roots(program, made) if name else set()
    for node in program.every(ast.stmt) if roots else ():
        behind = node.lineno > made.lineno
        if not behind or program.function(node) is not program.function(made):
            continue
        root = _changes(program, node, roots)
        if root and _steps_on(program, node, name):
            yield spot(node, made, text=shown(made), change=shown(node), name=root)
            break


def _roots(program: Program, made: ast.Call) -> set[str]:
    """Return the models whose weights an optimizer gets, in the words of the script."""
    if optimizer_name(program, made):
        calls = [one for part in arguments(made) for one in ast.walk(part) if called_parameters(one)]
        functions = [one.func for one in calls if isinstance(one, ast.Call)]
        return {text(one.value) for one in functions if isinstance(one, ast.Attribute)}
    return {text(one) for one in made.args[:1] if isinstance(one, ast.Name | ast.Attribute)}


def _steps_on(program: Program, change: ast.stmt, name: str) -> bool:
    """Tell whether an optimizer is used behind a change, and is not made again there."""
    uses = [one for one in program.nodes if isinstance(one, ast.Name | ast.Attribute) and text(one) == name]
    behind = [one for one in uses if one.lineno > change.lineno]
    return bool(behind) and all(isinstance(one.ctx, ast.Load) for one in behind)


def _changes(program: Program, node: ast.stmt, roots: set[str]) -> str:
    """Return the model to which a statement gives new weights."""
    value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
    if not isinstance(value, ast.Call):
        return ""
    given = {text(one) for one in value.args}
    owner = text(object_of(value))
    if isinstance(node, ast.Assign):
        target = text(node.targets[0])
        if target in roots:
            keeps = owner == target or (target in given and not _CHANGES.search(callee_of(value)))
            return "" if keeps or callee_of(value) in _OWN else target
        full = program.names.full(value.func)
        layer = full == f"torch.nn.{last(full)}" and last(full) in WITH_WEIGHTS | {"Sequential", "ModuleList"}
        layer = layer or text(value.func) in program.classes
        return next((one for one in roots if layer and target.startswith((f"{one}.", f"{one}["))), "")
    layer = callee_of(value) == "append" and len(value.args) == 1 and _is_layer(program, value.args[0])
    makes = layer or callee_of(value) in {"add_module", "setattr"} or _CHANGES.search(callee_of(value))
    return next((one for one in roots if makes and (one in given or f"{owner}.".startswith(f"{one}."))), "")


def _is_layer(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression is a module, or the result of a function of the script that may make one."""
    return layer_of(program, node) is not None or text(getattr(node, "func", None)) in program.functions


@suspects("weights released behind the optimizer")
def _released(program: Program) -> Iterator[Spot]:
    """Find an optimizer that got only `p.requires_grad` weights, and weights that are released afterwards."""
    made = [one for one in optimizers(program) if _is_filtered(program, one)]
    if len(made) != 1 or "add_param_group" in source(program):
        return
    for node in program.nodes:
        opens = isinstance(node, ast.Assign) and re.fullmatch(r"[\w.]+\.requires_grad = True", text(node))
        opens = opens or (isinstance(node, ast.Expr) and re.search(r"requires_grad_\((True)?\)", text(node)))
        if isinstance(node, ast.Assign | ast.Expr) and opens and _later(program, node, made[0]):
            yield look_at(made[0], node, change=shown(node))
            return


def _is_filtered(program: Program, made: ast.Call) -> bool:
    """Tell whether an optimizer gets only the weights that are trainable at that time."""
    given = argument(made, "params", 0)
    ends = flow(program).ends(given) if given is not None else ()
    return any("requires_grad" in text(one.node) for one in ends)


def _later(program: Program, node: ast.stmt, made: ast.Call) -> bool:
    """Tell whether a statement may run after a call: behind it, or in a function that a loop calls."""
    function = program.function(node)
    if function is program.function(made):
        return node.lineno > made.lineno
    uses = [*program.calls_of(function.name), *program.calls_of(f".{function.name}")] if function is not None else []
    return any(one.lineno > made.lineno or program.loops(one) for one in uses)


@suspects("optimizer of a part")
def _part(program: Program) -> Iterator[Spot]:
    """Find the only optimizer of a script with `model.part.parameters()` or a slice of the parameters."""
    made = optimizers(program)
    given = argument(made[0], "params", 0) if len(made) == 1 else None
    words = source(program)
    if given is None or re.search(r"requires_grad|no_grad|add_param_group|freeze|\.detach\(", words):
        return
    sliced = isinstance(given, ast.Subscript) and "parameters()" in text(given.value)
    owner = given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
    whole = {"module", "model", "net", "network"}
    part = isinstance(owner, ast.Attribute) and text(owner.value) != "self" and owner.attr not in whole
    if sliced or (part and called_parameters(given)):
        yield look_at(made[0])


def called_parameters(node: ast.AST) -> bool:
    """Tell whether an expression is `x.parameters()`."""
    return callee_of(node) in {"parameters", "named_parameters"}


@suspects("groups that leave weights out")
def _left_out(program: Program) -> Iterator[Spot]:
    """Find the only use of a model's parameters in a selection by their names."""
    if source(program).count("parameters()") != 1 or "requires_grad" in source(program) or not optimizers(program):
        return
    for node in program.every(ast.comprehension):
        if "named_parameters" in text(node.iter):
            tests = [one for one in node.ifs if re.search(r" in |startswith|endswith", text(one))]
            yield from (look_at(one, made=shown(optimizers(program)[0])) for one in tests)


@suspects("two optimizers of the same weights")
def _both(program: Program) -> Iterator[Spot]:
    seen: dict[tuple[str, ast.AST | None], ast.Call] = {}
    for made in optimizers(program):
        given = argument(made, "params", 0)
        key = (text(given), program.function(made))
        alone = not any(isinstance(one, ast.If | ast.IfExp | ast.Dict) for one in program.outward(made))
        if given is None or not alone or not called_parameters(given):
            continue
        if key in seen and not program.loops(made) and _kept_beside(program, seen[key], made):
            yield look_at(made, seen[key], first=shown(seen[key]))
        seen[key] = made


def _kept_beside(program: Program, one: ast.Call, other: ast.Call) -> bool:
    """Tell whether two optimizers have two names."""
    kept = [program.parents.get(made) for made in (one, other)]
    names = [text(node.targets[0]) for node in kept if isinstance(node, ast.Assign)]
    return len(set(names)) == 2


@suspects_each("optimizer made where it is called again", optimizers)
def _again(program: Program, made: ast.Call) -> Iterator[Spot]:
    """Find an optimizer made in a function that trains and that a loop over epochs calls."""
    function = program.function(made)
    if function is None or program.owner(function) is not None or not has_call(function, "backward"):
        return
    for use in program.calls_of(function.name):
        loop = next(iter(program.loops(use)), None)
        counted = text(loop.target) if isinstance(loop, ast.For) else ""
        trains = re.search(r"epoch|train|step|batch", function.name)
        if loop is not None and trains and not _REPEATED.search(counted):
            yield look_at(made, use, loop=shown(use))


@suspects_each("optimizer that never steps", optimizers)
def _never(program: Program, made: ast.Call) -> object:
    """Find an optimizer with a name, of which the script calls no step and which it passes to nothing."""
    kept = program.parents.get(made)
    target = target_of(kept)
    if not isinstance(target, ast.Name | ast.Attribute) or not has_call(program.tree, "step"):
        return False
    name = text(target)
    if isinstance(target, ast.Attribute) and f"{target.attr}.step(" in source(program):
        return False
    uses = [one for one in program.nodes if isinstance(one, ast.Name | ast.Attribute) and text(one) == name]
    ways = [program.parents.get(one) for one in uses if isinstance(one.ctx, ast.Load)]
    only = all(isinstance(one, ast.Attribute) and one.attr in {"zero_grad", "param_groups"} for one in ways)
    meant = number(argument(made, "lr", 1)) == 0
    alone = isinstance(target, ast.Attribute) and len(program.classes) == 0
    return only and not meant and not alone and look_at(made, name=name)


@suspects("rate of the first group only")
def _first_group(program: Program) -> Iterator[Spot]:
    """Find `optimizer.param_groups[0]["lr"] = rate` for an optimizer with several groups."""
    several = [one for one in program.every(ast.Dict) if any(constant(key) == "params" for key in one.keys)]
    for node in program.every(ast.Assign):
        target = text(node.targets[0])
        if len(several) > 1 and target.endswith(".param_groups[0]['lr']"):
            yield look_at(node)


@suspects_each("written into a copy of the state", ast.Assign | ast.AugAssign)
def _into_copy(program: Program, node: ast.Assign | ast.AugAssign) -> object:
    """Find `optimizer.state_dict()["param_groups"][0]["lr"] = rate`, and `model.state_dict()[name] = value`."""
    bound = None
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if not isinstance(target, ast.Subscript):
        return False
    if isinstance(target.value, ast.Name):
        bound = program.bound(target.value)
    loop = bound.statement if bound is not None and isinstance(bound.statement, ast.For) else None
    groups = loop is not None and ".state_dict()['param_groups']" in text(loop.iter)
    return groups or re.search(r"\.state_dict\(\)\[", text(target))


# --- the numbers of an optimizer ---


@suspects_each("rate of an optimizer", optimizers)
def _rate(program: Program, made: ast.Call) -> object:
    low, high = _RATES.get(optimizer_name(program, made), (0.0, math.inf))
    rate = given_number(program, made, "lr", 1)
    if rate is None or rate <= 0 or low <= rate < high:
        return False
    return look_at(made, rate=f"{rate:g}", how="low" if rate < low else "high")


@suspects_each("weight decay out of the usual", optimizers)
def _decay(program: Program, made: ast.Call) -> object:
    name = optimizer_name(program, made)
    decay = given_number(program, made, "weight_decay")
    return decay is not None and decay >= (0.3 if name == "AdamW" else 0.03) and look_at(made, decay=f"{decay:g}")


@suspects_each("moments out of the usual", optimizers)
def _moments(program: Program, made: ast.Call) -> object:
    """Find a momentum above 0.98 or below 0.2, and betas that are exchanged or too small."""
    share = given_number(program, made, "momentum")
    odd = share is not None and (share > 0.98 or 0 < share <= 0.2 or share < 0)
    given = argument(made, "betas")
    end = flow(program).end(given) if given is not None else None
    both = [setting(program, one) for one in end.node.elts] if end and isinstance(end.node, ast.Tuple) else []
    if len(both) == 2 and both[0] is not None and both[1] is not None:
        odd = odd or both[0] > 0.97 or both[1] < 0.8 or both[0] > both[1]
    return odd


@suspects_each("epsilon of an optimizer", optimizers)
def _epsilon(program: Program, made: ast.Call) -> object:
    eps = given_number(program, made, "eps")
    return eps is not None and (eps >= 0.01 or 0 < eps < 1e-12) and look_at(made, eps=f"{eps:g}")


@suspects_each("steps uphill", optimizers)
def _uphill(program: Program, made: ast.Call) -> object:
    return constant(argument(made, "maximize")) is True


@suspects("arguments by position")
def _positions(program: Program) -> Iterator[Spot]:
    """Find `SGD(params, lr, momentum, 1e-4)`, where the fourth is dampening, and `StepLR(optimizer, 0.1)`."""
    for made in optimizers(program):
        name, given = optimizer_name(program, made), made.args
        place = {"SGD": 3, "Adam": 3, "AdamW": 3, "RMSprop": 2}.get(name, 9)
        wrong = {"SGD": "dampening", "Adam": "eps", "AdamW": "eps", "RMSprop": "alpha"}.get(name, "")
        if len(given) <= place or any(isinstance(one, ast.Starred) for one in given):
            continue
        value = setting(program, given[place])
        usual = value == 0 or (wrong == "eps" and value is not None and value < 1e-6) or (wrong == "alpha" and value)
        if not usual and not re.search(wrong[:4], text(given[place])):
            yield look_at(made, given=shown(given[place]), name=wrong)
    for name, made in schedules(program):
        step = given_number(program, made, "step_size", 1) if name == "StepLR" else None
        if step is not None and step < 1:
            yield look_at(made, given=f"{step:g}", name="step_size")


@suspects_each("key that no optimizer reads", ast.Dict)
def _keys(program: Program, node: ast.Dict) -> object:
    """Find `{"params": ..., "learning_rate": ...}`."""
    keys = [constant(one) for one in node.keys]
    return "params" in keys and (dead := _DEAD_KEYS & {str(one) for one in keys}) and look_at(node, key=min(dead))


@suspects("half-precision weights")
def _half(program: Program) -> Iterator[Spot]:
    """Find a model in half precision, without master weights, in a script that trains."""
    made = optimizers(program)
    words = source(program)
    if not made or "GradScaler" in words or "bfloat16" in words:
        return
    for call in program.calls:
        moved = callee_of(call) == "to" and any(_is_half(program, one) for one in arguments(call))
        owner = text(object_of(call))
        model = re.search(r"(^|\.|_)(model|net|network|self)$|[A-Z]\w*\(.*\)$", owner)
        if model and (callee_of(call) == "half" or moved):
            eps = given_number(program, made[0], "eps", 3)
            adam = "Adam" in optimizer_name(program, made[0])
            if not adam or not is_given(made[0], "eps", 3) or (eps is not None and eps < 1e-6):
                yield spot(made[0] if adam else call, call, text=shown(call))


def _is_half(program: Program, node: ast.expr) -> bool:
    return any(re.search(r"\bfloat16|torch\.half", text(one.node)) for one in flow(program).ends(node))


@suspects("rate changed where no optimizer reads it")
def _unread(program: Program) -> Iterator[Spot]:
    """Find `lr *= 0.1` in a loop, for a variable that an optimizer got before."""
    names = {text(argument(one, "lr", 1)) for one in optimizers(program)}
    if "param_groups" in source(program):
        return
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(node, ast.Assign | ast.AugAssign) or text(target) not in names or not program.loops(node):
            continue
        loop = program.loops(node)[-1]
        inside = any(loop in program.outward(one) for one in optimizers(program))
        if not inside and has_call(loop, "step") and text(target).isidentifier():
            yield look_at(node, name=text(target))


@suspects("rate that loaded state replaces")
def _old_rate(program: Program) -> Iterator[Spot]:
    """Find a new optimizer with another rate than the one before, and then `load_state_dict`."""
    made: dict[str, list[ast.Call]] = {}
    for call in optimizers(program):
        statement = program.statement(call)
        if isinstance(statement, ast.Assign):
            made.setdefault(text(statement.targets[0]), []).append(call)
    for load in program.calls_of(".load_state_dict"):
        name = text(object_of(load))
        before = [one for one in made.get(name, ()) if one.lineno < load.lineno]
        others = {text(argument(one, "lr", 1)) for calls in made.values() for one in calls}
        later = [one for one in program.every(ast.Assign) if "['lr']" in text(one.targets[0])]
        if before and len(others) > 1 and not any(one.lineno > load.lineno for one in later):
            yield look_at(load, before[-1], rate=text(argument(before[-1], "lr", 1)))
