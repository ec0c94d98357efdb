"""Rules about what enters a model, and about weights when training begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.rules.rule import GLOROT, Seen, error, listed, pairs, rules_of, warning
from glassgrad.doctor.run import Run

CHANGED = 20.0
"""The ratio of the sizes of inputs at the beginning and the end of a run, that no data set has."""
LARGE, SMALL = 4.0, 0.02
"""The deviation of weights times the root of the number of inputs: 0.6 for linear layers, 1.4 for kaiming_normal_."""
MOSTLY = 0.5


def _at(line: str) -> str:
    return f" at {line}" if line else ""


@error(
    "examples mixed",
    "The first axis is that of the examples: look for an op along it, or tell the layer which axis comes first.",
    "batch_first=True",
)
def _mixed(run: Run) -> Iterator[Seen]:
    if run.parts.mixed is None:
        return
    kinds, made = run.parts.mixed
    forward = run.calls.line("forward")
    along = _along_the_batch(run)
    by = f"; {along[0]} at {along[1]} goes along that axis" if along and along[1] else ""
    by = f"; {kinds}{_at(made)} takes the first axis for the time" if kinds else by
    what = (
        f"the output of the model{_at(forward)} for the first examples of a batch changes with the others, in "
        f"evaluation mode too{by}"
    )
    yield Seen(what, made or (along[1] if along else "") or forward)


def _along_the_batch(run: Run) -> tuple[str, str] | None:
    """Return the first op that goes along the first axis of examples, and its line."""
    batch = run.data.batch[:4].tolist() if run.data is not None else []
    for op in run.graph.ops if run.graph is not None else ():
        if op.axis == 0 and op.shapes and op.shapes[0] and op.shapes[0][0] in batch:
            return op.name, op.where
    return None


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
            f"the deviation of the inputs{_at(where)} goes from {first:.3g} at first to {last:.3g} at the end: each "
            "epoch changes what the one before has left"
        )
        yield Seen(what, where, ratio, pairs(known[:, 0], known[:, 1]))


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
            f"'{name}' takes index {index} for padding, and it comes among the others{_at(where)}: all that have it "
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
            f"the target at each place is the token that enters the model{_at(where)} at the same place, so it need "
            "only repeat it"
        )
        yield Seen(what, where)


@error(
    "nothing was loaded",
    "Look at the names: remove the prefix that the saved ones have, and load without strict=False.",
    "model.load_state_dict({name.removeprefix('model.'): value for name, value in saved.items()})",
)
def _unloaded(run: Run) -> Iterator[Seen]:
    for line, count in run.parts.unloaded[:1]:
        what = f"load_state_dict{_at(line)} found none of the {count} names of the model, and strict=False says nothing"
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
            f"the weights of {listed([name for name, _ in found])}{_at(where)} are {how} when training begins: each "
            f"layer multiplies the size of its input by about {worst:.2g}"
        )
        yield Seen(what, where, worst, threshold=threshold)


RULES = rules_of(globals())
