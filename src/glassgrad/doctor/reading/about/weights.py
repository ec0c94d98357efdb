"""Rules about weights: initialisation, tying, freezing, and passing them to optimizers."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from glassgrad.doctor.reading.about.modes import undone
from glassgrad.doctor.reading.actors import modules, parts, setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import Event, iterations, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import (
    callee_of,
    compares,
    holds,
    ident,
    is_name,
    is_op,
    method_of,
    object_of,
    of_self,
    only_target,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import DRAWING, NORMS, kinds, layer, library_layer, library_name

_CONSTANT = frozenset({"zeros_", "ones_", "constant_"})
_MATRICES = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
_USING_UP = frozenset({"clip_grad_norm_", "clip_grad_value_", "list", "sum", "len", "max", "tuple"})


# --- first weights ---


def zero_rows(program: Program) -> Iterator[Spot]:
    """Yield constant initial weights of two layers where one feeds the other."""
    filled: dict[ast.AST, list[tuple[ast.Call, ast.expr]]] = defaultdict(list)
    for call, weight in _filled(program):
        held = modules(program, weight)
        if held is None or len(held) != 1 or held[0].name not in _MATRICES:
            continue
        outer = program.parents.get(held[0].call)
        if outer is not None and library_name(program, outer) == "Sequential":
            filled[outer].append((call, held[0].made.node))
    for places in filled.values():
        made = [node for _, node in places]
        if len(set(made)) > 1:
            yield spot(places[0][0], places[-1][0], *made, text=shown(places[0][0]))


def _filled(program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield calls that fill the weight of a layer with one number, and the layer."""
    for call in program.calls:
        full = program.names.full(call.func)
        weight: ast.expr | None = None
        if full.startswith("torch.nn.init.") and last(full) in _CONSTANT and call.args:
            weight = call.args[0]
        elif method_of(call) in {"zero_", "fill_"} and not full:
            weight = object_of(call)
        if isinstance(weight, ast.Attribute) and weight.attr == "data":
            weight = weight.value
        if isinstance(weight, ast.Attribute) and weight.attr == "weight":
            yield call, weight.value


def zero_matrices(program: Program) -> Iterator[Spot]:
    """Yield hand-made weight matrices that begin as constants, where one feeds the other."""
    found: list[tuple[ast.expr, Value]] = []
    for node in program.every(ast.BinOp):
        end = flow(program).end(node.right) if is_op(node, ast.MatMult) else None
        if end is not None and isinstance(end.node, ast.Call) and _is_constant(program, end.node):
            found.append((node, end))
    products = [node for node, _ in found]
    if len({end for _, end in found}) > 1 and any(_feeds(program, node, products, 0) for node in products):
        found.sort(key=lambda pair: (pair[1].frame.call if pair[1].frame is not None else pair[1].node).lineno)
        first = found[0][1].node
        places = [end.frame.call for _, end in found if end.frame is not None]
        also = [program.statement(end.node) for _, end in found]
        yield spot(places[0] if places else first, *places, *also, text=shown(first))


def _feeds(program: Program, node: ast.expr, products: list[ast.expr], depth: int) -> bool:
    """Tell whether another product computes the left operand of a product."""
    left = node.left if isinstance(node, ast.BinOp) else node
    if any(one in products and one is not node for one in ast.walk(left)):
        return True
    ends = [end for name in within(left, ast.Name) for end in flow(program).origins(name)] if depth < 4 else []
    return any(one in products or _feeds(program, one, products, depth + 1) for one in ends)


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
    ties = [node for node in program.every(ast.Assign) if _is_weight(node.targets[0]) and _is_weight(node.value)]
    for node in program.every(ast.Assign) if ties else ():
        target = only_target(node)
        if not isinstance(target, ast.Attribute) or not _is_weight(target) or _is_before(program, node, ties[0]):
            continue
        if library_name(program, node.value) == "Parameter" and _over_modules(program, target.value):
            yield spot(node, ties[0], text=shown(node), tie=shown(ties[0]))


def _is_weight(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "weight"


def _is_before(program: Program, node: ast.stmt, tie: ast.stmt) -> bool:
    """Tell whether a statement comes before another one of its function."""
    return program.function(node) is program.function(tie) and node.lineno < tie.lineno


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
        found, known = modules(program, part), layer(program, part)
        layers = kinds(program, known) if known is not None else None
        if found is None or len(found) != 1 or not layers or not layers & NORMS:
            continue
        mine = found[0].made
        if any(_is_part(program, one, mine) for one in program.calls_of(".eval")):
            continue
        for one in trainings(program):
            for event in [*_around(program, one.node), *one.of("train")]:
                held = modules(program, event.value) or []
                whole = any(mine != it.made and mine in parts(program, it.made) for it in held)
                if whole and _comes_behind(program, event.node, loop):
                    facts = {"part": f"{shown(part)}, which is frozen,", "again": f"{shown(part)}.eval()"}
                    yield spot(event.node, loop, text=shown(event.node), **facts)
                    return


def _comes_behind(program: Program, node: ast.expr, loop: ast.For) -> bool:
    """Tell whether a line runs behind a loop: it stands below, or in a function that is called below."""
    around = program.function(node)
    calls = program.uses(around) if around is not None and around is not program.function(loop) else []
    mine = [one for one in calls if program.function(one) is program.function(loop)]
    return any(one.lineno > loop.lineno for one in (node, *mine))


def _around(program: Program, node: ast.AST) -> list[Event]:
    """Return the calls of `train()` in the loops around a loop."""
    outer = [one for one in iterations(program) if holds(one.node, node) and one.node is not node]
    return [event for one in outer for event in one.of("train")]


def _is_part(program: Program, call: ast.Call, made: Value) -> bool:
    held = modules(program, call.func.value) if isinstance(call.func, ast.Attribute) else None
    return held is None or any(it.made == made for it in held)


def _frozen(program: Program) -> Iterator[tuple[ast.expr, ast.For]]:
    """Yield the parts of models whose parameters a loop freezes."""
    for node in program.every(ast.For):
        part = object_of(node.iter) if method_of(node.iter) == "parameters" else None
        freezes = [one for one in node.body if isinstance(one, ast.Assign) and constant(one.value) is False]
        if part is not None and any(getattr(one.targets[0], "attr", "") == "requires_grad" for one in freezes):
            yield part, node


@reads("comparison instead of an assignment")
def _compared(program: Program) -> Iterator[Spot]:
    """Find `p.requires_grad == False` on a line of its own."""
    for value in (node.value for node in program.every(ast.Expr)):
        left = value.left if compares(value, ast.Eq) else None
        if isinstance(left, ast.Attribute) and left.attr in {"requires_grad", "training", "grad", "weight", "bias"}:
            yield spot(value, text=shown(value), remedy=shown(value).replace("==", "=", 1))


@reads("parameters used up")
def _used_up(program: Program) -> Iterator[Spot]:
    """Find `params = model.parameters()` with two uses, because the first use exhausts the generator."""
    for node in program.every(ast.Assign):
        target, value = only_target(node), node.value
        lazy = isinstance(value, ast.GeneratorExp) or callee_of(value) == "filter"
        makes = callee_of(value) == "parameters" or (lazy and "parameters" in ast.unparse(value))
        if not makes or not (isinstance(target, ast.Name) or of_self(target)):
            continue
        if isinstance(value, ast.Call) and flow(program).callee(value) is not None:
            continue  # a method of the script may return a list
        uses = _consumers(program, node, target)
        if len(uses) > 1 or (uses and program.loops(uses[0]) and not program.loops(node)):
            yield spot(uses[1] if len(uses) > 1 else uses[0], node, text=shown(node), name=shown(target))


def _consumers(program: Program, made: ast.Assign, target: ast.Name | ast.Attribute) -> list[ast.expr]:
    """Return the calls and loops after an assignment that exhaust its generator."""
    found: list[ast.expr] = []
    scope, name, owner = program.scope(made), ident(target), program.owner(made)
    own = isinstance(target, ast.Attribute)
    if len(program.attribute(owner, name) if own else program.bindings(scope, name)) != 1:
        return []
    for node in program.every(type(target)):
        if ast.unparse(node) != ast.unparse(target) or not isinstance(node.ctx, ast.Load):
            continue
        outer = program.parents.get(node)
        elsewhere = program.owner(node) is not owner if own else program.scope(node) is not scope
        if elsewhere and (own or not isinstance(scope, ast.Module)):
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
    for _, forward in program.forwards():
        for name in [one.arg for one in forward.args.args[1:2]]:
            aliases = [one for one in within(forward, ast.Assign) if is_name(one.value, name)]
            kept = {name, *map(target_text, aliases)}
            sums = [node for node in ast.walk(forward) if isinstance(node, ast.expr | ast.stmt) and _adds(node, kept)]
            for call in within(forward, ast.Call):
                if not _overwrites(program, call, name) or target_text(program.statement(call)) == name:
                    continue
                later = [node for node in sums if node.lineno >= call.lineno]
                if later:
                    yield spot(call, program.statement(later[0]), text=shown(call), name=name)


def _overwrites(program: Program, call: ast.Call, name: str) -> bool:
    """Tell whether a call of a rectifier changes a variable in place."""
    if not call.args or not is_name(call.args[0], name):
        return False
    full = program.names.full(call.func)
    if full.startswith("torch.nn.functional."):
        return constant(argument(call, "inplace")) is True or last(full) in {"relu_", "leaky_relu_", "elu_"}
    held = library_layer(program, call.func)
    return held is not None and constant(argument(held.call, "inplace")) is True


def _adds(node: ast.AST, names: set[str]) -> bool:
    if is_op(node, ast.Add):
        return any(isinstance(one, ast.Name) and one.id in names for one in (node.left, node.right))
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.value) in names


RULES = rules_of(globals())
