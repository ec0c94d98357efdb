"""The rule about targets that the inputs do not predict; it trains a small model of its own to find out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.rules.rule import Seen, error, rules_of
from glassgrad.doctor.run import Run

LEAST, MOST = 192, 2048
"""The number of examples that the probe needs, and the number that it takes at most."""
WIDTH, RIDGE, PERMUTED = 128, 10.0, 6
DEVIATIONS = 3.0
"""By how many deviations the score for the targets has to exceed the scores for permuted targets."""
NEAR = 0.93
"""The loss relative to that of a guess that knows only the shares of the classes, or the mean of the targets."""
RARE = 0.95
"""The share of the commonest class from which the others are too rare for the probe."""
_OUTPUTS = 16


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


def _gathered(batches: Sequence[tuple[Array, Array]]) -> tuple[Array, Array] | None:
    """Return the inputs and targets of all batches of the last one's shape, each input once; None if too few.

    An input that came in two epochs would be in both halves, and its label would be known by heart.
    """
    if not batches:
        return None
    wanted = batches[-1][0].shape[1], batches[-1][1].shape[1:]
    taken = [(x, y) for x, y in batches if (x.shape[1], y.shape[1:]) == wanted]
    x = np.concatenate([one for one, _ in taken])[:MOST].astype(np.float64)
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
