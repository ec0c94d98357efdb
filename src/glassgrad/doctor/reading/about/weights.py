"""Rules about weights: initialisation, tying, freezing, and passing them to optimizers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.modes import undone
from glassgrad.doctor.reading.actors import modules, parts, setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import Event, iterations, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import DRAWING, NORMS, kinds, layer, library_name

_CONSTANT = frozenset({"zeros_", "ones_", "constant_"})
_MATRICES = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
_USING_UP = frozenset({"clip_grad_norm_", "clip_grad_value_", "list", "sum", "len", "max", "tuple"})


# --- first weights ---


def zero_rows(program: Program) -> Iterator[Spot]:
    """Yield constant initial weights of two layers where one feeds the other."""
    filled: dict[ast.AST, list[tuple[ast.Call, Value]]] = {}
    for call, weight in _filled(program):
        held = modules(program, weight)
        if held is None or len(held) != 1 or held[0].name not in _MATRICES:
            continue
        outer = program.parents.get(held[0].call)
        in_a_row = outer if isinstance(outer, ast.Call) and library_name(program, outer) == "Sequential" else None
        if in_a_row is not None:
            filled.setdefault(in_a_row, []).append((call, held[0].made))
    for places in filled.values():
        made = {one.node for _, one in places}
        if len(made) > 1:
            first, second = places[0][0], places[-1][0]
            yield spot(first, second, *[one.node for _, one in places], text=shown(first))


def _filled(program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield calls that fill the weight of a layer with one number, and the layer."""
    for call in program.calls:
        full = program.names.full(call.func)
        weight: ast.expr | None = None
        if full.startswith("torch.nn.init.") and last(full) in _CONSTANT and call.args:
            weight = call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr in {"zero_", "fill_"} and not full:
            weight = call.func.value
        if isinstance(weight, ast.Attribute) and weight.attr == "data":
            weight = weight.value
        if isinstance(weight, ast.Attribute) and weight.attr == "weight":
            yield call, weight.value


def zero_matrices(program: Program) -> Iterator[Spot]:
    """Yield hand-made weight matrices that begin as constants, where one feeds the other."""
    found: list[tuple[ast.expr, Value]] = []
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            end = flow(program).end(node.right)
            if end is not None and isinstance(end.node, ast.Call) and _is_constant(program, end.node):
                found.append((node, end))
    made = {end for _, end in found}
    products = [node for node, _ in found]
    if len(made) > 1 and any(_feeds(program, node, products, 0) for node in products):
        found.sort(key=lambda pair: (pair[1].frame.call if pair[1].frame is not None else pair[1].node).lineno)
        first = found[0][1]
        places = [frame.call for _, end in found for frame in ([end.frame] if end.frame is not None else [])]
        also = [program.statement(end.node) for _, end in found]
        yield spot(places[0] if places else first.node, *places, *also, text=shown(first.node))


def _feeds(program: Program, node: ast.expr, products: list[ast.expr], depth: int) -> bool:
    """Tell whether another product computes the left operand of a product."""
    left = node.left if isinstance(node, ast.BinOp) else node
    inner = [one for one in ast.walk(left) if one in products and one is not node]
    names = [one for one in ast.walk(left) if isinstance(one, ast.Name)] if depth < 4 else []
    ends = [end.node for name in names for end in flow(program).ends(name)]
    return bool(inner) or any(one in products or _feeds(program, one, products, depth + 1) for one in ends)


def _is_constant(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a trainable tensor of equal numbers."""
    name = library_name(program, call)
    if name == "Parameter" and call.args and isinstance(call.args[0], ast.Call):
        return library_name(program, call.args[0]) in {"zeros", "ones", "full"}
    return name in {"zeros", "ones", "full"} and constant(argument(call, "requires_grad")) is True


@reads("dropout out of the usual")
def _much(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        if name not in DRAWING and name != "dropout":
            continue
        share = setting(program, argument(call, "p", 1 if name == "dropout" else 0))
        if share is not None and 0.8 <= share < 1:
            yield spot(call, program.statement(call), text=shown(call), share=f"{share:g}", kept=f"{1 - share:.2g}")


# --- tied weights ---


@reads("tied weights apart")
def _apart(program: Program) -> Iterator[Spot]:
    """Find `a.weight = b.weight` if a later statement assigns a new parameter to one of them."""
    ties = [node for node in program.nodes if isinstance(node, ast.Assign) and _is_tie(node)]
    if not ties:
        return
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute) or target.attr != "weight":
            continue
        made = node.value if isinstance(node.value, ast.Call) else None
        new = made is not None and library_name(program, made) == "Parameter"
        if new and not _is_before(program, node, ties[0]) and _over_modules(program, target.value):
            yield spot(node, ties[0], text=shown(node), tie=shown(ties[0]))


def _is_tie(node: ast.Assign) -> bool:
    target, value = node.targets[0], node.value
    both = isinstance(target, ast.Attribute) and isinstance(value, ast.Attribute)
    return (
        both
        and isinstance(target, ast.Attribute)
        and isinstance(value, ast.Attribute)
        and target.attr == value.attr == "weight"
    )


def _is_before(program: Program, node: ast.AST, tie: ast.AST) -> bool:
    """Tell whether a statement comes before another one of its function."""
    return program.function(node) is program.function(tie) and getattr(node, "lineno", 0) < getattr(tie, "lineno", 0)


def _over_modules(program: Program, node: ast.expr) -> bool:
    """Tell whether a name stands for each module of a model, in a loop or in a function for `apply`."""
    if not isinstance(node, ast.Name):
        return False
    bound = program.bound(node)
    loop = bound.statement if bound is not None else None
    if isinstance(loop, ast.For):
        return bool(re.search(r"modules\(\)|children\(\)", ast.unparse(loop.iter)))
    function = program.function(node)
    applied = [one for one in program.calls_of(".apply") if one.args]
    return function is not None and any(ast.unparse(one.args[0]).endswith(function.name) for one in applied)


# --- frozen layers ---


@reads("frozen layers in training mode")
def _frozen_modes(program: Program) -> Iterator[Spot]:
    yield from list(_frozen_norms(program)) or undone(program)


def _frozen_norms(program: Program) -> Iterator[Spot]:
    """Find `model.train()` in loops if a frozen part has batch normalisation and nothing calls its `eval`."""
    for part, loop in _frozen(program):
        found = modules(program, part)
        if found is None or len(found) != 1:
            continue
        known = layer(program, part)
        layers = kinds(program, known) if known is not None else None
        if not layers or not layers & NORMS:
            continue
        resting = [one for one in program.calls_of(".eval") if _is_part(program, one, found[0].made)]
        for one in trainings(program):
            for event in [*_around(program, one.node), *one.of("train")]:
                held = modules(program, event.value)
                whole = held is not None and any(
                    found[0].made != it.made and found[0].made in parts(program, it.made) for it in held
                )
                if whole and not resting and _comes_behind(program, event.node, loop):
                    facts = {"part": f"{shown(part)}, which is frozen,", "again": f"{shown(part)}.eval()"}
                    yield spot(event.node, loop, text=shown(event.node), **facts)
                    return


def _comes_behind(program: Program, node: ast.expr, loop: ast.For) -> bool:
    """Tell whether a line runs behind a loop: it stands below, or in a function that is called below."""
    around = program.function(node)
    if around is program.function(loop) or around is None:
        return node.lineno > loop.lineno
    calls = [*program.calls_of(around.name), *program.calls_of(f".{around.name}")]
    later = [one for one in calls if program.function(one) is program.function(loop) and one.lineno > loop.lineno]
    return bool(later) or node.lineno > loop.lineno


def _around(program: Program, node: ast.AST) -> list[Event]:
    """Return the calls of `train()` in the loops around a loop."""
    outer = [
        one
        for one in iterations(program)
        if any(inner is node for inner in ast.walk(one.node)) and one.node is not node
    ]
    return [event for one in outer for event in one.of("train")]


def _is_part(program: Program, call: ast.Call, made: Value) -> bool:
    held = modules(program, call.func.value) if isinstance(call.func, ast.Attribute) else None
    return held is None or any(it.made == made for it in held)


def _frozen(program: Program) -> Iterator[tuple[ast.expr, ast.For]]:
    """Yield the parts of models whose parameters a loop freezes, or `requires_grad_(False)`."""
    for node in program.nodes:
        over = node.iter if isinstance(node, ast.For) else None
        if isinstance(node, ast.For) and isinstance(over, ast.Call) and getattr(over.func, "attr", "") == "parameters":
            freezes = [one for one in node.body if isinstance(one, ast.Assign) and constant(one.value) is False]
            if any(getattr(one.targets[0], "attr", "") == "requires_grad" for one in freezes):
                assert isinstance(over.func, ast.Attribute)
                yield over.func.value, node


@reads("comparison instead of an assignment")
def _compared(program: Program) -> Iterator[Spot]:
    """Find `p.requires_grad == False` on a line of its own."""
    for node in program.nodes:
        value = node.value if isinstance(node, ast.Expr) else None
        if (
            isinstance(value, ast.Compare)
            and isinstance(value.ops[0], ast.Eq)
            and isinstance(value.left, ast.Attribute)
        ) and value.left.attr in {"requires_grad", "training", "grad", "weight", "bias"}:
            yield spot(value, text=shown(value), remedy=shown(value).replace("==", "=", 1))


@reads("parameters used up")
def _used_up(program: Program) -> Iterator[Spot]:
    """Find `params = model.parameters()` with two uses, because the first use exhausts the generator."""
    for node in program.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name) or len(node.targets) != 1:
            continue
        value = node.value
        makes = isinstance(value, ast.GeneratorExp) and "parameters" in ast.unparse(value)
        if isinstance(value, ast.Call):
            name = getattr(value.func, "attr", getattr(value.func, "id", ""))
            makes = name == "parameters" or (name == "filter" and "parameters" in ast.unparse(value))
            makes = makes and flow(program).callee(value) is None  # a method of the script may return a list
        if not makes:
            continue
        uses = _consumers(program, node, node.targets[0].id)
        if len(uses) > 1 or (uses and program.loops(uses[0]) and not program.loops(node)):
            late = uses[1] if len(uses) > 1 else uses[0]
            yield spot(late, node, text=shown(node), name=node.targets[0].id)


def _consumers(program: Program, made: ast.Assign, name: str) -> list[ast.expr]:
    """Return the calls and loops after an assignment that exhaust its generator."""
    found: list[ast.expr] = []
    scope = program.scope(made)
    if len(program.bindings(scope, name)) != 1:
        return []
    for node in program.nodes:
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        outer = program.parents.get(node)
        if program.scope(node) is not scope and not isinstance(scope, ast.Module):
            continue
        if isinstance(outer, ast.Call) and node in outer.args:
            full = program.names.full(outer.func)
            known = full.startswith("torch.optim.") or (last(full) or getattr(outer.func, "id", "")) in _USING_UP
            found += [outer] if known else []
        elif isinstance(outer, ast.For | ast.comprehension) and outer.iter is node:
            found.append(node)
    return found


# --- values changed in place ---


@reads("residual changed in place")
def _in_place(program: Program) -> Iterator[Spot]:
    """Find an in-place rectifier on the input of a block that adds this input again later."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        names = [one.arg for one in forward.args.args[1:2]] if forward is not None else []
        for call in ast.walk(forward) if forward is not None and names else ():
            if not isinstance(call, ast.Call) or not _overwrites(program, call, names[0]):
                continue
            statement = program.statement(call)
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == names[0]:
                continue
            kept = {names[0], *_other_names(forward, names[0])} if forward is not None else set()
            later = (
                [node for node in ast.walk(forward) if _adds(node, kept) and getattr(node, "lineno", 0) >= call.lineno]
                if forward is not None
                else []
            )
            if later:
                yield spot(call, program.statement(later[0]), text=shown(call), name=names[0])


def _overwrites(program: Program, call: ast.Call, name: str) -> bool:
    """Tell whether a call of a rectifier changes a variable in place."""
    if not call.args or not isinstance(call.args[0], ast.Name) or call.args[0].id != name:
        return False
    full = program.names.full(call.func)
    if full.startswith("torch.nn.functional."):
        return constant(argument(call, "inplace")) is True or last(full) in {"relu_", "leaky_relu_", "elu_"}
    held = layer(program, call.func)
    return held is not None and held.owner is None and constant(argument(held.call, "inplace")) is True


def _other_names(forward: ast.AST, name: str) -> set[str]:
    """Return the variables that are aliases of another one, as in `identity = x`."""
    found = set()
    for node in ast.walk(forward):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(ast.unparse(node.targets[0]))
    return found


def _adds(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return any(isinstance(one, ast.Name) and one.id in names for one in (node.left, node.right))
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.value) in names


RULES = rules_of(globals())
