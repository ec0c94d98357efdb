"""Rules about what the inputs tell about the targets; a small model of their own finds out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from glassgrad.doctor.graphs.graph import VIEWS, Graph
from glassgrad.doctor.library import Array, words
from glassgrad.doctor.rules.rule import Seen, error, rules_of, warning
from glassgrad.doctor.run import Run

LEAST, MOST = 192, 2048
"""The number of examples that the probe needs, and the number that it takes at most."""
WIDTH, RIDGE, PERMUTED = 128, 10.0, 6
DEVIATIONS = 3.0
"""By how many deviations the score for the targets has to exceed the scores for permuted targets."""
NEAR = 0.93
"""The loss relative to that of a guess that knows only the shares of the classes, or the mean of the targets."""
LITTLE, LESS, MUCH = 0.85, 0.9, 0.4
"""A loss relative to such a guess, and to the first loss, from which little was learnt, and a share of what is to be
learnt that the probe gets, from which it got much."""
STILL = 0.01
"""The fall in the last quarter of a run, relative to such a guess, from which the loss still falls."""
CLOSE, COLUMNS = 1e-5, 512
"""The relative difference up to which a column is the target itself, and the most columns."""
VOCABULARY = 64
"""The most tokens whose places are features."""
RARE = 0.95
"""The share of the commonest class from which the others are too rare for the probe."""
_OUTPUTS = 16
_LOSSES = words("cross_entropy nll_loss mse_loss binary_cross_entropy binary_cross_entropy_with_logits")


@error(
    "labels do not belong to the inputs",
    "Check some pairs: were inputs and labels shuffled or sorted separately, or joined by a wrong key?",
    "x, y = x[order], y[order]  # one order for both",
    DEVIATIONS,
)
def _apart(run: Run) -> Iterator[Seen]:
    curve = run.losses[np.isfinite(run.losses[:, 1])] if len(run.losses) else run.losses
    if len(curve) < 10 or curve[-1, 0] < 100:
        return
    last = float(np.median(curve[-max(len(curve) // 5, 5) :, 1]))
    where = run.calls.line("loss")
    if _of_tokens(run):
        return  # places and order of tokens tell more than the probe sees
    if (known := _gathered(run.examples)) is not None:
        x, y = known
        shares = np.unique(y, return_counts=True)[1] / len(y)
        nothing = float(-(shares * np.log(shares)).sum())
        if len(shares) > 1 and shares.max() < RARE and NEAR * nothing < last < 1.5 * nothing:
            found, by_chance, spread = probe(x, y)
            if (found - by_chance) / spread < DEVIATIONS:
                what = (
                    f"the loss stays at {last:.3g}, as for a guess that knows only class frequencies ({nothing:.3g}), "
                    f"and a probe trained on {len(y):,} of the examples gets {found:.0%} of the classes right, with "
                    f"permuted labels {by_chance:.0%}: the inputs say nothing about the labels"
                )
                yield Seen(what, where, (found - by_chance) / spread)
    elif (known := _gathered(run.pairs)) is not None:
        x, y = known
        share = float(y.mean())
        binary = y.dtype == bool and 0 < share < 1
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share) if binary else 0.0
        y = y.reshape(len(y), -1)[:, :_OUTPUTS].astype(np.float64)
        nothing = float(entropy or y.var(0).mean())
        if nothing > 0 and NEAR * nothing < last < 1.5 * nothing:
            found, by_chance, spread = probe_of_numbers(x, y)
            if (found - by_chance) / spread < DEVIATIONS:
                what = (
                    f"the loss stays at {last:.3g}, as for a guess that knows only the mean ({nothing:.3g}), and a "
                    f"probe trained on {len(y):,} of the examples explains no more of them than of permuted targets: "
                    "the inputs say nothing about the targets"
                )
                yield Seen(what, where, (found - by_chance) / spread)


@warning(
    "learns less than a probe",
    "Look at what lies between the inputs and the loss: let the model learn one batch by heart, and vary the rate.",
    "doctor.examine(model, batch, loss_fn)",
    LITTLE,
)
def _behind(run: Run) -> Iterator[Seen]:
    curve = run.losses[np.isfinite(run.losses[:, 1])] if len(run.losses) else run.losses
    if len(curve) < 20 or curve[-1, 0] < 90 or run.parts.against or not _is_plain(run.graph):
        return
    last = float(np.median(curve[-max(len(curve) // 5, 5) :, 1]))
    first = float(curve[: max(len(curve) // 20, 3), 1].mean())
    known = _known(run)
    if known is None:
        return
    nothing, share, told = known
    quarter = max(len(curve) // 4, 5)
    falls = float(np.median(curve[-2 * quarter : -quarter, 1])) - float(np.median(curve[-quarter:, 1]))
    if falls > STILL * nothing:
        return  # it learns, if slowly
    fallen = min(LESS * first, 1.2 * nothing) if first < 3 * nothing else LESS * first  # a sum is of another size
    if last > max(LITTLE * nothing, fallen) and share > MUCH:
        what = (
            f"the loss ends at {last:.3g}, and a guess that knows no input has {nothing:.3g}; a probe of {WIDTH} "
            f"random features {told}: the inputs tell more than the model has learnt in {run.calls.steps} steps"
        )
        yield Seen(what, run.calls.line("loss"), last / nothing)


@warning(
    "target among the inputs",
    "Leave out the column: it is what the model is to predict, and a new example does not have it.",
    "features = table[:, :-1]",
    CLOSE,
)
def _told(run: Run) -> Iterator[Seen]:
    known = _gathered(run.pairs) or _gathered(run.examples)
    if known is None or _of_tokens(run):
        return
    x, y = known
    y = y.reshape(len(y), -1).astype(np.float64)
    if y.shape[1] != 1 or not 1 < x.shape[1] <= COLUMNS or y.std() == 0:
        return
    # A multiple of one column is what made-up regressions have as their target: only the column itself tells.
    alike = np.flatnonzero([np.allclose(column, y[:, 0], rtol=CLOSE, atol=1e-6 * y.std()) for column in x.T])
    if len(alike) == 1:
        where = run.calls.line("forward")
        loss = run.calls.line("loss")
        what = (
            f"column {int(alike[0])} of the {x.shape[1]} inputs{f' at {where}' if where else ''} is the target"
            f"{f' at {loss}' if loss else ''} itself, in all of {len(y):,} examples"
        )
        yield Seen(what, where, 1.0)


def _known(run: Run) -> tuple[float, float, str] | None:
    """Return the loss of a guess without inputs, the share of the rest that the probe gets, and its result in words."""
    if (known := _gathered(run.examples)) is not None:
        x, y = known
        shares = np.unique(y, return_counts=True)[1] / len(y)
        if len(shares) < 2 or shares.max() > RARE:
            return None
        found, by_chance, _ = probe(x, y)
        most = max(float(shares.max()), by_chance)
        nothing = float(-(shares * np.log(shares)).sum())
        return nothing, (found - most) / (1 - most), f"gets {found:.0%} of the classes right"
    if (known := _gathered(run.pairs)) is None:
        return None
    x, y = known
    share = float(y.mean())
    binary = y.dtype == bool and 0 < share < 1
    numbers = y.reshape(len(y), -1)[:, :_OUTPUTS].astype(np.float64)
    nothing = -share * np.log(share) - (1 - share) * np.log(1 - share) if binary else float(numbers.var(0).mean())
    if not nothing > 0:
        return None
    found, by_chance, _ = probe_of_numbers(x, numbers)
    return nothing, found - max(by_chance, 0.0), f"explains {found:.0%} of their variance"


def _is_plain(graph: Graph | None) -> bool:
    """Tell whether the loss is one loss of a library, without other terms or weights."""
    number = -1 if graph is None else graph.loss
    while graph is not None and number >= 0:
        op = graph.ops[number]
        if op.name in _LOSSES:
            return True
        tracked = [parent for parent in op.parents if parent >= 0]
        if op.name not in VIEWS | {"mean"} or len(tracked) != 1:
            return False
        number = tracked[0]
    return False


def _of_tokens(run: Run) -> bool:
    return any(x.dtype.kind in "iu" for x, _ in (*run.examples, *run.pairs))


def _features(x: Array) -> Array:
    """Return inputs as numbers: of tokens, for each place which one stands there, if there are not too many."""
    if x.dtype.kind not in "iu":
        return x.astype(np.float64)
    least, most = int(x.min()), int(x.max())
    if most - least >= VOCABULARY or x.shape[1] * (most - least + 1) > 4096:
        return x.astype(np.float64)
    hot: Array = np.eye(most - least + 1)[x - least].reshape(len(x), -1)
    return hot


def _gathered(batches: Sequence[tuple[Array, Array]]) -> tuple[Array, Array] | None:
    """Return the inputs and targets of all batches of the last one's shape, each input once; None if too few.

    An input that came in two epochs would be in both halves, and its label would be known by heart.
    """
    if not batches:
        return None
    wanted = batches[-1][0].shape[1], batches[-1][1].shape[1:]
    taken = [(x, y) for x, y in batches if (x.shape[1], y.shape[1:]) == wanted]
    x = _features(np.concatenate([one for one, _ in taken])[:MOST])
    y = np.concatenate([one for _, one in taken])[:MOST]
    once = np.unique(x, axis=0, return_index=True)[1]
    x, y = x[once], y[once]
    return (x, y) if len(y) >= LEAST and np.isfinite(x).all() and np.isfinite(y).all() else None


def probe(x: Array, y: Array) -> tuple[float, float, float]:
    """Return the accuracy of a ridge regression on random features, and its mean and deviation for permuted labels.

    Args:
        x: inputs (n, features); `y`: class numbers (n,). Each half is judged by a model of the other half.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 3))
        >>> found, by_chance, spread = probe(x, (x[:, 0] > 0) * 1)
        >>> bool(found > 0.9), bool(by_chance < 0.6)
        (True, True)
    """
    numbers = np.unique(y, return_inverse=True)[1]
    hot = np.eye(int(numbers.max()) + 1)[numbers]

    def right(guess: Array, wanted: Array) -> float:
        return float(np.mean(guess.argmax(1) == wanted.argmax(1)))

    found, by_chance, spread = _judged(x, hot, right)
    return found, by_chance, max(spread, float(np.sqrt(by_chance * (1 - by_chance) / len(y))), 1e-6)


def probe_of_numbers(x: Array, y: Array) -> tuple[float, float, float]:
    """Return the same for targets (n, outputs) that are numbers: the share of their variance that is explained.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 3))
        >>> found, by_chance, spread = probe_of_numbers(x, x[:, :1] ** 2)
        >>> bool(found > 0.8), bool(by_chance < 0.1)
        (True, True)
    """

    def explained(guess: Array, wanted: Array) -> float:
        return float(1 - np.square(guess - wanted).mean() / max(np.square(wanted - wanted.mean(0)).mean(), 1e-30))

    found, by_chance, spread = _judged(x, y, explained)
    return found, by_chance, max(spread, 1 / len(y), 1e-6)


def _judged(x: Array, y: Array, score: Callable[[Array, Array], float]) -> tuple[float, float, float]:
    """Return the score of ridge regressions of each half on the other, and its mean and deviation for permuted y."""
    rng = np.random.default_rng(0)
    x = (x - x.mean(0)) / (x.std(0) + 1e-8)
    hidden = np.maximum(x @ rng.normal(size=(x.shape[1], WIDTH)) / np.sqrt(x.shape[1]) + rng.normal(size=WIDTH), 0)
    features = np.concatenate([x[:, :256], hidden, np.ones((len(x), 1))], axis=1)
    order = rng.permutation(len(y))
    features, y = features[order], y[order]
    middle = len(y) // 2
    maps = []
    for train, test in ((slice(0, middle), slice(middle, None)), (slice(middle, None), slice(0, middle))):
        one = features[train]
        gram = one.T @ one + RIDGE * np.eye(one.shape[1])
        maps.append((features[test] @ np.linalg.solve(gram, one.T), train, test))

    def scored(targets: Array) -> float:
        guesses = [
            (apply @ (targets[train] - targets[train].mean(0)) + targets[train].mean(0)) for apply, train, _ in maps
        ]
        return score(np.concatenate(guesses), np.concatenate([targets[test] for _, _, test in maps]))

    chance = np.array([scored(y[rng.permutation(len(y))]) for _ in range(PERMUTED)])
    return scored(y), float(chance.mean()), float(chance.std())


RULES = rules_of(globals())
