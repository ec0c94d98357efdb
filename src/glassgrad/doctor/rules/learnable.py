"""Rules about what the inputs tell about the targets; a small model of their own finds out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from glassgrad.doctor.graphs.graph import VIEWS, Graph
from glassgrad.doctor.library import Array
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.rule import Seen, at_, error, rules_of, warning
from glassgrad.doctor.run import Run

LEAST, FEW, MOST = 192, 96, 2048
"""The number of examples that the probe needs to say that there is nothing, and that there is something, and the
number that it takes at most."""
WIDTH, RIDGE, PERMUTED = 128, 10.0, 6
DEVIATIONS = 3.0
"""By how many deviations the score for the targets has to exceed the scores for permuted targets."""
NEAR = 0.93
"""The loss relative to that of a guess that knows only the shares of the classes, or the mean of the targets."""
LITTLE, LESS, MUCH = 0.85, 0.9, 0.4
"""A loss relative to such a guess, and to the first loss, from which little was learnt, and a share of what is to be
learnt that the probe gets, from which it got much."""
HALF, EVEN, SOON = 0.5, 0.75, 60
"""What the outputs get of what the probe gets, above which the model keeps up; the share of the commonest class up to
which right classes tell that; the steps that a model has to have had."""
TURNED = 0.2
"""The correlation of pictures and turned maps from which they belong together so."""
WELL, KNOWN = 0.85, 3
"""The score late in a run from which it has learnt, and the number of scores that tell."""
STILL = 0.01
"""The fall in the last quarter of a run, relative to such a guess, from which the loss still falls."""
SINGLE, SHUFFLED, FAINT = 256, 99, 0.05
"""The most inputs to test one by one; the number of permutations, whose best value chance exceeds in one of a hundred
cases; and the learnable share that counts as little."""
CLOSE, COLUMNS = 1e-5, 512
"""The relative difference up to which a column is the target itself, and the most columns."""
VOCABULARY = 64
"""The most tokens whose places are features."""
RARE = 0.95
"""The share of the commonest class from which the others are too rare for the probe."""
_OUTPUTS, _ROWS = 16, 8
_LOSSES = named("cross_entropy nll_loss mse_loss binary_cross_entropy binary_cross_entropy_with_logits")


@error(
    "labels do not belong to the inputs",
    "Check some pairs: were inputs and labels shuffled or sorted separately, or joined by a wrong key?",
    "x, y = x[order], y[order]  # one order for both",
    DEVIATIONS,
)
def _apart(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) < 10 or curve[-1, 0] < 100:
        return
    last = float(np.median(curve[-max(len(curve) // 5, 5) :, 1]))
    where = run.calls.line("loss")
    if _of_tokens(run) or is_weighted(run) or _are_places(run):
        return  # places and order of tokens tell more than the probe sees
    if (known := _gathered(run.examples)) is not None:
        x, y = known
        shares = np.unique(y, return_counts=True)[1] / len(y)
        nothing = float(-(shares * np.log(shares)).sum())
        if len(shares) > 1 and shares.max() < RARE and NEAR * nothing < last < 1.5 * nothing:
            found, by_chance, spread = probe(x, y)
            if (found - by_chance) / spread < DEVIATIONS and not _is_tied(x, _hot(y)):
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
        entropy = _entropy(share) if binary else 0.0
        y = y.reshape(len(y), -1)[:, :_OUTPUTS].astype(np.float64)
        nothing = float(entropy or y.var(0).mean())
        if nothing > 0 and NEAR * nothing < last < 1.5 * nothing:
            found, by_chance, spread = probe_of_numbers(x, y)
            if (found - by_chance) / spread < DEVIATIONS and not _is_tied(x, y):
                what = (
                    f"the loss stays at {last:.3g}, as for a guess that knows only the mean ({nothing:.3g}), and a "
                    f"probe trained on {len(y):,} of the examples explains no more of them than of permuted targets: "
                    "the inputs say nothing about the targets"
                )
                yield Seen(what, where, (found - by_chance) / spread)


def _is_tied(x: Array, y: Array) -> bool:
    """Tell whether one input correlates with a target more than any input does with permuted targets.

    The probe has many features and misses weak correlations in noisy data, such as daily prices.
    """
    rng = np.random.default_rng(2)
    x = x[:, :: max(1, x.shape[1] // SINGLE)]
    x, y = ((one - one.mean(0)) / (one.std(0) + 1e-8) for one in (x, y))
    strongest = [float(np.abs(x.T @ y[rng.permutation(len(y))]).max()) for _ in range(SHUFFLED)]
    return float(np.abs(x.T @ y).max()) > max(strongest)


def tells_little(run: Run, last: float) -> bool:
    """Tell whether a loss equals that of a guess without inputs, and the inputs explain little, though something.

    Args:
        run: a run whose sampled examples are known.
        last: the loss at its end.

    Example:
        >>> tells_little(Run(), 0.7)
        False
    """
    known = None if _of_tokens(run) else _gathered(run.examples) or _gathered(run.pairs)
    told = known_of(run) if known is not None else None
    if known is None or told is None or not NEAR * told.nothing < last < told.nothing / NEAR:
        return False
    x, y = known
    targets = _hot(y) if told.kind == "classes" else y.reshape(len(y), -1)[:, :_OUTPUTS].astype(np.float64)
    return told.share < FAINT and _is_tied(x, targets)


@warning(
    "learns less than a probe",
    "Look at what lies between the inputs and the loss: let the model learn one batch by heart, and vary the rate.",
    "doctor.examine(model, batch, loss_fn)",
    LITTLE,
)
def _behind(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) < 20 or curve[-1, 0] < SOON or run.parts.against:
        return
    known = known_of(run)
    moves = run.parts.strays or run.parts.twin or not run.parts.alone  # targets that a model makes change with it
    if known is None or (known.kind == "numbers" and moves) or is_weighted(run):
        return
    last = float(np.median(curve[-max(len(curve) // 5, 5) :, 1]))
    first = float(curve[: max(len(curve) // 20, 3), 1].mean())
    plain = _is_plain(run.graph)
    if still_falls(run, known):
        return  # it learns, if slowly
    where = run.calls.line("loss")
    fallen = min(LESS * first, 1.2 * known.nothing) if first < 3 * known.nothing else LESS * first  # a sum is larger
    if plain and last > max(LITTLE * known.nothing, fallen) and known.share > MUCH:
        what = (
            f"the loss ends at {last:.3g}, and a guess that knows no input has {known.nothing:.3g}; a probe of {WIDTH} "
            f"random features {known.told}: the inputs tell more than the model has learnt in {run.calls.steps} steps"
        )
        yield Seen(what, where, last / known.nothing)
        return
    late = [one.training for one in run.scores if one.step > HALF * run.calls.steps and one.kind == known.kind]
    mine = float(np.median(late)) if late else known.best
    gained = (mine - known.chance) / max(known.best - known.chance, 1e-9)
    if known.share > MUCH and known.chance < EVEN and gained < HALF:
        what = (
            f"the outputs of the model {in_words(known.kind, mine)} at the end, and a probe of {WIDTH} random "
            f"features {known.told}: the inputs tell more than the model has learnt in {run.calls.steps} steps"
        )
        yield Seen(what, where, gained, threshold=HALF)


def is_weighted(run: Run) -> bool:
    """Tell whether a loss weights the classes, so that its optimum is not the most likely class."""
    composed = any(op.name == "take_along_axis" for op in run.graph.losses())
    return composed or any(labels.weights is not None for _, labels in run.labels)


def still_falls(run: Run, known: Known) -> bool:
    """Tell whether the loss still falls in the last quarter of a run."""
    curve = run.curve
    if len(curve) < 20:
        return False
    quarter = max(len(curve) // 4, 5)
    falls = float(np.median(curve[-2 * quarter : -quarter, 1])) - float(np.median(curve[-quarter:, 1]))
    first = float(curve[: max(len(curve) // 20, 3), 1].mean())
    return falls > STILL * (known.nothing if _is_plain(run.graph) else 2 * abs(first))


def learns_well(run: Run) -> bool:
    """Tell whether a run ends with outputs that fit nearly all of their targets.

    Example:
        >>> from glassgrad.doctor.parts import Score
        >>> learns_well(Run(scores=tuple(Score(step, "numbers", 0.95) for step in range(4))))
        True
    """
    late = [one for one in run.scores if one.step >= HALF * run.calls.steps]
    curve = run.losses[:, 1]
    if len(late) < KNOWN or not np.isfinite(curve).all() or run.parts.against:
        return False
    shares = [np.unique(y, return_counts=True)[1] / len(y) for _, y in run.examples if late[-1].kind == "classes"]
    uneven = bool(shares) and float(np.median([one.max() for one in shares])) > EVEN
    return not uneven and min(float(np.median([one.training for one in late])), late[-1].training) > WELL


def in_words(kind: str, value: float) -> str:
    """Say what outputs with a score do: they "get 90% of the classes right"."""
    return f"explain {value:.0%} of the variance" if kind == "numbers" else f"get {value:.0%} of the classes right"


@error(
    "labels do not belong to the inputs",
    "Turn, flip and crop a picture and its map together, with the same random numbers.",
    "both = augment(torch.cat([picture, target], 1)); picture, target = both[:, :1], both[:, 1:]",
    TURNED,
)
def _maps_turned(run: Run) -> Iterator[Seen]:
    """Find maps of targets that fit their pictures only after a turn or a reflection, in several batches."""
    found = [one for x, y in run.pairs if (one := _best_turn(x, y)) is not None]
    turned = [(mine, best, how) for mine, best, how in found if how and best > TURNED and best > 2 * mine]
    if len(turned) >= 2 and len(turned) > len(found) / 4:
        mine, best, how = turned[0]
        where = run.calls.line("loss")
        what = (
            f"in {len(turned)} of {len(found)} sampled steps the maps of targets fit the pictures only if they are "
            f"{how}: their correlation is then {best:.2f}, and {mine:.2f} as the loss compares them"
        )
        yield Seen(what, where, best)


def _are_places(run: Run) -> bool:
    """Tell whether the labels number the rows of each batch, as in contrastive losses, and say nothing of one row."""
    known = [labels.values for _, labels in run.labels if labels.values is not None]
    return bool(known) and all(
        one.size >= _ROWS and np.array_equal(np.sort(one.reshape(-1)), np.arange(one.size)) for one in known
    )


def _best_turn(x: Array, y: Array) -> tuple[float, float, str] | None:
    """Return the correlation of square maps with their pictures, the best one of the turned maps, and how they turn."""
    if y.ndim < 3 or y.shape[-1] != y.shape[-2] or y.shape[-1] < 4 or x.shape[1] % (y.shape[-1] ** 2):
        return None
    size = y.shape[-1]
    pictures = x.reshape(len(x), -1, size, size).astype(np.float64).mean(1)
    maps = y.reshape(len(y), -1, size, size).astype(np.float64).mean(1)
    flat = (pictures - pictures.mean()).reshape(-1)
    scores: dict[str, float] = {}
    for mirrored in (False, True):
        for quarter in range(4):
            turned = np.rot90(maps.swapaxes(1, 2) if mirrored else maps, quarter, (1, 2))
            other = (turned - turned.mean()).reshape(-1)
            norm = float(np.sqrt((flat @ flat) * (other @ other)))
            scores["reflected" if mirrored else "turned" if quarter else ""] = max(
                abs(float(flat @ other)) / norm if norm > 0 else 0.0,
                scores.get("reflected" if mirrored else "turned" if quarter else "", 0.0),
            )
    how = max(scores, key=lambda one: scores[one])
    return scores[""], scores[how], how


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
            f"column {int(alike[0])} of the {x.shape[1]} inputs{at_(where)} is the target"
            f"{at_(loss)} itself, in all of {len(y):,} examples"
        )
        yield Seen(what, where, 1.0)


@dataclass(frozen=True)
class Known:
    """What the targets tell of a guess without inputs and of the probe.

    Attributes:
        kind: that of the scores it is compared with.
        nothing: the loss of such a guess; `chance`, `best`: the scores of the guess and of the probe.
        told: that of the probe in words.
    """

    kind: str
    nothing: float
    chance: float
    best: float
    told: str

    @property
    def share(self) -> float:
        """The share of what is to be learnt that the probe gets."""
        return (self.best - self.chance) / max(1 - self.chance, 1e-9)


def known_of(run: Run) -> Known | None:
    """Return what a guess without inputs and the probe get; None if there are too few examples."""
    if (known := _gathered(run.examples, FEW) or _gathered(run.places, FEW, once=False)) is not None:
        return _of_classes(*known, "classes")
    if (known := _gathered(run.pairs, FEW)) is None:
        return None
    x, y = known
    if y.shape[1:] and np.prod(y.shape[1:]) == x.shape[1]:
        return None  # an autoencoder, which has to go through something narrow
    numbers = y.reshape(len(y), -1)[:, :_OUTPUTS]
    if y.dtype == bool and numbers.shape[1] == 1:
        return _of_classes(x, numbers[:, 0].astype(np.int64), "binary")
    share = float(y.mean())
    binary = y.dtype == bool and 0 < share < 1
    numbers = numbers.astype(np.float64)
    nothing = _entropy(share) if binary else float(numbers.var(0).mean())
    if not nothing > 0:
        return None
    found, by_chance, _ = probe_of_numbers(x, numbers)
    kind = "several" if binary else "numbers"
    return Known(kind, nothing, max(by_chance, 0.0), found, f"explains {found:.0%} of their variance")


def _entropy(share: float) -> float:
    """Return the loss of a guess that knows only the share of one of two classes."""
    return float(-share * np.log(share) - (1 - share) * np.log(1 - share))


def _of_classes(x: Array, y: Array, kind: str) -> Known | None:
    shares = np.unique(y, return_counts=True)[1] / len(y)
    if len(shares) < 2 or shares.max() > RARE:
        return None
    found, by_chance, _ = probe(x, y)
    nothing = float(-(shares * np.log(shares)).sum())
    return Known(kind, nothing, max(float(shares.max()), by_chance), found, f"gets {found:.0%} of the classes right")


def _is_plain(graph: Graph) -> bool:
    """Tell whether the loss is one loss of a library, without other terms or weights."""
    other = (op for op in graph.way(graph.loss) if op.name not in VIEWS | {"mean"})
    first = next(other, None)
    return first is not None and first.name in _LOSSES


def _of_tokens(run: Run) -> bool:
    return any(x.dtype.kind in "iu" for x, _ in (*run.examples, *run.pairs))


def _features(x: Array) -> Array:
    """Return inputs as numbers: of tokens how often each comes, and which one stands at each place if these are few."""
    if x.dtype.kind not in "iu":
        return x.astype(np.float64)
    least, most = int(x.min()), int(x.max())
    tokens = most - least + 1
    if tokens > COLUMNS:
        return x.astype(np.float64)
    places = np.eye(tokens)[x - least]
    counts: Array = places.sum(1)
    few = tokens <= VOCABULARY and x.shape[1] * tokens <= 4096
    return np.concatenate([places.reshape(len(x), -1), counts], axis=1) if few else counts


def _gathered(
    batches: Sequence[tuple[Array, Array]], least: int = LEAST, *, once: bool = True
) -> tuple[Array, Array] | None:
    """Return the inputs and targets of all batches of the last one's shape; None if too few.

    With `once` each input comes once: one that came in two epochs would be in both halves, its label known by heart.
    """
    if not batches:
        return None
    wanted = batches[-1][0].shape[1], batches[-1][1].shape[1:]
    taken = [(x, y) for x, y in batches if (x.shape[1], y.shape[1:]) == wanted]
    x = _features(np.concatenate([one for one, _ in taken])[:MOST])
    y = np.concatenate([one for _, one in taken])[:MOST]
    if once:
        first = np.unique(x, axis=0, return_index=True)[1]
        x, y = x[first], y[first]
    return (x, y) if len(y) >= least and np.isfinite(x).all() and np.isfinite(y).all() else None


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
    hot = _hot(y)

    def right(guess: Array, wanted: Array) -> float:
        return float(np.mean(guess.argmax(1) == wanted.argmax(1)))

    found, by_chance, spread = _judged(x, hot, right)
    return found, by_chance, max(spread, float(np.sqrt(by_chance * (1 - by_chance) / len(y))), 1e-6)


def _hot(y: Array) -> Array:
    """Return class numbers as one-hot rows."""
    numbers = np.unique(y, return_inverse=True)[1]
    return np.eye(int(numbers.max()) + 1)[numbers]


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


def guessed(x: Array, y: Array, inputs: Array, kind: str) -> Array:
    """Return what the probe, trained on examples, says of other inputs.

    Args:
        x: the examples' inputs (n, features); `y`: their targets.
        inputs: the others (m, features); `kind`: "classes", "binary" or "numbers".

    Example:
        >>> x = np.random.default_rng(0).normal(size=(300, 3))
        >>> bool(np.mean(guessed(x[:200], x[:200, 0] > 0, x[200:], "binary")[:, 0] > 0.5) > 0.2)
        True
    """
    wanted = np.eye(int(y.max()) + 1)[y] if kind == "classes" else y.reshape(len(y), -1).astype(np.float64)
    features = _drawn(np.concatenate([x, inputs]), len(x))
    one, middle = features[: len(x)], wanted.mean(0)
    gram = one.T @ one + RIDGE * np.eye(one.shape[1])
    guess: Array = features[len(x) :] @ np.linalg.solve(gram, one.T @ (wanted - middle)) + middle
    return guess


def _drawn(x: Array, known: int) -> Array:
    """Return random features of inputs, normalised by the first ones."""
    rng = np.random.default_rng(0)
    x = (x - x[:known].mean(0)) / (x[:known].std(0) + 1e-8)
    hidden = np.maximum(x @ rng.normal(size=(x.shape[1], WIDTH)) / np.sqrt(x.shape[1]) + rng.normal(size=WIDTH), 0)
    return np.concatenate([x[:, :256], hidden, np.ones((len(x), 1))], axis=1)


def _judged(x: Array, y: Array, score: Callable[[Array, Array], float]) -> tuple[float, float, float]:
    """Return the score of ridge regressions of each half on the other, and its mean and deviation for permuted y."""
    rng = np.random.default_rng(1)
    features = _drawn(x, len(x))
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
