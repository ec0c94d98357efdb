"""Rules about the order of the calls in a loop: what was forgotten, what comes too early, what was cut off."""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.doctor.rules.rule import Rule, Seen, listed
from glassgrad.doctor.run import Run, line_of

MOSTLY = 0.5
"""The share of checked steps above which an observation is no exception."""


def _no_zero_grad(run: Run) -> Iterator[Seen]:
    calls = run.calls
    found = calls.leftovers
    if len(found) >= 2 and len(found) > MOSTLY * calls.looked_for_leftovers:
        backward, step = calls.line("backward"), calls.line("step")
        yield Seen(
            f"the backward pass{_at(backward)} adds to gradients that optimizer.step(){_at(step)} has used already: "
            f"nobody zeroes them, in {len(found)} of {calls.looked_for_leftovers} steps",
            backward,
            len(found) / calls.looked_for_leftovers,
            tuple(found),
        )


def _never_backward(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.steps >= 2 and not calls.backwards:
        yield Seen(f"{calls.steps} steps were made{_at(calls.line('step'))}, and no backward pass", calls.line("step"))


def _step_first(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.failure or len(calls.empty) >= 2:
        turned = _steps_before_backward(calls.sequence)
        if turned > 1 or (turned and calls.failure):
            step, backward = calls.line("step"), calls.line("backward")
            yield Seen(
                f"optimizer.step(){_at(step)} comes before loss.backward(){_at(backward)}: no gradient is there to "
                "step with, and the weights that the loss was computed from are gone",
                step,
                float(turned),
            )


def _steps_before_backward(sequence: str) -> int:
    """Return in how many of the first rounds the step precedes the backward pass; 0 if that is not the rule."""
    rounds = [part for part in sequence.split("F") if "B" in part and "S" in part]
    turned = sum(part[0] == "S" for part in rounds)
    return turned if turned > MOSTLY * len(rounds) else 0


def _no_gradients(run: Run) -> Iterator[Seen]:
    calls = run.calls
    sampled = 0 if run.data is None else len(run.data)
    if len(calls.empty) >= 2 and len(calls.empty) > MOSTLY * sampled and not calls.detached:
        if not calls.backwards or _steps_before_backward(calls.sequence):
            return  # said by the rules above
        yield Seen(
            f"no parameter that is watched had a gradient in {len(calls.empty)} of {sampled} sampled steps",
            calls.line("step"),
            float(len(calls.empty)),
        )


def _detached(run: Run) -> Iterator[Seen]:
    found = run.calls.detached
    if found:
        where = line_of(found[0][1])
        yield Seen(
            f"the loss of backward(){_at(where)} has no history: it was detached or made anew, so no gradient reaches "
            "the model",
            where,
            evidence=tuple((step, 0.0) for step, _ in found[:4]),
        )


def _no_step(run: Run) -> Iterator[Seen]:
    calls = run.calls
    if calls.backwards >= 8 and not calls.steps and not calls.hidden and run.setup.optimizers:
        yield Seen(
            f"{calls.backwards} backward passes{_at(calls.line('backward'))} and no optimizer.step()",
            calls.line("backward"),
            float(calls.backwards),
        )


def _evaluating(run: Run) -> Iterator[Seen]:
    found = run.calls.evaluating
    sampled = 0 if run.data is None else len(run.data)
    if len(found) < 2 or len(found) <= MOSTLY * sampled:
        return
    names = found[0][1]
    whole = set(names) == set(run.setup.stochastic)
    # Batch normalisation that rests while the rest trains is a way of fine-tuning.
    yield Seen(
        f"{listed(names)} stood in evaluation mode in {len(found)} of {sampled} sampled training steps",
        run.calls.line("forward"),
        len(found) / sampled,
        severity="" if whole else "info",
    )


def _validated_in_training(run: Run) -> Iterator[Seen]:
    found = run.calls.training
    if found:
        where = line_of(found[0][1])
        names = ", ".join(run.setup.stochastic[:3])
        yield Seen(
            f"the model was called without gradients in training mode{_at(where)}: {names} behave as in training",
            where,
            float(len(found)),
        )


def _stopped(run: Run) -> Iterator[Seen]:
    if run.calls.failure:
        yield Seen(f"the loop ended after {run.calls.steps} steps: {run.calls.failure}", run.calls.line("forward"))


def _at(line: str) -> str:
    return f" at {line}" if line else ""


RULES: tuple[Rule, ...] = (
    Rule("zero_grad is missing", "error", _no_zero_grad,
         "Zero the gradients once a step, before the backward pass.", "optimizer.zero_grad()  # before loss.backward()",
         MOSTLY),
    Rule("loss detached", "error", _detached,
         "Compute the loss from the model's output in one piece: no item(), numpy(), detach(), no new tensor of it, no "
         "requires_grad set on it.", "loss = loss_fn(model(inputs), targets)  # without .item(), .detach()"),
    Rule("no backward pass", "error", _never_backward, "Call loss.backward() before the step.", "loss.backward()"),
    Rule("step before backward", "error", _step_first, "Call backward first, then step.",
         "loss.backward(); optimizer.step()"),
    Rule("no gradients in a step", "error", _no_gradients,
         "See that the loss is computed from the model that is watched, and that the gradients are zeroed before the "
         "backward pass, not after it.", "optimizer.zero_grad(); loss.backward(); optimizer.step()"),
    Rule("no step", "error", _no_step, "Call the optimizer's step after the backward pass.", "optimizer.step()"),
    Rule("stopped", "error", _stopped, "What is said above is from before that point."),
    Rule("evaluation mode in training", "warning", _evaluating,
         "Call model.train() before training, and again after each validation.", "model.train()", MOSTLY),
    Rule("training mode in evaluation", "warning", _validated_in_training,
         "Call model.eval() before a validation, and model.train() after it.", "model.eval()"),
)  # fmt: skip  # a table
