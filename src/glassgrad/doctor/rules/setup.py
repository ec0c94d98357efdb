"""Rules about how model, optimizer and random numbers fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glassgrad.doctor.rules.rule import Seen, error, info, listed, rules_of, warning
from glassgrad.doctor.run import Run

HIGHEST = {"SGD": 5.0, "SGDMomentum": 5.0, "RMSprop": 0.2, "Adagrad": 2.0, "Lion": 0.1}
"""Largest rates that are known to train a net; other optimizers divide by the gradient and use `_ADAPTIVE`."""
_ADAPTIVE = 0.2
_OWN_RATE = frozenset({"LBFGS", "Adadelta", "Rprop", "Adafactor", "ASGD", "Muon"})


@error(
    "optimizer of another model",
    "Make the optimizer from the parameters() of this model.",
    "optimizer = SGD(model.parameters(), lr=0.1)",
)
def _foreign(run: Run) -> Iterator[Seen]:
    setup = run.setup
    if setup.foreign and not setup.given:
        what = (
            f"none of the {setup.foreign} tensors of the optimizer is a parameter of this model: they belong to an "
            "earlier version of it, or to another model"
        )
        yield Seen(what, setup.built, float(setup.foreign))


@warning(
    "parameters without an optimizer",
    "Give the optimizer all parameters, or freeze those that you do not want to train.",
    "parameter.requires_grad_(False)  # or optimizer.add_param_group({'params': ...})",
)
def _not_given(run: Run) -> Iterator[Seen]:
    setup = run.setup
    if setup.not_given and setup.given:
        what = (
            f"{listed(setup.not_given)}: trainable, but no optimizer has "
            f"{'it' if len(setup.not_given) == 1 else 'them'}"
        )
        yield Seen(what, setup.built, float(len(setup.not_given)))


@warning(
    "layers shared",
    "Make each layer separately: `[layer] * n` is one layer n times.",
    "[make_layer() for _ in range(n)]",
)
def _shared(run: Run) -> Iterator[Seen]:
    for told in run.setup.shared[:3]:
        yield Seen(f"{told}, the same object with the same weights", run.setup.built)


@info(
    "no seed",
    "Set a seed before you make the model, so that a run can be repeated.",
    "manual_seed(0)",
    source="Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks",
)
def _unseeded(run: Run) -> Iterator[Seen]:
    for generator, where in run.setup.unseeded:
        ours = generator == "glassgrad's"
        what = f"{generator} random numbers were drawn without a seed"
        yield Seen(
            what + (", so they are those of seed 0" if ours else ", so no run can be repeated"),
            where,
            remedy="gg.manual_seed(0)"
            if ours
            else "torch.manual_seed(0)"
            if "Torch" in generator
            else "np.random.seed(0)",
        )


@warning(
    "learning rate out of the usual",
    "Start with a usual rate, and vary it by factors of three.",
    source="Bengio (2012), Practical recommendations for gradient-based training, section 2.1.1",
)
def _rate_unusual(run: Run) -> Iterator[Seen]:
    for kind, options in run.setup.optimizers:
        rate = options.get("lr", math.nan)
        if kind in _OWN_RATE or not isinstance(rate, int | float) or math.isnan(rate):
            continue
        highest = HIGHEST.get(kind, _ADAPTIVE)
        if rate > highest:
            yield Seen(
                f"the learning rate of {kind} is {rate:g}",
                run.setup.built,
                float(rate),
                threshold=highest,
                remedy=f"optimizer.param_groups[0]['lr'] = {highest / 50:g}",
            )
        elif rate == 0:
            yield Seen(f"the learning rate of {kind} is 0: nothing is learnt", run.setup.built, 0.0)


RULES = rules_of(globals())
