"""Rules about one batch: its data, forward pass, loss and gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glassgrad.doctor.facts import CheckUp, Gradient, Layer
from glassgrad.doctor.rules.rule import AGAINST, error, listed, rules_of, warning

VANISHED = 1e-3
"""‖gradient‖ / ‖weights‖ of one matrix relative to that of a later one, below which the gradient vanishes."""
EXPLODED = 1e2
"""‖gradient‖ / ‖weights‖: with a rate of 0.01 one step would replace the weights."""
MOSTLY = 0.5
"""A share of dead units or saturated outputs above which training suffers."""
WORSE = {"cross entropy": 1.5, "binary cross entropy": 1.5, "squared error": 5.0}
"""A loss that exceeds a constant guess by this factor comes from large, wrong outputs."""
FAR_INPUT = 20.0
"""Size of inputs that are too large for weights initialised for inputs around 1."""
SPREAD = 5.0
"""Their root mean square, so that one outlier among normalised inputs is no reason."""
SPARSE = 0.5
"""A share of zeros from which a small deviation is that of sparse features, such as counts of words."""
FEW = 16


# --- NaN and infinity ---


@error(
    "NaN in the data",
    "Find and remove these examples, or look for a division by a standard deviation of 0 in the normalisation.",
)
def _bad_inputs(found: CheckUp) -> Iterator[str]:
    yield from (f"{facts.name} holds {facts.bad}" for facts in found.inputs if facts.bad)
    if found.targets is not None and found.targets.facts.bad:
        yield f"the targets hold {found.targets.facts.bad}"


@error(
    "NaN in the parameters",
    "An earlier step broke the model: load a checkpoint from before that step, and check up its batch.",
)
def _bad_parameters(found: CheckUp) -> Iterator[str]:
    yield from (f"{entry.name} holds {entry.values.bad}" for entry in found.gradients if entry.values.bad)


@error(
    "NaN forward",
    "Look for a division by 0, a log or root of 0 or of a negative number, or numbers too large for their dtype.",
)
def _bad_forward(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.output.bad:
            if not layer.input_bad:
                yield f"born in {_called(layer)}, whose input is finite: its output holds {layer.output.bad}"
            elif not any(facts.bad for facts in found.inputs):
                maker = f" (made by {layer.input_made_by})" if layer.input_made_by else ""
                yield f"the input of {_called(layer)}{maker} is not finite; its output holds {layer.output.bad}"
            return
    if found.output is not None and found.output.bad and found.layers:
        yield f"born after {_called(found.layers[-1])}, in the model's own code: the output holds {found.output.bad}"


@error(
    "NaN in the loss",
    "Give the loss logits (cross_entropy, binary_cross_entropy_with_logits), or keep the probabilities away from 0.",
)
def _bad_loss(found: CheckUp) -> Iterator[str]:
    seen = [layer.output for layer in found.layers] + ([found.output] if found.output is not None else [])
    if not found.failure and not math.isfinite(found.loss) and not any(facts.bad for facts in seen):
        yield f"the loss is {found.loss} though the output is finite"


@error(
    "NaN backward",
    "Look for a finite value with an infinite slope: a root or a norm at 0, a division by a tiny number, or a where() "
    "whose unused branch is not finite.",
)
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


@error("stopped", "All numbers above are from before that point.")
def _failure(found: CheckUp) -> Iterator[str]:
    if found.failure:
        yield found.failure


# --- data ---


@error("labels out of range", "Number the classes from 0, or give the last layer one output for each class.")
def _labels_outside(found: CheckUp) -> Iterator[str]:
    targets = found.targets
    if targets is not None and targets.outside and found.loss_kind in {"cross entropy", ""}:
        low, high = targets.facts.summary.minimum, targets.facts.summary.maximum
        yield (
            f"{targets.outside} of {targets.facts.summary.count} labels lie outside of 0 .. {targets.classes - 1}: "
            f"they range from {low:.0f} to {high:.0f}"
        )


@warning("labels alike", "Shuffle the data: a batch of one class teaches the model only that class.")
def _labels_alike(found: CheckUp) -> Iterator[str]:
    targets = found.targets
    if targets is not None and targets.classes > 1 and targets.distinct == 1 and targets.facts.summary.count >= 8:
        yield f"all {targets.facts.summary.count} labels are {targets.facts.summary.minimum:.0f}"


@warning(
    "inputs unnormalised",
    "Scale inputs to mean 0 and standard deviation 1, with the statistics of the training data (pixels: / 255 first).",
)
def _inputs_unnormalised(found: CheckUp) -> Iterator[str]:
    for facts in found.inputs:
        known = facts.summary
        if not facts.dtype.startswith(("float", "bfloat")) or not known.std:
            continue
        spread = math.isclose(known.std**2, known.mean * (1 - known.mean), rel_tol=1e-2)
        if spread and known.minimum == 0 and known.maximum == 1:
            continue  # a mask of zeros and ones
        ranges = f"{facts.name} ranges from {known.minimum:.3g} to {known.maximum:.3g}, mean {known.mean:.3g}, "
        told = known.count >= FEW  # the mean of few numbers may be far from 0 by chance
        far = known.abs_max > FAR_INPUT and math.hypot(known.mean, known.std) > SPREAD
        narrow = known.std < 0.02 and known.zeros < SPARSE
        if far or (told and (abs(known.mean) > 5 * known.std or narrow)):
            yield ranges + f"standard deviation {known.std:.3g}"


@error("inputs constant", "Check how the batch is made: constant inputs teach nothing.")
def _inputs_constant(found: CheckUp) -> Iterator[str]:
    alone = len(found.inputs) < 2 or all(facts.summary.std == 0 for facts in found.inputs)  # a time of 0 is no fault
    for facts in found.inputs if alone else ():
        if facts.summary.std == 0 and facts.summary.count > 1 and facts.dtype.startswith(("float", "bfloat")):
            yield f"every number of {facts.name} is {facts.summary.mean:.3g}"


# --- the loss ---


@warning("loss far off", "Make the weights of the last layer smaller (multiply them by 0.1) and set its bias to 0.")
def _loss_far(found: CheckUp) -> Iterator[str]:
    if found.expected > 0 and math.isfinite(found.loss) and found.loss > WORSE[found.loss_kind] * found.expected:
        yield (
            f"the loss is {found.loss:.4g}; a constant guess has {found.expected:.4g} "
            f"({found.expected_why}), so these outputs are confident and wrong"
        )


@error(
    "output without input",
    "Look for dead or saturated layers, and for a sum or mean over the batch dimension.",
)
def _same_output(found: CheckUp) -> Iterator[str]:
    if found.same_output:
        yield "the output is the same for every example, though the inputs differ"


@warning("evaluation mode", "Call model.train() before training.")
def _evaluating(found: CheckUp) -> Iterator[str]:
    if not found.training:
        yield "the model is in evaluation mode: dropout is off and batch normalisation uses its running statistics"


# --- gradients ---


@error("nothing to train", "Set requires_grad on the parameters that you want to train.")
def _frozen(found: CheckUp) -> Iterator[str]:
    if not any(entry.trainable for entry in found.gradients):
        yield "no parameter requires a gradient"


@error(
    "no gradient",
    "Use the layer in forward(), or look for detach(), item(), numpy(), argmax or no_grad() between it and the loss; "
    "freeze it with requires_grad_(False) if you do not train it.",
)
def _no_gradient(found: CheckUp) -> Iterator[str]:
    if found.failure:
        return
    missing = [entry.name for entry in found.gradients if entry.trainable and entry.gradient is None]
    if missing:
        yield f"{listed(missing)} got no gradient at all: no path connects it to the loss"


@error("gradient zero", "Look for dead ReLUs, saturated functions, clamp, round or a multiplication by 0 after it.")
def _zero_gradient(found: CheckUp) -> Iterator[str]:
    known = [(entry.name, entry.gradient.summary) for entry in found.gradients if entry.gradient is not None]
    zero = [name for name, summary in known if summary.abs_max == 0]
    if zero:
        yield f"the gradient of {listed(zero)} is exactly zero everywhere"


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


@error("vanishing gradient", AGAINST["vanishing gradient"])
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
            f"the gradient relative to the weights is {little:.1e} for {early.name} and {much:.1e} for {late.name}: "
            f"{much / little:.0e} times as much within {high - low} layers"
        )


@error("exploding gradient", AGAINST["exploding gradient"])
def _exploding(found: CheckUp) -> Iterator[str]:
    matrices = _matrices(found)
    worst = max(matrices, key=lambda entry: entry[1], default=None)
    if worst is not None and worst[1] > EXPLODED:
        entry, ratio = worst
        total = f"total norm {found.total_norm:.1e}"
        yield f"the gradient of {entry.name} is {ratio:.1e} times as large as its weights ({total})"


@warning("dead units", AGAINST["dead units"])
def _dead(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.dead > MOSTLY:
            yield f"{layer.dead:.0%} of the units of {_called(layer)} are zero for the whole batch"


@warning("saturated", AGAINST["saturated"])
def _saturated(found: CheckUp) -> Iterator[str]:
    for layer in found.layers:
        if layer.saturated > MOSTLY:
            share = f"{layer.saturated:.0%} of the outputs of {_called(layer)}"
            yield f"{share} lie close to a bound, where the slope is nearly 0"


def _called(layer: Layer) -> str:
    return f"'{layer.name}'" if " before " in layer.name else f"'{layer.name}' ({layer.kind})"


RULES = rules_of(globals())
"""The rules in order; a new rule is one entry."""

OF_INPUTS = tuple(rule for rule in RULES if rule.name in {"NaN in the data", "inputs unnormalised", "inputs constant"})
"""The rules that need only the inputs of a run."""
