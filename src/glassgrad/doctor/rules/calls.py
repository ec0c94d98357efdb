"""Rules about the order of the calls in a loop: forgotten or early calls, and gradients that were cut off."""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.doctor import source_lines
from glassgrad.doctor.rules.order import is_generator
from glassgrad.doctor.rules.rule import Seen, at_, error, info, listed, rules_of, warning
from glassgrad.doctor.rules.setup import ADAPTIVE
from glassgrad.doctor.run import Run, line_of

MOSTLY = 0.5
"""The share of checked steps above which an observation is not an exception."""
LASTING = 3
"""The number of last samples, all in evaluation mode, from which nobody went back to training."""
EACH, SOME, FEW = 0.5, 8, 0.34
"""Seeds a step, examples in common, and validations a step: above, below which they tell something."""
PART_OF_STEP = 0.8
"""The share of steps with a call without gradients, from which it is part of the training, as in a game of two."""
SUMMED = 4
"""Backward passes for each step of the optimizer, from which their sum makes another rate."""
REMADE, PASSES = 6, 12
"""The number of optimizers of the same parameters, and of backward passes of each, that show a loop makes them."""


@error(
    "zero_grad is missing",
    "Zero the gradients once per step, before the backward pass.",
    "optimizer.zero_grad()  # before loss.backward()",
    MOSTLY,
)
def _no_zero_grad(run: Run) -> Iterator[Seen]:
    calls = run.calls
    found = calls.leftovers
    if len(found) >= 2 and len(found) > MOSTLY * calls.looked_for_leftovers:
        backward, step = calls.line("backward"), calls.line("step")
        what = (
            f"the backward pass{at_(backward)} adds to gradients that optimizer.step(){at_(step)} has already used: "
            f"they were not zeroed in {len(found)} of {calls.looked_for_leftovers} steps"
        )
        yield Seen(what, backward, len(found) / calls.looked_for_leftovers, tuple(found))


@error(
    "loss detached",
    "Compute the loss from the model's output without item(), numpy() or detach(), without making a new tensor, and "
    "without setting requires_grad on it.",
    "loss = loss_fn(model(inputs), targets)  # without .item(), .detach()",
)
def _detached(run: Run) -> Iterator[Seen]:
    found = run.calls.detached
    if found:
        where = line_of(found[0][1])
        what = (
            f"the loss of backward(){at_(where)} has no history: it was detached or made as a new tensor, so no "
            "gradient reaches the model"
        )
        yield Seen(what, where, evidence=tuple((step, 0.0) for step, _ in found[:4]))


@error("no backward pass", "Call loss.backward() before the step.", "loss.backward()")
def _never_backward(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.steps >= 2 and not calls.backwards:
        yield Seen(f"{calls.steps} steps{at_(calls.line('step'))} without a backward pass", calls.line("step"))


@error("step before backward", "Call backward first, then step.", "loss.backward(); optimizer.step()")
def _step_first(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.failure or len(calls.empty) >= 2:
        turned = _steps_before_backward(calls.sequence)
        if turned > 1 or (turned and calls.failure):
            step, backward = calls.line("step"), calls.line("backward")
            what = (
                f"optimizer.step(){at_(step)} comes before loss.backward(){at_(backward)}: the step has no "
                "gradient to use, and it overwrites the weights from which the loss was computed"
            )
            yield Seen(what, step, float(turned))


def _steps_before_backward(sequence: str) -> int:
    """Return in how many of the first rounds the step precedes the backward pass; 0 if that happens in few rounds."""
    rounds = [part for part in sequence.split("F") if "B" in part and "S" in part]
    turned = sum(part[0] == "S" for part in rounds)
    return turned if turned > MOSTLY * len(rounds) else 0


@error(
    "no gradients in a step",
    "Make sure that the loss is computed from the watched model, and zero the gradients before the backward pass, not "
    "after it.",
    "optimizer.zero_grad(); loss.backward(); optimizer.step()",
)
def _no_gradients(run: Run) -> Iterator[Seen]:
    calls = run.calls
    sampled = 0 if run.data is None else len(run.data)
    if len(calls.empty) >= 2 and len(calls.empty) > MOSTLY * sampled and not calls.detached:
        if not calls.backwards or _steps_before_backward(calls.sequence):
            return  # the rules above report this
        what = f"no watched parameter had a gradient in {len(calls.empty)} of {sampled} sampled steps"
        backward, step = calls.line("backward"), calls.line("step")
        alone = run.parts.alone and "BFB" not in calls.sequence
        zeroed = source_lines.between("zero_grad", backward, step, run.parts.files) if alone else ""
        what += f": {zeroed} zeroes what backward at {backward} has just made" if zeroed else ""
        yield Seen(what, zeroed or step, float(len(calls.empty)))


@error("no step", "Call the optimizer's step after the backward pass.", "optimizer.step()")
def _no_step(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.backwards >= 8 and not calls.steps and not calls.hidden and run.setup.optimizers:
        what = f"{calls.backwards} backward passes{at_(calls.line('backward'))} and no optimizer.step()"
        yield Seen(what, calls.line("backward"), float(calls.backwards))


@error("stopped", "All findings above are from before that point.")
def _stopped(run: Run) -> Iterator[Seen]:
    if run.calls.failure:
        yield Seen(f"the loop ended after {run.calls.steps} steps: {run.calls.failure}", run.calls.line("forward"))


@warning(
    "evaluation mode in training",
    "Call model.train() before training, and again after each validation.",
    "model.train()",
    MOSTLY,
)
def _evaluating(run: Run) -> Iterator[Seen]:
    found = run.calls.evaluating
    steps = [] if run.data is None else [int(step) for step in run.data.steps]
    sampled = len(steps)
    begun = found[0][0] if found else 0
    later = [step for step in steps if step >= begun]
    if len(found) < 2 or (len(found) <= MOSTLY * sampled and (len(found) < LASTING or len(found) < len(later))):
        return
    names = tuple(one for one in found[-1][1] if one not in run.parts.fixed)
    if not names:
        return  # layers that are not trained may rest
    whole = set(names) == set(run.setup.stochastic)
    where = source_lines.calling_method("eval", run.parts.files)
    helper = source_lines.switching(where, "eval", run.parts.files) if where else ""
    by = f"; eval() is called at {where}" if where else ""
    by += f", by the helper that {helper} calls" if helper else ""
    # Batch normalisation in evaluation mode while the rest trains is a way of fine-tuning.
    what = f"{listed(names)} ran in evaluation mode in {len(found)} of {sampled} sampled training steps{by}"
    yield Seen(what, run.calls.line("forward"), len(found) / sampled, severity="" if whole else "info")


@warning(
    "frozen layers in training mode",
    "Put the frozen part into evaluation mode after each call of train().",
    "model.train(); model.backbone.eval()",
)
def _frozen_moves(run: Run) -> Iterator[Seen]:
    moving = run.parts.moving
    if moving:
        where = source_lines.calling_method("train", run.parts.files, run.calls.line("forward"))
        frozen = f" at {run.parts.frozen_at}" if run.parts.frozen_at else ""
        what = (
            f"the weights of {listed(moving)} are frozen{frozen}, and train(){at_(where)} lets their running "
            "statistics follow the new data: the features are no longer those that were trained"
        )
        yield Seen(what, where or run.calls.line("forward"), float(len(moving)))


@warning(
    "training mode in evaluation", "Call model.eval() before a validation, and model.train() after it.", "model.eval()"
)
def _validated_in_training(run: Run) -> Iterator[Seen]:
    found = run.calls.training
    each = len({step for step, _ in found}) > PART_OF_STEP * max(run.calls.steps, 1)
    if found and not (each and run.parts.against) and not is_generator(run):
        where = line_of(found[0][1])
        names = ", ".join(run.setup.stochastic[:3])
        what = f"the model was called without gradients in training mode{at_(where)}: {names} behave as in training"
        yield Seen(what, where, float(len(found)))


@warning(
    "training mode in evaluation",
    "Call model.eval() and switch gradients off before a validation, and model.train() after it.",
    "model.eval()\nwith torch.no_grad():",
)
def _validated_with_gradients(run: Run) -> Iterator[Seen]:
    where, calls = run.parts.apart
    if calls and not run.calls.training and not run.parts.against:
        names = ", ".join(run.setup.stochastic[:3])
        what = (
            f"the model was called in training mode at {where}, and no backward pass came of it ({calls} calls were "
            f"seen): {names} behave as in training"
        )
        yield Seen(what, where, float(calls))


@warning(
    "step without new gradients",
    "Call step once after each backward pass.",
    "loss.backward(); optimizer.step()",
    MOSTLY,
)
def _stepped_again(run: Run) -> Iterator[Seen]:
    sequence = run.calls.sequence
    rounds = sequence.count("BS")
    again = sequence.count("BSS")
    if len(run.setup.optimizers) == 1 and again >= LASTING and again > MOSTLY * rounds:
        one, other = run.calls.line("step"), run.calls.line("again")
        what = (
            f"optimizer.step(){at_(one)} and again{at_(other)} use the gradients of one backward pass, in {again} of "
            f"{rounds} rounds: the second step goes the same way as if the first had changed nothing"
        )
        yield Seen(what, other or one, again / rounds)


@error(
    "optimizer made in the loop",
    "Make the optimizer once, before the loop: a new one has no momentum and no averages.",
    "optimizer = Adam(model.parameters())  # above the loop",
    float(REMADE),
)
def _remade(run: Run) -> Iterator[Seen]:
    count, where = run.parts.remade
    kinds = [(kind, options) for kind, options in run.setup.optimizers]
    stateful = any(kind in ADAPTIVE or options.get("momentum") for kind, options in kinds)
    if count >= REMADE and stateful and run.calls.backwards < PASSES * count:
        what = (
            f"{count} optimizers of the same parameters were made{at_(where)} in {run.calls.backwards} backward passes"
        )
        yield Seen(what, where, float(count))


@warning(
    "dropout in evaluation",
    "Tell the function the mode: training=self.training.",
    "F.dropout(x, p, training=self.training)",
)
def _always_dropped(run: Run) -> Iterator[Seen]:
    for line, explicit in source_lines.dropping(run.parts.files):
        what = f"the dropout at {line} drops in evaluation too: it is {'told to' if explicit else 'not told the mode'}"
        yield Seen(what, line, severity="info" if explicit else "")


@info(
    "validated on training data",
    "Set examples aside before training, and validate on them only.",
    "train, held_out = examples[:800], examples[800:]",
)
def _validated_on_training(run: Run) -> Iterator[Seen]:
    parts = run.parts
    if parts.shared >= SOME and parts.held_calls <= FEW * run.calls.steps:
        where = run.calls.line("held")
        what = (
            f"{parts.shared} of the {parts.held} examples that the model was called with without gradients{at_(where)} "
            "are among the sampled training examples: their loss says nothing about new ones"
        )
        yield Seen(what, where, float(parts.shared))


@warning(
    "seed set in the loop",
    "Set the seed once, before the model is made.",
    "torch.manual_seed(0)  # above the loop",
    EACH,
)
def _seeded(run: Run) -> Iterator[Seen]:
    seeds, steps = run.parts.seeds, max(run.calls.steps, 1)
    if seeds >= LASTING and seeds >= EACH * steps:
        where = run.calls.line("seed")
        what = (
            f"the same seed is set again{at_(where)} in {seeds} of {steps} steps: each step draws the same batch, "
            "noise and dropout"
        )
        yield Seen(what, where, seeds / steps)


@info(
    "accumulated without division",
    "Divide each loss by the number of backward passes for a step.",
    "(loss / accumulate).backward()",
    float(SUMMED),
)
def _accumulated(run: Run) -> Iterator[Seen]:
    rounds = [part.count("B") for part in run.calls.sequence.split("S")[:-1]]
    last = run.graph.ops[run.graph.loss].name if run.graph.loss >= 0 else "divide"
    passes = min(rounds, default=0)
    if len(rounds) >= 2 and passes == max(rounds) >= SUMMED and last in _MEANS and run.parts.alone:
        backward = run.calls.line("backward")
        what = (
            f"{passes} backward passes{at_(backward)} add up for each step, and each is of a mean: the gradient is "
            f"{passes} times that of the mean over all"
        )
        yield Seen(what, backward, float(passes))


_MEANS = frozenset({"cross_entropy", "mse_loss", "mean", "nll_loss", "binary_cross_entropy_with_logits", "l1_loss"})


@error(
    "NaN in the targets", "Look at what the target or the weight was computed from: the deviation of one number is NaN."
)
def _bad_targets(run: Run) -> Iterator[Seen]:
    if run.parts.bad is not None:
        op, where = run.parts.bad
        yield Seen(f"{op}{at_(where)} is given a target or a weight that is not finite", where)


RULES = rules_of(globals())
