"""Suspects about CTC: the blank, axes, lengths, probabilities."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import callee_of, is_op
from glassgrad.doctor.reading.program import Program, argument, is_given
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import named_values, receiver, text
from glassgrad.doctor.reading.suspects.sequences.parts import runs, says
from glassgrad.doctor.reading.values import Loss, losses


@suspects_each("blank that is a letter as well", ast.Call)
def _blank(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find CTC with the blank 0 while letters are numbered from 0."""
    name = last(program.names.full(call.func))
    if name not in {"CTCLoss", "ctc_loss"}:
        return
    given = argument(call, "blank", 0 if name == "CTCLoss" else 4)
    if given is not None and setting(program, given) != 0:
        return
    blanks = r"(?i)'(<blank>|-|_|<b>|blank)'|\+ 1\b.*for|index\(.*\) \+ 1|\['-'|[^=]= '[-_~#@][a-zA-Z0-9 ]"
    blank = says(program, blanks)
    letters = sorted(_numbered(program), key=lambda node: node.lineno) if not blank else []
    yield from (look_at(one, call, loss=f"{shown(call)} in line {call.lineno}") for one in letters)


@suspects_each("blank of another number", ast.Call)
def _other_blank(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find CTC with its usual blank 0 in a script whose own blank is another number: `BLANK = len(letters)`."""
    name = last(program.names.full(call.func))
    if name not in {"CTCLoss", "ctc_loss"} or is_given(call, "blank", 0 if name == "CTCLoss" else 4):
        return
    for other, value, statement in named_values(program):
        named = re.fullmatch(r"(?i)(ctc_|id_|idx_)?blank(_?(id|idx|index|label|token))?", other)
        size = re.fullmatch(r"len\([\w.]+\)( [+-] 1)?|(?i:num_|n_)\w+( - 1)?|[A-Z]+ - 1", text(value))
        if named and (size or setting(program, value) not in {None, 0}):
            yield look_at(call, statement, blank=f"{shown(statement)} in line {statement.lineno}")
            return


def _numbered(program: Program) -> Iterator[ast.expr]:
    """Yield the expressions that number letters from 0: by enumerate, by a range, by their places or their codes."""
    letters = re.compile(r"(?i)char|letter|alphabet|vocab|symbol|token")
    for call in program.calls:
        name, given = callee_of(call), call.args
        alone = len(given) == 1 and not call.keywords
        if name == "enumerate" and alone and letters.search(text(given[0])):
            yield call
        elif name == "zip" and len(given) == 2 and letters.search(text(given[0])):
            counts = given[1]
            if isinstance(counts, ast.Call) and text(counts.func) == "range" and len(counts.args) == 1:
                yield call
        elif name in {"index", "find"} and alone and isinstance(given[0], ast.Name) and not _is_raised(program, call):
            yield call
    for node in program.every(ast.BinOp):
        coded = text(node.right) in {"ord('a')", "ord('A')", "ord('0')"}
        if coded and is_op(node, ast.Sub) and not _is_raised(program, node):
            yield node


def _is_raised(program: Program, node: ast.expr) -> bool:
    """Tell whether something is added to a number."""
    outer = program.parents.get(node)
    return is_op(outer, ast.Add)


@suspects_each("CTC of probabilities", losses)
def _ctc_probabilities(program: Program, one: Loss) -> object:
    """Find a CTC loss of a softmax."""
    ends = [found.node for found in flow(program).ends(one.input)] if one.kind == "ctc_loss" else []
    base = receiver(one.input, program)
    bound = program.bound(base) if isinstance(base, ast.Name) and one.kind == "ctc_loss" else None
    ends += [bound.value] if bound is not None and bound.value is not None else []
    said = " ; ".join(text(end) for end in (one.input, *ends)) if one.kind == "ctc_loss" else ""
    return re.search(r"(^|\.|; )softmax\(|sigmoid\(", said) and look_at(one.call, program.statement(one.call))


@suspects_each("CTC lengths of padded labels", losses)
def _ctc_targets(program: Program, one: Loss) -> Iterator[Spot]:
    """Find target lengths that are all the width of the padded labels."""
    given = argument(one.call, "target_lengths", 3) if one.kind == "ctc_loss" else None
    if given is None:
        return
    said = " ; ".join([text(given), *(text(end.node) for end in flow(program).ends(given))])
    if not re.search(r"full\(.*\.(size\(1\)|shape\[1\]|size\(-1\)|shape\[-1\])", said):
        return
    if says(program, r"(?i)pad|len\b|lens|lengths"):
        yield look_at(program.value_of(given) or given, one.call)


@suspects("CTC with the batch first")
def _ctc_axes(program: Program) -> Iterator[Spot]:
    """Find a CTC loss in a script that never exchanges axes."""
    if says(program, r"transpose\(0, 1|transpose\(1, 0|permute\((1|2), 0|permute\(2, |swapaxes|rearrange|\.T\b"):
        return
    axes = {one.batch_first for one in runs(program)}
    for one in losses(program):
        if one.kind == "ctc_loss" and axes != {False}:
            yield look_at(one.call, program.statement(one.call))


@suspects("CTC lengths of the input")
def _ctc_lengths(program: Program) -> Iterator[Spot]:
    """Find lengths of the input of a network that shortens it."""
    if not says(program, r"stride=|MaxPool|AvgPool"):
        return
    for one in losses(program):
        given = argument(one.call, "input_lengths", 2) if one.kind == "ctc_loss" else None
        if given is None:
            continue
        said = " ; ".join([text(given), *(text(end.node) for end in flow(program).ends(given))])
        if not re.search(r"//|logit|log_p|logp|out|pred|/ 2|>> |emission|scores", said):
            yield spot(one.call, given, program.statement(one.call), text=shown(given))
