"""Rules about the classes of modules: what they register, and how they are put together."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.weights import zero_matrices, zero_rows
from glassgrad.doctor.reading.actors import modules
from glassgrad.doctor.reading.flow import EACH, Value, flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import Bound, Class, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import (
    DRAWING,
    NORMS,
    WITH_WEIGHTS,
    has_weights,
    inside,
    layer,
    library_name,
)

_LISTS = {"list": "nn.ModuleList", "dictionary": "nn.ModuleDict", "tuple": "nn.ModuleList"}
_REGISTERING = named(
    "ModuleList ModuleDict Sequential ParameterList ParameterDict add_module register_module register_parameter "
    "setattr chain"
)
_ADDING = frozenset({"append", "extend", "insert"})
_CONSTANT = "zeros_", "ones_", "constant_"


def _container(value: ast.expr | None) -> str:
    if isinstance(value, ast.List | ast.ListComp):
        return "list"
    if isinstance(value, ast.Dict | ast.DictComp):
        return "dictionary"
    return "tuple" if isinstance(value, ast.Tuple) else ""


def _elements(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.List | ast.Tuple):
        return list(value.elts)
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else []


def _whole(node: ast.expr) -> ast.expr:
    """Return the container of `*layers` and `layers[0]`."""
    inner = node.value if isinstance(node, ast.Starred) else node
    return inner.value if isinstance(inner, ast.Subscript) else inner


def _holds_layers(program: Program, value: ast.expr | None) -> bool:
    """Tell whether a container is written with calls that make layers or parameters."""
    parts = _elements(value) if value is not None else []
    calls = [one for part in parts for one in (_elements(part) or [part]) if isinstance(one, ast.Call)]
    return any(has_weights(program, one) or library_name(program, one) == "Parameter" for one in calls)


@reads("layers nobody trains")
def _plain_containers(program: Program) -> Iterator[Spot]:
    for owner in program.modules():
        for attribute, bounds in owner.attributes.items():
            for bound in bounds:
                found = _layers_in(program, owner, attribute, bound)
                found = found or _given_list(program, owner, attribute, bound)
                if found is not None:
                    kind = _container(found) or "list"
                    yield spot(
                        bound.value or found,
                        attribute=f"self.{attribute}",
                        kind=kind,
                        remedy=f"self.{attribute} = {_LISTS[kind]}({shown(found, 40)})",
                    )


def _given_list(program: Program, owner: Class, attribute: str, bound: Bound) -> ast.expr | None:
    """Return `list(layers)` or a parameter, if the class calls the elements and each caller passes modules."""
    value = bound.value
    kept = isinstance(value, ast.Call) and getattr(value.func, "id", "") in {"list", "tuple"} and len(value.args) == 1
    if value is None or bound.path or not (kept or isinstance(value, ast.Name)):
        return None
    local = value.id if isinstance(value, ast.Name) else ""
    parts = modules(program, Value(value, None, (EACH,)))
    if not parts or _is_registered(program, owner, attribute, local) or _is_module_list(program, value):
        return None
    return value if any(has_weights(program, one.call) for one in parts) else None


def _is_module_list(program: Program, value: ast.expr) -> bool:
    inner = value.args[0] if isinstance(value, ast.Call) else value
    held = modules(program, inner)
    return held is not None or any(isinstance(one.node, ast.Call) for one in flow(program).ends(inner))


def _layers_in(program: Program, owner: Class, attribute: str, bound: Bound) -> ast.expr | None:
    """Return the container of layers that is assigned to an attribute, unless something registers the layers."""
    value = bound.value
    local = value.id if isinstance(value, ast.Name) else ""
    if isinstance(value, ast.Name):
        held = program.bound(value)
        value = held.value if held is not None and held.item is None else None
    if value is None or not _container(value) or _is_registered(program, owner, attribute, local):
        return None
    filled = _holds_layers(program, value) or any(
        _holds_layers(program, ast.List([one.args[0]], ast.Load()))
        for one in _appends(owner, attribute, local)
        if one.args
    )
    return value if filled else None


def _appends(owner: Class, attribute: str, local: str) -> Iterator[ast.Call]:
    targets = {f"self.{attribute}", local} - {""}
    for node in ast.walk(owner.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            yield from [node] if ast.unparse(node.func.value) in targets else []


def _is_registered(program: Program, owner: Class, attribute: str, local: str) -> bool:
    """Tell whether a class hands the layers of a container to something that registers them."""
    for node in ast.walk(owner.node):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in {"add_module", "register_module", "register_parameter", "setattr"}:
            return True
        given = [ast.unparse(_whole(one)) for one in node.args]
        if name in _REGISTERING and (f"self.{attribute}" in given or (local and local in given)):
            return True
    return False


@reads("parameter not registered")
def _plain_tensors(program: Program) -> Iterator[Spot]:
    """Find attributes of modules that are to be learnt and are no parameters."""
    for owner in program.modules():
        for attribute, bounds in owner.attributes.items():
            for bound in bounds:
                why = _is_no_parameter(program, bound.value)
                if why and bound.item is None and bound.value is not None and not _is_given_on(program, attribute):
                    yield spot(bound.value, attribute=f"self.{attribute}", why=why, text=shown(bound.value))


def _is_no_parameter(program: Program, value: ast.expr | None) -> str:
    """Return what makes a value a mere tensor though it should be a parameter; empty if nothing does."""
    if isinstance(value, ast.BinOp) and any(_is_parameter(program, one) for one in (value.left, value.right)):
        return "the result of a computation with a parameter"
    if not isinstance(value, ast.Call):
        return ""
    method = value.func if isinstance(value.func, ast.Attribute) else None
    moved = method is not None and method.attr in {"to", "cuda", "float", "double", "half", "clone", "view", "reshape"}
    if moved and method is not None and _is_parameter(program, method.value):
        return f"the result of {method.attr}() of a parameter"
    made = program.names.full(value.func).startswith("torch.") and library_name(program, value) != "Parameter"
    wanted = constant(argument(value, "requires_grad")) is True
    asked = method is not None and method.attr == "requires_grad_" and isinstance(method.value, ast.Call)
    source = method.value if asked and method is not None else None
    random = (
        isinstance(source, ast.Call)
        and program.names.full(source.func).startswith("torch.")
        and not layer(program, source)
    )
    return "a tensor with requires_grad" if (made and wanted) or random else ""


def _is_parameter(program: Program, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and library_name(program, node) == "Parameter"


def _is_given_on(program: Program, attribute: str) -> bool:
    """Tell whether something else takes an attribute: an optimizer's list, or what registers it."""
    for call in program.calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        optimizer = program.names.full(call.func).startswith("torch.optim.")
        if name in {"register_parameter", "add_param_group"} or optimizer:
            if any(isinstance(one, ast.Attribute) and one.attr == attribute for one in ast.walk(call)):
                return True
            if name == "register_parameter" and any(constant(one) == attribute for one in call.args):
                return True
    return False


@reads("super init is missing")
def _no_super(program: Program) -> Iterator[Spot]:
    for owner in program.modules():
        begin = owner.methods.get("__init__")
        if begin is None or "dataclass" in " ".join(ast.unparse(one) for one in owner.node.decorator_list):
            continue
        calls = [one for one in ast.walk(begin) if isinstance(one, ast.Call) and _is_super(one)]
        puts = [one for one in ast.walk(begin) if isinstance(one, ast.Assign) and _registers(program, one)]
        if not calls:
            yield spot(begin, name=owner.node.name, why="does not call")
        elif puts and min(one.lineno for one in puts) < min(one.lineno for one in calls):
            first = min(puts, key=lambda one: one.lineno)
            yield spot(first, name=owner.node.name, why="makes its first layer before it calls")


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"


def _registers(program: Program, node: ast.Assign) -> bool:
    """Tell whether an assignment puts a module or a parameter into `self`."""
    into = any(ast.unparse(one).startswith("self.") for one in node.targets)
    made = isinstance(node.value, ast.Call) and program.names.full(node.value.func).startswith("torch.nn.")
    return into and made


@reads("layers made in forward")
def _made_in_forward(program: Program) -> Iterator[Spot]:
    wanted = WITH_WEIGHTS | DRAWING
    for call in program.calls:
        owner = program.owner(call)
        if owner is None or not owner.is_module or not inside(program, call, "forward"):
            continue
        full = program.names.full(call.func)
        name = library_name(program, call)
        if full == f"torch.nn.{name}" and name in wanted and not _once(program, call):
            what = "its weights are drawn anew in each call and no optimizer has them"
            if name in DRAWING:
                what = "a new layer is in training mode, so eval() does not switch it off"
            yield spot(call, layer=f"nn.{name}", what=what)


def _once(program: Program, call: ast.Call) -> bool:
    """Tell whether a layer is made under a condition, as on the first call."""
    return any(isinstance(one, ast.If | ast.IfExp) for one in program.outward(call))


@reads("layers shared")
def _repeated(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            calls = [one for one in node.left.elts if isinstance(one, ast.Call)]
            if any(has_weights(program, one) for one in calls):
                yield spot(
                    node, text=shown(node), remedy=f"[{shown(calls[0], 40)} for _ in range({shown(node.right)})]"
                )
        elif isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Name):
            targets = {one.id for part in node.generators for one in ast.walk(part.target) if isinstance(one, ast.Name)}
            found = layer(program, node.elt) if node.elt.id not in targets else None
            if found is not None and has_weights(program, found.call):
                remedy = f"[{shown(found.call, 40)} for ...]"
                yield spot(node, text=shown(node), remedy=remedy)


# --- layers in a row ---


def _linear_sizes(program: Program, node: ast.expr) -> tuple[str, float | None, float | None]:
    """Return the kind of a linear layer with its numbers of inputs and outputs; an empty kind for other layers."""
    found = layer(program, node)
    if found is None or found.owner is not None:
        return "", None, None
    call = found.call
    if found.name == "Linear":
        return "Linear", number(argument(call, "in_features", 0)), number(argument(call, "out_features", 1))
    size = argument(call, "kernel_size", 2)
    plain = argument(call, "groups", 6) is None and isinstance(constant(size), int) and constant(size) != 1
    if found.name in {"Conv1d", "Conv2d", "Conv3d"} and plain:
        return found.name, number(argument(call, "in_channels", 0)), number(argument(call, "out_channels", 1))
    return "", None, None


def _collapses(program: Program, first: ast.expr, second: ast.expr) -> bool:
    """Tell whether two layers in a row are one linear map; a narrow middle is a matrix of low rank, which is meant."""
    kind, entering, middle = _linear_sizes(program, first)
    other, _, leaving = _linear_sizes(program, second)
    if not kind or kind != other or entering is None or middle is None or leaving is None:
        return False
    return middle >= min(entering, leaving)


@reads("linear layers in a row")
def _in_a_row(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        if library_name(program, call) == "Sequential":
            for first, second in itertools.pairwise(call.args):
                if _collapses(program, first, second):
                    yield spot(second, call, first=shown(first), second=shown(second))
        elif len(call.args) == 1 and isinstance(call.args[0], ast.Call) and inside(program, call, "forward"):
            first, second = call.args[0].func, call.func
            methods = isinstance(first, ast.Attribute) and isinstance(second, ast.Attribute)
            if methods and _collapses(program, first, second):
                yield spot(call, first=shown(first), second=shown(second))
    for owner in program.modules():
        yield from _statements_in_a_row(program, owner)
        yield from _loop_in_a_row(program, owner)


def _statements_in_a_row(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `x = self.a(x)` followed by `x = self.b(x)`, or by `return self.b(x)`."""
    forward = owner.methods.get("forward")
    body = forward.body if forward is not None else []
    for before, after in itertools.pairwise(body):
        first, second = _applied(before), _applied(after)
        if first is None or second is None or not isinstance(before, ast.Assign) or len(before.targets) != 1:
            continue
        passed = ast.unparse(before.targets[0]) == ast.unparse(second.args[0])
        again = isinstance(after, ast.Return) or ast.unparse(before.targets[0]) == ast.unparse(_target(after))
        if passed and again and _collapses(program, first.func, second.func):
            yield spot(second, first=shown(first.func), second=shown(second.func))


def _loop_in_a_row(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `for layer in self.layers: x = layer(x)` over linear layers alone."""
    for loop in ast.walk(owner.methods["forward"]) if "forward" in owner.methods else ():
        if not isinstance(loop, ast.For) or len(loop.body) != 1 or not isinstance(loop.target, ast.Name):
            continue
        only = loop.body[0]
        call = only.value if isinstance(only, ast.Assign) else None
        plain = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == loop.target.id
        held = layer(program, loop.iter)
        inside = held.call.args[0] if held is not None and held.name == "ModuleList" and held.call.args else None
        parts = inside.elts if isinstance(inside, ast.List) else []
        one_map = len(parts) > 1 and all(_collapses(program, one, two) for one, two in itertools.pairwise(parts))
        if plain and one_map and isinstance(call, ast.Call):
            yield spot(call, first=shown(parts[0]), second=shown(parts[1]))


def _target(node: ast.stmt) -> ast.AST:
    return node.targets[0] if isinstance(node, ast.Assign) else node


def _applied(node: ast.stmt) -> ast.Call | None:
    value = node.value if isinstance(node, ast.Assign | ast.Return) else None
    whole = isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords
    return value if whole and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None


# --- settings of modules ---


@reads("requires_grad of a module")
def _frozen_module(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
                continue
            owner = ast.unparse(target.value)
            module = layer(program, target.value) is not None or _is_child(program, target.value)
            if module and isinstance(node, ast.Assign):
                yield spot(node, owner=owner, remedy=f"{owner}.requires_grad_({shown(node.value)})")


def _is_child(program: Program, node: ast.expr) -> bool:
    """Tell whether a variable runs over the modules of a model."""
    if not isinstance(node, ast.Name):
        return False
    bound = program.bound(node)
    if bound is None or not isinstance(bound.statement, ast.For | ast.AsyncFor):
        return False
    source = bound.statement.iter
    method = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
    return method in {"children", "modules"}


@reads("requires_grad misspelt")
def _misspelt(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Attribute) and target.attr in {"require_grad", "require_grads", "requires_grads"}:
                yield spot(target, given=target.attr)


@reads("running statistics do not arrive")
def _momentum(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        value = number(argument(call, "momentum", 2)) if name in NORMS else None
        if value is not None and (value >= 0.9 or value == 0):
            yield spot(call, layer=f"nn.{name}", momentum=f"{value:g}")


@reads("weights all alike")
def _constant_weights(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        if full not in {f"torch.nn.init.{name}" for name in _CONSTANT} or not call.args:
            continue
        if _fills_model(program, call) or _fills_by_apply(program, call):
            yield spot(call, text=shown(call))
    yield from zero_rows(program)
    yield from zero_matrices(program)


def _fills_model(program: Program, call: ast.Call) -> bool:
    """Tell whether a call stands in `for p in model.parameters()`, under no condition."""
    target = call.args[0]
    bound = program.bound(target) if isinstance(target, ast.Name) else None
    loop = bound.statement if bound is not None and isinstance(bound.statement, ast.For) else None
    over = loop.iter if loop is not None else None
    if loop is None or not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute):
        return False
    if over.func.attr != "parameters" or program.statement(call) not in loop.body:
        return False
    whole = layer(program, over.func.value)  # one layer may begin at 0, as the last of a residual branch
    return whole is not None and (whole.owner is not None or whole.name == "Sequential")


def _fills_by_apply(program: Program, call: ast.Call) -> bool:
    """Tell whether a call fills `module.weight` in a function that `model.apply` gets; norms may begin at 1."""
    target, function = call.args[0], program.function(call)
    if function is None or not isinstance(target, ast.Attribute) or target.attr != "weight":
        return False
    given = [one.args[0] for one in program.calls if _method(one) == "apply" and len(one.args) == 1]
    if not any(isinstance(one, ast.Name) and one.id == function.name for one in given):
        return False
    around = next((one for one in program.outward(call) if isinstance(one, ast.If)), None)
    if around is None:
        return True
    in_else = any(node is call for part in around.orelse for node in ast.walk(part))
    return not in_else and not re.search("norm|embed", ast.unparse(around.test), re.IGNORECASE)


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


RULES = rules_of(globals())
