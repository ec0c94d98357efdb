"""The rule about labels that the inputs do not predict; it trains a small model of its own to find out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.rules.rule import Seen, error, rules_of
from glassgrad.doctor.run import Run

LEAST, MOST = 192, 2048
"""The number of examples that the probe needs, and the number that it takes at most."""
WIDTH, RIDGE, PERMUTED = 128, 10.0, 6
DEVIATIONS = 3.0
"""By how many deviations the accuracy for the labels has to exceed the accuracies for permuted labels."""
NEAR = 0.93
"""The loss relative to that of a guess that knows only the shares of the classes."""


@error(
    "labels do not belong to the inputs",
    "Check some pairs: were inputs and labels shuffled or sorted separately, or joined by a wrong key?",
    "x, y = x[order], y[order]  # one order for both",
    DEVIATIONS,
)
def _apart(run: Run) -> Iterator[Seen]:
    curve = run.losses[np.isfinite(run.losses[:, 1])] if len(run.losses) else run.losses
    if len(curve) < 20 or curve[-1, 0] < 100 or not run.examples:
        return
    width = run.examples[-1][0].shape[1]
    taken = [(x, y) for x, y in run.examples if x.shape[1] == width]
    x = np.concatenate([one for one, _ in taken])[:MOST].astype(np.float64)
    y = np.concatenate([one for _, one in taken])[:MOST]
    shares = np.unique(y, return_counts=True)[1] / len(y)
    nothing = float(-(shares * np.log(shares)).sum())
    last = float(np.median(curve[-max(len(curve) // 5, 5) :, 1]))
    if len(y) < LEAST or len(shares) < 2 or not NEAR * nothing < last < 1.5 * nothing or not np.isfinite(x).all():
        return
    found, by_chance, spread = probe(x, y)
    above = (found - by_chance) / spread
    if above < DEVIATIONS:
        what = (
            f"the loss stays at {last:.3g}, as for a guess that knows only class frequencies ({nothing:.3g}), and a "
            f"probe trained on {len(y):,} of the examples gets {found:.0%} of the classes right, with permuted labels "
            f"{by_chance:.0%}: the inputs say nothing about the labels"
        )
        yield Seen(what, run.calls.line("loss"), float(above))


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
    rng = np.random.default_rng(0)
    x = (x - x.mean(0)) / (x.std(0) + 1e-8)
    hidden = np.maximum(x @ rng.normal(size=(x.shape[1], WIDTH)) / np.sqrt(x.shape[1]) + rng.normal(size=WIDTH), 0)
    features = np.concatenate([x[:, :256], hidden, np.ones((len(x), 1))], axis=1)
    order = rng.permutation(len(y))
    features, y = features[order], np.unique(y[order], return_inverse=True)[1]
    middle = len(y) // 2
    halves = (slice(0, middle), slice(middle, None)), (slice(middle, None), slice(0, middle))
    maps = []
    for train, test in halves:
        one = features[train]
        gram = one.T @ one + RIDGE * np.eye(one.shape[1])
        maps.append((features[test] @ np.linalg.solve(gram, one.T), train, test))

    def accuracy(labels: Array) -> float:
        hot = np.eye(int(labels.max()) + 1)[labels]
        right = [
            ((apply @ (hot[train] - hot[train].mean(0)) + hot[train].mean(0)).argmax(1) == labels[test])
            for apply, train, test in maps
        ]
        return float(np.concatenate(right).mean())

    chance = np.array([accuracy(rng.permutation(y)) for _ in range(PERMUTED)])
    least = float(np.sqrt(chance.mean() * (1 - chance.mean()) / len(y)))
    return accuracy(y), float(chance.mean()), max(float(chance.std()), least, 1e-6)


RULES = rules_of(globals())
