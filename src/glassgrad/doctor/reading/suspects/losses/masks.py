"""Suspects about masks, reductions, axes, penalties and options of losses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import both_ways, elements, is_op, names_in, within
from glassgrad.doctor.reading.program import Function, Program, argument, constant
from glassgrad.doctor.reading.ranks import is_column
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import stem_of, text
from glassgrad.doctor.reading.suspects.losses.formulas import (
    KEEPING,
    about_loss,
    called,
    is_loss_name,
    is_target,
    loss_functions,
    parameters,
    reached,
    reduced,
    reduction,
    resolved,
    source,
    target_name,
    terms_of,
    unsigned_factors,
    uses_of,
    words,
    words_of,
)
from glassgrad.doctor.reading.values import LOSSES, axis_of, end, layer, library_name, losses

_DEEPEST = 3
_MASKS = named("mask masks valid keep attention lengths")
_BATCH = re.compile(r"batch_?size|\bbs\b|len\(|\.size\(0\)|\.shape\[0\]|\bn_?batch\b")

# --- reductions and masks ---


@suspects_each("loss reduced over the batch axis", ast.Call)
def _batch_axis(program: Program, call: ast.Call) -> object:
    """Find a sum or softmax over axis 0 in a loss."""
    name, inner = called(program, call)
    place = 1 if program.names.full(call.func) else 0
    along = constant(argument(call, "dim", place) or argument(call, "axis"))
    said = about_loss(program, call)
    known = along == 0 and not isinstance(along, bool) and name in {"sum", "log_softmax", "softmax", "logsumexp"}
    near = text(inner) if inner is not None else "stack"
    return known and said and not re.search(r"stack|dice|iou|count|class", near + said)


@suspects_each("masked values averaged over all places", ast.Call)
def _masked_mean(program: Program, call: ast.Call) -> object:
    """Find `(loss * mask).mean()`, which divides by all places, masked ones included."""
    kind, inner = reduction(program, call)
    node = resolved(program, inner)
    if kind != "mean" or not is_op(node, ast.Mult):
        return False
    parts = unsigned_factors(node)
    masks = [one for one in parts if words(stem_of(resolved(program, one))) & _MASKS or "mask" in stem_of(one)]
    return masks and about_loss(program, call) and look_at(call, mask=shown(masks[0], 30))


@suspects("mean over what may be nothing")
def _maybe_none(program: Program) -> Iterator[Spot]:
    """Find a division by the sum of a mask, and the mean of selected values, without a bound from below."""
    for node in program.nodes:
        if is_op(node, ast.Div):
            below = resolved(program, node.right)
            kind, inner = reduction(program, below)
            known = words_of(inner) & (_MASKS | {"pos", "positive", "positives", "same", "pairs"})
            if kind == "sum" and known and about_loss(program, node):
                yield look_at(node)
        kind, inner = reduction(program, node)
        picked = inner.slice if kind == "mean" and isinstance(inner, ast.Subscript) else None
        if words_of(picked) & {"mask", "pos", "neg", "positive", "valid"} and about_loss(program, node):
            assert isinstance(node, ast.expr)
            yield look_at(node)


@suspects_each("mean divided by the batch once more", ast.BinOp | ast.AugAssign)
def _divided(program: Program, node: ast.BinOp | ast.AugAssign) -> object:
    """Find a loss of the library, or a mean, that the training divides by the batch."""
    if not isinstance(node.op, ast.Div):
        return False
    value = node.left if isinstance(node, ast.BinOp) else node.target
    size = node.right if isinstance(node, ast.BinOp) else node.value
    is_mean = reduced(program, resolved(program, value)) == "mean"
    return is_mean and _BATCH.search(text(size)) and about_loss(program, node)


@suspects("loss without the mask of its part")
def _no_mask(program: Program) -> Iterator[Spot]:
    """Find a training loss without train_mask in a script that has one."""
    names = {stem_of(one) for one in program.nodes if isinstance(one, ast.Name | ast.Attribute)}
    masks = [one for one in names if re.search(r"^(train_?mask|idx_?train|mask_?train)$", one)]
    for one in losses(program) if masks else ():
        said = " ".join(text(part) for part in reached(program, one.call) if isinstance(part, ast.expr))
        trains = is_loss_name(target_name(program, one.call)) and "val" not in target_name(program, one.call)
        if trains and not re.search(r"mask|idx|index", said) and "loader" not in source(program):
            yield look_at(one.call, mask=masks[0])


@suspects_each("mask that a loss never reads", loss_functions)
def _unread_mask(program: Program, function: Function) -> Iterator[Spot]:
    """Find a loss function that gets a mask from its callers and compares all places."""
    read = names_in(function)
    given = parameters(function)
    unread = [one for one in given if one not in read and words(one) & {"mask", "masks", "observed", "valid"}]
    sums = [one for one in within(function, ast.Call) if _compares(program, one, given)]
    owner = program.owner(function)
    name = owner.node.name if owner is not None and function.name in {"forward", "__call__"} else function.name
    made = any(one.id == name for one in program.every(ast.Name))
    used = made or program.calls_of(name) or program.calls_of(f".{name}")
    if unread and sums and used:
        first = min(sums, key=lambda one: (one.lineno, -len(text(one))))
        yield look_at(first, function, mask=unread[0], function=function.name)


def _compares(program: Program, call: ast.Call, given: list[str]) -> bool:
    """Tell whether a call sums or averages something about two parameters, or is a loss of the library with them."""
    kind, inner = reduction(program, call)
    if not kind and library_name(program, call) not in LOSSES.values():
        return False
    names = {one.id for one in reached(program, inner if kind else call) if isinstance(one, ast.Name)}
    return len(names & set(given)) > 1


# --- forms and axes ---


def _is_row(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value has lost an axis: by a reduction along it, by squeeze, or as the log_prob of a choice."""
    node = program.written(node)
    if isinstance(node, ast.BinOp) and depth < _DEEPEST:
        return any(_is_row(program, side, depth + 1) for side in (node.left, node.right))
    name, inner = called(program, node)
    if not isinstance(node, ast.Call) or argument(node, "keepdim") is not None or _is_thin(program, inner, depth + 1):
        return False
    along = axis_of(program, node) or argument(node, "axis")
    return name == "log_prob" or (name in {"sum", "mean", "squeeze", "norm", "logsumexp"} and along is not None)


def _is_thin(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value has one column: the output of a layer with one unit, or a vector of one number."""
    node = program.value_of(node) or node if isinstance(node, ast.Name) else node
    if isinstance(node, ast.BinOp) and depth < _DEEPEST:
        return any(_is_thin(program, side, depth + 1) for side in (node.left, node.right))
    made = layer(program, node.func) if isinstance(node, ast.Call) else None
    vector = made is not None and made.name == "Embedding" and constant(argument(made.call, "embedding_dim", 1)) == 1
    return vector or is_column(program, node)


@suspects_each("column beside a row", operations(ast.Add | ast.Sub | ast.Mult))
def _column(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find a sum, difference or product of (N, 1) and of a value that a reduction made (N,)."""
    for one, other in both_ways(node):
        thin = _is_thin(program, one) and not _is_row(program, one)
        if thin and _is_row(program, other) and not _is_thin(program, other):
            yield look_at(node, column=shown(one, 30), row=shown(other, 30))
            break


@suspects_each("divergence averaged over the latent numbers", ast.Call)
def _thin_divergence(program: Program, call: ast.Call) -> object:
    """Find the mean over everything of `1 + logvar - mu ** 2 - exp(logvar)`."""
    kind, inner = reduction(program, call)
    value = resolved(program, inner)
    said = text(value) if isinstance(value, ast.BinOp) and reduced(program, call) == "mean" else ""
    parts = (r"\*\* 2|pow\(2|square", r"exp\(", r"1(\.0)? [+-]|[+-] 1\b", r"log|lv")
    return kind == "mean" and all(re.search(one, said) for one in parts)


@suspects_each("softmax along the rows of a map", ast.Call)
def _along_rows(program: Program, call: ast.Call) -> object:
    name, operand = called(program, call)
    if name not in {"softmax", "log_softmax"}:
        return False
    found = end(program, operand)
    along = constant(axis_of(program, call))
    shaped = any(called(program, one)[0] in KEEPING | {"permute", "transpose"} for one in reached(program, operand))
    return found is not None and found.op == "conv" and along in {-1, 2, 3, -2} and not shaped


_SCORES = re.compile(
    r"ssim|psnr|accuracy|similarity|correlation|pearson|r2_?score|f1|reward|log_prob|likelihood|overlap|entropy$",
    re.IGNORECASE,
)


@suspects_each("score added to a loss", ast.Assign | ast.Return)
def _score(program: Program, one: ast.Assign | ast.Return) -> Iterator[Spot]:
    """Find a term with a plus that calls a similarity, a likelihood or another score."""
    if one.value is None:
        return
    function = program.function(one)
    name = target_name(program, one) if isinstance(one, ast.Assign) else getattr(function, "name", "")
    if not re.search(r"loss|(^|_)cost", name.lower()):
        return
    for sign, term in terms_of(program, one.value):
        callee = stem_of(term.func) if isinstance(term, ast.Call) else ""
        if sign > 0 and _SCORES.search(callee) and not re.search(r"loss|neg|cross|dis|nll|1 -", callee.lower()):
            yield spot(one, text=shown(term))


@suspects_each("levels of an ordinal label", ast.Compare)
def _levels(program: Program, node: ast.Compare) -> object:
    """Find `arange(k) > y`, which marks the levels above a label."""
    if len(node.ops) != 1:
        return False
    left, right = node.left, node.comparators[0]
    sides = (left, right) if isinstance(node.ops[0], ast.Gt | ast.GtE) else (right, left)
    both = isinstance(program.parents.get(node), ast.BinOp)  # one edge of a box
    places = "arange" in text(resolved(program, sides[0]) or left) and not both
    if not places or not isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return False
    return is_target(program, sides[1].value if isinstance(sides[1], ast.Subscript) else sides[1])


# --- penalties ---


@suspects("penalty without a norm")
def _plain_penalty(program: Program) -> Iterator[Spot]:
    """Find a penalty that adds the parameters themselves, or reads their data."""
    for call in program.calls:
        kind, inner = reduction(program, call)
        base = inner.value if isinstance(inner, ast.Attribute) and inner.attr in {"data", "weight"} else inner
        weights = _is_parameter(program, base) or (isinstance(inner, ast.Attribute) and inner.attr == "weight")
        if kind and weights and (about_loss(program, call) or "reg" in target_name(program, call)):
            yield look_at(call)
    for node in program.every(ast.Attribute):
        if node.attr == "data" and _is_parameter(program, node.value):
            said = text(program.statement(node))
            if re.search(r"norm|abs|pow|\*\* 2|square", said) and about_loss(program, node):
                yield look_at(node)


def _is_parameter(program: Program, node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Name):
        return False
    for outer in program.outward(node):
        loops = [outer] if isinstance(outer, ast.For) else getattr(outer, "generators", [])
        for one in loops:
            inside = names_in(one.target)
            if node.id in inside and re.search(r"parameters\(|params\b", text(one.iter)):
                return True
    return False


# --- options ---


@suspects_each("strong label smoothing", ast.Call)
def _smooth(program: Program, call: ast.Call) -> object:
    value = setting(program, argument(call, "label_smoothing"))
    return value is not None and value >= 0.3


@suspects_each("threshold of a robust loss", ast.Call)
def _threshold(program: Program, call: ast.Call) -> object:
    if library_name(program, call) not in {"HuberLoss", "huber_loss", "SmoothL1Loss", "smooth_l1_loss"}:
        return False
    value = setting(program, argument(call, "delta") or argument(call, "beta"))
    return value is not None and (0 < value <= 1e-3 or value >= 20)


@suspects_each("pos_weight upside down", ast.Call)
def _upside_down(program: Program, call: ast.Call) -> Iterator[Spot]:
    given = argument(call, "pos_weight")
    for node in reached(program, given):
        if is_op(node, ast.Div):
            over, under = words_of(node.left), words_of(node.right)
            if over & {"pos", "positive", "positives", "ones"} and under & {"neg", "negative", "negatives", "zeros"}:
                yield look_at(node, call)


@suspects_each("weights of the classes", ast.Call)
def _class_weights(program: Program, call: ast.Call) -> object:
    name = library_name(program, call)
    return name in {"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"} and argument(call, "weight")


# --- places that a loss ignores ---

_NO_CLASS = re.compile(r"pad|ignore|void|unlabel|[<\[]|^[-_X]?$", re.IGNORECASE)


@suspects_rows("first class ignored", uses_of("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"))
def _first_ignored(program: Program, call: ast.Call, made: ast.Call) -> Iterator[Spot]:
    """Find ignore_index=0 beside `{tag: i for i, tag in enumerate(tags)}` of tags that begin with no padding."""
    if setting(program, argument(call, "ignore_index") or argument(made, "ignore_index")) != 0:
        return
    for node in program.every(ast.DictComp):
        over, target = node.generators[0].iter, elements(node.generators[0].target)
        plain = isinstance(over, ast.Call) and program.called(over) == "enumerate" and len(over.args) == 1
        listed = program.written(over.args[0]) if isinstance(over, ast.Call) and plain else None
        first = constant(next(iter(elements(listed)), None))
        begins = bool(target) and text(target[0]) == text(node.value) and isinstance(first, str)
        if begins and isinstance(first, str) and not _NO_CLASS.search(first):
            yield look_at(made, program.statement(node), call, first=first, numbers=shown(node))
