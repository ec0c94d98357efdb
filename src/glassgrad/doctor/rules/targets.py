"""Rules about outputs, targets and weights that do not fit each other: classes, ranges, logarithms, returns."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import source_lines
from glassgrad.doctor.graphs.graph import CONSTANT, UNKNOWN, VIEWS, Constant, Graph, Labels, Op
from glassgrad.doctor.library import Array
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.layers import LINEAR, contrasts, of_batch
from glassgrad.doctor.rules.rule import Seen, at_, error, info, rules_of, warning
from glassgrad.doctor.run import Run

_ERRORS = named("mse_loss l1_loss smooth_l1_loss huber_loss subtract")
_BINARY = named("binary_cross_entropy binary_cross_entropy_with_logits")
_BOUNDS = {
    **dict.fromkeys(named("sigmoid softmax"), (0.0, 1.0)),
    **dict.fromkeys(named("tanh lstm gru rnn_tanh"), (-1.0, 1.0)),
}
LOGS = named("log_softmax logsigmoid log_sigmoid log")
_NORMS = named("batch_norm layer_norm instance_norm group_norm normalize")
_ENTROPIES = named("CrossEntropyLoss NLLLoss cross_entropy nll_loss")
FAVOURED, UNEVEN, MOSTLY = 1.5, 2.0, 0.9
"""The weight of the commonest class relative to that of the rarest, how much more often it comes, and the correlation
of all weights with the frequencies, from which they are turned round."""
OUTSIDE = 0.05
"""How far targets may lie outside of the range of the output, as a part of the range."""
LARGE = 100.0
"""A deviation or a mean of targets from which a squared error makes steps that nothing else is made for."""
LEARNT = 0.02
"""The loss at the end relative to the first one, below which the size of the targets did no harm."""
ENOUGH, SIDES = 64, 8
CLOSE = 0.9
"""The largest output, from which a bound of 1 and not a small layer keeps the outputs there."""


def has_several(graph: Graph) -> bool:
    """Tell whether a loss compares outputs with class numbers in several places.

    Example:
        >>> has_several(UNKNOWN)
        False
    """
    return sum(op.labels is not None for op in graph.ops) > 1


def compared(graph: Graph) -> Iterator[tuple[Op, Op, Constant]]:
    """Yield the ops that compare a tracked operand with a known one, with the maker of the tracked one."""
    for op in graph.ops:
        tracked = [parent for parent in op.parents[:2] if parent >= 0]
        maker = graph.made_by(tracked[0]) if len(tracked) == 1 else None
        if op.constant is not None and op.constant.shape and maker is not None:
            yield op, maker, op.constant


@error(
    "softmax of one number",
    "Use a sigmoid for one output, or take the softmax along the axis of the classes or positions.",
    "torch.sigmoid(output)",
)
def _softmax_of_one(run: Run) -> Iterator[Seen]:
    for op in run.graph.ops:
        alone = op.name.endswith("softmax") and op.axis is not None and op.shape and op.shape[op.axis] == 1
        one_class = op.labels is not None and op.labels.classes == 1
        if alone or one_class:
            what = (
                f"{op} goes along an axis of length 1 (shape {list(op.shape)}), where the result is 1 whatever "
                "enters: no gradient passes it"
            )
            if one_class:
                what = f"{op} has one output, whose softmax is always 1: the loss is always 0"
            yield Seen(what, op.where, 1.0)
            return


@error(
    "softmax for several labels",
    "Use a sigmoid for each label, with binary_cross_entropy_with_logits.",
    "loss = F.binary_cross_entropy_with_logits(logits, labels)",
)
def _softmax_of_several(run: Run) -> Iterator[Seen]:
    for op, maker, target in compared(run.graph):
        least, most = target.rows
        if (op.name in _ERRORS | _BINARY and maker.name == "softmax" and target.whole and most > 1) and (
            target.low >= 0 and target.high <= 1
        ):
            what = (
                f"the outputs of {maker} add up to 1, and an example has from {least:g} to {most:g} labels: "
                "several labels cannot hold at once"
            )
            yield Seen(what, maker.where or op.where, most)
            return


@error("targets out of range", "Number the two classes 0 and 1.", "targets = (targets > 0).float()")
def _out_of_range(run: Run) -> Iterator[Seen]:
    for op, _, target in compared(run.graph):
        if op.name in _BINARY and (target.low < 0 or target.high > 1):
            what = (
                f"the targets of {op} run from {target.low:g} to {target.high:g}; it takes probabilities from "
                "0 to 1, and beyond them the loss has no lower bound"
            )
            yield Seen(what, op.where, target.high if target.high > 1 else target.low)
            return


@warning(
    "output cannot reach the targets",
    "End with a linear layer, or scale the targets to the range of the activation.",
    "nn.Linear(width, 1)  # without the activation behind it",
    OUTSIDE,
)
def _out_of_reach(run: Run) -> Iterator[Seen]:
    for op, maker, target in compared(run.graph):
        if op.name not in _ERRORS or maker.name not in _BOUNDS or len(target.shape) < 1 or target.shape[0] < 4:
            continue
        low, high = _BOUNDS[maker.name]
        beyond = max(low - target.low, target.high - high) / (high - low)
        if beyond > OUTSIDE:
            what = (
                f"{maker} makes outputs from {low:g} to {high:g}, and the targets run from {target.low:.3g} to "
                f"{target.high:.3g}"
            )
            yield Seen(what, maker.where or op.where, beyond)
            return


@warning(
    "normalisation at the output",
    "End with a linear layer: a normalisation gives each batch, or each example, the same mean and deviation.",
    "nn.Linear(width, 1)  # without the normalisation behind it",
)
def _normalised(run: Run) -> Iterator[Seen]:
    for op, maker, target in compared(run.graph):
        spread = target.std > 0 and target.shape[0] > 3
        if op.name in _ERRORS and maker.name in _NORMS and spread and op.shape in {(), target.shape}:
            what = (
                f"{maker} makes the predictions that {op} compares with targets of mean {target.mean:.3g}"
                f" and deviation {target.std:.3g}: it takes away by how much they differ"
            )
            yield Seen(what, maker.where or op.where)
            return


@warning(
    "targets unnormalised",
    "Subtract the mean of the training targets and divide by their deviation; undo it for predictions.",
    "targets = (targets - targets.mean()) / targets.std()",
    LARGE,
)
def _unnormalised(run: Run) -> Iterator[Seen]:
    curve = run.curve
    if len(curve) > 4 and np.median(curve[-3:, 1]) < LEARNT * curve[0, 1]:
        return
    for op, _, target in compared(run.graph):
        size = max(abs(target.mean), target.std)
        if op.name == "mse_loss" and size > LARGE:
            what = (
                f"the targets of {op} have mean {target.mean:.3g} and deviation {target.std:.3g}: the first "
                "gradients are as large"
            )
            yield Seen(what, op.where, size)
            return


@error(
    "no logarithm in nll_loss",
    "Give nll_loss the result of log_softmax, or give cross_entropy the outputs of the last layer.",
    "loss = F.cross_entropy(output, targets)",
)
def _no_logarithm(run: Run) -> Iterator[Seen]:
    found = missing_logarithm(run.graph)
    if found is not None:
        op, maker = found
        yield Seen(
            f"nll_loss takes log-probabilities, and {maker} makes other numbers: the loss has a wrong slope",
            run.calls.line("loss") or op.where,
        )


def missing_logarithm(graph: Graph) -> tuple[Op, Op] | None:
    """Return an nll_loss that takes something other than log-probabilities, and what made that; None without one."""
    for op in graph.ops:
        picked = op.parents[0] if op.name == "nll_loss" and op.parents else -1
        if op.name == "negative":
            picked = _gathered(graph, op.parents[0] if op.parents else -1)
        maker = graph.made_by(picked) if picked >= 0 else None
        if maker is not None and maker.name not in LOGS and not graph.normalises(maker):
            return op, maker
    return None


def _gathered(graph: Graph, number: int) -> int:
    """Return the operand of which an entry of each row is picked and summed, as our nll_loss does; -1 if none."""
    while number >= 0 and graph.ops[number].name != "take_along_axis":
        op = graph.ops[number]
        scaled = op.name in {"multiply", "divide"} and () in op.shapes[:2]
        if op.name not in VIEWS | {"sum", "mean"} and not scaled:
            return -1
        number = next((parent for parent in op.parents if parent >= 0), -1)
    if number < 0 or len(graph.ops[number].shape) != 2 or graph.ops[number].shape[1] != 1:
        return -1
    return graph.ops[number].parents[0]


# --- classes ---


@error("labels alike", "Look at how the labels are made: scaled, rounded or cut off, several classes become one.")
def _labels_alike(run: Run) -> Iterator[Seen]:
    known = run.classes
    values = [np.unique(labels.values) for labels in known if labels.values is not None]
    if len(known) < 3 or sum(labels.count for labels in known) < ENOUGH or max(labels.classes for labels in known) < 2:
        return
    if has_several(run.graph):
        return  # for example, the loss of a discriminator has one label for each side
    within = of_batch(run.graph)
    if not within and (contrasts(run.graph) or source_lines.first_is_right(run.parts.files)):
        return
    if all(len(one) == 1 and one[0] == values[0][0] for one in values) and all(one.distinct == 1 for one in known):
        count = sum(labels.count for labels in known)
        what = f"all {count:,} labels of {len(known)} sampled steps are {int(values[0][0])}: there is nothing to tell"
        written = source_lines.remapping(run.parts.files)
        what += f"; {written} writes class numbers where it compares them" if written else ""
        if within:
            what += f"; the scores are a table of {within} x {within} pairs, and the right one of row i is in column i"
        remedy = "labels = torch.arange(len(scores))" if within else ""
        yield Seen(what, written or run.calls.line("loss"), 1.0, remedy=remedy)


@error(
    "labels alike",
    "Give the two kinds of examples two targets, such as 1 for real ones and 0 for made ones.",
    "loss = bce(judge(real), ones) + bce(judge(made.detach()), zeros)",
)
def _sides_alike(run: Run) -> Iterator[Seen]:
    sides = run.parts.sides
    named = {op.name for op in run.graph.of_loss()}
    others = named & (LOGS | {"softplus", "relu"})  # which tell one kind apart without a target
    if len(sides) < SIDES or others or not all(value == sides[0][0] for value, _ in sides):
        return
    lines = list(dict.fromkeys(where for _, where in sides))
    what = (
        f"the targets of the binary losses at {' and '.join(lines[:3])} are {sides[0][0]:g} for each example, in all "
        f"{len(sides)} that were seen: there is nothing to tell apart"
    )
    yield Seen(what, lines[-1], 1.0)


@warning(
    "averaged twice",
    "Leave out the division: the loss is a mean over the batch already, and the rate acts as if it were much smaller.",
    "loss = F.cross_entropy(logits, targets)  # without / batch_size",
)
def _divided_again(run: Run) -> Iterator[Seen]:
    known = [labels for _, labels in run.labels if labels.classes > 1][:1]
    if not known or not len(run.losses) or run.losses[0, 0] != 0 or known[0].count < ENOUGH // 4:
        return
    if "BFB" in run.calls.sequence or "BB" in run.calls.sequence:
        return  # a part of several, whose gradients are summed
    guess, first = math.log(known[0].classes), float(run.losses[0, 1])
    if 0.7 * guess < first * known[0].count < 1.4 * guess:
        where = run.calls.line("loss")
        what = (
            f"the first loss is {first:.3g}, and a mean over the batch of {known[0].count} would be about {guess:.3g}: "
            f"the loss{at_(where)} is divided by the size of the batch once more"
        )
        yield Seen(what, where, first)


@warning(
    "averaged twice",
    "Leave out the division: the loss is a mean over the batch already, and the rate acts as if it were much smaller.",
    "loss = error.pow(2).sum(-1).mean()  # without / batch_size",
)
def _divided_mean(run: Run) -> Iterator[Seen]:
    graph, batch = run.graph, run.first_batches
    if not batch or not batch[0] >= ENOUGH // 8 or {"BFB", "BB"} & _pairs_of(run.calls.sequence):
        return
    for op in graph.way(graph.loss):
        if op.shape != () or len(op.tracked) != 1 or op.name not in {"divide", "multiply", "negative"}:
            return
        before = graph.made_by(op.tracked[0])
        if op.name == "divide" and op.factor == batch[0] and before is not None and _averages(graph, before):
            what = (
                f"{before} is a mean over the batch of {batch[0]:g} already, and {op} divides it by the "
                "size of the batch once more"
            )
            yield Seen(what, op.where, float(op.factor))
            return


def _pairs_of(sequence: str) -> set[str]:
    return {sequence[at : at + size] for size in (2, 3) for at in range(len(sequence))}


def _averages(graph: Graph, op: Op) -> bool:
    """Tell whether an op is the mean of everything: itself, or a sum divided by the number of its terms."""
    terms = graph.maker(op) if op.name == "divide" else None
    shape = terms.entered if terms is not None and terms.name == "sum" else None
    return op.shape == () and (op.name == "mean" or (shape is not None and op.factor == math.prod(shape)))


@warning(
    "outputs bounded before cross entropy",
    "Divide similarities by a temperature such as 0.1, and leave out what bounds the outputs.",
    "logits = similarity / 0.1",
)
def _bounded(run: Run) -> Iterator[Seen]:
    known = [labels for _, labels in run.labels if math.isfinite(labels.reach)]
    if len(known) < 6 or run.calls.steps < 50 or known[0].classes < 3:
        return
    reach = max(labels.reach for labels in known)
    graph = run.graph
    cut = not graph.ops or any(op.name in {"nll_loss", "log_softmax"} for op in graph.ops)
    near = sum(labels.reach > CLOSE for labels in known)
    if reach <= 1.0001 and near >= 0.5 * len(known) and not cut:
        where = run.calls.line("loss")
        least = math.log(1 + (known[0].classes - 1) * math.exp(-2))
        what = (
            f"the outputs that cross entropy{at_(where)} takes lie between -1 and 1, as cosines do, "
            f"in all {len(known)} sampled steps: with {known[0].classes} classes the loss cannot fall below {least:.3g}"
        )
        yield Seen(what, where, reach)


@warning(
    "class weights favour the frequent",
    "Weight a class by the inverse of its frequency.",
    "weight = counts.sum() / (len(counts) * counts)",
    FAVOURED,
)
def _favoured(run: Run) -> Iterator[Seen]:
    known = run.classes
    if not known or sum(labels.count for labels in known) < 2 * ENOUGH:
        return
    given = known[0].weights if known[0].weights is not None else _by_example(run.graph, known[0])
    if given is None:
        return
    weights = np.asarray(given, np.float64)
    seen = np.concatenate([labels.values for labels in known if labels.values is not None])
    counts = np.bincount(seen[seen >= 0], minlength=len(weights))[: len(weights)].astype(np.float64)
    most, least = int(counts.argmax()), int(np.where(counts > 0, counts, np.inf).argmin())
    uneven = counts[most] > UNEVEN * counts[least]
    if uneven and weights[most] > FAVOURED * weights[least] >= 0 and np.corrcoef(weights, counts)[0, 1] > MOSTLY:
        where = run.calls.line("loss")
        made = source_lines.calling(_ENTROPIES, run.parts.files, "weight")
        what = (
            f"the loss{at_(where)} gives class {most}, the commonest, a weight of {weights[most]:.3g}, and class "
            f"{least}, the rarest, {weights[least]:.3g}{f' (set at {made})' if made else ''}: it counts for even less"
        )
        yield Seen(what, made or where, float(weights[most] / max(weights[least], 1e-12)))


def _by_example(graph: Graph, labels: Labels) -> Array | None:
    """Return the class weights from the weights of the examples in a loss; None if they do not depend on the class."""
    if labels.values is None or labels.classes < 2:
        return None
    for op in graph.ops:
        weights = op.constant.values if op.name == "multiply" and op.constant is not None else None
        if weights is None or weights.shape != labels.values.shape or weights.min() == weights.max():
            continue
        found = np.ones(labels.classes)
        for one in np.unique(labels.values[labels.values >= 0]):
            mine = weights[labels.values == one]
            if mine.min() != mine.max():
                return None
            found[one] = mine[0]
        return found
    return None


@info(
    "classes that never come",
    "Give the last layer one output for each class of the data.",
    "nn.Linear(width, classes)",
)
def _unseen_classes(run: Run) -> Iterator[Seen]:
    known = [labels for labels in run.classes if labels.classes > 2]
    count = sum(labels.count for labels in known)
    if not known or count < 4 * ENOUGH:
        return
    seen = np.unique(np.concatenate([labels.values for labels in known if labels.values is not None]))
    classes = known[0].classes
    if len(seen) > 1 and seen[-1] < classes // 4 and len(seen) > seen[-1] // 2 and count > 20 * len(seen):
        what = f"the output has {classes} classes, and the {count:,} sampled labels go to {int(seen[-1])} only"
        yield Seen(what, run.calls.line("loss"), float(classes))


@info("labels begin at 1", "Number the classes from 0, or keep class 0 for what has no label.", "labels = labels - 1")
def _from_one(run: Run) -> Iterator[Seen]:
    known = [labels for labels in run.classes if labels.classes > 2]
    if sum(labels.count for labels in known) < 2 * ENOUGH:
        return
    seen = np.unique(np.concatenate([labels.values for labels in known]))
    classes = known[0].classes
    if seen[0] == 1 and seen[-1] == classes - 1 and len(seen) == classes - 1:
        what = f"the labels run from 1 to {classes - 1}, and the output has {classes} classes: class 0 never comes"
        yield Seen(what, run.calls.line("loss"), 1.0)


@info(
    "classes as numbers",
    "Classes have no order: give the model one output for each, and use cross entropy.",
    "nn.Linear(width, classes); loss = F.cross_entropy(logits, labels)",
)
def _classes_as_numbers(run: Run) -> Iterator[Seen]:
    for op, maker, target in compared(run.graph):
        several = len(target.shape) > 1 and target.shape[1] > 1
        if op.name not in _ERRORS - {"subtract"} or several or not target.whole or target.values is None:
            continue
        seen = np.unique(target.values)
        counted = len(seen) > 2 and seen[0] == 0 and np.array_equal(seen, np.arange(len(seen)))
        if counted and target.values.size >= 4 * len(seen) and maker.name in LINEAR:
            what = (
                f"the targets of {op} are the numbers from 0 to {int(seen[-1])}, which look like classes: the "
                "error takes class 1 for closer to class 2 than to class 5"
            )
            yield Seen(what, op.where, float(len(seen)))
            return


@error(
    "targets of cross entropy do not add up",
    "Use a sigmoid for each label, with binary_cross_entropy_with_logits.",
    "loss = F.binary_cross_entropy_with_logits(logits, labels)",
)
def _rows(run: Run) -> Iterator[Seen]:
    for op, maker, target in compared(run.graph):
        entropy = op.name == "cross_entropy" or (op.name == "multiply" and maker.name == "log_softmax")
        shaped = (
            len(target.shape) == 2 and target.shape[0] != target.shape[1] and target.shape == (op.shape or target.shape)
        )
        numbers = op.labels is not None or len(op.shapes[0] or target.shape) > len(target.shape)
        if not entropy or (op.name == "cross_entropy" and numbers):
            continue
        if (shaped or op.name == "cross_entropy") and target.whole and target.low >= 0 and target.high <= 1:
            least, most = target.rows
            if most > 1:
                what = (
                    f"the targets of {op} have from {least:g} to {most:g} ones in a row: cross entropy takes "
                    "probabilities that add up to 1, and its softmax lets one label win over the others"
                )
                yield Seen(what, op.where, most)
                return


@warning(
    "target moves with the model",
    "Compute the target without gradients, best with a copy of the model that is updated more rarely.",
    "with torch.no_grad(): target = reward + gamma * target_model(next_state).amax(1)",
    source="Mnih et al. (2015), Human-level control through deep reinforcement learning",
)
def _moving(run: Run) -> Iterator[Seen]:
    graph = UNKNOWN if run.parts.strays else run.graph
    for op in graph.ops:
        if op.name not in _ERRORS or sum(parent >= 0 for parent in op.parents[:2]) < 2:
            continue
        for parent in op.parents[:2]:
            goal = graph.made_by(parent)
            value = _bootstrapped(graph, goal)
            if goal is not None and value is not None:
                what = (
                    f"{op} compares the model with {goal}, a reward and a value of the next state "
                    f"({value}) that have gradients too: a step also moves the target towards the prediction"
                )
                yield Seen(what, goal.where or op.where)
                return


def _bootstrapped(graph: Graph, op: Op | None) -> str | None:
    """Return the line of the value in `reward + gamma * value`, both of a batch; None for other ops."""
    if op is None or op.name != "add" or len(op.parents) < 2:
        return None
    given = [at for at, parent in enumerate(op.parents[:2]) if parent == CONSTANT]
    known = op.shapes[given[0]] if len(given) == 1 else ()
    if known == () or not op.shape or op.shape[0] < 4:
        return None
    value = graph.made_by(op.parents[1 - given[0]])
    if value is None or value.name != "multiply" or CONSTANT not in value.parents[:2]:
        return None
    return str(value)


RULES = rules_of(globals())
