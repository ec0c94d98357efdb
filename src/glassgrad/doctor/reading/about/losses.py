"""Rules about what goes into losses, and what comes out of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.learning import detached, exchanged
from glassgrad.doctor.reading.actors import sees_one
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    both_ways,
    callee_of,
    compares,
    holds,
    ident,
    is_op,
    method_of,
    names_in,
    object_of,
    root_of,
    set_by,
    within,
)
from glassgrad.doctor.reading.program import DEEPEST, Program, argument, constant, is_given
from glassgrad.doctor.reading.ranks import has_row, is_column, rank
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import (
    ELEMENTWISE,
    LOSSES,
    Loss,
    axis_of,
    end,
    layer,
    library_layer,
    library_name,
    loss,
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


_PLAIN = named("y t yb target targets label labels y_true truth gt y_batch batch_y")
"""Names of what a data set gives as the answer."""


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
        inner = end(program, operand) if outer in {"softmax", "log_softmax"} else None
        if inner is not None and inner.op in {"softmax", "log_softmax"} and inner.node is not call:
            yield spot(call, inner.node, program.statement(call), text=shown(inner.node))


@reads("activation before its loss")
def _sigmoid_twice(program: Program) -> Iterator[Spot]:
    wanted = {"binary_cross_entropy_with_logits": {"sigmoid", "softmax"}, "cross_entropy": {"relu", "sigmoid"}}
    for kind, names in wanted.items():
        for one, name, node in _ends(program, kind):
            if name in names:
                yield spot(node, one.call, *_made(program, one.input), text=shown(node), op=name, loss=_NAMES[kind])


@reads("loss of raw outputs")
def _raw(program: Program) -> Iterator[Spot]:
    logs = {"linear", "conv", "softmax", "relu"}
    wanted = {
        "nll_loss": (logs, "log_softmax", "F.cross_entropy"),
        "binary_cross_entropy": ({"linear", "conv"}, "sigmoid", "nn.BCEWithLogitsLoss"),
        "kl_div": (logs, "log_softmax", "F.log_softmax"),
        "ctc_loss": (logs, "log_softmax", "F.log_softmax"),
    }
    for kind, (raw, missing, better) in wanted.items():
        for one, name, node in _ends(program, kind):
            if name in raw:
                facts = {"given": shown(one.input, 40), "made": name, "missing": missing, "better": better}
                yield spot(one.call, node, loss=_NAMES[kind], **facts)


def _made(program: Program, node: ast.expr) -> list[ast.expr]:
    """Return the call that makes a value that is held by a name."""
    source = program.source_of(node)
    return [] if source is None else [source]


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


def _is_comparison(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        return _is_comparison(program, program.value_of(node), depth + 1)
    if method_of(node) in {"float", "to", "type"}:
        return _is_comparison(program, object_of(node), depth + 1)
    return compares(node, ast.Gt | ast.GtE | ast.Lt | ast.LtE)


@reads("arguments of the loss exchanged")
def _exchanged(program: Program) -> Iterator[Spot]:
    """Find a loss that gets the output of a model second, and labels first."""
    for one in losses(program):
        if one.kind in ELEMENTWISE or one.kind == "kl_div" or one.target is None or one.call.keywords:
            continue
        if _is_output(program, one.target) and not _is_output(program, one.input) and _is_plain(one.input):
            call = one.call
            remedy = f"{shown(call.func)}({shown(one.target, 30)}, {shown(one.input, 30)})"
            yield spot(call, given=shown(one.input, 30), output=shown(one.target, 30), remedy=remedy)
    yield from exchanged(program)


def _is_output(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value is the result of calling a module."""
    if isinstance(node, ast.Name):
        return depth < DEEPEST and _is_output(program, program.value_of(node), depth + 1)
    if not isinstance(node, ast.Call):
        return False
    found = layer(program, node.func)
    if found is None and isinstance(node.func, ast.Attribute):
        return _is_output(program, node.func.value, depth + 1)
    return found is not None and found.name not in LOSSES


def _is_plain(node: ast.expr) -> bool:
    """Tell whether a value is data: a name called as labels are, a part of it, or what a loop gives."""
    return ident(root_of(node)).lower() in _PLAIN


@reads("broadcast in the loss")
def _column_against_row(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        if one.kind in ELEMENTWISE and one.target is not None:
            yield from _broadcast(program, one.call, one.input, one.target)
    for node in program.nodes:
        if is_op(node, ast.Sub):
            yield from _broadcast(program, node, node.left, node.right)
        elif compares(node, ast.Eq) and len(node.ops) == 1:
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
        source = program.source_of(node)
        return None if source is None else _rank_of_inputs(program, source)
    if method_of(node) == "gather":
        return 2
    known = rank(program, node.args[0]) if isinstance(node, ast.Call) and node.args else None
    return 2 if known is None else known


@reads("softmax without a dimension")
def _no_dimension(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        if full in {"torch.nn.Softmax", "torch.nn.LogSoftmax"} and not is_given(call, "dim", 0):
            yield spot(call, text=shown(call), remedy="dim=-1")
        functions = {"torch.nn.functional.softmax", "torch.nn.functional.log_softmax"}
        if full in functions and not is_given(call, "dim", 1):
            yield spot(call, text=shown(call), remedy=f"{shown(call.func)}(..., dim=-1)")


@reads("softmax over the batch")
def _over_the_batch(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name, operand = op(program, call)
        if name in {"softmax", "log_softmax"}:
            if constant(axis_of(program, call)) == 0 and operand is not None and _mixes(program, call, operand):
                yield spot(call, program.statement(call), text=shown(call))
        elif library_name(program, call) in {"Softmax", "LogSoftmax"}:
            outer = program.parents.get(call)
            if constant(argument(call, "dim", 0)) == 0 and library_name(program, outer) == "Sequential":
                assert isinstance(outer, ast.Call)
                yield spot(call, outer, text=shown(call))


def _mixes(program: Program, call: ast.Call, operand: ast.expr) -> bool:
    """Tell whether a softmax along the first axis mixes the examples of a batch."""
    plain = not _attends(program, call) and not _weighs(program, call) and not sees_one(program, program.owner(call))
    return plain and _of_a_batch(program, operand) and not _of_one(program, call, operand)


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
    names = set_by(program.statement(call))
    return any(
        ast.unparse(node.value) in names and _is_one_action(program, node.slice)
        for node in within(program.around(call), ast.Subscript)
    )


def _weighs(program: Program, call: ast.Call) -> bool:
    """Tell whether a softmax along the first axis gives weights for a sum along it, so that this axis is time."""
    names = set_by(program.statement(call))
    sums = [one for one in program.calls_of(".sum") if constant(axis_of(program, one)) == 0]
    return any(holds(one, call) or names & names_in(one) for one in sums)


def _is_one_action(program: Program, node: ast.expr) -> bool:
    chosen = callee_of(program.source_of(node)) in {"int", "item", "choice"}
    return chosen or isinstance(constant(node), int)


def _of_a_batch(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the output of a model or of a linear layer in a module, of examples."""
    found = end(program, node)
    if op(program, node)[0] in {"squeeze", "flatten"}:
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
        turned = one.kind in ELEMENTWISE and one.target is not None and not _is_plain(one.target)
        if found is not None and found.op in _CUTS and _is_learnt(program, one) and not turned:
            yield spot(found.node, one.call, program.statement(one.call), text=shown(found.node))
    nodes: list[ast.Call | ast.Assign] = [one for one in program.calls if _remakes(program, one)]
    for node in [*nodes, *(one for one in program.every(ast.Assign) if _pretends(program, one))]:
        yield spot(node, *_backward_of(program, node), text=shown(node))
    yield from detached(program)


def _remakes(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a new leaf of a loss: torch.tensor(loss.item(), requires_grad=True)."""
    if program.names.full(call.func) in {"torch.tensor", "torch.autograd.Variable", "torch.as_tensor"}:
        wanted = constant(argument(call, "requires_grad")) is True
        return wanted and bool(call.args) and _of_loss(program, call.args[0])
    held = object_of(call) if method_of(call) == "requires_grad_" and not call.args else None
    return isinstance(held, ast.Name) and _of_loss(program, held)


def _pretends(program: Program, node: ast.Assign) -> bool:
    """Tell whether an assignment sets `loss.requires_grad = True`."""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
        return False
    return constant(node.value) is True and _of_loss(program, target.value)


def _of_loss(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression is a loss, `loss.item()` or `loss.data`, by its value."""
    while isinstance(node, ast.Call | ast.Attribute):
        if loss(program, node) is not None:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return loss(program, program.source_of(node)) is not None


def _backward_of(program: Program, node: ast.AST) -> list[ast.Call]:
    """Return the backward passes in the function around a node."""
    return [one for one in within(program.around(node), ast.Call) if method_of(one) == "backward"]


def _is_learnt(program: Program, one: Loss) -> bool:
    """Tell whether a backward pass begins at a loss: directly, or by the name that holds it."""
    outer, statement = program.parents.get(one.call), program.statement(one.call)
    if isinstance(outer, ast.Attribute) and outer.attr == "backward":
        return True
    names = set_by(statement) if outer is statement else set()
    begun = [object_of(call) for call in _backward_of(program, one.call)]
    return any(held is not None and ast.unparse(held) in names for held in begun)


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
        if name in _SIDED and name[:1].isupper():
            continue
        held = library_layer(program, call.func) if name not in _SIDED else None
        name = name if held is None else held.name
        target = argument(call, "target", len(call.args) - 1) if name in _SIDED and call.args else None
        if target is not None and _is_truth(program, target):
            yield spot(call, program.statement(call), text=shown(target), loss=name, remedy=f"2 * {shown(target)} - 1")


def _is_truth(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether an expression is 0 or 1 for each example: a comparison as numbers, or a part of one."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        return _is_truth(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.Subscript):
        return _is_truth(program, node.value, depth + 1)
    if is_op(node, ast.Mult):
        return any(constant(one) == 1 and _is_truth(program, other, depth + 1) for one, other in both_ways(node))
    if isinstance(node, ast.Call):
        if library_name(program, node) == "randint":
            return [constant(one) for one in node.args[:2]] == [0, 2]
        casts = method_of(node) in {"float", "to", "type", "int", "long"}
        return casts and _is_truth(program, object_of(node), depth + 1)
    return isinstance(node, ast.Compare)


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
