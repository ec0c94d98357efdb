"""Suspects about masks, reductions and penalties in losses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.formulas import (
    about_loss,
    assigned,
    called,
    factors_of,
    held,
    is_loss_name,
    name_of,
    reduced,
    reduction,
    within,
    words,
    words_of,
)
from glassgrad.doctor.reading.values import losses

_MASKS = named("mask masks valid keep attention lengths")
_BATCH = re.compile(r"batch_?size|\bbs\b|len\(|\.size\(0\)|\.shape\[0\]|\bn_?batch\b")

# --- reductions and masks ---


@suspects("loss reduced over the batch axis")
def _batch_axis(program: Program) -> Iterator[Spot]:
    """Find a sum or softmax over axis 0 in a loss."""
    for call in program.calls:
        name, inner = called(program, call)
        place = 1 if program.names.full(call.func) else 0
        along = constant(argument(call, "dim", place) or argument(call, "axis"))
        text = about_loss(program, call)
        known = along == 0 and not isinstance(along, bool) and name in {"sum", "log_softmax", "softmax", "logsumexp"}
        near = ast.unparse(inner) if inner is not None else "stack"
        if known and text and not re.search(r"stack|dice|iou|count|class", near + text):
            yield spot(call, text=shown(call))


@suspects("masked values averaged over all places")
def _masked_mean(program: Program) -> Iterator[Spot]:
    """Find `(loss * mask).mean()`, which divides by all places, masked ones included."""
    for call in program.calls:
        kind, inner = reduction(program, call)
        node = held(program, inner)
        if kind != "mean" or not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        masks = [
            one for one in factors_of(node) if words(name_of(held(program, one))) & _MASKS or "mask" in name_of(one)
        ]
        if masks and about_loss(program, call):
            yield spot(call, text=shown(call), mask=shown(masks[0], 30))


@suspects("mean over what may be nothing")
def _maybe_none(program: Program) -> Iterator[Spot]:
    """Find a division by the sum of a mask, and the mean of selected values, without a bound from below."""
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            below = held(program, node.right)
            kind, inner = reduction(program, below)
            known = words_of(inner) & (_MASKS | {"pos", "positive", "positives", "same", "pairs"})
            if kind == "sum" and known and about_loss(program, node):
                yield spot(node, text=shown(node))
        kind, inner = reduction(program, node)
        picked = inner.slice if kind == "mean" and isinstance(inner, ast.Subscript) else None
        if words_of(picked) & {"mask", "pos", "neg", "positive", "valid"} and about_loss(program, node):
            assert isinstance(node, ast.expr)
            yield spot(node, text=shown(node))


@suspects("mean divided by the batch once more")
def _divided(program: Program) -> Iterator[Spot]:
    """Find a loss of the library, or a mean, that the training divides by the batch."""
    for node in program.nodes:
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Div):
            continue
        value = node.left if isinstance(node, ast.BinOp) else node.target
        size = node.right if isinstance(node, ast.BinOp) else node.value
        is_mean = reduced(program, held(program, value)) == "mean"
        if is_mean and _BATCH.search(ast.unparse(size)) and about_loss(program, node):
            yield spot(node, text=shown(node))


@suspects("loss without the mask of its part")
def _no_mask(program: Program) -> Iterator[Spot]:
    """Find a training loss without train_mask in a script that has one."""
    names = {name_of(one) for one in program.nodes if isinstance(one, ast.Name | ast.Attribute)}
    masks = [one for one in names if re.search(r"^(train_?mask|idx_?train|mask_?train)$", one)]
    for one in losses(program) if masks else ():
        text = " ".join(ast.unparse(part) for part in within(program, one.call) if isinstance(part, ast.expr))
        trains = is_loss_name(assigned(program, one.call)) and "val" not in assigned(program, one.call)
        if trains and not re.search(r"mask|idx|index", text) and "loader" not in ast.unparse(program.tree):
            yield spot(one.call, text=shown(one.call), mask=masks[0])


# --- penalties ---


@suspects("penalty without a norm")
def _plain_penalty(program: Program) -> Iterator[Spot]:
    """Find a penalty that adds the parameters themselves, or reads their data."""
    for call in program.calls:
        kind, inner = reduction(program, call)
        base = inner.value if isinstance(inner, ast.Attribute) and inner.attr in {"data", "weight"} else inner
        weights = _is_parameter(program, base) or (isinstance(inner, ast.Attribute) and inner.attr == "weight")
        if kind and weights and (about_loss(program, call) or "reg" in assigned(program, call)):
            yield spot(call, text=shown(call))
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "data" and _is_parameter(program, node.value):
            text = ast.unparse(program.statement(node))
            if re.search(r"norm|abs|pow|\*\* 2|square", text) and about_loss(program, node):
                yield spot(node, text=shown(node))


def _is_parameter(program: Program, node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Name):
        return False
    for outer in program.outward(node):
        loops = [outer] if isinstance(outer, ast.For) else getattr(outer, "generators", [])
        for one in loops:
            inside = {part.id for part in ast.walk(one.target) if isinstance(part, ast.Name)}
            if node.id in inside and re.search(r"parameters\(|params\b", ast.unparse(one.iter)):
                return True
    return False


SUSPECTS = suspects_of(globals())
