"""Rules about one batch: its data, forward pass, loss and gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glassgrad.doctor.facts import CheckUp, Gradient, Layer
from glassgrad.doctor.rules.rule import AGAINST, Rule, listed

VANISHED = 1e-3
"""‖gradient‖ / ‖weights‖ of one matrix against that of another further on: below this, depth eats the gradient."""
EXPLODED = 1e2
"""‖gradient‖ / ‖weights‖: with a rate of 0.01 one step would replace the weights."""
MOSTLY = 0.5
"""A share of dead units or saturated outputs above which training suffers."""
WORSE = {"cross entropy": 1.5, "binary cross entropy": 1.5, "squared error": 5.0}
"""A loss that exceeds a constant guess by this factor comes from large, wrong outputs."""
FAR_INPUT = 20.0
"""Size of inputs that are too large for weights initialised for inputs around 1."""


# --- NaN and infinity ---


def _bad_inputs(found: CheckUp) -> Iterator[str]:
    yield from (f"{facts.name} holds {facts.bad}" for facts in found.inputs if facts.bad)
    if found.targets is not None and found.targets.facts.bad:
        yield f"the targets hold {found.targets.facts.bad}"


def _bad_parameters(found: CheckUp) -> Iterator[str]:
    yield from (f"{entry.name} holds {entry.values.bad}" for entry in found.gradients if entry.values.bad)


def _bad_forward(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.output.bad:
            if not layer.input_bad:
                yield f"born in {_called(layer)}, whose input is finite: its output holds {layer.output.bad}"
            elif not any(facts.bad for facts in found.inputs):
                maker = f" (made by {layer.input_made_by})" if layer.input_made_by else ""
                yield f"what enters {_called(layer)}{maker} is not finite; its output holds {layer.output.bad}"
            return
    if found.output is not None and found.output.bad and found.layers:
        yield f"born after {_called(found.layers[-1])}, in the model's own code: the output holds {found.output.bad}"


def _bad_loss(found: CheckUp) -> Iterator[str]:
    seen = [layer.output for layer in found.layers] + ([found.output] if found.output is not None else [])
    if not found.failure and not math.isfinite(found.loss) and not any(facts.bad for facts in seen):
        yield f"the loss is {found.loss} though the output is finite"


def _bad_backward(found: CheckUp) -> Iterator[str]:
    if not math.isfinite(found.loss):
        return  # the backward pass of a non-finite forward pass is not finite either
    later: Layer | None = None
    for layer in reversed(found.layers):
        if layer.gradient is not None:
            if layer.gradient.bad:
                through = f"on the way back through {_called(later)}" if later else "between the output and the loss"
                yield f"born {through}: the gradient of the output of {_called(layer)} holds {layer.gradient.bad}"
                return
            later = layer
    bad = [entry for entry in found.gradients if entry.gradient is not None and entry.gradient.bad]
    for entry in bad[:1]:
        assert entry.gradient is not None
        yield f"the gradient of {entry.name} holds {entry.gradient.bad}"


def _failure(found: CheckUp) -> Iterator[str]:
    if found.failure:
        yield found.failure


# --- data ---


def _labels_outside(found: CheckUp) -> Iterator[str]:
    targets = found.targets
    if targets is not None and targets.outside and found.loss_kind in {"cross entropy", ""}:
        low, high = targets.facts.summary.minimum, targets.facts.summary.maximum
        yield (
            f"{targets.outside} of {targets.facts.summary.count} labels lie outside of 0 .. {targets.classes - 1}: "
            f"they run from {low:.0f} to {high:.0f}"
        )


def _labels_alike(found: CheckUp) -> Iterator[str]:
    targets = found.targets
    if targets is not None and targets.classes > 1 and targets.distinct == 1 and targets.facts.summary.count >= 8:
        yield f"all {targets.facts.summary.count} labels are {targets.facts.summary.minimum:.0f}"


def _inputs_unnormalised(found: CheckUp) -> Iterator[str]:
    for facts in found.inputs:
        known = facts.summary
        if not facts.dtype.startswith(("float", "bfloat")) or not known.std:
            continue
        ranges = f"{facts.name} runs from {known.minimum:.3g} to {known.maximum:.3g}, mean {known.mean:.3g}, "
        if known.abs_max > FAR_INPUT or abs(known.mean) > 5 * known.std or known.std < 0.02:
            yield ranges + f"standard deviation {known.std:.3g}"


def _inputs_constant(found: CheckUp) -> Iterator[str]:
    for facts in found.inputs:
        if facts.summary.std == 0 and facts.summary.count > 1 and facts.dtype.startswith(("float", "bfloat")):
            yield f"every number of {facts.name} is {facts.summary.mean:.3g}"


# --- the loss ---


def _loss_far(found: CheckUp) -> Iterator[str]:
    if found.expected > 0 and math.isfinite(found.loss) and found.loss > WORSE[found.loss_kind] * found.expected:
        yield (
            f"the loss is {found.loss:.4g}; a model that knows nothing has {found.expected:.4g} "
            f"({found.expected_why}), so these outputs are confident and wrong"
        )


def _same_output(found: CheckUp) -> Iterator[str]:
    if found.same_output:
        yield "the output is the same for every example, though the inputs differ"


def _evaluating(found: CheckUp) -> Iterator[str]:
    if not found.training:
        yield "the model is in evaluation mode: dropout is off and batch normalisation uses its running statistics"


# --- gradients ---


def _no_gradient(found: CheckUp) -> Iterator[str]:
    if found.failure:
        return
    missing = [entry.name for entry in found.gradients if entry.trainable and entry.gradient is None]
    if missing:
        yield f"{listed(missing)} got no gradient at all: no path leads from the loss to it"


def _zero_gradient(found: CheckUp) -> Iterator[str]:
    known = [(entry.name, entry.gradient.summary) for entry in found.gradients if entry.gradient is not None]
    zero = [name for name, summary in known if summary.abs_max == 0]
    if zero:
        yield f"the gradient of {listed(zero)} is exactly zero everywhere"


def _frozen(found: CheckUp) -> Iterator[str]:
    if not any(entry.trainable for entry in found.gradients):
        yield "no parameter requires a gradient"


def _matrices(found: CheckUp) -> list[tuple[Gradient, float]]:
    """Return the matrices in the order of the forward pass, with ‖gradient‖ / ‖weights‖."""
    matrices = []
    for entry in sorted(found.gradients, key=lambda entry: entry.order):
        weights = entry.values.summary.norm
        if entry.gradient is not None and entry.dims > 1 and entry.order >= 0 and weights > 0:
            ratio = entry.gradient.summary.norm / weights
            if math.isfinite(ratio) and ratio > 0:
                matrices.append((entry, ratio))
    return matrices


def _vanishing(found: CheckUp) -> Iterator[str]:
    matrices = _matrices(found)
    if len(matrices) < 4:
        return
    low = min(range(len(matrices)), key=lambda at: matrices[at][1])
    after = max((ratio for _, ratio in matrices[low:]), default=0.0)
    if matrices[low][1] < VANISHED * after:
        high = max(range(low, len(matrices)), key=lambda at: matrices[at][1])
        (early, little), (late, much) = matrices[low], matrices[high]
        yield (
            f"relative to its weights the gradient of {early.name} is {little:.1e}, that of {late.name} {much:.1e}: "
            f"{much / little:.0e} times as much within {high - low} layers"
        )


def _exploding(found: CheckUp) -> Iterator[str]:
    matrices = _matrices(found)
    worst = max(matrices, key=lambda entry: entry[1], default=None)
    if worst is not None and worst[1] > EXPLODED:
        entry, ratio = worst
        total = f"total norm {found.total_norm:.1e}"
        yield f"the gradient of {entry.name} is {ratio:.1e} times as large as its weights ({total})"


def _dead(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.dead > MOSTLY:
            yield f"{layer.dead:.0%} of the units of {_called(layer)} are zero for the whole batch"


def _saturated(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.saturated > MOSTLY:
            share = f"{layer.saturated:.0%} of the outputs of {_called(layer)}"
            yield f"{share} lie close to a bound, where it hardly has a slope"


def _called(layer: Layer) -> str:
    return f"'{layer.name}'" if " before " in layer.name else f"'{layer.name}' ({layer.kind})"


RULES: tuple[Rule, ...] = (
    Rule("NaN in the data", "error", _bad_inputs,
         "Find and remove these examples; a mean or a standard deviation of 0 in the normalisation makes them too."),
    Rule("NaN in the parameters", "error", _bad_parameters,
         "An earlier step broke the model: load a checkpoint from before, and check up the batch that did it."),
    Rule("NaN forward", "error", _bad_forward,
         "Look at what this place divides by, takes the log or the root of, or lets grow beyond what its dtype holds."),
    Rule("NaN in the loss", "error", _bad_loss,
         "Give the loss logits, not probabilities (cross_entropy, binary_cross_entropy_with_logits), or keep them off "
         "0."),
    Rule("NaN backward", "error", _bad_backward,
         "The value is finite, its slope is not: a root or a norm at 0, a division by something tiny, a where() whose "
         "other branch is not finite."),
    Rule("stopped", "error", _failure, "What is shown above is from before that point."),
    Rule("labels out of range", "error", _labels_outside,
         "Number the classes from 0, or give the last layer one output for each class."),
    Rule("labels alike", "warning", _labels_alike,
         "Shuffle the data: batches of one class teach the model that class."),
    Rule("inputs unnormalised", "warning", _inputs_unnormalised,
         "Scale inputs to mean 0 and standard deviation 1, with the statistics of the training data (pixels: / 255 "
         "first)."),
    Rule("inputs constant", "error", _inputs_constant,
         "There is nothing to learn from; look at how the batch is made."),
    Rule("loss far off", "warning", _loss_far,
         "Make the weights of the last layer smaller (multiply them by 0.1) and set its bias to 0."),
    Rule("output without input", "error", _same_output,
         "Look for layers that are dead or saturated, and for a sum or mean over the batch dimension."),
    Rule("evaluation mode", "warning", _evaluating, "Call model.train() before training."),
    Rule("nothing to train", "error", _frozen, "Set requires_grad on the parameters that are to be trained."),
    Rule("no gradient", "error", _no_gradient,
         "Use the layer in forward(), or look for detach(), item(), numpy(), argmax or no_grad() on the way; freeze it "
         "with requires_grad_(False) if it is meant."),
    Rule("gradient zero", "error", _zero_gradient,
         "Look for dead ReLUs, saturated functions, clamp, round or a multiplication by 0 after it."),
    Rule("vanishing gradient", "error", _vanishing, AGAINST["vanishing gradient"]),
    Rule("exploding gradient", "error", _exploding, AGAINST["exploding gradient"]),
    Rule("dead units", "warning", _dead, AGAINST["dead units"]),
    Rule("saturated", "warning", _saturated, AGAINST["saturated"]),
)  # fmt: skip  # a table
"""The rules in order; a new rule is one entry."""

OF_INPUTS = tuple(rule for rule in RULES if rule.name in {"NaN in the data", "inputs unnormalised", "inputs constant"})
"""The rules that need the inputs of a run only."""
