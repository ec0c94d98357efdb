"""Rules about the loss of a run: the training loss over the steps, and the loss of held-out examples."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.graphs.graph import LEAF, VIEWS, Graph
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.rules import learnable
from glassgrad.doctor.rules.rule import Seen, ends, error, info, pairs, rules_of, warning
from glassgrad.doctor.rules.steps import is_of_few
from glassgrad.doctor.rules.targets import has_several
from glassgrad.doctor.run import Run

WORSE, EMBEDDED = 1.3, 1.5
"""A first loss above log K by this factor comes from large, wrong outputs; the usual layers begin at most at 1.2 times
log K, those behind embeddings of deviation 1 at most at 1.45 times (`EMBEDDED`)."""
EXCESS = 0.5
"""The least excess over log K: with few classes, the first steps make up for less."""
REACH = 4.0
"""The largest output at first, below which a loss above that of a guess is none of large outputs."""
RISEN, LEAP, SPIKE = 1.5, 5.0, 3.0
LASTS = 0.2
"""The part of a jump that the next step still has, if the jump was of the weights."""
GROWN, BATCH = 1.5, 16
"""The growth of updates before a jump of the loss, and the batch size below which one odd example causes a jump."""
FALLS = 0.6
"""The loss at the end relative to its highest level, below which it falls after a rise, as when a term sets in late."""
MOVED = 1.4
"""The ratio of sizes of targets or batches, from which they are not drawn from one data set."""
ACTIVE = 0.95
"""The share of the terms of a sum, below which its divisor counts some of them only."""
MOSTLY = 0.9
_CUT = frozenset({"relu", "clip", "maximum", "minimum", "where"})
_LINEAR = named("mean sum negative multiply divide add subtract") | VIEWS
SMALL = 24
"""The number of weights below which a first step may go far."""
DIVERGED = 30.0
"""A growth that is a fault with several optimizers too."""
OVERFITTED, LOST = 1.3, 2.0
"""The held-out loss relative to its least value: above the first, an info; above the second, a warning."""
SUMMED = 0.9
"""The first loss relative to the guesses of all examples together, if it is their sum."""
GAP = 0.2
"""The training loss relative to a held-out loss that no longer changes."""
APART, CARRIED = 0.25, 0.3
"""The gap of both losses as a share of the first; the share of the training progress that the held-out loss shows."""
UNDERFITTED = 0.5
"""A share of the loss of a constant guess; `STILL`: the change over two fifths of the run that counts as none."""
STILL = 0.1
_EMBEDDING = frozenset({"embedding", "take", "getitem", "index_select"})
_LEAST = 1e-12  # a lower loss has underflowed and cannot be a divisor


@error(
    "loss not finite",
    "Look at the first such step: a logarithm or a root of 0, a division by 0, or too high a rate.",
    "doctor.examine(model, batch, loss_fn)",
)
def _loss_bad(run: Run) -> Iterator[Seen]:
    bad = run.losses[~np.isfinite(run.losses[:, 1])]
    if len(bad):
        value = "NaN" if math.isnan(bad[0, 1]) else "infinite"
        what = f"the loss is {value} from step {int(bad[0, 0])} on"
        yield Seen(what, run.calls.line("loss"), float(bad[0, 1]), pairs(run.losses[:4, 0], run.losses[:4, 1]))
        return
    data = run.data
    if data is None or not len(data):
        return
    counts = np.nan_to_num(data.gradient_nonfinite)
    if counts.any():
        sample, place = (int(at) for at in np.argwhere(counts)[0])
        what = f"the gradient of {data.parameters[place]} is not finite in step {data.steps[sample]}"
        yield Seen(f"{what}, though the loss is finite", run.calls.line("backward"))


@error(
    "loss is 0",
    "Look at what the last op cuts off: a margin, a mask, or a maximum that takes what was left out.",
    "print(loss)  # and the operands of its last op",
)
def _nothing_to_learn(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) >= 5 and float(np.mean(curve[:, 1] == 0)) > MOSTLY and curve[0, 1] == 0:
        where = run.calls.line("loss")
        graph = run.graph
        cut = [op for op in graph.of_loss() if op.name in _CUT]
        by = f": {cut[-1].name} at {cut[-1].where} gives 0 for all" if cut else ""
        share = float(np.mean(curve[:, 1] == 0))
        what = f"the loss is exactly 0 in {share:.0%} of the recorded steps from the first on{by}, so nothing is learnt"
        yield Seen(what, (cut[-1].where if cut else "") or where, share)


@warning(
    "first loss far off",
    "Make the weights of the last layer smaller and set its bias to 0.",
    "model[-1].weight.data *= 0.1",
)
def _first_loss_far(run: Run) -> Iterator[Seen]:
    curve = run.losses
    if not run.labels or not len(curve) or run.labels[0][1].classes < 2:
        return
    if has_several(run.graph):
        return  # a sum over steps or heads
    expected = math.log(run.labels[0][1].classes)
    embedded = any(op.name in _EMBEDDING and LEAF in op.parents for op in run.graph.ops)
    limit = max((EMBEDDED if embedded else WORSE) * expected, expected + EXCESS)
    if run.labels[0][1].reach < REACH:
        return  # such outputs are not confident: the loss has other terms, or weights
    count = run.labels[0][1].count
    summed = count > 1 and SUMMED < curve[0, 1] / (count * expected) < 1 / SUMMED
    far = math.isfinite(curve[0, 1]) and curve[0, 1] > limit and not summed
    if curve[0, 0] == 0 and far and not _scaled(run.graph):
        what = (
            f"the first loss is {curve[0, 1]:.4g}; a constant guess has {expected:.4g} "
            f"(log {run.labels[0][1].classes}), so its outputs are confident and wrong"
        )
        new = not run.setup.rested  # else a new layer stands on features of any size, which others have learnt
        yield Seen(what, run.calls.line("loss"), float(curve[0, 1]), severity="" if new else "info", threshold=limit)


def _scaled(graph: Graph) -> bool:
    """Tell whether the outputs are multiplied by a number before cross entropy, as similarities are."""
    for op in graph.losses():
        maker = graph.maker(op)
        if maker is not None and maker.name in {"multiply", "divide"} and () in maker.shapes[:2]:
            return True
    return False


@error(
    "loss rises",
    "Lower the learning rate.",
    "optimizer.param_groups[0]['lr'] /= 10",
    RISEN,
    "Goodfellow, Bengio, Courville, Deep Learning (2016), section 11.4.1",
)
def _rises(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if run.parts.against or _is_signed(run.graph) or _moves(run):
        return  # the loss of one of two players falls as the other's rises
    apart = not run.parts.alone or _bootstraps(run)  # players, or an actor and its critic
    if len(curve) < 5 or curve[:, 1].min() < 0:  # a ratio of losses with different signs has no meaning
        return
    leap = float(curve[1:10, 1].max())
    usual = float(np.median(curve[10:, 1])) if len(curve) > 20 else 0.0  # small batches begin low by chance
    start = max(float(curve[0, 1]), min(usual, leap / 2))
    few = is_of_few(run.data) or (run.data is not None and run.data.sizes.sum() < SMALL)
    least = LEAP * (8 if few else 1)  # the loss of two examples is what it is by chance
    if 0 < least * start < leap:
        what = f"the loss leaps from {start:.4g} to {leap:.4g} in the first steps"
        milder = "info" if apart else "warning"
        evidence = pairs(curve[:10, 0], curve[:10, 1])
        yield Seen(what, run.calls.line("loss"), leap / start, evidence, milder, threshold=least)
        return
    if len(curve) < 10:
        return
    first, last = ends(curve)
    first = max(first, float(curve[0, 1]))
    if first > 0 and last > RISEN * first:
        what = f"the loss rises: {first:.4g} at the beginning, {last:.4g} at the end"
        milder = "info" if apart and last < DIVERGED * first else ""
        yield Seen(what, run.calls.line("loss"), last / first, pairs(curve[:, 0], curve[:, 1]), severity=milder)


@warning(
    "loss does not fall",
    "Try a rate ten times as high, and then ten times as low; check whether the model can learn one batch.",
    "doctor.examine(model, batch, loss_fn)",
    0.98,
)
def _flat(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) < 30 or curve[-1, 0] < 100 or run.parts.against or _is_signed(run.graph) or _moves(run):
        return
    part = max(len(curve) // 10, 5)
    first, last = float(curve[:part, 1].mean()), float(curve[-part:, 1].mean())
    noise = float(curve[-part:, 1].std() / math.sqrt(part))
    if run.labels:  # outputs are alike at first, so one batch is enough; the loss need not fall from a later peak
        first = min(first, float(curve[0, 1]))
    if first > 0 and 0.98 * first - noise < last <= RISEN * first:
        what = f"the loss does not fall: {first:.4g} in the first {part} recorded steps, {last:.4g} in the last"
        levels = [float(np.median(curve[at : at + part, 1])) for at in range(0, len(curve) - part + 1, part)]
        falls = last < FALLS * max(levels) and levels[-1] < min(levels[-3:-1], default=0.0)
        judged = run.parts.alone and not run.parts.twin and not falls and not _is_of_active(run.graph)
        judged &= not learnable.tells_little(run, last)
        milder = "" if judged else "info"
        yield Seen(what, run.calls.line("loss"), last / first, pairs(curve[:, 0], curve[:, 1]), severity=milder)


def _is_of_active(graph: Graph) -> bool:
    """Tell whether a loss is a mean of what a rectifier leaves: fewer and fewer terms, whose mean need not fall."""
    behind = graph.of_loss()
    if not any(op.name in _CUT for op in behind):
        return False
    masks = [one for op in behind if op.name == "multiply" and (one := op.constant) is not None and one.whole]
    kept = [one.mean * math.prod(one.shape) for one in masks if one.shape and one.low >= 0 and one.high <= 1]
    for op in behind:
        terms = graph.maker(op)
        if terms is None or not terms.shapes or not op.shapes:
            continue
        number = math.prod(terms.shapes[0] or ())
        counted = op.name == "divide" and terms.name == "sum" and op.low < ACTIVE * min([number, *kept])
        chosen = (
            op.name in {"mean", "sum"} and terms.name in _CUT and math.prod(op.shapes[0] or ()) < math.prod(terms.shape)
        )
        if counted or chosen:
            return True
    return False


def _bootstraps(run: Run) -> bool:
    """Tell whether a copy of the model makes the targets, as in Q-learning, where targets and error grow together."""
    return run.parts.twin and (bool(run.parts.scales) or run.parts.strays)


def _moves(run: Run) -> bool:
    """Tell whether the targets or the batches change over the run, as those that a model or a game makes."""
    by_step: dict[int, list[float]] = {}
    for step, size in run.parts.scales:
        by_step.setdefault(step, []).append(size)
    counts = {len(sizes) for sizes in by_step.values()}
    rows = list(by_step.values()) if len(counts) == 1 else [[size] for sizes in by_step.values() for size in sizes]
    for sizes in zip(*rows, strict=True):  # those of one error each
        known = [size for size in sizes if math.isfinite(size)]
        first, last = (float(np.median(part)) for part in (known[:3], known[-3:])) if len(known) > 5 else (0.0, 0.0)
        if max(first, last) > MOVED * min(first, last):
            return True
    batch = run.data.batch[np.isfinite(run.data.batch)] if run.data is not None else np.zeros(0)
    return len(batch) > 5 and float(np.quantile(batch, 0.9)) > MOVED * float(np.quantile(batch, 0.1))


def _is_signed(graph: Graph) -> bool:
    """Tell whether the value of a loss says nothing: each example has a weight of either sign, as an advantage, or the
    loss is a mean of the raw outputs of a critic.
    """
    if is_of_scores(graph):
        return True
    for op in graph.of_loss():
        weights = op.constant
        known = op.name == "multiply" and weights is not None and len(weights.shape) > 0 and weights.shape[0] > 1
        if known and weights is not None and weights.low < 0 < weights.high and math.prod(weights.shape[1:]) == 1:
            return True
    return False


def is_of_scores(graph: Graph) -> bool:
    """Tell whether a loss is a mean of what the last layer computes, such as `-critic(fake).mean()`."""
    behind = graph.of_loss()
    means = any(op.name in {"mean", "sum"} for op in behind)
    return means and all(op.name in _LINEAR and (op.constant is None or not op.constant.shape) for op in behind)


@warning(
    "loss spikes",
    "Clip the gradients, lower the rate, or warm it up.",
    "clip_grad_norm_(model.parameters(), 1.0)",
    SPIKE,
    "Wortsman et al. (2023), Small-scale proxies for large-scale transformer training instabilities",
)
def _spikes(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if _moves(run) or _is_signed(run.graph) or is_of_few(run.data):
        return
    found = []
    lasting = 0
    lows = [curve[max(at - 20, 0) : at, 1].min() for at in range(10, len(curve))]  # no median is below its minimum
    for at in 10 + np.flatnonzero(curve[10:, 1] > SPIKE * np.array(lows)):
        window = curve[max(at - 20, 0) : at, 1]
        middle = float(np.median(window))
        spread = float(np.median(np.abs(window - middle)))
        high = curve[at, 1] - middle
        if middle > 0 and curve[at, 1] > SPIKE * middle and high > 10 * spread and high > 0.5 * abs(curve[0, 1]):
            found.append((int(curve[at, 0]), float(curve[at, 1])))
            lasting += bool((curve[at + 1 : at + 2, 1] - middle > LASTS * high).any())
    if not found:
        return
    step, value = found[0]
    growth = _growth_before(run.data, step)
    told = f"; the updates had grown {growth:.1f} times before it" if growth > GROWN else ""
    what = f"the loss jumps to {value:.4g} at step {step}{told}"
    # One odd example makes the loss of a small batch jump, and an update of the copy makes a bootstrapped loss jump.
    # A step that broke the weights is felt in the next one too; an odd sample of a random choice is not.
    often = (
        2 * lasting >= len(found) > 2 and not _bootstraps(run) and (growth > GROWN or not is_of_few(run.data, BATCH))
    )
    yield Seen(what, run.calls.line("loss"), value, tuple(found[:6]), severity="warning" if often else "info")


def _growth_before(data: MonitorData | None, step: int) -> float:
    """Return the ratio of the updates right before a step to the earlier ones."""
    if data is None or not len(data):
        return math.nan
    sizes = np.sqrt(np.nansum(np.square(data.update_norm), axis=1))[data.steps <= step]
    return float(sizes[-2:].max() / np.median(sizes[:-2])) if len(sizes) > 5 and np.median(sizes[:-2]) > 0 else math.nan


@info(
    "overfitting",
    "Stop earlier, or use more data, dropout or weight decay.",
    "weight_decay=0.1",
    OVERFITTED,
    "Prechelt (1998), Early stopping - but when?",
)
def _overfits(run: Run) -> Iterator[Seen]:
    held, curve = run.held_out[np.isfinite(run.held_out[:, 1])], run.curve
    if len(held) < 4 or not len(curve):
        return
    best = int(np.argmin(held[:, 1]))
    last, train = float(held[-1, 1]), float(curve[-max(len(curve) // 10, 1) :, 1].mean())
    lowest = float(held[best, 1])
    middle = float(held[len(held) // 2, 1])
    if curve[-1, 0] < 0.9 * held[-1, 0]:
        return  # the final training loss is not known
    evidence = pairs(held[:, 0], held[:, 1])
    if OVERFITTED * lowest >= last > 0.9 * middle and train < GAP * last:
        what = (
            f"the held-out loss has stayed at {last:.4g} since step {int(held[len(held) // 2, 0])}, and "
            f"the training loss is down to {train:.4g}"
        )
        yield Seen(what, "", last / max(train, _LEAST), evidence, "info", threshold=1 / GAP)
    began = int(np.searchsorted(curve[:, 0], held[0, 0]))
    progress = float(curve[max(began - 5, 0) : began + 5, 1].mean()) - train
    carried = float(np.median(held[:2, 1]) - np.median(held[-3:, 1]))
    if last <= OVERFITTED * lowest and last - train > APART * abs(curve[0, 1]) and carried < CARRIED * progress:
        what = (
            f"the training loss has fallen by {progress:.4g} since step {int(held[0, 0])}, the held-out loss by "
            f"{carried:.4g}, to {last:.4g}: the model memorises the examples and does not generalise"
        )
        yield Seen(what, "", carried / progress, evidence, "info", threshold=CARRIED)
    if last > OVERFITTED * lowest and train < 0.8 * last:
        what = (
            f"the held-out loss was best at step {int(held[best, 0])} ({lowest:.4g}) and is now "
            f"{last:.4g}, the training loss {train:.4g}"
        )
        milder = "warning" if last > LOST * lowest else "info"
        yield Seen(what, "", last / max(lowest, _LEAST), evidence, milder, threshold=OVERFITTED)


@info(
    "underfitting",
    "Try a wider or deeper model, a higher rate, less weight decay or dropout.",
    "hidden *= 2",
    UNDERFITTED,
    "Goodfellow, Bengio, Courville, Deep Learning (2016), section 5.2",
)
def _underfits(run: Run) -> Iterator[Seen]:
    """Report a training whose loss no longer changes and stays high, on held-out and training examples."""
    held, curve = run.held_out[np.isfinite(run.held_out[:, 1])], run.curve
    if len(held) < 4 or len(curve) < 60 or not run.labels or run.labels[0][1].classes < 2:
        return
    part = len(curve) // 5
    before, last = float(curve[-3 * part : -2 * part, 1].mean()), float(curve[-part:, 1].mean())
    nothing = math.log(run.labels[0][1].classes)
    still = abs(before - last) < STILL * last
    if still and last > UNDERFITTED * nothing and held[-1, 1] < 1.15 * last:
        what = (
            f"the training loss stays at {last:.4g}, {last / nothing:.0%} of that of a constant guess, and the "
            f"held-out loss is {held[-1, 1]:.4g}: the model is too small, or the data contain no more"
        )
        yield Seen(what, run.calls.line("loss"), last / nothing, pairs(curve[:, 0], curve[:, 1]))


RULES = rules_of(globals())
