"""Rules about what enters a model, and about weights when training begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import source_lines
from glassgrad.doctor.graphs.graph import COMPARES
from glassgrad.doctor.rules.rule import GLOROT, Seen, at_, error, listed, pairs, rules_of, warning
from glassgrad.doctor.run import Run

CHANGED = 20.0
"""The ratio of the sizes of inputs at the beginning and the end of a run, that no data set has."""
OTHER, SHIFTED = 5.0, 4.0
"""The ratio of the deviations of inputs in training and in validation, and the distance of their means in deviations
of training:
no split of one data set, and no extrapolation that is meant, goes so far."""
LARGE, SMALL = 4.0, 0.02
"""The deviation of weights times the root of the number of inputs: 0.6 for linear layers, 1.4 for kaiming_normal_."""
MOSTLY = 0.5
COPIES = 3
"""The number of batches of copies that is a sign; fewer occur by chance."""


@error(
    "examples mixed",
    "The first axis is that of the examples: look for an op along it, or tell the layer which axis comes first.",
    "batch_first=True",
)
def _mixed(run: Run) -> Iterator[Seen]:
    if run.parts.mixed is None:
        return
    kinds, made, line = run.parts.mixed
    forward = run.calls.line("forward")
    what = (
        f"the output of the model{at_(forward)} for an example changes with the others of the batch, or with its "
        "place among them, in evaluation mode too"
    )
    what += f"; that begins at {line}" if line else ""
    what += f"; {kinds}{at_(made)} takes the first axis for the time" if kinds else ""
    yield Seen(what, made or line or forward)


@error(
    "inputs change from epoch to epoch",
    "Prepare the data once, before the loop, or write the result under another name.",
    "inputs = images / 255  # a new tensor; images stays",
    CHANGED,
)
def _drift(run: Run) -> Iterator[Seen]:
    known = np.array([pair for pair in run.parts.sizes if np.isfinite(pair[1]) and pair[1] > 0]).reshape(-1, 2)
    if len(known) < 6:
        return
    first, last = float(np.median(known[:2, 1])), float(np.median(known[-2:, 1]))
    ratio = max(first, last) / max(min(first, last), 1e-30)
    middle = float(np.median(known[:, 1]))
    steady = min(first, last) <= middle <= max(first, last)
    if ratio > CHANGED and steady:
        where = run.calls.line("forward")
        what = (
            f"the deviation of the inputs{at_(where)} goes from {first:.3g} at first to {last:.3g} at the end: each "
            "epoch changes what the one before has left"
        )
        yield Seen(what, where, ratio, pairs(known[:, 0], known[:, 1]))


@warning(
    "held-out inputs of another scale",
    "Prepare the examples of a validation as those of training: with the mean and the deviation of the training data.",
    "x_test = (x_test - mean) / std  # as x_train",
    OTHER,
)
def _beside(run: Run) -> Iterator[Seen]:
    if run.parts.beside is None or run.parts.against:
        return
    (mean, size), (held_mean, held_size) = run.parts.beside
    if not min(size, held_size) > 0:
        return
    ratio = max(size, held_size) / min(size, held_size)
    apart = abs(held_mean - mean) / size
    if ratio > OTHER or apart > SHIFTED:
        where = run.calls.line("held")
        what = (
            f"the inputs of the passes without gradients{at_(where)} have mean {held_mean:.3g} and deviation "
            f"{held_size:.3g}, and those of training have {mean:.3g} and {size:.3g}: it has not seen such numbers"
        )
        yield Seen(what, where, max(ratio, apart), threshold=OTHER if ratio > OTHER else SHIFTED)


@error(
    "padding index is a token",
    "Number the tokens from 1 on, or leave padding_idx out: its row stays 0 and is never trained.",
    "nn.Embedding(n + 1, width, padding_idx=0)",
)
def _pads(run: Run) -> Iterator[Seen]:
    if run.parts.pads is not None:
        name, index = run.parts.pads
        where = run.calls.line("forward")
        what = (
            f"'{name}' takes index {index} for padding, and it comes among the others{at_(where)}: all that have it "
            "get the same row of zeros, which no step changes"
        )
        yield Seen(what, run.parts.pads_at or where)


@error(
    "targets seen by the model",
    "Shift the targets: give the decoder the tokens before the one that it is to say.",
    "logits = decoder(tokens[:, :-1]); loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())",
)
def _repeats(run: Run) -> Iterator[Seen]:
    if run.parts.repeats:
        where = run.calls.line("forward")
        what = (
            f"the target at each place is the token that enters the model{at_(where)} at the same place, so it need "
            "only repeat it"
        )
        yield Seen(what, where)


@error(
    "targets shifted twice",
    "Shift once: in the data or in the loss.",
    "loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # labels are shifted already",
)
def _twice(run: Run) -> Iterator[Seen]:
    if run.parts.twice:
        where = run.calls.line("loss")
        what = (
            f"the target of each place{at_(where)} is the token two places ahead: data and loss both shift it, and the "
            "next token is never asked for"
        )
        yield Seen(what, where)


@error(
    "nothing was loaded",
    "Look at the names: remove the prefix that the saved ones have, and load without strict=False.",
    "model.load_state_dict({name.removeprefix('model.'): value for name, value in saved.items()})",
)
def _unloaded(run: Run) -> Iterator[Seen]:
    for line, count in run.parts.unloaded[:1]:
        what = f"load_state_dict{at_(line)} found none of the {count} names of the model, and strict=False says nothing"
        yield Seen(what, line, float(count))


@warning(
    "initial weights out of the usual",
    "Draw weights whose deviation fits the number of inputs: kaiming_normal_ for ReLU, xavier_normal_ for tanh.",
    "nn.init.kaiming_normal_(layer.weight)",
    LARGE,
    GLOROT,
)
def _gains(run: Run) -> Iterator[Seen]:
    gains = [(name, gain) for name, gain in run.parts.gains if np.isfinite(gain) and gain > 0]
    large = [(name, gain) for name, gain in gains if gain > LARGE]
    small = [(name, gain) for name, gain in gains if gain < SMALL]
    for found, how, threshold in ((large, "too large", LARGE), (small, "too small", SMALL)):
        if len(found) < 2 or len(found) <= MOSTLY * len(gains):
            continue
        where = run.parts.drawn_at or run.setup.built
        worst = (max if found is large else min)(gain for _, gain in found)
        what = (
            f"the weights of {listed([name for name, _ in found])}{at_(where)} are {how} when training begins: each "
            f"layer multiplies the size of its input by about {worst:.2g}"
        )
        yield Seen(what, where, worst, threshold=threshold)


@error(
    "copies in a batch",
    "Copy each example where it is put into the list: an array that is changed later changes in all places.",
    "memory.append((state.copy(), action, reward))",
    COPIES,
)
def _copied(run: Run) -> Iterator[Seen]:
    rows = run.parts.rows
    if rows.alike < COPIES or rows.alike <= MOSTLY * rows.batches or _targets_alike(run):
        return
    if rows.same and any(facts.summary.std == 0 for facts in run.inputs):
        return  # all elements are equal
    where = run.calls.line("forward")
    each = "are one and the same" if rows.same > MOSTLY * rows.alike else "are copies of a few"
    what = (
        f"the examples of a batch{at_(where)} {each} in {rows.alike} of {rows.batches} sampled steps, and their "
        "targets differ"
    )
    added = source_lines.calling({"append", "extend"}, run.parts.files)
    what += f"; {added} collects them" if added else ""
    yield Seen(what, where, rows.alike / rows.batches, threshold=MOSTLY)


def _targets_alike(run: Run) -> bool:
    """Tell whether all known targets of a batch are equal."""
    if run.labels:
        return all(labels.distinct < 2 for _, labels in run.labels)
    return bool(run.pairs) and all(not y.astype(np.float64).std() for _, y in run.pairs)


@warning(
    "axes mixed by a reshape",
    "Move the axis of the channels with transpose or permute: reshape and view cut the numbers anew.",
    "x = x.transpose(0, 3, 1, 2)  # (batch, height, width, channels) to (batch, channels, height, width)",
)
def _recut(run: Run) -> Iterator[Seen]:
    layout = run.parts.layout
    if layout is None:
        return
    where = run.calls.line("forward")
    cut = source_lines.cutting_anew(run.parts.files, layout.channels)
    what = (
        f"the inputs{at_(where)} have {layout.channels} channels in axis 1, and the numbers {layout.channels} places "
        f"apart are neighbours (correlation {layout.other:.2f}), those beside each other less ({layout.near:.2f}): the "
        f"channels are the last axis in memory{f', and {cut} cuts them anew' if cut else ''}"
    )
    yield Seen(what, cut or where, layout.other)


@warning(
    "input without effect",
    "Look at what forward does with it: a wrong variable, a slice that cuts it off, or a name that is set anew.",
)
def _idle(run: Run) -> Iterator[Seen]:
    forward = run.calls.line("forward")
    for name in run.parts.idle[:2]:
        used, returned = source_lines.used_in_forward(name, run.parts.files)
        told = f": forward uses it at {used} and returns at {returned}" if used else f": forward returns at {returned}"
        what = (
            f"the argument '{name}' of the model{at_(forward)} has no effect: with the values of other examples the "
            f"outputs stay the same, in both modes{told if returned else ''}"
        )
        yield Seen(what, used or returned or forward)
    for name in run.parts.columns[:1]:
        cut = source_lines.slicing(run.parts.files)
        what = (
            f"the {name} column of the inputs{at_(forward)} has no effect: with the values of other examples the "
            f"outputs stay the same, in both modes{f'; {cut} takes a part' if cut else ''}"
        )
        yield Seen(what, cut or forward)


@error(
    "loss of one example",
    "Compare the outputs of all examples with their targets.",
    "loss = criterion(output, target)  # without an index of the batch",
)
def _single(run: Run) -> Iterator[Seen]:
    if run.parts.single is None:
        return
    place, passes = run.parts.single
    counts = [labels.count for _, labels in run.labels]
    shapes = [op.constant.shape for op in run.graph.ops if op.constant is not None and op.name in COMPARES]
    one = bool(counts) and max(counts) == 1
    flat = bool(shapes) and not counts and all(len(shape) < 3 for shape in shapes)
    if one or flat:
        where, which = run.calls.line("loss"), "last" if place < 0 else f"{place + 1}."
        what = (
            f"the gradient of the loss{at_(where)} reaches the output for the {which} example of the batch only, in "
            f"all {passes} passes that were looked at: the others teach nothing"
        )
        yield Seen(what, where, float(passes))


@error(
    "loaded weights drawn anew",
    "Initialise first, and load afterwards.",
    "model.apply(init_weights); model.load_state_dict(saved)",
)
def _anew(run: Run) -> Iterator[Seen]:
    if run.parts.anew is not None:
        loaded, count, known = run.parts.anew
        drawn = run.parts.drawn_at
        what = (
            f"{count} of {known} matrices that load_state_dict{at_(loaded)} filled have other values when training "
            f"begins{f': weights are drawn at {drawn}' if drawn else ''}"
        )
        yield Seen(what, loaded, float(count))


RULES = rules_of(globals())
