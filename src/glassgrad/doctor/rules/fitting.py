"""Rules about outputs that never fit their targets, whatever the loss shows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.rules.learnable import EVEN, FEW, HALF, in_words, is_weighted, known_of, still_falls
from glassgrad.doctor.rules.rule import Seen, at_, error, pairs, rules_of, warning
from glassgrad.doctor.run import Run

OPPOSITE, BELOW = 0.35, 0.4
"""The share of correct predictions below which they are opposite: for two classes, and relative to chance for more."""
SEEN, LARGER, BY_HEART = 20, 5, 0.5
"""The passes over each of a few examples, the model's parameters per example, and the share it should know by then."""
SOON = 20
"""The number of steps before which scores do not count."""
ENOUGH = 6
"""The number of steps that have to agree."""
LITTLE, MUCH, LATE, PASSES = 0.25, 0.7, 200, 3.0
"""The share of the probe's gain that counts as little, the share of the variance or the classes that the probe has to
learn, the fewest steps, and the fewest passes over the examples of the probe."""


def _late(run: Run, kind: str) -> list[float]:
    """Return the scores of the second half of a run; if these are few, the last four after the first steps."""
    known = [one for one in run.scores if one.kind == kind and one.step >= SOON]
    late = [one.training for one in known if one.step >= HALF * run.calls.steps]
    return late if len(late) >= 4 else [one.training for one in known[-4:]]


def _falls(run: Run) -> float:
    """Return the fall of the loss in the last quarter of a run, relative to its first value."""
    curve = run.curve
    if len(curve) < 16:
        return 0.0
    part = len(curve) // 4
    before, last = float(np.median(curve[-2 * part : -part, 1])), float(np.median(curve[-part:, 1]))
    return (before - last) / max(abs(float(curve[0, 1])), 1e-30)


@error(
    "outputs opposite to the targets",
    "Look at the sign of the loss, and at which of two outputs or numbers stands for which class.",
    "loss = (1 - side * output).clamp(min=0).mean()  # side is 1 or -1",
    OPPOSITE,
)
def _opposite(run: Run) -> Iterator[Seen]:
    kind = run.scores[-1].kind if run.scores else ""
    late = _late(run, kind)
    if kind not in {"binary", "classes"} or len(late) < 4 or run.calls.steps < 30 or run.parts.against:
        return
    shares = _shares(run, kind)
    if not len(shares) or shares.max() > EVEN or run.scores[0].training < OPPOSITE * shares.max():
        return
    limit = OPPOSITE if len(shares) == 2 else BELOW * float(shares.min())
    middle = float(np.median(late))
    if middle < limit and max(late) < (HALF if len(shares) == 2 else shares.min()):
        where = run.calls.line("loss")
        what = (
            f"the outputs {in_words(kind, middle)} at the end, fewer than a guess, though training lets the loss "
            f"{f'at {where} ' if where else ''}fall: the loss rewards the opposite of the targets"
        )
        steps = np.array([one.step for one in run.scores])
        yield Seen(what, where, middle, pairs(steps, np.array([one.training for one in run.scores])))


def _shares(run: Run, kind: str) -> Array:
    """Return the shares of the classes among the sampled targets."""
    known = [y for _, y in (run.examples if kind == "classes" else run.pairs)]
    if not known and kind == "classes":
        known = [labels.values for _, labels in run.labels if labels.values is not None]
    if not known:
        return np.zeros(0)
    counts = np.unique(np.concatenate([one.reshape(-1) for one in known]), return_counts=True)[1]
    return np.asarray(counts / counts.sum(), np.float64)


@warning(
    "examples not learnt",
    "Make it memorise ten examples first: look at the scale of the inputs, the rate, and what cuts the gradient.",
    "doctor.examine(model, batch, loss_fn)",
    BY_HEART,
)
def _few(run: Run) -> Iterator[Seen]:
    kind = run.scores[-1].kind if run.scores else ""
    late = _late(run, kind)
    kept = run.examples if kind == "classes" else run.pairs
    if kind not in {"binary", "classes"} or len(late) < 4 or not kept or run.parts.against:
        return
    x, y = (
        np.concatenate(parts)
        for parts in zip(*((one, two) for one, two in kept if one.shape[1] == kept[-1][0].shape[1]), strict=True)
    )
    first = np.unique(x, axis=0, return_index=True)[1]
    targets = y[first].reshape(len(first), -1)
    seen = run.calls.steps * run.batch / max(len(first), 1)
    if not 4 <= len(first) < FEW or targets.shape[1] != 1 or seen < SEEN or run.parts.elements < LARGER * len(first):
        return
    nothing = float(np.unique(targets, return_counts=True)[1].max() / len(first))
    gained = (float(np.median(late)) - nothing) / max(1 - nothing, 1e-9)
    if nothing < EVEN and gained < BY_HEART and _falls(run) < 0.02:
        where, told = run.calls.line("loss"), in_words(kind, float(np.median(late)))
        what = (
            f"{len(first)} examples were seen {seen:.0f} times each, and the outputs {told} at the end: a model "
            f"of {run.parts.elements:,} numbers could know them by heart"
        )
        yield Seen(what, where, gained)


@warning(
    "learns less than a probe",
    "Raise the rate by factors of three, look at the scale of inputs and weights, and let it learn one batch by heart.",
    "optimizer.param_groups[0]['lr'] *= 10",
    LITTLE,
)
def _slow(run: Run) -> Iterator[Seen]:
    """Find a model whose loss still falls, but which has learnt little compared with the probe."""
    parts = run.parts
    if run.calls.steps < LATE or parts.against or parts.strays or parts.twin or not parts.alone or is_weighted(run):
        return
    known = known_of(run)
    late = _late(run, known.kind) if known is not None else []
    if known is None or len(late) < 4 or known.kind == "several" or not still_falls(run, known):
        return
    examples = sum(len(y) for _, y in (run.examples or run.places or run.pairs))
    if run.calls.steps * run.batch < PASSES * examples:
        return
    gained = (float(np.median(late)) - known.chance) / max(known.best - known.chance, 1e-9)
    if known.share > MUCH and known.chance < EVEN and gained < LITTLE:
        where = run.calls.line("loss")
        what = (
            f"the outputs of the model {in_words(known.kind, float(np.median(late)))} in the second half of "
            f"{run.calls.steps} steps, and a probe of random features {known.told}: the loss falls too slowly"
        )
        yield Seen(what, where, gained)


@warning(
    "same targets in each step",
    "Draw or pick the targets within the loop, with the inputs: the model memorises noise that is drawn once.",
    "noise = torch.randn_like(batch)  # in the loop",
)
def _same_targets(run: Run) -> Iterator[Seen]:
    known = [(x, y) for x, y in run.pairs if y.dtype.kind == "f"]
    if len(known) < ENOUGH or run.parts.against or not float(known[0][1].std()) > 0 or known[0][1].size < ENOUGH:
        return
    (x, y), *others = known
    if all(np.array_equal(y, other) for _, other in others) and not any(np.array_equal(x, one) for one, _ in others):
        where = run.calls.line("loss")
        what = (
            f"the targets of the loss{at_(where)} are the same {y.size} numbers in all "
            f"{len(known)} sampled steps, and the inputs are others each time"
        )
        yield Seen(what, where, float(len(known)))


RULES = rules_of(globals())
