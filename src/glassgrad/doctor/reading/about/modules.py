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
from glassgrad.doctor.reading.nodes import (
    callee_of,
    has_attribute,
    holds,
    ident,
    is_name,
    is_op,
    method_of,
    names_in,
    object_of,
    only_target,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import Bound, Class, Function, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import (
    DRAWING,
    NORMS,
    WITH_WEIGHTS,
    has_weights,
    inside,
    layer,
    library_layer,
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
                found = _layers_in(program, owner, attribute, bound) or _given_list(program, owner, attribute, bound)
                if found is not None:
                    kind = _container(found) or "list"
                    remedy = f"self.{attribute} = {_LISTS[kind]}({shown(found, 40)})"
                    yield spot(bound.value or found, attribute=f"self.{attribute}", kind=kind, remedy=remedy)


def _given_list(program: Program, owner: Class, attribute: str, bound: Bound) -> ast.expr | None:
    """Return `list(layers)` or a parameter, if the class calls the elements and each caller passes modules."""
    value = bound.value
    kept = isinstance(value, ast.Call) and getattr(value.func, "id", "") in {"list", "tuple"} and len(value.args) == 1
    if value is None or bound.path or not (kept or isinstance(value, ast.Name)):
        return None
    parts = modules(program, Value(value, None, (EACH,)))
    if not parts or _is_registered(owner, attribute, ident(value)) or _is_module_list(program, value):
        return None
    return value if any(has_weights(program, one.call) for one in parts) else None


def _is_module_list(program: Program, value: ast.expr) -> bool:
    inner = value.args[0] if isinstance(value, ast.Call) else value
    made = flow(program).origins(inner)
    return modules(program, inner) is not None or any(isinstance(one, ast.Call) for one in made)


def _layers_in(program: Program, owner: Class, attribute: str, bound: Bound) -> ast.expr | None:
    """Return the container of layers that is assigned to an attribute, unless something registers the layers."""
    local = bound.value.id if isinstance(bound.value, ast.Name) else ""
    value = program.value_of(bound.value) if local else bound.value
    if value is None or not _container(value) or _is_registered(owner, attribute, local):
        return None
    added = [ast.List(one.args[:1], ast.Load()) for one in _appends(owner, attribute, local)]
    return value if any(_holds_layers(program, one) for one in (value, *added)) else None


def _appends(owner: Class, attribute: str, local: str) -> Iterator[ast.Call]:
    targets = {f"self.{attribute}", local} - {""}
    for node in within(owner.node, ast.Call):
        held = object_of(node) if method_of(node) in _ADDING else None
        if held is not None and ast.unparse(held) in targets:
            yield node


def _is_registered(owner: Class, attribute: str, local: str) -> bool:
    """Tell whether a class hands the layers of a container to something that registers them."""
    targets = {f"self.{attribute}", local} - {""}
    for node in within(owner.node, ast.Call):
        name = callee_of(node)
        if name in {"add_module", "register_module", "register_parameter", "setattr"}:
            return True
        if name in _REGISTERING and targets & {ast.unparse(_whole(one)) for one in node.args}:
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
    name, held = method_of(value), object_of(value)
    moved = name in {"to", "cuda", "float", "double", "half", "clone", "view", "reshape"}
    if moved and _is_parameter(program, held):
        return f"the result of {name}() of a parameter"
    made = library_name(program, value) not in {"", "Parameter"}
    wanted = made and constant(argument(value, "requires_grad")) is True
    asked = name == "requires_grad_" and library_name(program, held) and not layer(program, held)
    return "a tensor with requires_grad" if wanted or asked else ""


def _is_parameter(program: Program, node: ast.expr | None) -> bool:
    return library_name(program, node) == "Parameter"


def _is_given_on(program: Program, attribute: str) -> bool:
    """Tell whether something else takes an attribute: an optimizer's list, or what registers it."""
    for call in program.calls:
        name = callee_of(call)
        optimizer = program.names.full(call.func).startswith("torch.optim.")
        takes = name in {"register_parameter", "add_param_group"} or optimizer
        if takes and has_attribute(call, attribute):
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
        calls = [one for one in within(begin, ast.Call) if method_of(one) == "__init__"]
        puts = [one for one in within(begin, ast.Assign) if _registers(program, one)]
        if not calls:
            yield spot(begin, name=owner.node.name, why="does not call")
        elif puts and min(one.lineno for one in puts) < min(one.lineno for one in calls):
            first = min(puts, key=lambda one: one.lineno)
            yield spot(first, name=owner.node.name, why="makes its first layer before it calls")


def _registers(program: Program, node: ast.Assign) -> bool:
    """Tell whether an assignment puts a module or a parameter into `self`."""
    into = any(ast.unparse(one).startswith("self.") for one in node.targets)
    made = isinstance(node.value, ast.Call) and program.names.full(node.value.func).startswith("torch.nn.")
    return into and made


@reads("layers made in forward")
def _made_in_forward(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        owner = program.owner(call)
        if owner is None or not owner.is_module or not inside(program, call, "forward"):
            continue
        name = library_name(program, call)
        wanted = name in WITH_WEIGHTS | DRAWING and program.names.full(call.func) == f"torch.nn.{name}"
        once = any(isinstance(one, ast.If | ast.IfExp) for one in program.outward(call))  # as on the first call
        if wanted and not once:
            what = "its weights are drawn anew in each call and no optimizer has them"
            if name in DRAWING:
                what = "a new layer is in training mode, so eval() does not switch it off"
            yield spot(call, layer=f"nn.{name}", what=what)


@reads("layers shared")
def _repeated(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        if is_op(node, ast.Mult) and isinstance(node.left, ast.List):
            calls = [one for one in node.left.elts if isinstance(one, ast.Call)]
            if any(has_weights(program, one) for one in calls):
                remedy = f"[{shown(calls[0], 40)} for _ in range({shown(node.right)})]"
                yield spot(node, text=shown(node), remedy=remedy)
        elif isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Name):
            targets = names_in(*(part.target for part in node.generators))
            found = layer(program, node.elt) if node.elt.id not in targets else None
            if found is not None and has_weights(program, found.call):
                yield spot(node, text=shown(node), remedy=f"[{shown(found.call, 40)} for ...]")


# --- layers in a row ---


def _linear_sizes(program: Program, node: ast.expr) -> tuple[str, float | None, float | None]:
    """Return the kind of a linear layer with its numbers of inputs and outputs; an empty kind for other layers."""
    found = library_layer(program, node)
    if found is None:
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
        elif len(call.args) == 1 and method_of(call) and method_of(call.args[0]) and inside(program, call, "forward"):
            assert isinstance(call.args[0], ast.Call)
            first, second = call.args[0].func, call.func
            if _collapses(program, first, second):
                yield spot(call, first=shown(first), second=shown(second))
    for _, forward in program.forwards():
        yield from _statements_in_a_row(program, forward)
        yield from _loop_in_a_row(program, forward)


def _statements_in_a_row(program: Program, forward: Function) -> Iterator[Spot]:
    """Find `x = self.a(x)` followed by `x = self.b(x)`, or by `return self.b(x)`."""
    for before, after in itertools.pairwise(forward.body):
        first, second = _applied(before), _applied(after)
        if first is None or second is None or only_target(before) is None:
            continue
        passed = target_text(before) == ast.unparse(second.args[0])
        again = isinstance(after, ast.Return) or target_text(before) == target_text(after)
        if passed and again and _collapses(program, first.func, second.func):
            yield spot(second, first=shown(first.func), second=shown(second.func))


def _loop_in_a_row(program: Program, forward: Function) -> Iterator[Spot]:
    """Find `for layer in self.layers: x = layer(x)` over linear layers alone."""
    for loop in within(forward, ast.For):
        only = loop.body[0]
        call = only.value if isinstance(only, ast.Assign) and len(loop.body) == 1 else None
        if not isinstance(call, ast.Call) or not is_name(call.func, ident(loop.target)):
            continue
        held = layer(program, loop.iter)
        inside = held.call.args[0] if held is not None and held.name == "ModuleList" and held.call.args else None
        parts = inside.elts if isinstance(inside, ast.List) else []
        if len(parts) > 1 and all(_collapses(program, one, two) for one, two in itertools.pairwise(parts)):
            yield spot(call, first=shown(parts[0]), second=shown(parts[1]))


def _applied(node: ast.stmt) -> ast.Call | None:
    value = node.value if isinstance(node, ast.Assign | ast.Return) else None
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return None
    return value if isinstance(value.func, ast.Attribute) else None


# --- settings of modules ---


@reads("requires_grad of a module")
def _frozen_module(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.Assign):
        for target in node.targets:
            if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
                continue
            if layer(program, target.value) is not None or _is_child(program, target.value):
                owner = ast.unparse(target.value)
                yield spot(node, owner=owner, remedy=f"{owner}.requires_grad_({shown(node.value)})")


def _is_child(program: Program, node: ast.expr) -> bool:
    """Tell whether a variable runs over the modules of a model."""
    bound = program.bound(node)
    loop = bound.statement if bound is not None else None
    return isinstance(loop, ast.For | ast.AsyncFor) and method_of(loop.iter) in {"children", "modules"}


@reads("requires_grad misspelt")
def _misspelt(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.Assign):
        for target in node.targets:
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
    bound = program.bound(call.args[0])
    loop = bound.statement if bound is not None else None
    if not isinstance(loop, ast.For) or method_of(loop.iter) != "parameters":
        return False
    whole = layer(program, object_of(loop.iter))  # one layer may begin at 0, as the last of a residual branch
    model = whole is not None and (whole.owner is not None or whole.name == "Sequential")
    return model and program.statement(call) in loop.body


def _fills_by_apply(program: Program, call: ast.Call) -> bool:
    """Tell whether a call fills `module.weight` in a function that `model.apply` gets; norms may begin at 1."""
    target, function = call.args[0], program.function(call)
    if function is None or not isinstance(target, ast.Attribute) or target.attr != "weight":
        return False
    applied = [one.args[0] for one in program.calls_of(".apply") if len(one.args) == 1]
    if not any(is_name(one, function.name) for one in applied):
        return False
    around = program.nearest(call, ast.If)
    if around is None:
        return True
    in_else = any(holds(part, call) for part in around.orelse)
    return not in_else and not re.search("norm|embed", ast.unparse(around.test), re.IGNORECASE)


RULES = rules_of(globals())
