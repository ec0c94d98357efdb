"""Rules about the experiments of an examination."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from glassgrad.doctor.rules.rule import Seen, error, rules_of, warning

LEARNT = 0.8
"""Share of the initial loss that may be left after 80 steps of Adam on a few examples."""
STEEP = 12.0
"""Rate times curvature: above 2 the loss rises at first, above 12 it diverges."""


@warning(
    "batch not learnt",
    "A model that cannot memorise a few examples has a fault between inputs and loss: check whether the targets match "
    "the inputs, and whether something is detached.",
    threshold=LEARNT,
    source="Karpathy (2019), A recipe for training neural networks",
)
def _not_learnt(found: Any) -> Iterator[Seen]:
    steps, first, last = found.learnt
    if steps < 40 or not first > 0 or found.check_up.healthy is False:
        return  # reported by another rule
    if not last < LEARNT * first:
        what = f"{steps} steps of Adam on only a few examples changed the loss from {first:.4g} to {last:.4g}"
        yield Seen(what, value=last / first)


@error(
    "examples mixed",
    "Look for a reshape, a transpose or a softmax, sum or mean over the batch dimension.",
    "x.reshape(len(x), -1)  # the batch stays in front",
)
def _leaks(found: Any) -> Iterator[Seen]:
    if found.leaks > 0:
        what = (
            f"in evaluation mode the outputs of {found.leaks} examples change when another example of the batch changes"
        )
        yield Seen(what, value=float(found.leaks))


@warning(
    "rate above the curvature",
    "Lower the learning rate.",
    threshold=STEEP,
    source="Lewkowycz et al. (2020), The large learning rate phase of deep learning",
)
def _too_steep(found: Any) -> Iterator[Seen]:
    for kind, options in () if found.setup is None else found.setup.optimizers:
        rate = options.get("lr", math.nan)
        if kind != "SGD" or options.get("momentum") or not found.curvature > 0:
            continue
        if rate * found.curvature > STEEP:
            what = f"the rate is {rate:g} and the curvature along the gradient {found.curvature:.3g}"
            remedy = f"optimizer.param_groups[0]['lr'] = {2 / found.curvature:.2g}"
            yield Seen(f"{what}: a step goes uphill", found.setup.built, rate * found.curvature, remedy=remedy)


RULES = rules_of(globals())
