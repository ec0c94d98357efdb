"""Rules about how model, optimizer and random numbers fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glassgrad.doctor import source_lines
from glassgrad.doctor.rules.rule import Seen, at_, error, info, listed, rules_of, warning
from glassgrad.doctor.run import Run

HIGHEST = {"SGD": 5.0, "SGDMomentum": 5.0, "RMSprop": 0.2, "Adagrad": 2.0, "Lion": 0.1}
"""Largest rates that are known to train a net; other optimizers divide by the gradient and use `_ADAPTIVE`."""
_ADAPTIVE = 0.1
DROPPED = 0.85
"""A probability of dropout from which next to nothing passes."""
FROZEN = 0.5
"""A share of frozen numbers that is worth knowing."""
LONG, SHORT, ROUNDS, MOSTLY = 60, 64, 4.0, 0.8
"""The steps after which a schedule should have taken one; the longest half wave of a cosine that may count epochs;
the half waves that a run needs; and the share of its steps in which the schedule steps."""
ADAPTIVE = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Lion", "Adadelta"})
"""Optimizers that divide by the size of the gradient."""
OWN_RATE = frozenset({"LBFGS", "Adadelta", "Rprop", "Adafactor", "ASGD", "Muon"})
"""Optimizers that choose the length of a step themselves, or take a rate of another size."""


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
    elif setup.loaded and setup.given:
        what = f"{listed(setup.loaded)} keep the weights that were loaded: no optimizer has them"
        yield Seen(what, setup.built, float(len(setup.loaded)), severity="info")


@warning(
    "layers shared",
    "Make each layer separately: `[layer] * n` is one layer n times.",
    "[make_layer() for _ in range(n)]",
)
def _shared(run: Run) -> Iterator[Seen]:
    for told in run.setup.shared[:3]:
        path = told.split(" ", 2)[1].rstrip(",").rpartition(".")[0]
        made = source_lines.assigned_to(path, run.parts.files) if path else ""
        place = f" (made at {made})" if made else ""
        yield Seen(f"{told}{place}, the same object with the same weights", made or run.setup.built)


@info(
    "no seed",
    "Set a seed before you make the model, so that a run can be repeated.",
    "manual_seed(0)",
    source="Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks",
)
def _unseeded(run: Run) -> Iterator[Seen]:
    for generator, where in run.setup.unseeded:
        so, remedy = "no run can be repeated", "np.random.seed(0)"
        if generator == "glassgrad's":
            so, remedy = "they are those of seed 0", "gg.manual_seed(0)"
        elif "Torch" in generator:
            remedy = "torch.manual_seed(0)"
        yield Seen(f"{generator} random numbers were drawn without a seed, so {so}", where, remedy=remedy)


@warning(
    "learning rate out of the usual",
    "Start with a usual rate, and vary it by factors of three.",
    source="Bengio (2012), Practical recommendations for gradient-based training, section 2.1.1",
)
def _rate_unusual(run: Run) -> Iterator[Seen]:
    for kind, options in run.setup.optimizers:
        rate = options.get("lr", math.nan)
        if kind in OWN_RATE or not isinstance(rate, int | float) or math.isnan(rate):
            continue
        highest = HIGHEST.get(kind, _ADAPTIVE)
        if rate > highest:
            what, remedy = f"the learning rate of {kind} is {rate:g}", _rate_of(highest / 50)
            yield Seen(what, run.setup.built, float(rate), threshold=highest, remedy=remedy)
        elif rate == 0:
            yield Seen(f"the learning rate of {kind} is 0: nothing is learnt", run.setup.built, 0.0)


def _rate_of(rate: float) -> str:
    return f"optimizer.param_groups[0]['lr'] = {rate:g}"


@warning(
    "betas exchanged",
    "The first beta averages gradients, the second one their squares over a longer time.",
    "Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.999))",
    source="Kingma and Ba (2015), Adam: a method for stochastic optimization",
)
def _betas(run: Run) -> Iterator[Seen]:
    for kind, options in run.setup.optimizers:
        betas = options.get("betas", ())
        if len(betas) == 2 and betas[0] > betas[1]:
            what = (
                f"the betas of {kind}{at_(run.setup.built)} are {betas[0]:g} and {betas[1]:g}: the average of the "
                "gradients reaches further back than that of their squares, which is to keep its steps small"
            )
            yield Seen(what, run.setup.built, float(betas[0]))


@warning(
    "schedule never stepped",
    "Call its step() after each epoch, or after each step of the optimizer, whichever its arguments count.",
    "optimizer.step(); schedule.step()",
)
def _unstepped(run: Run) -> Iterator[Seen]:
    known = run.parts.schedules
    if known and run.calls.steps >= LONG and not any(one.steps for one in known):
        one = known[0]
        what = f"{one.kind}, made at {one.where}, took no step in {run.calls.steps} steps: the rate stays as it is"
        yield Seen(what, one.where)


@warning(
    "schedule goes round",
    "Give T_max the number of all steps of the schedule: beyond it the rate rises again.",
    "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))  # stepped for each batch",
    ROUNDS,
)
def _round(run: Run) -> Iterator[Seen]:
    for one in run.parts.schedules:
        each = one.steps > MOSTLY * run.calls.steps
        if one.kind == "CosineAnnealingLR" and 1 < one.period < SHORT and one.steps > ROUNDS * one.period and each:
            where = run.calls.line("schedule")
            what = (
                f"{one.kind}, made at {one.where} for {one.period} steps, took {one.steps}{at_(where)}: the rate goes "
                f"down and up again {one.steps / one.period / 2:.0f} times"
            )
            yield Seen(what, where or one.where, one.steps / one.period)


@warning(
    "dropout out of the usual",
    "nn.Dropout takes the share that is set to 0, not the share that is kept: 0.1 to 0.5 is usual.",
    "nn.Dropout(0.2)",
    DROPPED,
)
def _dropout(run: Run) -> Iterator[Seen]:
    for name, share, where in run.parts.dropouts:
        yield Seen(f"'{name}'{at_(where)} sets {share:.1%} of its input to 0", where or run.setup.built, share)


@info(
    "frozen layers",
    "See that they are meant to be frozen; an optimizer that has them does not change them.",
    "parameter.requires_grad_(True)",
)
def _frozen_layers(run: Run) -> Iterator[Seen]:
    parts = run.parts
    share = 1 - parts.trainable / parts.elements if parts.elements else 0.0
    if run.setup.frozen and share > FROZEN:
        names = listed(run.setup.frozen)
        what = f"{share:.0%} of the model's numbers are frozen{at_(parts.frozen_at)} ({names}) and keep their values"
        yield Seen(what, parts.frozen_at or run.setup.built, share)


RULES = rules_of(globals())
