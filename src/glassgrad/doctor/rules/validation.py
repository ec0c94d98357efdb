"""Rules about validations: outputs that are worse there than in training, and what tells the causes apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.rules.learnable import EVEN, FEW, HALF, guessed, in_words
from glassgrad.doctor.rules.rule import Seen, at_, rules_of, warning
from glassgrad.doctor.run import Run
from glassgrad.doctor.scores import score

AS_A_GUESS = 0.1
"""The score of a validation relative to that in training below which nothing of what was learnt holds there."""
FELL, STEADY = 0.4, 0.75
"""The score in evaluation mode relative to that in training mode, from which the mode spoils it, and the least one in
training: while weights change fast, running statistics are late by nature."""
UNITS = 5
"""How many deviations of the training targets those of a validation lie away, or how many times they are as wide, where
they have other units."""
LEARNT, LOST, OTHERS = 0.6, 0.35, 0.4
"""The least score in training that tells something; that of a validation relative to it, and that of a probe relative
to it, from which the examples are as in training."""


@warning(
    "validation far worse than training",
    "Look at what the mode changes: running statistics that are late, too noisy or of other data, dropout, or a branch "
    "on self.training. Validate on a training batch in both modes to tell.",
    "nn.BatchNorm1d(width, momentum=0.1)  # or GroupNorm, which is the same in both modes",
    FELL,
)
def _by_the_mode(run: Run) -> Iterator[Seen]:
    known = run.modes[-2:]
    least = min((one.training for one in known), default=0.0)
    nothing = _nothing(run, known[0].kind if known else "")
    if len(known) < 2 or nothing > EVEN or not least - nothing > STEADY * (1 - nothing):
        return
    lost = max((one.evaluation - nothing) / (one.training - nothing) for one in known)
    if lost < FELL:
        one = known[-1]
        where = run.calls.line("held") or run.calls.line("forward")
        what = (
            f"in training mode the outputs {in_words(one.kind, one.training)} of a batch, and in evaluation mode the "
            f"outputs for the same batch {in_words(one.kind, one.evaluation)}, after {one.step} steps: what is "
            f"validated{at_(where)} is not what was trained"
        )
        yield Seen(what, where, lost)


@warning(
    "validation far worse than training",
    "Compare one example of either set by eye: inputs, preparation, label. Validate on a training batch: if that is as "
    "bad, the call, the mode or the weights are wrong; if not, the examples differ, or the model needs more of them.",
    "validate(model, training_batch)  # as good as in training?",
    LOST,
)
def _by_the_examples(run: Run) -> Iterator[Seen]:
    known = run.validations[-3:]
    kind = known[-1].kind if known else ""
    late = [one.training for one in run.scores if one.kind == kind and one.step > HALF * run.calls.steps]
    nothing = _nothing(run, kind)
    if not known or not late or run.parts.against or known[-1].step < HALF * run.calls.steps:
        return
    if nothing > EVEN or (kind == "numbers" and _in_other_units(run)):
        return
    mine = (float(np.median(late)) - nothing) / (1 - nothing)
    theirs = (float(np.median([one.training for one in known])) - nothing) / (1 - nothing)
    if mine < LEARNT or theirs > LOST * mine or any(_by_the_mode.look(run)):
        return
    probed = _probed(run, kind)
    can = (probed - nothing) / (1 - nothing) > max(OTHERS * mine, 2 * theirs)
    where = run.calls.line("held")
    told = (
        f"a probe trained on the sampled examples does better there ({in_words(kind, probed)}), so the examples "
        "are alike, and the call, the mode or the weights differ"
        if can
        else "either the examples are prepared or labelled otherwise, or the model has learnt them by heart"
    )
    what = (
        f"the outputs {in_words(kind, float(np.median(late)))} in training, and in the passes without gradients"
        f"{at_(where)} they {in_words(kind, known[-1].training)}: {told}"
    )
    milder = "" if can or theirs < AS_A_GUESS * mine else "info"  # a model of few examples may just generalise poorly
    yield Seen(what, where, theirs / mine, severity=milder, threshold=LOST)


def _in_other_units(run: Run) -> bool:
    """Tell whether the targets of validations have another scale: the outputs are scaled back before the comparison."""
    mine, theirs = ([y for _, y in pairs if y.dtype.kind == "f"] for pairs in (run.pairs, run.held))
    if not mine or not theirs:
        return False
    one, other = (np.concatenate([y.reshape(-1) for y in part]) for part in (mine, theirs))
    spread = float(one.std()) + 1e-12
    return abs(float(other.mean() - one.mean())) > UNITS * spread or not 1 / UNITS < float(other.std()) / spread < UNITS


def _probed(run: Run, kind: str) -> float:
    """Return the score of the probe on the examples of validations; NaN if there are too few."""
    batches = run.examples if kind == "classes" else run.pairs
    width = run.held[-1][0].shape[1] if run.held else 0
    taken = [(x, y) for x, y in batches if x.shape[1] == width and x.dtype.kind == "f"]
    if sum(len(y) for _, y in taken) < FEW:
        return float("nan")
    x, y = (np.concatenate(parts) for parts in zip(*taken, strict=True))
    inputs = [(one, target) for one, target in run.held if one.shape[1] == width and target.shape[1:] == y.shape[1:]]
    if not inputs or not _is_finite(x, y):
        return float("nan")
    others, targets = (np.concatenate(parts) for parts in zip(*inputs, strict=True))
    return score(guessed(x, y, others, kind), targets, kind) if _is_finite(others, targets) else float("nan")


def _is_finite(*arrays: Array) -> bool:
    return all(bool(np.isfinite(one).all()) for one in arrays)


def _nothing(run: Run, kind: str) -> float:
    """Return the score of a guess that knows no input."""
    if kind == "numbers":
        return 0.0
    if kind == "binary":
        share = float(np.mean([y.mean() for _, y in run.pairs])) if run.pairs else 0.5
        return max(share, 1 - share)
    labels = [y for _, y in run.examples]
    if not labels:
        return 1 / max(max((one.classes for _, one in run.labels), default=2), 2)
    return float(np.unique(np.concatenate(labels), return_counts=True)[1].max() / sum(map(len, labels)))


RULES = rules_of(globals())
