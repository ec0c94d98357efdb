"""Suspects about CTC: the blank, axes, lengths, probabilities."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program, argument
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.sequences.parts import runs, says
from glassgrad.doctor.reading.values import losses


@suspects("blank that is a letter as well")
def _blank(program: Program) -> Iterator[Spot]:
    """Find CTC with the blank 0 while letters are numbered from 0."""
    for call in program.calls:
        name = last(program.names.full(call.func))
        if name not in {"CTCLoss", "ctc_loss"}:
            continue
        given = argument(call, "blank", 0 if name == "CTCLoss" else 4)
        if given is not None and setting(program, given) != 0:
            continue
        blank = says(
            program, r"(?i)'(<blank>|-|_|<b>|blank)'|\+ 1\b.*for|index\(.*\) \+ 1|\['-'|[^=]= '[-_~#@][a-zA-Z0-9 ]"
        )
        letters = sorted(_numbered(program), key=lambda node: node.lineno) if not blank else []
        for one in letters:
            yield spot(one, call, text=shown(one), loss=f"{shown(call)} in line {call.lineno}")


def _numbered(program: Program) -> Iterator[ast.expr]:
    """Yield the expressions that number letters from 0: by enumerate, by a range, by their places or their codes."""
    letters = re.compile(r"(?i)char|letter|alphabet|vocab|symbol|token")
    for call in program.calls:
        name, given = getattr(call.func, "attr", getattr(call.func, "id", "")), call.args
        alone = len(given) == 1 and not call.keywords
        if name == "enumerate" and alone and letters.search(ast.unparse(given[0])):
            yield call
        elif name == "zip" and len(given) == 2 and letters.search(ast.unparse(given[0])):
            counts = given[1]
            if isinstance(counts, ast.Call) and ast.unparse(counts.func) == "range" and len(counts.args) == 1:
                yield call
        elif name in {"index", "find"} and alone and isinstance(given[0], ast.Name) and not _is_raised(program, call):
            yield call
    for node in program.nodes:
        coded = isinstance(node, ast.BinOp) and ast.unparse(node.right) in {"ord('a')", "ord('A')", "ord('0')"}
        if coded and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and not _is_raised(program, node):
            yield node


def _is_raised(program: Program, node: ast.expr) -> bool:
    """Tell whether something is added to a number."""
    outer = program.parents.get(node)
    return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Add)


@suspects("CTC of probabilities")
def _ctc_probabilities(program: Program) -> Iterator[Spot]:
    """Find a CTC loss of a softmax."""
    for one in losses(program):
        ends = [found.node for found in flow(program).ends(one.input)] if one.kind == "ctc_loss" else []
        base = one.input
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and not program.names.full(base.func):
            base = base.func.value
        bound = program.bound(base) if isinstance(base, ast.Name) and one.kind == "ctc_loss" else None
        ends += [bound.value] if bound is not None and bound.value is not None else []
        text = " ; ".join(ast.unparse(end) for end in (one.input, *ends)) if one.kind == "ctc_loss" else ""
        if re.search(r"(^|\.|; )softmax\(|sigmoid\(", text):
            yield spot(one.call, program.statement(one.call), text=shown(one.call))


@suspects("CTC lengths of padded labels")
def _ctc_targets(program: Program) -> Iterator[Spot]:
    """Find target lengths that are all the width of the padded labels."""
    for one in losses(program):
        given = argument(one.call, "target_lengths", 3) if one.kind == "ctc_loss" else None
        if given is None:
            continue
        text = " ; ".join([ast.unparse(given), *(ast.unparse(end.node) for end in flow(program).ends(given))])
        if re.search(r"full\(.*\.(size\(1\)|shape\[1\]|size\(-1\)|shape\[-1\])", text) and says(
            program, r"(?i)pad|len\b|lens|lengths"
        ):
            bound = program.bound(given) if isinstance(given, ast.Name) else None
            node = bound.value if bound is not None and bound.item is None and bound.value is not None else given
            yield spot(node, one.call, text=shown(node))


@suspects("CTC with the batch first")
def _ctc_axes(program: Program) -> Iterator[Spot]:
    """Find a CTC loss in a script that never exchanges axes."""
    if says(program, r"transpose\(0, 1|transpose\(1, 0|permute\((1|2), 0|permute\(2, |swapaxes|rearrange|\.T\b"):
        return
    axes = {one.batch_first for one in runs(program)}
    for one in losses(program):
        if one.kind == "ctc_loss" and axes != {False}:
            yield spot(one.call, program.statement(one.call), text=shown(one.call))


@suspects("CTC lengths of the input")
def _ctc_lengths(program: Program) -> Iterator[Spot]:
    """Find lengths of the input of a network that shortens it."""
    if not says(program, r"stride=|MaxPool|AvgPool"):
        return
    for one in losses(program):
        given = argument(one.call, "input_lengths", 2) if one.kind == "ctc_loss" else None
        if given is None:
            continue
        text = " ; ".join([ast.unparse(given), *(ast.unparse(end.node) for end in flow(program).ends(given))])
        if not re.search(r"//|logit|log_p|logp|out|pred|/ 2|>> |emission|scores", text):
            yield spot(one.call, given, program.statement(one.call), text=shown(given))


SUSPECTS = suspects_of(globals())
