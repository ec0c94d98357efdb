"""Rules about the losses of policies: log-probabilities and the numbers that weight them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glassgrad.doctor.graphs.graph import CONSTANT, VIEWS, Graph, Op
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.rule import Seen, error, rules_of, warning
from glassgrad.doctor.rules.targets import LOGS, compared
from glassgrad.doctor.run import Run

_AVERAGES = named("mean sum multiply divide cross_entropy nll_loss mse_loss binary_cross_entropy_with_logits")
ONE_SIDED, HIGH = 2.0, 20.0
"""Weights of log-probabilities: |mean| / deviation, and the size, above which only their common part is learnt."""


@warning(
    "returns without scale",
    "Subtract the mean of the returns, or a baseline, and divide by their deviation.",
    "returns = (returns - returns.mean()) / (returns.std() + 1e-8)",
    ONE_SIDED,
    "Sutton and Barto, Reinforcement Learning (2018), section 13.4",
)
def _returns(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, maker, weights in compared(graph):
        while maker.name in {"negative", "sum"} and maker.parents and maker.parents[0] >= 0:
            maker = graph.made_by(maker.parents[0]) or maker
            if maker.name == "sum":
                break
        if op.name != "multiply" or maker.name not in LOGS or weights.shape not in {op.shape[:1], (*op.shape[:1], 1)}:
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


@error(
    "advantage of all actions",
    "Pick the log-probability of the action that was taken, and weight it.",
    "log_probs.gather(1, action.unsqueeze(1)).squeeze(1) * advantage",
)
def _all_actions(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, maker, weights in compared(graph):
        tracked = next(parent for parent in op.parents[:2] if parent >= 0)
        table = graph.ops[tracked] is maker and len(maker.shape) == 2 and maker.shape[1] > 1
        column = weights.shape == (op.shape[0], 1) if op.shape else False
        if op.name == "multiply" and maker.name in {"log_softmax", "log"} and table and column and weights.low < 0:
            what = (
                f"{op} weights the log-probabilities of all {maker.shape[1]} actions of {maker} with the "
                "advantage of each example: which action earned it is lost"
            )
            yield Seen(what, op.where)
            return


@error(
    "advantage with gradients",
    "Detach the advantage in the loss of the policy: the critic is to learn from its own loss only.",
    "policy_loss = -(log_prob * advantage.detach()).mean()",
)
def _moving_advantage(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op in graph.ops:
        parents = op.parents[:2]
        if op.name != "multiply" or len(parents) != 2 or min(parents) < 0:
            continue
        for mine, other in (parents, parents[::-1]):
            difference, picked = graph.made_by(other), graph.made_by(mine)
            turned = picked is not None and picked.name == "negative" and picked.parents
            if picked is not None and turned:
                mine = picked.parents[0]
                picked = graph.made_by(mine)
            if picked is None or difference is None or picked.name not in LOGS or not _picks(graph, mine):
                continue
            if _is_error(graph, difference) and difference.shape == op.shape:
                what = (
                    f"{op} weights the log-probabilities with {difference}, which has a gradient: the "
                    "loss of the policy changes the critic, towards values that make the loss small"
                )
                yield Seen(what, difference.where or op.where)
                return


def _is_error(graph: Graph, op: Op) -> bool:
    """Tell whether an op subtracts a known number and a value; 1 - p, as a focal loss has it, is none."""
    if op.name != "subtract" or CONSTANT not in op.parents[:2]:
        return False
    values = [graph.made_by(parent) for parent in op.parents[:2] if parent >= 0]
    return len(values) == 1 and values[0] is not None and values[0].name not in {"exp", "softmax", "sigmoid"}


def _picks(graph: Graph, number: int) -> bool:
    """Tell whether an entry of each row is picked on the way to a result."""
    while number >= 0 and graph.ops[number].name in VIEWS:
        if graph.ops[number].name in {"take_along_axis", "pick", "getitem"}:
            return True
        number = graph.ops[number].parents[0] if graph.ops[number].parents else CONSTANT
    return False


@warning(
    "averaged before it is weighted",
    "Weight each example first, and take the mean of the products.",
    "loss = -(log_probability * advantage).mean()",
)
def _mean_first(run: Run) -> Iterator[Seen]:
    for op, maker, weights in compared(run.graph):
        scalar = () in op.shapes[:2] and maker.shape == () and maker.name in _AVERAGES
        each = len(weights.shape) == 1 and weights.shape[0] > 3 and op.shape == weights.shape
        before = maker.parents and maker.parents[0] >= 0
        if op.name == "multiply" and scalar and each and before:
            what = (
                f"{maker} is one number for the whole batch, and {op} multiplies it by "
                f"{weights.shape[0]} weights: which example has which weight is lost"
            )
            yield Seen(what, maker.where or op.where)
            return


RULES = rules_of(globals())
