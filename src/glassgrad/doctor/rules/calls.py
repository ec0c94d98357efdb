"""Rules about the order of the calls in a loop: forgotten or early calls, and gradients that were cut off."""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.doctor.rules.rule import Seen, error, listed, rules_of, warning
from glassgrad.doctor.run import Run, line_of

MOSTLY = 0.5
"""The share of checked steps above which an observation is not an exception."""


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
            f"the backward pass{_at(backward)} adds to gradients that optimizer.step(){_at(step)} has already used: "
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
            f"the loss of backward(){_at(where)} has no history: it was detached or made as a new tensor, so no "
            "gradient reaches the model"
        )
        yield Seen(what, where, evidence=tuple((step, 0.0) for step, _ in found[:4]))


@error("no backward pass", "Call loss.backward() before the step.", "loss.backward()")
def _never_backward(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.steps >= 2 and not calls.backwards:
        yield Seen(f"{calls.steps} steps{_at(calls.line('step'))} without a backward pass", calls.line("step"))


@error("step before backward", "Call backward first, then step.", "loss.backward(); optimizer.step()")
def _step_first(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.failure or len(calls.empty) >= 2:
        turned = _steps_before_backward(calls.sequence)
        if turned > 1 or (turned and calls.failure):
            step, backward = calls.line("step"), calls.line("backward")
            what = (
                f"optimizer.step(){_at(step)} comes before loss.backward(){_at(backward)}: the step has no "
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
        yield Seen(what, calls.line("step"), float(len(calls.empty)))


@error("no step", "Call the optimizer's step after the backward pass.", "optimizer.step()")
def _no_step(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.backwards >= 8 and not calls.steps and not calls.hidden and run.setup.optimizers:
        what = f"{calls.backwards} backward passes{_at(calls.line('backward'))} and no optimizer.step()"
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
    sampled = 0 if run.data is None else len(run.data)
    if len(found) < 2 or len(found) <= MOSTLY * sampled:
        return
    names = found[0][1]
    whole = set(names) == set(run.setup.stochastic)
    # Batch normalisation in evaluation mode while the rest trains is a way of fine-tuning.
    what = f"{listed(names)} ran in evaluation mode in {len(found)} of {sampled} sampled training steps"
    yield Seen(what, run.calls.line("forward"), len(found) / sampled, severity="" if whole else "info")


@warning(
    "training mode in evaluation", "Call model.eval() before a validation, and model.train() after it.", "model.eval()"
)
def _validated_in_training(run: Run) -> Iterator[Seen]:
    found = run.calls.training
    if found:
        where = line_of(found[0][1])
        names = ", ".join(run.setup.stochastic[:3])
        what = f"the model was called without gradients in training mode{_at(where)}: {names} behave as in training"
        yield Seen(what, where, float(len(found)))


def _at(line: str) -> str:
    return f" at {line}" if line else ""


RULES = rules_of(globals())
