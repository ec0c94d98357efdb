"""Rules about outputs, targets and weights that do not fit each other: classes, ranges, logarithms, returns."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.graphs.graph import VIEWS, Constant, Graph, Op
from glassgrad.doctor.library import words
from glassgrad.doctor.rules.rule import Seen, error, info, rules_of, warning
from glassgrad.doctor.run import Run

_ERRORS = words("mse_loss l1_loss smooth_l1_loss huber_loss subtract")
_BINARY = words("binary_cross_entropy binary_cross_entropy_with_logits")
_BOUNDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0)}
_LOGS = words("log_softmax logsigmoid log_sigmoid log")
OUTSIDE = 0.05
"""How far targets may lie outside of the range of the output, as a part of the range."""
LARGE = 100.0
"""A deviation or a mean of targets from which a squared error makes steps that nothing else is made for."""
ONE_SIDED, HIGH = 2.0, 20.0
"""Weights of log-probabilities: |mean| / deviation, and the size, above which only their common part is learnt."""
ENOUGH = 64


def _line(op: Op) -> str:
    return f"{op.name} at {op.where}" if op.where else op.name


def _compared(graph: Graph | None) -> Iterator[tuple[Op, Op, Constant]]:
    """Yield the ops that compare a tracked operand with a known one, with the maker of the tracked one."""
    for op in () if graph is None else graph.ops:
        tracked = [parent for parent in op.parents[:2] if parent >= 0]
        maker = graph.made_by(tracked[0]) if graph is not None and len(tracked) == 1 else None
        if op.constant is not None and op.constant.shape and maker is not None:
            yield op, maker, op.constant


@error(
    "softmax of one number",
    "Use a sigmoid for one output, or take the softmax along the axis of the classes or positions.",
    "torch.sigmoid(output)",
)
def _softmax_of_one(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op in () if graph is None else graph.ops:
        alone = op.name.endswith("softmax") and op.axis is not None and op.shape and op.shape[op.axis] == 1
        one_class = op.labels is not None and op.labels.classes == 1
        if alone or one_class:
            what = (
                f"{_line(op)} goes along an axis of length 1 (shape {list(op.shape)}), where the result is 1 whatever "
                "enters: no gradient passes it"
            )
            if one_class:
                what = f"{_line(op)} has one output, whose softmax is always 1: the loss is always 0"
            yield Seen(what, op.where, 1.0)
            return


@error(
    "softmax for several labels",
    "Use a sigmoid for each label, with binary_cross_entropy_with_logits.",
    "loss = F.binary_cross_entropy_with_logits(logits, labels)",
)
def _softmax_of_several(run: Run) -> Iterator[Seen]:
    for op, maker, target in _compared(run.graph):
        least, most = target.rows
        if (op.name in _ERRORS | _BINARY and maker.name == "softmax" and target.whole and most > 1) and (
            target.low >= 0 and target.high <= 1
        ):
            what = (
                f"the outputs of {_line(maker)} add up to 1, and an example has from {least:g} to {most:g} labels: "
                "several labels cannot hold at once"
            )
            yield Seen(what, maker.where or op.where, most)
            return


@error("targets out of range", "Number the two classes 0 and 1.", "targets = (targets > 0).float()")
def _out_of_range(run: Run) -> Iterator[Seen]:
    for op, _, target in _compared(run.graph):
        if op.name in _BINARY and (target.low < 0 or target.high > 1):
            what = (
                f"the targets of {_line(op)} run from {target.low:g} to {target.high:g}; it takes probabilities from "
                "0 to 1, and beyond them the loss has no lower bound"
            )
            yield Seen(what, op.where, target.high if target.high > 1 else target.low)
            return


@warning(
    "output cannot reach the targets",
    "End with a linear layer, or scale the targets to the range of the activation.",
    "nn.Linear(width, 1)  # without the activation behind it",
    OUTSIDE,
)
def _out_of_reach(run: Run) -> Iterator[Seen]:
    for op, maker, target in _compared(run.graph):
        if op.name not in _ERRORS or maker.name not in _BOUNDS or len(target.shape) < 1 or target.shape[0] < 4:
            continue
        low, high = _BOUNDS[maker.name]
        beyond = max(low - target.low, target.high - high) / (high - low)
        if beyond > OUTSIDE:
            what = (
                f"{_line(maker)} makes outputs from {low:g} to {high:g}, and the targets run from {target.low:.3g} to "
                f"{target.high:.3g}"
            )
            yield Seen(what, maker.where or op.where, beyond)
            return


@warning(
    "targets unnormalised",
    "Subtract the mean of the training targets and divide by their deviation; undo it for predictions.",
    "targets = (targets - targets.mean()) / targets.std()",
    LARGE,
)
def _unnormalised(run: Run) -> Iterator[Seen]:
    for op, _, target in _compared(run.graph):
        size = max(abs(target.mean), target.std)
        if op.name == "mse_loss" and size > LARGE:
            what = (
                f"the targets of {_line(op)} have mean {target.mean:.3g} and deviation {target.std:.3g}: the first "
                "gradients are as large"
            )
            yield Seen(what, op.where, size)
            return


@error(
    "no logarithm in nll_loss",
    "Give nll_loss the result of log_softmax, or give cross_entropy the outputs of the last layer.",
    "loss = F.cross_entropy(output, targets)",
)
def _no_logarithm(run: Run) -> Iterator[Seen]:
    found = missing_logarithm(run.graph)
    if found is not None:
        op, maker = found
        yield Seen(
            f"nll_loss takes log-probabilities, and {_line(maker)} makes other numbers: the loss has a wrong slope",
            run.calls.line("loss") or op.where,
        )


def missing_logarithm(graph: Graph | None) -> tuple[Op, Op] | None:
    """Return an nll_loss that takes something other than log-probabilities, and what made that; None without one."""
    for op in () if graph is None else graph.ops:
        picked = op.parents[0] if op.name == "nll_loss" and op.parents else -1
        if op.name == "negative" and graph is not None:
            picked = _gathered(graph, op.parents[0] if op.parents else -1)
        maker = graph.made_by(picked) if graph is not None and picked >= 0 else None
        if maker is not None and maker.name not in _LOGS:
            return op, maker
    return None


def _gathered(graph: Graph, number: int) -> int:
    """Return the operand of which an entry of each row is picked and summed, as our nll_loss does; -1 if none."""
    while number >= 0 and graph.ops[number].name != "take_along_axis":
        op = graph.ops[number]
        scaled = op.name in {"multiply", "divide"} and () in op.shapes[:2]
        if op.name not in VIEWS | {"sum", "mean"} and not scaled:
            return -1
        number = next((parent for parent in op.parents if parent >= 0), -1)
    if number < 0 or len(graph.ops[number].shape) != 2 or graph.ops[number].shape[1] != 1:
        return -1
    return graph.ops[number].parents[0]


# --- classes ---


@error("labels alike", "Look at how the labels are made: scaled, rounded or cut off, several classes become one.")
def _labels_alike(run: Run) -> Iterator[Seen]:
    known = [labels for _, labels in run.labels if labels.values is not None]
    values = [np.unique(labels.values) for labels in known]
    if len(known) < 3 or sum(labels.count for labels in known) < ENOUGH or max(labels.classes for labels in known) < 2:
        return
    if all(len(one) == 1 and one[0] == values[0][0] for one in values) and all(one.distinct == 1 for one in known):
        count = sum(labels.count for labels in known)
        what = f"all {count:,} labels of {len(known)} sampled steps are {int(values[0][0])}: there is nothing to tell"
        yield Seen(what, run.calls.line("loss"), 1.0)


@info("labels begin at 1", "Number the classes from 0, or keep class 0 for what has no label.", "labels = labels - 1")
def _from_one(run: Run) -> Iterator[Seen]:
    known = [labels for _, labels in run.labels if labels.values is not None and labels.classes > 2]
    if sum(labels.count for labels in known) < 2 * ENOUGH:
        return
    seen = np.unique(np.concatenate([labels.values for labels in known]))
    classes = known[0].classes
    if seen[0] == 1 and seen[-1] == classes - 1 and len(seen) == classes - 1:
        what = f"the labels run from 1 to {classes - 1}, and the output has {classes} classes: class 0 never comes"
        yield Seen(what, run.calls.line("loss"), 1.0)


# --- weights of log-probabilities ---


@warning(
    "returns without scale",
    "Subtract the mean of the returns, or a baseline, and divide by their deviation.",
    "returns = (returns - returns.mean()) / (returns.std() + 1e-8)",
    ONE_SIDED,
    "Sutton and Barto, Reinforcement Learning (2018), section 13.4",
)
def _returns(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, maker, weights in _compared(graph):
        while graph is not None and maker.name in {"negative", "sum"} and maker.parents and maker.parents[0] >= 0:
            maker = graph.made_by(maker.parents[0]) or maker
            if maker.name == "sum":
                break
        if op.name != "multiply" or maker.name not in _LOGS or weights.shape not in {op.shape[:1], (*op.shape[:1], 1)}:
            continue
        if weights.low == weights.high == 0:
            what = f"the log-probabilities are weighted at {op.where} by zeros: no gradient reaches the policy"
            yield Seen(what, op.where, 0.0, severity="error", advice="Look at what was subtracted from the returns.")
            return
        if weights.shape[0] < 8 or (weights.low >= 0 and weights.high <= 1):
            continue
        sided = abs(weights.mean) / weights.std if weights.std > 0 else math.inf
        high = max(abs(weights.low), abs(weights.high))
        if (sided > ONE_SIDED and abs(weights.mean) > 1) or high > HIGH:
            what = (
                f"the log-probabilities are weighted at {op.where} by numbers of mean {weights.mean:.3g} and deviation "
                f"{weights.std:.3g}: their common part makes each action more likely, and hides which were better"
            )
            yield Seen(what, op.where, sided)
            return


@warning(
    "averaged before it is weighted",
    "Weight each example first, and take the mean of the products.",
    "loss = -(log_probability * advantage).mean()",
)
def _mean_first(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, maker, weights in _compared(graph):
        scalar = () in op.shapes[:2] and maker.shape == () and maker.name in {"mean", "sum", "multiply", "divide"}
        each = len(weights.shape) == 1 and weights.shape[0] > 3 and op.shape == weights.shape
        before = graph is not None and maker.parents and maker.parents[0] >= 0
        if op.name == "multiply" and scalar and each and before:
            what = (
                f"{_line(maker)} is one number for the whole batch, and {_line(op)} multiplies it by "
                f"{weights.shape[0]} weights: which example has which weight is lost"
            )
            yield Seen(what, maker.where or op.where)
            return


RULES = rules_of(globals())
