"""Rules about gradients that are made and not used, schedules, and the sign of the loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import source_lines
from glassgrad.doctor.graphs.graph import VIEWS, Graph, Op
from glassgrad.doctor.library import Array
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.loss import is_of_scores
from glassgrad.doctor.rules.rule import Seen, at_, ends, error, pairs, rules_of, warning
from glassgrad.doctor.run import Run

MOSTLY, ALONE = 0.75, 0.6
"""The share of backward passes without a step, above which a second optimizer does not explain it, and without one."""
GONE, FOR = 1e-4, 0.3
"""A rate relative to the highest one, and the share of the steps below it: healthy schedules reach it only later."""
FALLEN = 1.0
_ASKING = frozenset({"LBFGS"})
RESTING = 3
"""The steps at the beginning that a schedule may stand at a rate of 0."""
UPWARD, FALLS, LOWER = 0.7, 3, 0.2
"""The share of steps in which the rate rises, the number of falls, and the least fall relative to the highest rate."""
WON = 3.0
"""The loss of a generator at which its judge gives it a chance of 5 %."""
_ADVERSARIAL = frozenset({"binary_cross_entropy_with_logits", "binary_cross_entropy", "softplus", "log", "logsigmoid"})

_POSITIVE = named(
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div square abs softplus"
)
_BELOW = named("log_softmax logsigmoid log_sigmoid")
_THROUGH = named(
    "sum mean negative divide getitem take_along_axis index_select pick gather reshape squeeze view take "
    "multiply subtract add logsumexp"
)


_LOGS = named("log_softmax logsigmoid log_sigmoid log log2 log10 log1p cross_entropy nll_loss")
_CURVED = named("exp softmax sigmoid softplus logsigmoid square power tanh log_softmax")
_PICKS, _SUMS = named("take_along_axis getitem gather pick index_select"), named("sum mean divide where")


@error(
    "clipping before backward",
    "Clip between the backward pass and the step.",
    "loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()",
    0.5,
)
def _clipped_early(run: Run) -> Iterator[Seen]:
    parts = run.parts
    if parts.rounds >= 2 and parts.clips > 0.5 * parts.rounds:
        clip, backward = run.calls.line("clip"), run.calls.line("backward")
        what = (
            f"the gradients are clipped{at_(clip)} before the backward pass{at_(backward)} computes them, in "
            f"{parts.clips} of {parts.rounds} steps: the step{at_(run.calls.line('step'))} uses unclipped gradients"
        )
        yield Seen(what, clip, parts.clips / parts.rounds)


@error(
    "gradients never used",
    "Call step after each backward pass, inside of the loop.",
    "loss.backward(); optimizer.step()",
    MOSTLY,
)
def _thrown(run: Run) -> Iterator[Seen]:
    parts = run.parts
    if run.calls.followed or any(kind in _ASKING for kind, _ in run.setup.optimizers):
        return  # a step of these takes several passes of its closure
    if parts.thrown >= 6 and parts.thrown > (ALONE if parts.alone else MOSTLY) * parts.passes and run.calls.steps:
        step, backward = run.calls.line("step"), run.calls.line("backward")
        what = (
            f"the gradients of {parts.thrown} of {parts.passes} backward passes{at_(backward)} were zeroed before "
            f"optimizer.step(){at_(step)} used them: the call of step or of zero_grad is in the wrong loop"
        )
        yield Seen(what, step, parts.thrown / parts.passes)


@warning(
    "loss term detached",
    "Keep the term a tensor with a history: no item(), detach() or argmax() on its way.",
    "loss = error + 0.1 * penalty  # penalty without .item()",
)
def _term(run: Run) -> Iterator[Seen]:
    for op in run.graph.of_loss():
        scalar = op.name == "add" and op.shape == () and len(op.parents) > 1
        if not scalar or sum(parent >= 0 for parent in op.parents[:2]) != 1:
            continue
        side = next(at for at, parent in enumerate(op.parents[:2]) if parent < 0)
        cut = source_lines.cut_terms(op.where, run.parts.files, side)
        if cut:
            what = (
                f"a number is added to the loss at {op.where} whose history was cut at {cut}: it has no gradient, so "
                "training does not change it"
            )
            yield Seen(what, cut)
            return


@warning(
    "discriminator has won",
    "Make the discriminator weaker or slower: fewer units, a lower rate, fewer steps; smooth its labels.",
    "loss_d = bce(judge(real), 0.9 * ones) + bce(judge(made.detach()), zeros)",
    WON,
    "Goodfellow et al. (2014), Generative adversarial nets, section 3",
)
def _won(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if not run.parts.against or len(curve) < 20:
        return
    part = max(len(curve) // 5, 4)
    first, last = float(np.median(curve[:4, 1])), float(np.median(curve[-part:, 1]))
    adversarial = any(_judges(run.graph, op) for op in run.graph.of_loss())
    if adversarial and last > WON and first < WON / 2:
        what = (
            f"the loss of this model{at_(run.calls.line('loss'))}, which another one judges, rises from {first:.3g} to "
            f"{last:.3g}: the other is certain of each example, and its gradient vanishes"
        )
        yield Seen(what, run.calls.line("loss"), last, pairs(curve[:, 0], curve[:, 1]))


def is_generator(run: Run) -> bool:
    """Tell whether only the judgement of another model trains this one, which may draw examples in training mode."""
    behind = run.graph.of_loss()
    judged = any(_judges(run.graph, op) for op in behind) or is_of_scores(run.graph)
    return run.parts.against and judged and not run.classes


def _judges(graph: Graph, op: Op) -> bool:
    """Tell whether an op is a binary loss or the logarithm of a probability, not that of a density."""
    maker = graph.inside_log(op) if op.name == "log" else None
    return op.name in _ADVERSARIAL and (op.name != "log" or (maker is not None and maker.name == "sigmoid"))


@warning(
    "rate decays to nothing",
    "Step the schedule once per epoch, or give it the total number of batches.",
    "schedule.step()  # outside of the loop over batches",
    GONE,
)
def _decayed(run: Run) -> Iterator[Seen]:
    steps, rates = run.rates[run.rates[:, 1] >= 0].T
    if len(rates) < 8 or not rates.max() > 0:
        return
    low = np.flatnonzero(rates >= GONE * rates.max())
    last, end = int(steps[low[-1]]), max(run.calls.steps, 1)
    if end - last > FOR * end and rates[-1] < GONE * rates.max() and end >= 50:
        where = run.calls.line("schedule") or run.setup.built
        what = (
            f"the learning rate falls from {rates.max():.3g} to {rates[-1]:.2g}; after step {last} of {end} it is too "
            f"low to learn: the schedule{at_(where)} takes a step for each batch or decays too fast"
        )
        yield Seen(what, where, float(rates[-1] / rates.max()), pairs(steps, rates))


@warning(
    "rate is 0 at first",
    "Count steps instead of epochs in the warm-up, and begin above 0.",
    "LambdaLR(optimizer, lambda step: min((step + 1) / 100, 1.0)); schedule.step()  # after each step",
)
def _at_rest(run: Run) -> Iterator[Seen]:
    steps, rates = run.rates.T
    moving = np.flatnonzero(rates > 0)
    resting = int(steps[moving[0]]) if len(moving) else run.calls.steps
    if len(rates) >= 4 and rates[0] == 0 and resting > RESTING:
        where = run.calls.line("schedule") or run.setup.built
        what = (
            f"the learning rate is 0 in the first {resting} steps: the schedule{at_(where)} begins there: nothing is "
            "learnt"
        )
        yield Seen(what, where, float(resting), pairs(steps, rates))


@warning(
    "warm-up begins again",
    "Count the steps of the whole training, not those of the epoch.",
    "rate = highest * min(1, (epoch * len(loader) + i + 1) / warm_up)",
    UPWARD,
)
def _warms_again(run: Run) -> Iterator[Seen]:
    steps, rates = run.rates.T
    beside = np.flatnonzero(np.diff(steps) == 1)
    if run.calls.steps < 50 or len(beside) < FALLS + 2 or not rates.max() > 0:
        return
    risen = np.diff(rates)[beside]
    upward = float(np.mean(risen > 1e-9 * rates.max()))
    falls = int((np.diff(rates) < -LOWER * rates.max()).sum())
    wanted = float(np.median(risen)) * (steps[-1] - steps[0])
    half = len(rates) // 2
    stays = float(rates[half:].max()) < 1.25 * float(rates[:half].max())
    if upward >= UPWARD and falls >= FALLS and wanted > 3 * rates.max() and stays:
        where = source_lines.setting_rate(run.parts.files) or run.calls.line("schedule")
        what = (
            f"the learning rate rises from step to step and falls back again and again{at_(where)}: it begins at "
            f"{rates.min():.2g} and gets no further than {rates.max():.2g} in {run.calls.steps} steps"
        )
        yield Seen(what, where or run.setup.built, upward, pairs(steps, rates))


@error("sign of the loss turned", "Minimise the negative: the loss has no lower bound.", "loss = -loss")
def _turned(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) < 8 or not run.graph.ops:
        return
    first, last = ends(curve)
    first = max(first, float(curve[0, 1]))
    if not (last < 0 and first - last > FALLEN * max(abs(first), 1.0)):
        return
    cause = _turned_op(run.graph)
    if cause is None and _accelerates(curve) and run.parts.alone:
        what = (
            f"the loss falls faster and faster, from {first:.3g} to {last:.3g}: a term that training should make small "
            "has a minus before it, or one that has no largest value has none"
        )
        yield Seen(what, run.calls.line("loss"), last, pairs(curve[:, 0], curve[:, 1]), severity="warning")
    if cause is not None:
        op, what = cause
        told = f"the loss falls without a bound, from {first:.3g} to {last:.3g}: {what}"
        remedy = "F.nll_loss(F.log_softmax(output, 1), targets)" if "log-prob" in what else ""
        evidence = pairs(curve[:, 0], curve[:, 1])
        yield Seen(told, run.calls.line("loss") or op.where, last, evidence, remedy=remedy)


def turns(run: Run) -> bool:
    """Tell whether the sign of a loss is found turned by its fall."""
    return any(_turned.look(run))


def _accelerates(curve: Array) -> bool:
    """Tell whether a loss falls more in its last third than in both before, and far below 0."""
    part = len(curve) // 3
    if part < 10:
        return False
    begin, one, two, end = (float(np.median(curve[at : at + 3, 1])) for at in (0, part, 2 * part, len(curve) - 3))
    return two - end > max(begin - two, one - two, 10.0) and end < -10.0


def _turned_op(graph: Graph) -> tuple[Op, str] | None:
    """Return the op with the wrong sign and a description of the fault; None if that is uncertain."""
    for number, op in enumerate(graph.of_loss(), graph.last_parameter + 1):
        maker = None
        if op.name == "nll_loss" and op.parents:
            maker = graph.made_by(op.parents[0])
        elif op.name == "negative" and op.parents and number not in _inside(graph):
            maker = _picked_from(graph, op.parents[0])
        if maker is not None and maker.name not in _LOGS and not graph.normalises(maker):
            return op, f"its minus is meant for a log-probability, but {maker.name} makes other numbers"
    return _on_the_way(graph)


def _inside(graph: Graph) -> set[int]:
    """Return the ops of which another takes an exponential or the like, so that their sign is not that of the loss."""
    inner: set[int] = set()
    for op in graph.ops:
        if op.name in _CURVED:
            inner.update(parent for parent in op.parents if parent >= 0)
    return inner


def _on_the_way(graph: Graph) -> tuple[Op, str] | None:
    """Return the op with a turned sign on the only way to the loss."""
    for op in graph.way(graph.loss):
        if op.name in _POSITIVE or (op.name == "power" and op is not graph.ops[graph.loss]) or _squared(op):
            return op, f"{op.name}, which training should make small, has a minus before it"
        if op.name in _BELOW:
            return op, f"{op.name}, which training should make large, has no minus before it"
        if op.name not in _THROUGH:
            return None
        known = [shape for parent, shape in zip(op.parents, op.shapes, strict=False) if parent < 0]
        if op.name == "multiply" and any(known):
            return None  # by an advantage or a weight, which may have any sign
    return None


def _picked_from(graph: Graph, number: int) -> Op | None:
    """Return the op from whose result entries are picked and summed; None if none are picked."""
    picked = False
    while number >= 0 and graph.ops[number].name in _SUMS | VIEWS:
        picked |= graph.ops[number].name in _PICKS
        number = next((parent for parent in graph.ops[number].parents if parent >= 0), -1)
    return graph.ops[number] if picked and number >= 0 else None


def _squared(op: Op) -> bool:
    return op.name == "multiply" and len(op.parents) == 2 and op.parents[0] == op.parents[1] >= 0


RULES = rules_of(globals())
