"""Rules about the sign and the weight of each term of a loss."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.graphs.graph import VIEWS, Constant, Graph, Op
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules import order
from glassgrad.doctor.rules.objectives.terms import Term, passed
from glassgrad.doctor.rules.rule import Seen, at_, ends, error, rules_of, warning
from glassgrad.doctor.rules.targets import LOGS
from glassgrad.doctor.run import Run

SHARE, AVERAGED = 4.0, 1.5
"""The weight of an example in a term summed over the batch, below which it is meant, and in an averaged one."""
DIVERGENCE = 12.0
"""The weight of a latent number relative to that of a number that is predicted."""
_ERRORS = named(
    "cross_entropy mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits"
)
_SQUARES = named("square power")
_LOG_LOSSES = named("nll_loss kl_div")
_PROBABILITIES = named("softmax sigmoid")
_BOUNDED = _PROBABILITIES | named("tanh sin cos cosine_similarity normalize softsign hardtanh hardsigmoid relu6 clip")
_PICKED = named("take_along_axis getitem pick gather index_select")
_THROUGH = VIEWS | named("sum mean stack cat concatenate clip")
_OPERAND = r"(?:[\w.]+|\([^()]*\))(?:\([^()]*\))?(?:\.\w+\([^()]*\))*"
_MINUS_FIRST, _MINUS_SECOND = re.compile(rf"(?:^|[=(\[,]|return)\s*-{_OPERAND}\s*\*"), re.compile(r"\*\s*\(?\s*-")
_COSTS = re.compile(r"cost|penalt|length|distance|regret|energy|tour", re.IGNORECASE)


@error("sign of the loss turned", "Minimise the negative: the loss has no lower bound.", "loss = -loss")
def _term_turned(run: Run) -> Iterator[Seen]:
    """Find a term without a lower bound, such as minus a squared error, whatever stands beside it."""
    graph = run.graph
    if run.parts.against or _maximises(run) or order.turns(run):
        return
    terms = list(passed(graph))
    policy = any(_product(graph, term.op) is not None for term in terms)
    for term in terms:
        wrong = _wrong(graph, term, logs=not policy) if term.straight else None
        if wrong and (_is_alone(graph, term) or _falls_below(run)):
            where = run.calls.line("loss") or term.op.where
            yield Seen(f"the loss falls without a bound: {wrong}", where)
            return


@error(
    "sign of the loss turned",
    "Minimise the negative: a step is to make an action more likely if its advantage is positive.",
    "loss = -(log_prob * advantage).mean()",
)
def _policy_turned(run: Run) -> Iterator[Seen]:
    graph = run.graph
    if _maximises(run) or order.turns(run):
        return
    found = [(term, known) for term in passed(graph) if (known := _product(graph, term.op)) is not None]
    turned = [(term, made) for term, (sign, made) in found if term.sign * sign > 0]
    if not found or len(turned) < len(found) or any(_COSTS.search(term.op.source) for term, _ in found):
        return
    term, made = turned[0]
    if term.op.constant is None and len({one.op.factor for one, _ in found}) < 2:
        return  # one number for all: no weights
    where = run.calls.line("loss")
    what = (
        f"{term.op} weights {made} with returns or advantages, and the loss{at_(where)} rises with the "
        "product: each step makes good actions less likely"
    )
    yield Seen(what, where or term.op.where)


def _maximises(run: Run) -> bool:
    return any(options.get("maximize") for _, options in run.setup.optimizers)


def _is_alone(graph: Graph, term: Term) -> bool:
    """Tell whether a loss has no other term: each op on the way has one operand with a gradient."""
    return any(op is term.op for op in graph.way(graph.loss))


def _falls_below(run: Run) -> bool:
    """Tell whether the loss falls below 0, and further than it began above it."""
    curve = run.curve
    if len(curve) < 8:
        return False
    first, last = ends(curve)
    return last < 0 and first - last > max(abs(first), 1.0)


def _wrong(graph: Graph, term: Term, *, logs: bool) -> str:
    """Say what is wrong with the sign of a term; empty if nothing is."""
    op = term.op
    if term.sign < 0 and _is_error(graph, op):
        return f"{op}, which training should make small, has a minus before it"
    if term.sign > 0 and logs and _is_log_of_probability(graph, op):
        return f"{op}, which training should make large, has no minus before it"
    return ""


def _is_error(graph: Graph, op: Op) -> bool:
    """Tell whether an op is at least 0 and has no largest value."""
    maker = graph.maker(op)
    if op.name in _LOG_LOSSES:
        return maker is not None and maker.name in LOGS
    if op.name in _ERRORS:
        return True
    return _is_square(op) and op.parents[0] >= 0 and maker is not None and not _is_bounded(graph, op.parents[0])


def _is_bounded(graph: Graph, number: int, depth: int = 0) -> bool:
    """Tell whether the numbers of an op are known to stay within limits."""
    op = graph.made_by(number)
    if op is None or depth > 4:
        return False
    if op.name in _BOUNDED:
        return True
    tracked = op.tracked
    if op.name == "divide" and len(tracked) == 2:  # by its own norm
        below = graph.made_by(op.parents[1])
        return below is not None and ("norm" in below.name or below.name in {"sqrt", "clip", "maximum"})
    if op.name in {"add", "subtract", "mean", "negative"} or (op.name == "multiply" and math.isfinite(op.factor)):
        return bool(tracked) and all(_is_bounded(graph, parent, depth + 1) for parent in tracked)
    return False


def _is_log_of_probability(graph: Graph, op: Op) -> bool:
    if op.name in {"log_softmax", "logsigmoid", "log_sigmoid"}:
        return True
    maker = graph.inside_log(op) if op.name in {"log", "log2", "log10"} else None
    return maker is not None and maker.name in _PROBABILITIES


def _product(graph: Graph, op: Op) -> tuple[int, Op] | None:
    """Return sign and op of the log-probability or the ratio that a product weights by example; None for others.

    The sign is 1 if the product rises with the probability of the action.
    """
    tracked = [parent for parent in op.parents[:2] if parent >= 0]
    if op.name != "multiply" or len(tracked) != 1 or not (_is_by_example(op.constant) or math.isfinite(op.factor)):
        return None
    source = op.source
    sign, number, picked = (-1 if _is_turned(op, source) else 1), tracked[0], False
    for _ in range(12):
        made = graph.ops[number] if number >= 0 else None
        if made is None:
            return None
        picked |= made.name in _PICKED
        if _is_log(graph, made):
            return (sign, made) if picked else None
        if made.name in {"cross_entropy", "nll_loss"}:
            return (-sign, made) if made.shape else None
        if made.name == "exp" and _is_by_example(op.constant):
            return (sign, made) if "ratio" in source.lower() or _compares_policies(graph, made) else None
        inner = made.tracked
        if made.name == "negative":
            sign = -sign
        elif made.name not in _THROUGH:
            return None
        number = inner[0] if inner else -1
    return None


def _is_turned(op: Op, source: str) -> bool:
    """Tell whether the user's line has a minus before the weights of a product, as in `log_prob * -advantage`."""
    pattern = _MINUS_FIRST if op.parents[0] < 0 else _MINUS_SECOND
    return bool(pattern.search(source))


def _is_by_example(weights: Constant | None) -> bool:
    return weights is not None and bool(weights.shape) and weights.shape[0] > 1 and weights.low != weights.high


def _compares_policies(graph: Graph, ratio: Op) -> bool:
    """Tell whether an exponential is that of a difference to a known log-probability."""
    inner = graph.maker(ratio)
    known = inner is not None and inner.name == "subtract" and len(inner.shape) == 1
    return known and inner is not None and sum(parent >= 0 for parent in inner.parents[:2]) == 1


@error(
    "sign of the loss turned",
    "Take the minimum of the products themselves and put the minus before it, or take the maximum of their negatives.",
    "loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()",
    source="Schulman et al. (2017), Proximal policy optimization algorithms, section 3",
)
def _minimum_turned(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for term in passed(graph):
        op = term.op
        parts = [graph.ops[parent] for parent in op.parents if parent >= 0]
        wrong = (op.name in {"minimum", "min"} and term.sign > 0) or (op.name in {"maximum", "max"} and term.sign < 0)
        if wrong and len(parts) == 2 and all(_clipped(graph, part) for part in parts):
            where = run.calls.line("loss")
            what = (
                f"{op} chooses between two products of a ratio and an advantage, and in the loss{at_(where)} it "
                "takes the one that promises more: the limit of the ratio has no effect"
            )
            yield Seen(what, op.where or where)
            return


@error(
    "sign of the loss turned",
    "Subtract the entropy from the loss: a policy that is to explore needs much of it.",
    "loss = policy_loss - 0.01 * entropy",
    source="Mnih et al. (2016), Asynchronous methods for deep reinforcement learning, section 4",
)
def _entropy_turned(run: Run) -> Iterator[Seen]:
    graph = run.graph
    if _maximises(run):
        return
    terms = list(passed(graph))
    if not any(_product(graph, term.op) is not None for term in terms):
        return
    for term in terms:
        if term.sign < 0 and _is_of_entropy(graph, term.op):
            where = run.calls.line("loss")
            what = (
                f"{term.op} is the entropy of the policy, and the loss{at_(where)} falls with it: a step makes "
                "the policy more certain of what it does already"
            )
            yield Seen(what, where or term.op.where)
            return


def _is_of_entropy(graph: Graph, op: Op) -> bool:
    """Tell whether an op multiplies probabilities by their own logarithms."""
    makers = [graph.made_by(parent) for parent in op.parents[:2]]
    if op.name != "multiply" or len(makers) != 2 or len(op.shape) < 2:
        return False
    pairs = [(one, other) for one, other in (makers, makers[::-1]) if one is not None and other is not None]
    return any(one.name in {"softmax", "exp"} and _is_log(graph, other) for one, other in pairs)


def _is_log(graph: Graph, op: Op) -> bool:
    """Tell whether an op makes log-probabilities, including logits minus their logsumexp."""
    return op.name in LOGS or graph.normalises(op)


def _clipped(graph: Graph, op: Op) -> bool:
    """Tell whether an op weights a ratio of probabilities by example, also behind a minus."""
    while op.name == "negative" and op.parents and op.parents[0] >= 0:
        op = graph.ops[op.parents[0]]
    return _product(graph, op) is not None


# --- weights ---


@warning(
    "loss terms of unequal size",
    "Average both terms over the batch, or sum both: their balance must not depend on the size of the batch.",
    "kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()",
    SHARE,
)
def _unequal(run: Run) -> Iterator[Seen]:
    graph = run.graph
    batch = _batch(run)
    if batch < SHARE:
        return
    terms = [(term, term.weight * batch) for term in passed(graph) if _is_of_examples(term, batch)]
    averaged = [(term, share) for term, share in terms if 0 < share <= AVERAGED]
    for term, share in terms if averaged else ():
        if term.summed and share >= max(SHARE, batch / 8):  # a large weight alone may be that of a known noise
            one, where = averaged[0][0].op, run.calls.line("loss")
            adding = graph.ops[term.reduced] if term.reduced >= 0 else term.op
            what = (
                f"{adding} adds up the numbers of all {batch} examples, and {one} is averaged over them: "
                f"in the loss{at_(where)} an example has a weight of {share:.3g} in the first and of at most 1 in the "
                "second"
            )
            yield Seen(what, adding.where or where, share)
            return


@warning(
    "loss terms of unequal size",
    "Sum the error over the numbers of an example too, and average both over the examples; or give the divergence a "
    "factor.",
    "loss = (error.sum(1) + kl.sum(1)).mean()",
    DIVERGENCE,
    "Kingma and Welling (2013), Auto-encoding variational Bayes",
)
def _divergence(run: Run) -> Iterator[Seen]:
    """Find a divergence summed over its latent numbers, beside an error averaged over the numbers of an example."""
    graph = run.graph
    batch = _batch(run)
    if batch < 2 or any(_unequal.look(run)):
        return
    terms = [term for term in passed(graph) if math.isfinite(term.weight)]
    squares = [term for term in terms if _is_square(term.op) and term.sign > 0 and term.op.shape[:1] == (batch,)]
    exponentials = [term for term in terms if term.op.name == "exp" and term.sign > 0]
    errors = [(term, each) for term in terms if (each := _each(term, batch)) > 0]
    alike = {(term.op.shape, term.weight) for term in exponentials}
    for term in squares:
        for other, each in errors if (term.op.shape, term.weight) in alike else ():
            share = 2 * term.weight * batch / each
            if other.op.shape != term.op.shape and share > DIVERGENCE:
                adding = graph.ops[term.reduced] if term.reduced >= 0 else term.op
                where = run.calls.line("loss")
                what = (
                    f"{other.op} is averaged over the numbers of an example, and the divergence is summed over "
                    f"its own ({adding}): in the loss{at_(where)} each of these weighs {share:.0f} times as much"
                )
                yield Seen(what, other.op.where or where, share)
                return


def _batch(run: Run) -> int:
    """Return the number of examples of a batch, 0 if it is unknown."""
    return int(run.data.batch[0]) if run.data is not None and np.isfinite(run.data.batch[:1]).all() else 0


def _is_square(op: Op) -> bool:
    return op.name in _SQUARES or (op.name == "multiply" and len(op.parents) == 2 and len(set(op.parents)) == 1)


def _each(term: Term, batch: int) -> float:
    """Return the weight of one number of an example in an error of predictions; 0 for other terms."""
    op = term.op
    if op.constant is None or term.sign < 0 or op.constant.shape[:1] != (batch,):
        return 0.0
    numbers = math.prod(op.constant.shape) / batch
    if op.name in _ERRORS and op.shape == ():
        return term.weight / numbers if op.reduction in {"", "mean"} else term.weight * batch
    return term.weight * batch if op.name in _ERRORS else 0.0


def _is_of_examples(term: Term, batch: int) -> bool:
    """Tell whether an op has numbers for each example, or is the library's sum or mean of them."""
    return (len(term.op.shape) > 0 and term.op.shape[0] == batch) and math.isfinite(term.weight)


RULES = rules_of(globals())
