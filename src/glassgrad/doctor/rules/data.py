"""Rules about data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glassgrad.doctor.rules.batch import OF_INPUTS
from glassgrad.doctor.rules.rule import Seen, info, rules_of, warning

APART = 1e3
"""Ratio of the standard deviations of two features above which no learning rate suits both."""
RARE = 0.02


@warning(
    "examples in both splits",
    "Remove them from one split: a model that has memorised them looks better than it is.",
    source="Kapoor and Narayanan (2023), Leakage and the reproducibility crisis in machine-learning based science",
)
def _in_both(found: Any) -> Iterator[Seen]:
    if found.in_both:
        share = found.in_both / found.held_out
        what = f"{found.in_both} of {found.held_out} held-out examples have inputs that the training data also have"
        yield Seen(what, value=share, severity="warning" if found.duplicates == 0 else "info")


@info("examples twice", "Look for the join or the copy that duplicated them.", "np.unique(x, axis=0)")
def _twice(found: Any) -> Iterator[Seen]:
    if found.duplicates:
        yield Seen(f"{found.duplicates} training examples repeat an earlier one", value=float(found.duplicates))
    if found.contradictions:
        yield Seen(f"{found.contradictions} training inputs have several targets", value=float(found.contradictions))


@info("features constant", "Remove them, or find out why they do not vary.")
def _constant(found: Any) -> Iterator[Seen]:
    if 0 < found.constant < found.features:
        yield Seen(
            f"{found.constant} of {found.features} features have one value in all examples", value=float(found.constant)
        )


@warning(
    "features of unequal scale",
    "Scale each feature to mean 0 and standard deviation 1.",
    "(x - x.mean(0)) / (x.std(0) + 1e-8)",
    APART,
    "LeCun et al. (1998), Efficient BackProp, section 4.3",
)
def _scales(found: Any) -> Iterator[Seen]:
    low, high = found.scales
    if high > APART * low:
        yield Seen(f"the standard deviations of the features range from {low:.2g} to {high:.2g}", value=high / low)


@info(
    "classes uneven",
    "Draw the rare classes more often, or weight them in the loss.",
    "F.cross_entropy(logits, targets, weight=weights)",
    RARE,
)
def _classes(found: Any) -> Iterator[Seen]:
    if found.unseen:
        shown = ", ".join(map(str, found.unseen[:6]))
        yield Seen(
            f"the training data have no example of class {shown}", value=float(len(found.unseen)), severity="warning"
        )
    low, high = found.classes
    if high and low < RARE * high:
        yield Seen(f"the most frequent class has {high} examples, the rarest {low}", value=low / high)


RULES = (*OF_INPUTS, *rules_of(globals()))
