"""Judge the corrected loops: the doctor watches each, and its remaining findings become questions."""

from __future__ import annotations

from functools import partial
from typing import Any

import glassgrad as gg
from glassgrad.lessons.exercise import Answer, Step, Steps, Verdict

STEPS = Steps()
STEPS_OF_A_LOOP = 20

# Questions for the doctor's remaining findings, causes before effects. No question gives the answer.
HINTS = {
    "no gradients in a step": "When step() runs there are no gradients. Who made them, and who took them away?",
    "zero_grad is missing": "Each step uses the gradients of all steps before as well. Who forgets them, and when?",
    "step before backward": "The step comes before the gradient that it should use. What is their order?",
    "loss detached": "backward() runs on a tensor without a history, with no parameter in it. Where was it cut?",
    "no backward pass": "Nothing goes backward any more. Which tensor should call backward()?",
    "no step": "The optimizer makes no step any more.",
    "activation before its loss": "The loss applies an activation itself, and its input has been through one.",
    "softmax twice": "cross_entropy takes the softmax by itself, and its input is shares already.",
    "logarithm of what can reach 0": "A logarithm of something that can be 0. Which loss takes scores as they are?",
    "division by 0": "Something is divided by what can be 0. Is there a loss that takes scores as they are?",
    "loss not finite": "The loss becomes nan or infinite. Which operation gets a 0 that must not?",
    "inputs unnormalised": "Look at the numbers that go into the first layer: their mean, and their spread.",
    "inputs constant": "All examples look the same now.",
    "first loss far off": "The first loss is far above that of a net that knows nothing. How large are the inputs?",
    "exploding gradient": "The gradients are far too large. How large are the inputs?",
    "learning rate out of the usual": "Every step goes far beyond the valley. Which number decides how far?",
    "rate unfit for the weights": "The steps do not fit the size of the weights. Which number decides how far they go?",
    "loss rises": "The loss rises. Are the steps too long, or their direction wrong?",
    "loss spikes": "The loss jumps. How long are the steps?",
    "dead units": "Most units of the first layer are 0 for every example, and so is their slope. How do they begin?",
    "sigmoids too deep": "The gradient goes through one sigmoid after the other, and each takes three quarters of it.",
    "vanishing gradient": "Nearly nothing of the gradient reaches the first layers. What takes it away on the way?",
    "evaluation mode in training": "The net is in evaluation mode while it trains. Who put it there?",
    "training mode in evaluation": "The net is measured in training mode: half of its units are missing.",
    "no gradient": "The first layer gets no gradient. On the way to it, where does the graph end?",
    "layers shared": "Several places hold one and the same layer. How many weights does the net have?",
    "parameters without an optimizer": "The optimizer was not given all parameters of the net.",
    "optimizer of another model": "The optimizer was given the parameters of another net.",
}

BELOW = {3: 0.95}  # the loss that a corrected loop must stay below, for loops that differ from the default
NEARLY = {7: "Better, and the doctor sees nothing wrong. But is their mean 0 now, and their spread 1?"}


def judged(number: int, **names: Any) -> Verdict:
    """Run a loop under the doctor; return a hint, or None if it finds nothing."""
    loop: Answer = names[f"loop_{number}"]
    watched: list[Any] = []

    def watch(model: Any, optimizer: Any) -> Any:
        watched.append(gg.doctor.watch(model, optimizer, report=False, preset="full", every=4))
        return watched[-1]

    reached = loop(watch)
    if len(watched) != 1:
        return "The judge needs the `watch` block: leave it around the loop."
    findings = [finding for finding in watched[0].findings if finding.severity != "info"]
    for rule, hint in HINTS.items():
        if any(finding.rule == rule for finding in findings):
            return hint
    if findings:
        return f"The doctor still says: {findings[0].rule}. {findings[0].what}"
    steps = watched[0].run.calls.steps
    if steps < STEPS_OF_A_LOOP:
        return f"The loop makes {steps} steps now; it has {STEPS_OF_A_LOOP}."
    if not isinstance(reached, float):
        return f"The loop returns {type(reached).__name__}, and should return the loss as a number."
    limit = BELOW.get(number, 0.8)
    if number in NEARLY and not reached < limit:
        return NEARLY[number]
    if not 0.02 < reached < limit:
        return f"The doctor sees nothing wrong, but the loss ends at {reached:.3g}; mended, it ends below {limit:g}."
    return None


for at in range(1, 13):
    name = f"loop_{at}"
    STEPS.add(Step(f"loop {at}", partial(judged, at), (name,), (name,), f"Answer {at}"))
