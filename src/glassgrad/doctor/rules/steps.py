"""Rules about gradients, updates and activations over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import source_lines
from glassgrad.doctor.library import Array
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.rules.layers import contrasts
from glassgrad.doctor.rules.rule import (
    AGAINST,
    COHEN,
    GLOROT,
    Seen,
    at_,
    error,
    info,
    listed,
    pairs,
    rules_of,
    sampled,
    warning,
)
from glassgrad.doctor.rules.setup import ADAPTIVE, OWN_RATE
from glassgrad.doctor.rules.targets import has_several
from glassgrad.doctor.run import Run

VANISHED, AT_FIRST = 4e-4, 1e-4
"""‖gradient‖ / ‖weights‖ of one matrix relative to that of a later one, as the median of the samples, and in the first
sample: Adam and similar optimizers may restore the gradient, at the price of the steps until then."""
PASSED = 1e-2
"""The same quotient of a layer before the lowest one, above which the gradient has bypassed the lowest one."""
TABLES = 10.0
"""How much larger the ratio of the gradients themselves may be, because large weights make the quotient small."""
EXPLODED = 1e2
"""‖gradient‖ / ‖weights‖: with a rate of 0.01 one step would replace the weights."""
HUGE = 1e5
"""The same where the optimizer divides by the size of the gradient, so that a sum for a mean does no harm."""
MOSTLY = 0.5
"""A share of dead units or saturated outputs above which training suffers."""
NEARLY_ALL = 0.9
"""A share of dead units that a wide layer which learns does not have."""
EARLY = 6
ENOUGH = 5
"""The number of samples that rules about layers need: the first steps of a small net say little."""
FAST, SLOW = 0.18, 1e-6
"""‖change‖ / ‖weights‖ of all matrices in one step: above, weights are replaced; below, nothing moves."""
TINY = 24
"""The number of weights below which their change says nothing about the rate."""
GROWN, FIRST = 1.4, 4
"""Growth of all matrices from the first step to the fourth: relative to grown matrices, a later change looks small."""
CLIPPED = 0.95
DIVERGED = 100.0
"""The growth of a loss before it is not finite, which no single bad example makes."""
FALLS = 0.1
"""The share of the loss's fall in the second half of a run, above which the loss still falls."""
OPPOSITE = -0.75
"""The median cosine of successive gradients: RMSprop reaches -0.6 in healthy runs."""
TOO_FAR = 3.0
"""The length of an update relative to the distance to the minimum along it; full batches settle at 2
(Cohen et al. 2021)."""
SINGLE = 4
"""The number of examples in a step, below which chance decides the loss."""
ROUNDING = 1e-6
"""A gradient relative to all gradients together: a smaller one consists of rounding errors."""
_FLAT = named("sign sgn round floor ceil trunc heaviside")
APART = 30.0
"""The noise scale relative to the size of the batch, above which the gradient is nearly all noise."""


def is_of_few(data: MonitorData | None, least: int = SINGLE) -> bool:
    """Tell whether a step sees fewer examples than `least`, so that losses and gradients of two steps differ by chance.

    Example:
        >>> is_of_few(None)
        False
    """
    sizes = np.zeros(0) if data is None else data.batch[np.isfinite(data.batch)]
    return sizes.size > 0 and float(np.median(sizes)) < least


# --- gradients ---


def _ratios(data: MonitorData) -> tuple[list[int], Array]:
    """Return the matrices, and their ‖gradient‖ / ‖weights‖, (S, M)."""
    places = [at for at, axes in enumerate(data.dims) if axes > 1]
    with np.errstate(all="ignore"):
        return places, data.gradient_norm[:, places] / data.parameter_norm[:, places]


def _is_beside(data: MonitorData, one: int, other: int) -> bool:
    """Tell whether two parameters belong to one layer."""
    mine, its = (data.parameters[at].rpartition(".")[0] for at in (one, other))
    return one != other and mine == its != ""


def _middle(values: Array) -> Array:
    """Return the median over the samples, NaN if all are unknown."""
    known = np.where(np.isfinite(values), values, np.nan)
    out = np.full(values.shape[1:], np.nan)
    some = ~np.isnan(known).all(axis=0)
    out[some] = np.nanmedian(known[:, some], axis=0)
    return out


@warning("vanishing gradient", AGAINST["vanishing gradient"], "nn.init.kaiming_normal_(layer.weight)", VANISHED, GLOROT)
@sampled(FIRST)
def _vanishing(run: Run, data: MonitorData) -> Iterator[Seen]:
    places, ratios = _ratios(data)
    drawn = f"; weights are drawn at {run.parts.drawn_at}" if run.parts.drawn_at else ""
    slight = [at for at, place in enumerate(places) if data.parameters[place] in run.parts.slight]
    small = slight if 2 * len(slight) < len(places) else []  # weights near 0 make a quotient large
    parts = [(ratios, VANISHED, "")] if len(data) >= ENOUGH else []
    for part, threshold, when in [*parts, (ratios[:1], AT_FIRST, " in the first step")]:
        middle = _middle(part)
        known = [at for at in range(len(places)) if middle[at] > 0]
        if len(known) < 4:
            return
        low = min(known, key=lambda at: middle[at])
        high = max((at for at in known if at >= low and at not in small), key=lambda at: middle[at], default=low)
        share = float(middle[low] / middle[high])
        by_size = _middle(data.gradient_norm[: len(part), places])  # small weights make the quotient of a layer large
        reached = [at for at in known if _is_beside(data, places[at], places[low])]
        if any(middle[at] > threshold * middle[high] for at in reached) or any(middle[:low] > PASSED * middle[high]):
            continue  # the gradient arrives in this layer or before it: a scale beside weights, or a small branch
        if share < threshold and by_size[low] < (1 if when else TABLES) * threshold * by_size[high]:
            yield Seen(
                f"the gradient relative to the weights is {middle[low]:.1e} for {data.parameters[places[low]]}{when}, "
                f"and {middle[high]:.1e} for {data.parameters[places[high]]}{drawn}",
                data.parameters[places[low]],
                share,
                pairs(data.steps, ratios[:, low] / ratios[:, high]),
                threshold=threshold,
            )
            return


@error(
    "exploding gradient",
    AGAINST["exploding gradient"],
    "clip_grad_norm_(model.parameters(), 1.0)",
    EXPLODED,
    "Pascanu, Mikolov, Bengio (2013), On the difficulty of training recurrent neural networks",
)
@sampled(1)
def _exploding(run: Run, data: MonitorData) -> Iterator[Seen]:
    places, ratios = _ratios(data)
    high = np.where(np.isfinite(ratios), ratios, 0.0)
    if not places or (high > EXPLODED).any(axis=1).sum() < min(2, len(data)) or data.sizes[places].sum() < TINY:
        return
    scaled = bool(run.setup.optimizers) and all(kind in ADAPTIVE for kind, _ in run.setup.optimizers)
    finite = not len(run.losses) or bool(np.isfinite(run.losses[:, 1]).all())
    held = finite and any(_clipped.look(run))  # the steps are as long as the limit says
    milder = "info" if (scaled and finite and high.max() < HUGE) or held else ""
    sample, at = np.unravel_index(int(high.argmax()), high.shape)
    what = (
        f"the gradient of {data.parameters[places[at]]} is {high[sample, at]:.1e} times as large as its weights in "
        f"step {data.steps[sample]}"
    )
    where = data.parameters[places[at]]
    yield Seen(what, where, float(high[sample, at]), pairs(data.steps, high[:, at]), severity=milder)


def _settled(steps: Array, values: Array) -> Array:
    """Return which values are known and after the first steps: averages of squares make the first updates large."""
    return np.isfinite(values) & (steps >= EARLY)


@warning("rate above the curvature", "Lower the learning rate.", threshold=TOO_FAR, source=COHEN)
@sampled(1)
def _reaches_too_far(run: Run, data: MonitorData) -> Iterator[Seen]:
    known = _settled(data.steps, data.update_reach)
    if known.sum() < 4:
        return
    reach = float(np.median(data.update_reach[known]))
    if reach > TOO_FAR:
        curvature = float(np.median(data.curvature[known]))
        yield Seen(
            f"a step goes {reach:.1f} times as far as the minimum of the loss along it (at 2, the loss ends as high as "
            f"it began), where the curvature is {curvature:.3g}",
            run.setup.built,
            reach,
            pairs(data.steps[known], data.update_reach[known]),
            remedy=f"optimizer.param_groups[0]['lr'] /= {max(reach, 2):.0f}",
        )


@warning(
    "gradients zigzag",
    "Lower the learning rate: it is above 2 divided by the curvature along the gradient.",
    "optimizer.param_groups[0]['lr'] /= 3",
    OPPOSITE,
    COHEN,
)
@sampled(1)
def _zigzag(run: Run, data: MonitorData) -> Iterator[Seen]:
    if any(_reaches_too_far.look(run)):
        return
    known = _settled(data.steps, data.gradient_cosine)
    if known.sum() < 6 or is_of_few(data):
        return
    middle = float(np.median(data.gradient_cosine[known]))
    if middle < OPPOSITE:
        what = (
            f"the gradient of a step points against that of the step before (cosine {middle:.2f}): the weights jump "
            "back and forth across a valley"
        )
        milder = "info" if _falls_on(run) else ""  # full batches zigzag at the edge of stability and still learn
        yield Seen(what, "", middle, pairs(data.steps[known], data.gradient_cosine[known]), severity=milder)


def _falls_on(run: Run) -> bool:
    """Tell whether the loss still falls in the second half of a run."""
    curve = run.curve[:, 1]
    quarter = len(curve) // 4
    if quarter < EARLY:
        return False
    first, second, last = (float(np.median(curve[at : at + quarter])) for at in (0, quarter, len(curve) - quarter))
    return second - last > FALLS * abs(first - last)


@info(
    "always clipped",
    "Raise the limit, or lower the rate: if every gradient is clipped, its length has no effect.",
    threshold=CLIPPED,
    source="Zhang et al. (2020), Why gradient clipping accelerates training",
)
@sampled(1)
def _clipped(run: Run, data: MonitorData) -> Iterator[Seen]:
    known = np.isfinite(data.total_norm_clipped) & np.isfinite(data.total_norm)
    if known.sum() < 8:
        return
    cut = data.total_norm_clipped[known] < data.total_norm[known] * (1 - 1e-3)
    if cut.mean() > CLIPPED:
        what = (
            f"the gradients are clipped in {cut.mean():.0%} of the steps, from a median of "
            f"{np.median(data.total_norm[known]):.3g} to {np.median(data.total_norm_clipped[known]):.3g}: the limit"
            f"{at_(run.calls.line('clip'))} acts as a learning rate"
        )
        where = run.calls.line("clip")
        yield Seen(what, where, float(cut.mean()), pairs(data.steps[known], data.total_norm[known]))


@info(
    "gradients mostly noise",
    "Use larger batches, or sum gradients over several; both allow a higher rate.",
    source="McCandlish et al. (2018), An empirical model of large-batch training",
)
def _batch_size(run: Run) -> Iterator[Seen]:
    scale = run.noise_scale
    batch = run.batch if math.isfinite(scale) else math.nan
    pairs = 0 if run.data is None else int(np.isfinite(run.data.gradient_cosine).sum())
    if pairs >= 8 and scale > APART * batch:
        what = f"noise and signal of the gradient are equal at a batch of about {scale:.0f}; the batch has {batch:.0f}"
        yield Seen(what, "", scale, threshold=APART * batch)


# --- updates ---


def _update_shares(data: MonitorData) -> Array:
    """Return ‖change‖ / ‖weights‖ of all matrices together, (S,)."""
    places = [at for at, axes in enumerate(data.dims) if axes > 1]
    moved = np.sqrt(np.nansum(np.square(data.update_norm[:, places]), axis=1))
    size = np.sqrt(np.nansum(np.square(data.parameter_norm[:, places]), axis=1))
    with np.errstate(all="ignore"):
        share = moved / size
    return np.where(np.isfinite(data.update_norm[:, places]).any(axis=1), share, np.nan)


def _growth(run: Run, data: MonitorData) -> float:
    """Return the factor by which the matrices grew in the first steps, NaN unless all of these were sampled."""
    if len(data) < FIRST or data.steps[FIRST - 1] != FIRST - 1:
        return math.nan
    places = [at for at, axes in enumerate(data.dims) if axes > 1 and data.parameters[at] not in run.parts.slight]
    sizes = np.nansum(np.square(data.parameter_norm[:FIRST, places]), axis=1)
    return math.sqrt(sizes[-1] / sizes[0]) if sizes[0] > 0 else math.nan


def _diverged(losses: Array) -> float:
    """Return by how much the loss grew in the steps before it was not finite; NaN if it did not, or stayed finite."""
    bad = np.flatnonzero(~np.isfinite(losses[:, 1])) if len(losses) else losses
    if not len(bad) or bad[0] < 3:
        return math.nan
    before = losses[max(bad[0] - 12, 0) : bad[0], 1]
    rising = (np.diff(before) > 0).mean() > MOSTLY
    return float(before[-1] / before.min()) if rising and before.min() > 0 else math.nan


@warning(
    "rate unfit for the weights",
    "Raise the learning rate; a healthy step changes the weights by about a thousandth.",
    "optimizer.param_groups[0]['lr'] *= 10",
    source="Bottou (2012), Stochastic gradient descent tricks, section 5.2",
)
@sampled(3)
def _rate_measured(run: Run, data: MonitorData) -> Iterator[Seen]:
    if (grown := _diverged(run.losses)) > DIVERGED:
        what = f"the loss grows by a factor of {grown:.1e} in a few steps until it is not finite"
        advice = "Lower the learning rate, by powers of three, until the loss falls from the first step on."
        remedy = "optimizer.param_groups[0]['lr'] /= 10"
        yield Seen(what, run.setup.built, grown, advice=advice, remedy=remedy, threshold=DIVERGED)
        return
    shares = _update_shares(data)
    known = np.isfinite(shares)
    if known.sum() < 3 or any(kind in OWN_RATE for kind, _ in run.setup.optimizers):
        return
    if data.sizes[data.dims > 1].sum() < TINY:
        return  # a line through points: its few weights may move far
    # The first step of an optimizer that divides by the gradient is as large as the learning rate.
    middle = float(np.median(shares[known][1:]))
    evidence, lower = pairs(data.steps[known], shares[known]), "optimizer.param_groups[0]['lr'] /= 10"
    if middle > FAST:
        what = f"a step changes the weights by {middle:.0%} of their size"
        advice = "Lower the learning rate by factors of three; a healthy step changes about a thousandth."
        yield Seen(what, run.setup.built, middle, evidence, "", advice, lower, FAST)
    elif (grown := _growth(run, data)) > GROWN:
        what = f"after {FIRST - 1} steps the weights are {grown:.1f} times as large as at the start"
        advice = "Lower the learning rate by factors of three, or warm it up: the initial weights are lost."
        yield Seen(what, run.setup.built, grown, evidence, "", advice, lower, GROWN)
    elif 0 < middle < SLOW:
        what = f"a step changes the weights by {middle:.1e} of their size: nothing is learnt"
        yield Seen(what, run.setup.built, middle, evidence, threshold=SLOW)


@error(
    "never updated",
    "Make the optimizer from the parameters of this model after moving or converting it, and check that rounding does "
    "not absorb the change.",
    "optimizer = SGD(model.parameters(), lr=0.1)",
)
@sampled(3)
def _never_updated(run: Run, data: MonitorData) -> Iterator[Seen]:
    # A bias before a normalisation has a gradient of rounding errors.
    some = np.nan_to_num(data.gradient_norm) > ROUNDING * np.nan_to_num(data.total_norm)[:, None]
    still = (np.nan_to_num(data.update_norm, nan=1.0) == 0) & some
    rate = np.nan_to_num(data.rate, nan=1.0) > 0
    names = [
        name
        for at, name in enumerate(data.parameters)
        if name not in {*run.setup.not_given, *run.setup.rested, *run.parts.thawed, *run.rounded}
        and still[rate, at].sum() > 2
        and still[rate, at].all()
    ]
    if names and not run.calls.empty:
        what = (
            f"{listed(names)} {'has' if len(names) == 1 else 'have'} gradients and never changed in {len(data)} "
            "sampled steps"
        )
        yield Seen(what, names[0], float(len(names)))


@error(
    "activation without a slope",
    "Use an activation with a slope, such as tanh or a sigmoid, or pass the gradient straight through.",
    "y = x + (torch.sign(x) - x).detach()  # straight through",
    source="Bengio, Leonard, Courville (2013), Estimating or propagating gradients through stochastic neurons",
)
@sampled(3)
def _no_slope(run: Run, data: MonitorData) -> Iterator[Seen]:
    nothing = [name for at, name in enumerate(data.parameters) if (data.gradient_norm[:, at] == 0).all()]
    for op in run.graph.ops if nothing else ():
        if op.name in _FLAT and op.parents and op.parents[0] >= 0:
            what = (
                f"the slope of {op.name} at {op.where} is 0 everywhere, so {listed(nothing)} got a gradient of zeros "
                f"in {len(data)} sampled steps"
            )
            yield Seen(what, op.where, float(len(nothing)))
            return


@warning(
    "no gradient",
    "Use the layer in forward(), or look for detach(), item() or no_grad(); freeze it if you do not train it.",
    "parameter.requires_grad_(False)",
)
@sampled(3)
def _no_gradient(run: Run, data: MonitorData) -> Iterator[Seen]:
    if run.calls.empty or run.calls.detached:
        return
    missing = np.isnan(data.gradient_norm) & np.isnan(data.gradient_nonfinite)
    rested = {*run.setup.rested, *run.parts.thawed, *_moved(run, data)}
    names = [name for at, name in enumerate(data.parameters) if missing[:, at].all() and name not in rested]
    if names and len(names) < len(data.parameters):
        made, cut = _assigned(run, names[0]), source_lines.cutting(run.parts.files)
        told = f"{listed(names)} got no gradient in {len(data)} sampled steps"
        told += f": '{names[0]}' is made at {made}" if made else ""
        told += f"; its way to the loss may be cut at {cut}" if cut else ""
        yield Seen(told, cut or made or names[0], float(len(names)))
    zero = [at for at in range(len(data.parameters)) if (data.gradient_norm[:, at] == 0).all()]
    nothing = [data.parameters[at] for at in zero if data.dims[at] > 1 or len(zero) > 2]  # a bias may cancel
    if nothing:
        made = _assigned(run, nothing[0])
        what = f"the gradient of {listed(nothing)} was exactly zero in {len(data)} sampled steps"
        what += f": '{nothing[0]}' is made at {made}" if made else ""
        yield Seen(what, made or nothing[0], float(len(nothing)))


def _moved(run: Run, data: MonitorData) -> Iterator[str]:
    """Yield the parameters that changed since the first sample: in other steps, or by another optimizer."""
    for name, before, now in zip(data.parameters, data.parameter_norm[0], run.sizes, strict=False):
        if not math.isnan(before) and not math.isclose(before, now, rel_tol=ROUNDING):
            yield name


def _assigned(run: Run, parameter: str) -> str:
    """Return the user's line that assigns the module of a parameter; empty if unknown."""
    parts = parameter.split(".")
    paths = [".".join(parts[begin:end]) for begin in range(len(parts)) for end in range(len(parts), begin, -1)]
    known = [path for path in paths if path != parts[-1] and not path.isdigit()]  # "weight" says nothing
    places = (source_lines.assigned_to(path, run.parts.files) for path in known)
    return next((place for place in places if place), "")


# --- activations ---


@warning(
    "dead units",
    AGAINST["dead units"],
    "nn.LeakyReLU()",
    MOSTLY,
    "Maas, Hannun, Ng (2013), Rectifier nonlinearities improve neural network acoustic models",
)
def _dead(run: Run) -> Iterator[Seen]:
    for name, dead in run.dead.items():
        if dead.share > MOSTLY and dead.seen >= ENOUGH:
            milder = "" if dead.share > NEARLY_ALL else "info"
            steps = dead.last - dead.first + 1
            looked = "" if dead.seen >= steps else f" (of which {dead.seen} were examined)"
            what = (
                f"{dead.share:.0%} of the units of '{name}' were zero for each of {dead.examples:,} examples in the "
                f"{steps:,} steps from {dead.first:,} on{looked}"
            )
            yield Seen(what, name, dead.share, severity=milder)


@warning("saturated", AGAINST["saturated"], "nn.init.xavier_normal_(layer.weight)", MOSTLY, GLOROT)
@sampled(ENOUGH)
def _saturated(run: Run, data: MonitorData) -> Iterator[Seen]:
    middle = _middle(data.activation_saturated)
    begun = _middle(data.activation_saturated[:2])
    for at, share in enumerate(middle):
        is_output = at == len(middle) - 1  # an output near its bound may be right, if it began elsewhere
        if share > MOSTLY and not (is_output and begun[at] <= MOSTLY):
            what = (
                f"{share:.0%} of the outputs of '{data.activations[at]}' lie close to a bound, where the slope is "
                "nearly 0"
            )
            evidence = pairs(data.steps, data.activation_saturated[:, at])
            milder = "info" if begun[at] <= MOSTLY and _falls_on(run) else ""  # a gate that has learnt to decide
            yield Seen(what, data.activations[at], float(share), evidence, milder)


# --- the data ---


@warning(
    "data not shuffled",
    "Shuffle the examples.",
    "DataLoader(data, shuffle=True)",
    source="Bengio (2012), Practical recommendations for gradient-based training, section 2.2",
)
def _unshuffled(run: Run) -> Iterator[Seen]:
    # Labels that are all different are indices of positions, as in contrastive losses.
    known = [labels for _, labels in run.labels if labels.count >= 16 and 2 * labels.distinct <= labels.count]
    if len(known) < 3 or not all(labels.ordered for labels in known) or has_several(run.graph):
        return
    all_each_step = all(np.array_equal(labels.values, known[0].values) for labels in known) and known[0].distinct > 1
    first_one = all(not labels.values.any() for labels in known if labels.values is not None)
    if all_each_step or contrasts(run.graph) or (first_one and source_lines.first_is_right(run.parts.files)):
        return
    alike = sum(labels.distinct == 1 for labels in known)
    what = "each batch has the labels of one class" if alike == len(known) else "the labels of each batch come in order"
    yield Seen(f"{what}, in all {len(known)} sampled steps: the data are not shuffled", run.calls.line("loss"))


RULES = rules_of(globals())
