"""Rules about what the steps of a run show: losses, gradients, updates and activations over time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.doctor.facts import Evidence
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.rules.rule import Rule, Seen
from glassgrad.doctor.run import Run

Array = Any

VANISHED = 1e-3
"""‖gradient‖ / ‖weights‖ of one matrix against that of another further on, in the middle of the samples."""
EXPLODED = 1e2
"""‖gradient‖ / ‖weights‖: with a rate of 0.01 one step would replace the weights."""
MOSTLY = 0.5
"""A share of dead units or saturated outputs that costs more than it can give."""
ENOUGH = 5
"""Samples before something is said of layers: the first steps of a small net say little."""
FAST, SLOW = 0.25, 1e-7
"""‖change‖ / ‖weights‖ of all matrices in one step: above, weights are replaced; below, nothing moves."""
WORSE = 1.5
"""A first loss above log K by this factor comes from outputs that are large and wrong."""
RISEN, SPIKE = 1.5, 3.0
OVERFITTED = 1.3
CLIPPED = 0.95
OPPOSITE = -0.5
APART = 30.0
"""A batch that is smaller than the noise scale by this factor: its gradient is nearly all noise."""


# --- the loss ---


def _curve(run: Run) -> Array:
    """Return the losses that are finite."""
    return run.losses[np.isfinite(run.losses[:, 1])] if len(run.losses) else run.losses


def _pairs(steps: Array, values: Array, most: int = 6) -> Evidence:
    if not len(steps):
        return ()
    places = np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).astype(int))
    return tuple((int(steps[at]), float(values[at])) for at in places)


def _loss_bad(run: Run) -> Iterator[Seen]:
    bad = run.losses[~np.isfinite(run.losses[:, 1])] if len(run.losses) else run.losses
    if len(bad):
        value = "NaN" if math.isnan(bad[0, 1]) else "infinite"
        yield Seen(
            f"the loss is {value} from step {int(bad[0, 0])} on", run.calls.line("loss"), float(bad[0, 1]),
            _pairs(run.losses[:4, 0], run.losses[:4, 1]),
        )  # fmt: skip  # in a row
        return
    data = run.data
    if data is None or not len(data):
        return
    counts = np.nan_to_num(data.gradient_nonfinite)
    if counts.any():
        sample, place = (int(at) for at in np.argwhere(counts)[0])
        yield Seen(
            f"the gradient of {data.parameters[place]} is not finite in step {data.steps[sample]}, though the loss is",
            run.calls.line("backward"),
        )


def _first_loss_far(run: Run) -> Iterator[Seen]:
    curve = run.losses
    if not run.labels or not len(curve) or run.labels[0][1].classes < 2:
        return
    expected = math.log(run.labels[0][1].classes)
    if curve[0, 0] == 0 and math.isfinite(curve[0, 1]) and curve[0, 1] > WORSE * expected:
        yield Seen(
            f"the first loss is {curve[0, 1]:.4g}; a model that knows nothing has {expected:.4g} "
            f"(log {run.labels[0][1].classes}), so its outputs are confident and wrong",
            run.calls.line("loss"), float(curve[0, 1]), threshold=WORSE * expected,
        )  # fmt: skip  # in a row


def _rises(run: Run) -> Iterator[Seen]:
    curve = _curve(run)
    if len(curve) < 10:
        return
    part = max(len(curve) // 5, 2)
    # The median: one spike is no trend.
    first, last = float(np.median(curve[:part, 1])), float(np.median(curve[-part:, 1]))
    first = max(first, float(curve[0, 1]))
    if first > 0 and last > RISEN * first:
        yield Seen(
            f"the loss rises: {first:.4g} at the beginning, {last:.4g} at the end",
            run.calls.line("loss"), last / first, _pairs(curve[:, 0], curve[:, 1]),
        )  # fmt: skip  # in a row


def _flat(run: Run) -> Iterator[Seen]:
    curve = _curve(run)
    if len(curve) < 30 or curve[-1, 0] < 100:
        return
    part = max(len(curve) // 10, 5)
    first, last = float(curve[:part, 1].mean()), float(curve[-part:, 1].mean())
    noise = float(curve[-part:, 1].std() / math.sqrt(part))
    if first > 0 and 0.98 * first - noise < last <= RISEN * first:
        yield Seen(
            f"the loss does not fall: {first:.4g} over the first {part} steps known, {last:.4g} over the last",
            run.calls.line("loss"), last / first, _pairs(curve[:, 0], curve[:, 1]),
        )  # fmt: skip  # in a row


def _spikes(run: Run) -> Iterator[Seen]:
    curve = _curve(run)
    found = []
    for at in range(10, len(curve)):
        window = curve[max(at - 20, 0) : at, 1]
        middle = float(np.median(window))
        spread = float(np.median(np.abs(window - middle)))
        high = curve[at, 1] - middle
        if middle > 0 and curve[at, 1] > SPIKE * middle and high > 10 * spread and high > 0.5 * abs(curve[0, 1]):
            found.append((int(curve[at, 0]), float(curve[at, 1])))
    if not found:
        return
    step, value = found[0]
    growth = _growth_before(run.data, step)
    told = f"; the updates had grown {growth:.1f} times before it" if growth > 1.5 else ""
    yield Seen(
        f"the loss jumps to {value:.4g} at step {step}{told}", run.calls.line("loss"), value, tuple(found[:6]),
        severity="warning" if len(found) > 2 else "info",
    )  # fmt: skip  # in a row


def _growth_before(data: MonitorData | None, step: int) -> float:
    """Return how much larger the updates right before a step were than those before them."""
    if data is None or not len(data):
        return math.nan
    sizes = np.sqrt(np.nansum(np.square(data.update_norm), axis=1))[data.steps <= step]
    return float(sizes[-2:].max() / np.median(sizes[:-2])) if len(sizes) > 5 and np.median(sizes[:-2]) > 0 else math.nan


def _overfits(run: Run) -> Iterator[Seen]:
    held, curve = run.held_out, _curve(run)
    if len(held) < 4 or not len(curve):
        return
    best = int(np.argmin(held[:, 1]))
    last, train = float(held[-1, 1]), float(curve[-max(len(curve) // 10, 1) :, 1].mean())
    if last > OVERFITTED * held[best, 1] and train < 0.8 * last:
        yield Seen(
            f"the loss of the examples set aside was best at step {int(held[best, 0])} ({held[best, 1]:.4g}) and is "
            f"now {last:.4g}, that of training {train:.4g}",
            "", last / float(held[best, 1]), _pairs(held[:, 0], held[:, 1]),
        )  # fmt: skip  # in a row


# --- gradients ---


def _ratios(data: MonitorData) -> tuple[list[int], Array]:
    """Return the matrices, and ‖gradient‖ / ‖weights‖ of them, (S, M)."""
    places = [at for at, axes in enumerate(data.dims) if axes > 1]
    with np.errstate(all="ignore"):
        return places, data.gradient_norm[:, places] / data.parameter_norm[:, places]


def _middle(values: Array) -> Array:
    """Return the median over the samples, NaN where nothing is known."""
    known = np.where(np.isfinite(values), values, np.nan)
    out = np.full(values.shape[1:], np.nan)
    some = ~np.isnan(known).all(axis=0)
    out[some] = np.nanmedian(known[:, some], axis=0)
    return out


def _vanishing(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or len(data) < ENOUGH:
        return
    places, ratios = _ratios(data)
    if len(places) < 4:
        return
    middle = _middle(ratios)
    known = [at for at in range(len(places)) if middle[at] > 0]
    if len(known) < 4:
        return
    low = min(known, key=lambda at: middle[at])
    high = max((at for at in known if at >= low), key=lambda at: middle[at])
    share = float(middle[low] / middle[high])
    if share < VANISHED:
        yield Seen(
            f"relative to its weights the gradient of {data.parameters[places[low]]} is {middle[low]:.1e}, that of "
            f"{data.parameters[places[high]]} {middle[high]:.1e}",
            data.parameters[places[low]], share, _pairs(data.steps, ratios[:, low] / ratios[:, high]),
        )  # fmt: skip  # in a row


def _exploding(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or not len(data):
        return
    places, ratios = _ratios(data)
    high = np.where(np.isfinite(ratios), ratios, 0.0)
    if not places or (high > EXPLODED).any(axis=1).sum() < min(2, len(data)):
        return
    sample, at = np.unravel_index(int(high.argmax()), high.shape)
    yield Seen(
        f"the gradient of {data.parameters[places[at]]} is {high[sample, at]:.1e} times as large as its weights in "
        f"step {data.steps[sample]}",
        data.parameters[places[at]], float(high[sample, at]), _pairs(data.steps, high[:, at]),
    )  # fmt: skip  # in a row


def _zigzag(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None:
        return
    known = np.isfinite(data.gradient_cosine)
    if known.sum() < 4:
        return
    middle = float(np.median(data.gradient_cosine[known]))
    if middle < OPPOSITE:
        yield Seen(
            f"the gradient of a step points against that of the step before (cosine {middle:.2f}): the weights jump to "
            "and fro across a valley",
            "", middle, _pairs(data.steps[known], data.gradient_cosine[known]),
        )  # fmt: skip  # in a row


def _clipped(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None:
        return
    known = np.isfinite(data.total_norm_clipped) & np.isfinite(data.total_norm)
    if known.sum() < 8:
        return
    cut = data.total_norm_clipped[known] < data.total_norm[known] * (1 - 1e-3)
    if cut.mean() > CLIPPED:
        yield Seen(
            f"the gradients are clipped in {cut.mean():.0%} of the steps, from {np.median(data.total_norm[known]):.3g} "
            f"to {np.median(data.total_norm_clipped[known]):.3g} in the middle: the limit is a learning rate",
            "", float(cut.mean()), _pairs(data.steps[known], data.total_norm[known]),
        )  # fmt: skip  # in a row


# --- updates ---


def _update_shares(data: MonitorData) -> Array:
    """Return ‖change‖ / ‖weights‖ of all matrices as one, (S,)."""
    places = [at for at, axes in enumerate(data.dims) if axes > 1]
    moved = np.sqrt(np.nansum(np.square(data.update_norm[:, places]), axis=1))
    size = np.sqrt(np.nansum(np.square(data.parameter_norm[:, places]), axis=1))
    with np.errstate(all="ignore"):
        share = moved / size
    return np.where(np.isfinite(data.update_norm[:, places]).any(axis=1), share, np.nan)


def _rate_measured(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or len(data) < 3:
        return
    shares = _update_shares(data)
    known = np.isfinite(shares)
    if known.sum() < 3:
        return
    # The first step of an optimizer that divides by the gradient is as large as its rate allows.
    middle = float(np.median(shares[known][1:]))
    evidence = _pairs(data.steps[known], shares[known])
    if middle > FAST:
        yield Seen(
            f"a step changes the weights by {middle:.0%} of their size", run.setup.built, middle, evidence,
            advice="Lower the learning rate, by powers of three; a healthy step changes about a thousandth.",
            remedy="optimizer.param_groups[0]['lr'] /= 10", threshold=FAST,
        )  # fmt: skip  # in a row
    elif 0 < middle < SLOW:
        yield Seen(
            f"a step changes the weights by {middle:.1e} of their size: nothing is learnt", run.setup.built, middle,
            evidence, threshold=SLOW,
        )  # fmt: skip  # in a row


def _never_updated(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or len(data) < 3:
        return
    some = np.nan_to_num(data.gradient_norm) > 0
    still = (np.nan_to_num(data.update_norm, nan=1.0) == 0) & some
    rate = np.nan_to_num(data.rate, nan=1.0) > 0
    names = [
        name for at, name in enumerate(data.parameters)
        if name not in run.setup.not_given and still[rate, at].sum() > 2 and still[rate, at].all()
    ]  # fmt: skip  # in a row
    if names and not run.calls.empty:
        yield Seen(
            f"{_list(names)} {'has' if len(names) == 1 else 'have'} gradients and never changed in {len(data)} sampled "
            "steps",
            names[0], float(len(names)),
        )  # fmt: skip  # in a row


def _no_gradient(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or len(data) < 3 or run.calls.empty or run.calls.detached:
        return
    missing = np.isnan(data.gradient_norm) & np.isnan(data.gradient_nonfinite)
    names = [name for at, name in enumerate(data.parameters) if missing[:, at].all() and name not in run.setup.frozen]
    if names and len(names) < len(data.parameters):
        yield Seen(f"{_list(names)} got no gradient in {len(data)} sampled steps", names[0], float(len(names)))
    nothing = [name for at, name in enumerate(data.parameters) if (data.gradient_norm[:, at] == 0).all()]
    if nothing:
        yield Seen(
            f"the gradient of {_list(nothing)} was exactly zero in {len(data)} sampled steps", nothing[0],
            float(len(nothing)),
        )  # fmt: skip  # in a row


# --- activations ---


def _dead(run: Run) -> Iterator[Seen]:
    samples = 0 if run.data is None else len(run.data)
    for name, share in run.throughout.items():
        if share > MOSTLY and samples >= ENOUGH:
            yield Seen(f"{share:.0%} of the units of '{name}' were zero in every sampled step ({samples})", name, share)


def _saturated(run: Run) -> Iterator[Seen]:
    data = run.data
    if data is None or len(data) < ENOUGH:
        return
    middle = _middle(data.activation_saturated)
    for at, share in enumerate(middle):
        if share > MOSTLY:
            yield Seen(
                f"{share:.0%} of the outputs of '{data.activations[at]}' lie close to a bound, where it hardly has a "
                "slope",
                data.activations[at], float(share), _pairs(data.steps, data.activation_saturated[:, at]),
            )  # fmt: skip  # in a row


# --- the data ---


def _unshuffled(run: Run) -> Iterator[Seen]:
    # Labels that are all different are numbers of places, as in contrastive losses.
    known = [labels for _, labels in run.labels if labels.count >= 16 and 2 * labels.distinct <= labels.count]
    if len(known) < 3 or not all(labels.ordered for labels in known):
        return
    alike = sum(labels.distinct == 1 for labels in known)
    what = "each batch has the labels of one class" if alike == len(known) else "the labels of each batch come in order"
    yield Seen(f"{what}, in all {len(known)} sampled steps: the data are not shuffled", run.calls.line("loss"))


def _list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _batch_size(run: Run) -> Iterator[Seen]:
    scale = run.noise_scale
    batch = float(np.nanmedian(run.data.batch)) if run.data is not None and math.isfinite(scale) else math.nan
    pairs = 0 if run.data is None else int(np.isfinite(run.data.gradient_cosine).sum())
    if pairs >= 8 and scale > APART * batch:
        yield Seen(
            f"noise and signal of the gradient are equal at a batch of about {scale:.0f}; the batch has {batch:.0f}",
            "", scale, threshold=APART * batch,
        )  # fmt: skip  # in a row


RULES: tuple[Rule, ...] = (
    Rule("loss not finite", "error", _loss_bad,
         "Look at the first step in which it happened: a logarithm or a root of 0, a division by 0, a rate too high.",
         "doctor.examine(model, batch, loss_fn)"),
    Rule("first loss far off", "warning", _first_loss_far,
         "Make the weights of the last layer smaller and set its bias to 0.", "model[-1].weight.data *= 0.1"),
    Rule("loss rises", "error", _rises, "Lower the learning rate.", "optimizer.param_groups[0]['lr'] /= 10", RISEN,
         "Goodfellow, Bengio, Courville, Deep Learning (2016), section 11.4.1"),
    Rule("loss does not fall", "warning", _flat,
         "Try a rate ten times as high, and then ten times as low; see whether one batch can be learnt.",
         "doctor.examine(model, batch, loss_fn)", 0.98),
    Rule("loss spikes", "warning", _spikes, "Clip the gradients, lower the rate, or warm it up.",
         "clip_grad_norm_(model.parameters(), 1.0)", SPIKE,
         "Wortsman et al. (2023), Small-scale proxies for large-scale transformer training instabilities"),
    Rule("overfitting", "info", _overfits, "Stop earlier, take more data, dropout or weight decay.",
         "weight_decay=0.1", OVERFITTED, "Prechelt (1998), Early stopping - but when?"),
    Rule("vanishing gradient", "warning", _vanishing,
         "Use ReLU or GELU in place of tanh and sigmoid, initial weights that fit, normalisation layers, or "
         "connections that skip layers.", "nn.init.kaiming_normal_(layer.weight)", VANISHED,
         "Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks"),
    Rule("exploding gradient", "error", _exploding,
         "Clip the gradients, lower the learning rate, draw smaller initial weights, or add normalisation layers.",
         "clip_grad_norm_(model.parameters(), 1.0)", EXPLODED,
         "Pascanu, Mikolov, Bengio (2013), On the difficulty of training recurrent neural networks"),
    Rule("gradients zigzag", "warning", _zigzag,
         "Lower the learning rate: it is above 2 divided by the curvature along the gradient.",
         "optimizer.param_groups[0]['lr'] /= 3", OPPOSITE,
         "Cohen et al. (2021), Gradient descent on neural networks typically occurs at the edge of stability"),
    Rule("always clipped", "info", _clipped,
         "Raise the limit, or lower the rate: with every gradient clipped, its length says nothing.", "", CLIPPED,
         "Zhang et al. (2020), Why gradient clipping accelerates training"),
    Rule("gradients mostly noise", "info", _batch_size,
         "Larger batches, or gradients summed over several, would bear a higher rate.", "",
         source="McCandlish et al. (2018), An empirical model of large-batch training"),
    Rule("rate unfit for the weights", "warning", _rate_measured,
         "Raise the learning rate; a healthy step changes the weights by about a thousandth.",
         "optimizer.param_groups[0]['lr'] *= 10",
         source="Bottou (2012), Stochastic gradient descent tricks, section 5.2"),
    Rule("never updated", "error", _never_updated,
         "See that the optimizer was made from the parameters of this model, after it was moved or converted, and that "
         "the change is not lost in rounding.", "optimizer = SGD(model.parameters(), lr=0.1)"),
    Rule("no gradient", "warning", _no_gradient,
         "Use the layer in forward(), look for detach(), item() or no_grad() on the way; freeze it if it is meant.",
         "parameter.requires_grad_(False)"),
    Rule("dead units", "warning", _dead,
         "Lower the learning rate, draw weights with kaiming_normal_ and biases at 0, or use LeakyReLU or GELU.",
         "nn.LeakyReLU()", MOSTLY, "Maas, Hannun, Ng (2013), Rectifier nonlinearities improve neural network acoustic "
         "models"),
    Rule("saturated", "warning", _saturated,
         "Draw smaller weights for the layer before it, normalise what enters it, or scale the inputs.",
         "nn.init.xavier_normal_(layer.weight)", MOSTLY,
         "Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks"),
    Rule("data not shuffled", "warning", _unshuffled, "Shuffle the examples.", "DataLoader(data, shuffle=True)",
         source="Bengio (2012), Practical recommendations for gradient-based training, section 2.2"),
)  # fmt: skip  # a table
