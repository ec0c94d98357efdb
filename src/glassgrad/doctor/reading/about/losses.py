"""Rules about what goes into losses, and what comes out of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.learning import detached, exchanged
from glassgrad.doctor.reading.actors import sees_one
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import DEEPEST, Program, argument, constant, is_given
from glassgrad.doctor.reading.ranks import has_row, is_column, rank
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import (
    ELEMENTWISE,
    LOSSES,
    Loss,
    end,
    layer,
    library_name,
    losses,
    op,
)

_NAMES = {
    "cross_entropy": "cross entropy",
    "nll_loss": "nll_loss",
    "binary_cross_entropy": "binary cross entropy",
    "binary_cross_entropy_with_logits": "binary cross entropy with logits",
    "kl_div": "kl_div",
    "ctc_loss": "ctc_loss",
}


def _ends(program: Program, kind: str) -> Iterator[tuple[Loss, str, ast.expr]]:
    """Yield the losses of a kind with the op that made their input, and where."""
    for one in losses(program):
        if one.kind == kind:
            found = end(program, one.input)
            if found is not None:
                yield one, found.op, found.node


@reads("softmax twice")
def _softmax_twice(program: Program) -> Iterator[Spot]:
    for one, name, node in _ends(program, "cross_entropy"):
        if name in {"softmax", "gumbel_softmax"}:
            yield spot(node, one.call, program.statement(one.input), *_made(program, one.input), text=shown(node))
    for call in program.calls:
        outer, operand = op(program, call)
        inner = end(program, operand) if outer in {"softmax", "log_softmax"} and operand is not None else None
        if inner is not None and inner.op in {"softmax", "log_softmax"} and inner.node is not call:
            yield spot(call, inner.node, program.statement(call), text=shown(inner.node))


@reads("activation before its loss")
def _sigmoid_twice(program: Program) -> Iterator[Spot]:
    for one, name, node in _ends(program, "binary_cross_entropy_with_logits"):
        if name in {"sigmoid", "softmax"}:
            yield spot(node, one.call, *_made(program, one.input), text=shown(node), op=name, loss=_NAMES[one.kind])
    for one, name, node in _ends(program, "cross_entropy"):
        if name in {"relu", "sigmoid"}:
            yield spot(node, one.call, *_made(program, one.input), text=shown(node), op=name, loss=_NAMES[one.kind])


@reads("loss of raw outputs")
def _raw(program: Program) -> Iterator[Spot]:
    wanted = {
        "nll_loss": ("log_softmax", "F.cross_entropy"),
        "binary_cross_entropy": ("sigmoid", "nn.BCEWithLogitsLoss"),
        "kl_div": ("log_softmax", "F.log_softmax"),
        "ctc_loss": ("log_softmax", "F.log_softmax"),
    }
    for kind, (missing, better) in wanted.items():
        for one, name, node in _ends(program, kind):
            if name in {"linear", "conv"} or (
                kind in {"nll_loss", "kl_div", "ctc_loss"} and name in {"softmax", "relu"}
            ):
                yield spot(
                    one.call,
                    node,
                    loss=_NAMES[kind],
                    given=shown(one.input, 40),
                    made=name,
                    missing=missing,
                    better=better,
                )


def _made(program: Program, node: ast.expr) -> list[ast.expr]:
    """Return the call that makes a value that is held by a name."""
    bound = program.bound(node) if isinstance(node, ast.Name) else None
    return [bound.value] if bound is not None and bound.value is not None else []


@reads("decision in the loss")
def _decision(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        found = end(program, one.input)
        name = found.op if found is not None else ""
        node = found.node if found is not None else one.input
        if name in {"argmax", "round", "sign", "floor", "ceil"}:
            yield spot(node, one.call, text=shown(node), op=name)
        elif _is_comparison(program, one.input):
            yield spot(one.input, one.call, text=shown(one.input), op="a comparison")


def _is_comparison(program: Program, node: ast.expr, depth: int = 0) -> bool:
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        return (
            bound is not None
            and bound.item is None
            and bound.value is not None
            and _is_comparison(program, bound.value, depth + 1)
        )
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"float", "to", "type"}
    ):
        return _is_comparison(program, node.func.value, depth + 1)
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE)


@reads("arguments of the loss exchanged")
def _exchanged(program: Program) -> Iterator[Spot]:
    """Find a loss that gets the output of a model second, and labels first."""
    for one in losses(program):
        if one.kind in ELEMENTWISE or one.kind == "kl_div" or one.target is None or one.call.keywords:
            continue
        if _is_output(program, one.target) and not _is_output(program, one.input) and _is_plain(program, one.input):
            call = one.call
            remedy = f"{shown(call.func)}({shown(one.target, 30)}, {shown(one.input, 30)})"
            yield spot(call, given=shown(one.input, 30), output=shown(one.target, 30), remedy=remedy)
    yield from exchanged(program)


def _is_output(program: Program, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value is the result of calling a module."""
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        known = bound is not None and bound.item is None and bound.value is not None and depth < DEEPEST
        return known and bound is not None and bound.value is not None and _is_output(program, bound.value, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and layer(program, node.func) is None:
        return _is_output(program, node.func.value, depth + 1)
    found = layer(program, node.func)
    return found is not None and found.name not in LOSSES


def _is_plain(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is data: a name called as labels are, a part of it, or what a loop gives."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return False
    name = node.id.lower()
    return name in {
        "y",
        "t",
        "yb",
        "target",
        "targets",
        "label",
        "labels",
        "y_true",
        "truth",
        "gt",
        "y_batch",
        "batch_y",
    }


@reads("broadcast in the loss")
def _column_against_row(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        if one.kind in ELEMENTWISE and one.target is not None:
            yield from _broadcast(program, one.call, one.input, one.target)
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            yield from _broadcast(program, node, node.left, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            yield from _broadcast(program, node, node.left, node.comparators[0])


def _broadcast(program: Program, node: ast.expr, one: ast.expr, other: ast.expr) -> Iterator[Spot]:
    for column, row in ((one, other), (other, one)):
        if is_column(program, column) and has_row(program, row) and _rank_of_inputs(program, column) == 2:
            remedy = f"{shown(column, 40)}.squeeze(1)"
            yield spot(node, program.statement(node), column=shown(column, 40), row=shown(row, 40), remedy=remedy)
            return


def _rank_of_inputs(program: Program, node: ast.expr) -> int | None:
    """Return the axes of what the model that makes a value is called with; 2 where they are unknown."""
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        return _rank_of_inputs(program, bound.value) if bound is not None and bound.value is not None else None
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "gather":
        return 2
    known = rank(program, node.args[0]) if isinstance(node, ast.Call) and node.args else None
    return 2 if known is None else known


@reads("softmax without a dimension")
def _no_dimension(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        full = program.names.full(call.func)
        is_layer = full == f"torch.nn.{name}" and name in {"Softmax", "LogSoftmax"}
        is_function = full == f"torch.nn.functional.{name}" and name in {"softmax", "log_softmax"}
        if (is_layer and not is_given(call, "dim", 0)) or (is_function and not is_given(call, "dim", 1)):
            yield spot(call, text=shown(call), remedy=f"{shown(call.func)}(..., dim=-1)" if is_function else "dim=-1")


@reads("softmax over the batch")
def _over_the_batch(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name, operand = op(program, call)
        along: object = None
        if name in {"softmax", "log_softmax"}:
            place = 1 if program.names.full(call.func) else 0
            along = constant(argument(call, "dim", place))
            if (
                along == 0
                and operand is not None
                and _of_a_batch(program, operand)
                and not _of_one(program, call, operand)
                and not _attends(program, call)
                and not sees_one(program, program.owner(call))
                and not _weighs(program, call)
            ):
                yield spot(call, program.statement(call), text=shown(call))
        elif library_name(program, call) in {"Softmax", "LogSoftmax"}:
            along = constant(argument(call, "dim", 0))
            outer = program.parents.get(call)
            if along == 0 and isinstance(outer, ast.Call) and library_name(program, outer) == "Sequential":
                yield spot(call, outer, text=shown(call))


def _attends(program: Program, call: ast.Call) -> bool:
    """Tell whether a softmax belongs to attention, whose first axis may be that of positions."""
    function, owner = program.function(call), program.owner(call)
    names = [getattr(function, "name", ""), owner.node.name if owner is not None else ""]
    return any(re.search(r"attent|attend", name, re.IGNORECASE) for name in names)


_ONE = re.compile(r"^(s|state|obs|observation)$", re.IGNORECASE)
"""Names of the only example that a policy sees."""


def _of_one(program: Program, call: ast.Call, operand: ast.expr) -> bool:
    """Tell whether a softmax is that of one example: by its name, or because a number picks one of the results."""
    if isinstance(operand, ast.Call) and operand.args:
        given = operand.args[0]
        if isinstance(given, ast.Name) and _ONE.match(given.id) and rank(program, given) in {None, 1}:
            return True
    statement = program.statement(call)
    names = {ast.unparse(one) for one in statement.targets} if isinstance(statement, ast.Assign) else set()
    around = program.function(call) or program.tree
    return any(
        isinstance(node, ast.Subscript) and ast.unparse(node.value) in names and _is_one_action(program, node.slice)
        for node in ast.walk(around)
    )


def _weighs(program: Program, call: ast.Call) -> bool:
    """Tell whether a softmax along the first axis gives weights for a sum along it, so that this axis is time."""
    statement = program.statement(call)
    names = {ast.unparse(one) for one in statement.targets} if isinstance(statement, ast.Assign) else set()
    for one in program.calls:
        function = one.func
        if not isinstance(function, ast.Attribute) or function.attr != "sum":
            continue
        inner = list(ast.walk(one))
        along = constant(argument(one, "dim", 1 if program.names.full(function) else 0))
        if along == 0 and (call in inner or any(isinstance(node, ast.Name) and node.id in names for node in inner)):
            return True
    return False


def _is_one_action(program: Program, node: ast.expr) -> bool:
    bound = program.bound(node) if isinstance(node, ast.Name) else None
    value = bound.value if bound is not None else None
    number = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in {"int", "item", "choice"}
    return number or isinstance(constant(node), int)


def _of_a_batch(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the output of a model or of a linear layer in a module, of examples."""
    found = end(program, node)
    if op(program, node)[0] in {"squeeze", "flatten"} if isinstance(node, ast.Call) else False:
        return False  # a single example
    if found is not None and found.op == "linear":
        called = node.args[0] if isinstance(node, ast.Call) and node.args else None
        return rank(program, called) != 1
    return _is_output(program, node) and found is not None


_CUTS = frozenset({"detach", "data", "numpy", "item", "tolist"})


@reads("loss detached")
def _detached(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        found = end(program, one.input)
        turned = one.kind in ELEMENTWISE and one.target is not None and not _is_plain(program, one.target)
        if found is not None and found.op in _CUTS and _is_learnt(program, one) and not turned:
            yield spot(found.node, one.call, program.statement(one.call), text=shown(found.node))
    for node in program.nodes:
        if (isinstance(node, ast.Call) and _remakes(program, node)) or (
            isinstance(node, ast.Assign) and _pretends(program, node)
        ):
            yield spot(node, *_backward_of(program, node), text=shown(node))
    yield from detached(program)


def _remakes(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a new leaf of a loss: torch.tensor(loss.item(), requires_grad=True)."""
    if program.names.full(call.func) in {"torch.tensor", "torch.autograd.Variable", "torch.as_tensor"}:
        wanted = constant(argument(call, "requires_grad")) is True
        return wanted and bool(call.args) and _of_loss(program, call.args[0])
    method = call.func if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_" else None
    return (
        method is not None and not call.args and isinstance(method.value, ast.Name) and _of_loss(program, method.value)
    )


def _pretends(program: Program, node: ast.Assign) -> bool:
    """Tell whether an assignment sets `loss.requires_grad = True`."""
    target = node.targets[0]
    named = isinstance(target, ast.Attribute) and target.attr == "requires_grad" and constant(node.value) is True
    return named and isinstance(target, ast.Attribute) and _of_loss(program, target.value)


def _of_loss(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression is a loss, `loss.item()` or `loss.data`, by its value."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call) and loss_kind(program, node):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return False
    bound = program.bound(node)
    value = bound.value if bound is not None else None
    return isinstance(value, ast.Call) and bool(loss_kind(program, value))


def loss_kind(program: Program, call: ast.Call) -> str:
    """Return the kind of the loss that a call computes; empty for other calls."""
    from glassgrad.doctor.reading.values import loss

    found = loss(program, call)
    return "" if found is None else found.kind


def _backward_of(program: Program, node: ast.AST) -> list[ast.expr]:
    """Return the backward passes in the function around a node."""
    around = program.function(node) or program.tree
    calls = (one for one in ast.walk(around) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute))
    return [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "backward"]


def _is_learnt(program: Program, one: Loss) -> bool:
    """Tell whether a backward pass begins at a loss: directly, or by the name that holds it."""
    outer = program.parents.get(one.call)
    if isinstance(outer, ast.Attribute) and outer.attr == "backward":
        return True
    statement = program.statement(one.call)
    names = {ast.unparse(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()
    whole = isinstance(statement, ast.Assign) and statement.value is one.call
    passes = _backward_of(program, one.call)
    return whole and any(
        isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in names
        for node in passes
        if isinstance(node, ast.Call)
    )


@reads("dropout at the output")
def _dropped(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        found = end(program, one.input)
        if found is not None and found.op.startswith("dropout"):
            yield spot(found.node, one.call, text=shown(found.node))


_SIDED = frozenset(
    {"CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "SoftMarginLoss"}
    | {"cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "soft_margin_loss"}
)
"""Losses whose targets are -1 and 1."""


@reads("targets of 0 instead of -1")
def _sides(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        held = layer(program, call.func)
        if name in _SIDED and name[:1].isupper():
            continue
        name = name if name in _SIDED else held.name if held is not None and held.owner is None else ""
        target = argument(call, "target", len(call.args) - 1) if name in _SIDED and call.args else None
        if target is not None and _is_truth(program, target):
            yield spot(call, program.statement(call), text=shown(target), loss=name, remedy=f"2 * {shown(target)} - 1")


def _is_truth(program: Program, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether an expression is 0 or 1 for each example: a comparison as numbers, or a part of one."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        value = program.value_of(node)
        return value is not None and _is_truth(program, value, depth + 1)
    if isinstance(node, ast.Subscript):
        return _is_truth(program, node.value, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right), (node.right, node.left)
        return any(constant(one) == 1 and _is_truth(program, other, depth + 1) for one, other in sides)
    if isinstance(node, ast.Call):
        if library_name(program, node) == "randint":
            return [constant(one) for one in node.args[:2]] == [0, 2]
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return method in {"float", "to", "type", "int", "long"} and _is_truth(program, _receiver(node), depth + 1)
    return isinstance(node, ast.Compare)


def _receiver(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


@reads("size_average and reduce")
def _old_reduction(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = library_name(program, call)
        old = [one.arg for one in call.keywords if one.arg in {"size_average", "reduce"}]
        if old and (name in LOSSES or name in LOSSES.values()):
            values = {one.arg: constant(one.value) for one in call.keywords}
            new = "none" if values.get("reduce") is False else "sum" if values.get("size_average") is False else "mean"
            yield spot(call, given=" and ".join(map(str, old)), remedy=f'{last(shown(call.func))}(reduction="{new}")')


RULES = rules_of(globals())
