"""Rules about the parts of a model: layers nobody trains, equal weights, running statistics, frozen parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import source_lines
from glassgrad.doctor.graphs.graph import Graph
from glassgrad.doctor.parts import Outside
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.rules.rule import Seen, at_, error, info, listed, rules_of, sampled, warning
from glassgrad.doctor.run import Run

HALF = 0.5
SHRUNK = 0.3
"""The size of most matrices at the end relative to the beginning, that no error brings about."""
MANY = 40
"""Steps after which a target network has been updated."""
AT_ONCE = 0.1
"""The distance of a copy from the model, in steps of the optimizer; an average over ten steps is nine steps away."""
FEW = 1e-2
"""The share of a model's numbers below which training only a vector cannot fit the data."""
DECAYED, DECAYED_APART = 0.3, 1.5
"""Limits of weight decay, within the gradient and decoupled from it (AdamW): above, the weights shrink to nothing."""
ZEROS = 0.25
"""The share of outputs of a rectifier that are exactly 0, above which the targets are probably below 0."""
LOST = 0.5
"""A share of the numbers of 16 bits that a step leaves as they are, above which training stands nearly still."""
_APART = frozenset({"AdamW", "Lion", "Muon"})
_LISTS = {"list": "ModuleList", "tuple": "ModuleList", "dict": "ModuleDict", "set": "ModuleList"}
_RECURRENT = named("lstm gru rnn rnn_tanh rnn_relu")
_SQUARES = named("mse_loss l1_loss smooth_l1_loss huber_loss subtract")


@error(
    "layers nobody trains", "Hold them in the model, so that parameters() has them, and make the optimizer afterwards."
)
def _outside(run: Run) -> Iterator[Seen]:
    total = run.parts.elements + sum(one.count for one in run.parts.outside)
    for one in run.parts.outside:
        share = one.count / total
        yield Seen(
            f"'{one.name}'{at_(one.where)} {_held(one)} ({share:.0%} of the weights in the forward pass): "
            f"parameters() does not include them, so no optimizer changes them{_instead(one)}",
            one.where,
            share,
            remedy=_held_better(one),
            advice="Give the optimizer their parameters as well." if one.held_in.startswith("variable") else "",
        )


def _instead(one: Outside) -> str:
    return f"; the optimizers made at {one.twice} have the same parameters" if one.twice else ""


def _held(one: Outside) -> str:
    if one.held_in in _LISTS:
        return f"holds layers or parameters in a plain {one.held_in}"
    return "takes part in the forward pass and belongs to no optimizer"


def _held_better(one: Outside) -> str:
    attribute = one.name.rpartition(".")[2]
    if one.held_in in _LISTS:
        better = _LISTS[one.held_in]
        of_parameters = better.replace("Module", "Parameter")
        return f"self.{attribute} = nn.{better}(self.{attribute})  # of parameters: nn.{of_parameters}"
    if one.held_in.endswith("module"):
        return f"optimizer.add_param_group({{'params': {one.name}.parameters()}})"
    return f"self.{attribute} = {attribute}  # in the module's __init__"


@error(
    "parameters without an optimizer",
    "Make the optimizer from the model's parameters(), after the last change of the model.",
)
def _replaced(run: Run) -> Iterator[Seen]:
    names = [name for name, _ in run.parts.replaced]
    if names and run.parts.goes_on:
        what = (
            f"{listed(names)} came to the model in the middle of the training, which goes on at {run.parts.goes_on} "
            f"with the optimizer made{at_(run.setup.built)}: it still has the earlier weights, and the new ones never "
            "change"
        )
        remedy = "optimizer = ...  # anew, behind the change of the model"
        yield Seen(what, run.parts.goes_on, float(len(names)), remedy=remedy)
    elif names:
        head = names[0].rpartition(".")[0] or names[0]
        where = next((line for _, line in run.parts.replaced if line), run.setup.built)
        what = (
            f"{listed(names)} came to the model{at_(where)} after the optimizer was made{at_(run.setup.built)}, which "
            f"still has the earlier weights: the new '{head}' keeps its initial values"
        )
        yield Seen(what, where, float(len(names)), remedy=f"optimizer = ...  # below the new {head}")


@error(
    "weights all alike",
    "Initialise the weights at random; only biases may start at 0.",
    "nn.init.kaiming_normal_(weight)",
    HALF,
)
def _alike(run: Run) -> Iterator[Seen]:
    parts = run.parts
    if len(parts.alike) >= 2 and len(parts.alike) > HALF * parts.matrices:
        where = parts.alike_at or run.setup.built
        what = (
            f"the rows of {listed(parts.alike)} are equal when training begins{at_(where)}, so all units of a layer "
            "compute and learn the same, or nothing at all"
        )
        yield Seen(what, where, len(parts.alike) / parts.matrices)


@error(
    "weights all alike",
    "Begin one of two matrices in a row at random; only the last one of a branch may begin at 0.",
    "nn.init.zeros_(branch[-1].weight)  # and leave the others as they are",
)
@sampled(3)
def _zeros_in_a_row(run: Run, data: MonitorData) -> Iterator[Seen]:
    """Find matrices of zeros that never get a gradient, since each multiplies that of another by 0."""
    if any(_alike.look(run)):
        return
    at = [data.parameters.index(name) for name in run.parts.alike if name in data.parameters]
    still = [one for one in at if (data.gradient_norm[:, one] == 0).all() and (data.parameter_norm[:, one] == 0).all()]
    if len(still) > 1:
        names = [data.parameters[one] for one in still]
        where = run.parts.alike_at or run.setup.built
        what = (
            f"{listed(names)} are 0 when training begins{at_(where)}, and each multiplies the gradient of the other by "
            f"0: none has changed in {len(data)} sampled steps"
        )
        yield Seen(what, where, float(len(still)))


@warning("nearly everything frozen", "Train the last layer too, or all layers.", "parameter.requires_grad_(True)", FEW)
def _frozen(run: Run) -> Iterator[Seen]:
    parts = run.parts
    if not run.setup.frozen or parts.trainable_tensors > 2 or parts.trainable_axes > 1 or not parts.trainable:
        return
    share = parts.trainable / parts.elements
    where = parts.frozen_at or run.setup.built
    what = (
        f"{len(run.setup.frozen)} parameters are frozen{at_(where)}: only {parts.trainable:,} of {parts.elements:,} "
        "numbers can be trained, and no matrix"
    )
    yield Seen(what, where, share)


@error(
    "requires_grad of a module",
    "Call requires_grad_ of the module, which sets it for all parameters.",
    "model.head.requires_grad_(False)",
)
def _pretending(run: Run) -> Iterator[Seen]:
    names, where = run.parts.pretending
    if names:
        what = (
            f"{listed([repr(name) for name in names])} got an attribute requires_grad{at_(where)}, which a module does "
            "not look at: its parameters are trained"
        )
        yield Seen(what, where or run.setup.built, float(len(names)))


@warning("weight decay out of the usual", "Use 0.01 or less; with AdamW, 0.1 is usual.", threshold=DECAYED)
def _decay(run: Run) -> Iterator[Seen]:
    for kind, options in run.setup.optimizers:
        decay = options.get("weight_decay", 0.0)
        apart = kind in _APART or bool(options.get("decoupled_weight_decay"))
        highest = DECAYED_APART if apart else DECAYED
        if isinstance(decay, int | float) and decay > highest:
            what = (
                f"the weight decay of {kind}{at_(run.setup.built)} is {decay:g}: it pulls the weights to 0 faster than "
                "the loss moves them"
            )
            remedy = f"weight_decay={1e-2 if apart else 1e-4:g}"
            yield Seen(what, run.setup.built, float(decay), threshold=highest, remedy=remedy)


@warning(
    "weights shrink to nothing",
    "Give the penalty of the weights, or weight_decay, a factor a hundred times smaller.",
    "loss = error + 1e-4 * penalty",
    SHRUNK,
)
@sampled(6)
def _shrinks(run: Run, data: MonitorData) -> Iterator[Seen]:
    if run.calls.steps < 30:
        return
    matrices = [at for at, axes in enumerate(data.dims) if axes > 1 and data.parameter_norm[0, at] > 0]
    ratio = data.parameter_norm[-1, matrices] / data.parameter_norm[0, matrices]
    if len(matrices) > 1 and float(np.median(ratio)) < SHRUNK:
        graph = run.graph
        added = [op.where for op in graph.of_loss() if op.name == "add" and op.shape == ()]
        where = run.calls.line("loss") or (added[-1] if added else "") or run.setup.built
        what = (
            f"the weights are {float(np.median(ratio)):.2g} times as large at the end as at the beginning: what pulls "
            f"them to 0 outweighs the error{at_(where)}"
        )
        yield Seen(what, where, float(np.median(ratio)))


@warning(
    "running statistics do not arrive",
    "Leave momentum at 0.1: it is the weight of the new batch, not of the past.",
    "nn.BatchNorm1d(width, momentum=0.1)",
)
def _statistics(run: Run) -> Iterator[Seen]:
    found = run.parts.statistics
    if not found:
        return
    one = found[0]
    where = one.where or run.setup.built
    if math.isnan(one.arrived) or one.arrived < HALF:
        what = (
            f"with momentum {one.momentum:g}{at_(where)}, {one.arrived:.0%} of the running statistics of '{one.name}' "
            f"come from the data after {run.calls.steps} steps: eval() gives other results than training"
        )
    else:
        what = (
            f"with momentum {one.momentum:g}{at_(where)}, the running statistics of '{one.name}' describe only the "
            "last batch"
        )
    yield Seen(what, where, one.arrived)


@warning(
    "running statistics do not arrive",
    "Let the buffers of the copy follow too: they hold the running statistics.",
    "for mine, theirs in zip(copy.buffers(), model.buffers()): mine.copy_(theirs)",
)
def _stale(run: Run) -> Iterator[Seen]:
    for variable, layer, where in run.parts.stale if run.calls.steps >= MANY else ():
        what = (
            f"the weights of '{variable}' follow the model{at_(where)}, and the running statistics of its '{layer}' "
            "are still those with which training began: in evaluation mode it normalises by them"
        )
        yield Seen(what, where)
        return


@warning("sequence read at its beginning", "Read the last output, or the mean of all.", "outputs[:, -1]")
def _beginning(run: Run) -> Iterator[Seen]:
    where = _reader(run.graph) or run.calls.line("forward")
    for one in run.parts.readings:
        name = f"'{one.name}' ({one.kind})"
        if one.reads == "one":
            continue
        if one.reads == "first":
            what = (
                f"the loss uses only the first of {one.length} outputs of {name}{at_(where)}, which does not "
                "depend on the rest of the sequence"
            )
            yield Seen(what, where, 1 / one.length)
        else:
            what = (
                f"the loss uses the outputs of only one example of the batch from {name}{at_(where)}: the axes "
                "of batch and time are exchanged"
            )
            remedy = f"nn.{one.kind}(..., batch_first=True)"
            yield Seen(what, where, advice="Declare the axis of the batch.", remedy=remedy)


@warning(
    "sequence of one step",
    "Give the layer the values in their order along the axis of time: it remembers nothing from one step.",
    "outputs, _ = self.lstm(x.unsqueeze(2))  # (batch, time, 1) instead of (batch, 1, features)",
)
def _one_step(run: Run) -> Iterator[Seen]:
    for one in run.parts.readings:
        if one.reads == "one":
            places = (op.where for op in run.graph.ops if op.name in _RECURRENT)
            where = next((place for place in places if place), "") or run.calls.line("forward")
            what = (
                f"'{one.name}' ({one.kind}){at_(where)} gets sequences of one step and begins each with a state of "
                "zeros: its recurrent weights have no effect"
            )
            yield Seen(what, where)


def _reader(graph: Graph) -> str:
    for op in graph.ops:
        maker = graph.maker(op) if op.name in {"getitem", "select", "pick"} else None
        if maker is not None and op.name != "pick" and maker.name in _RECURRENT:
            return op.where
    return ""


@error("output without input", "Look for dead units at the end of the model, or for a mean over the batch.")
def _constant(run: Run) -> Iterator[Seen]:
    if run.parts.same >= 3 and run.parts.same > 4 * run.parts.varied:
        where = run.calls.line("forward")
        maker = _output_rectifier(run.graph)
        cause = f": the {maker[0]}{at_(maker[1])} at the end is 0 for all and passes no gradient" if maker else ""
        what = (
            f"the output of the model{at_(where)} is the same for every example in {run.parts.same} sampled steps, "
            f"though the inputs differ{cause}"
        )
        yield Seen(what, where, float(run.parts.same), remedy=f"leave out the {maker[0]} at the end" if maker else "")


@warning(
    "rectifier at the output",
    "Leave it out at the end: the targets of a regression may be negative.",
    "nn.Linear(width, 1)  # without ReLU",
    ZEROS,
)
def _rectified(run: Run) -> Iterator[Seen]:
    maker = _output_rectifier(run.graph)
    zeros = run.parts.zeros
    if maker is None or len(zeros) < 4 or run.parts.same > run.parts.varied:
        return
    share = sorted(zeros)[len(zeros) // 2]
    if share > ZEROS:
        what = (
            f"{maker[0]}{at_(maker[1])} sets {share:.0%} of the predictions to exactly 0, and the loss compares them "
            "with the targets of a regression"
        )
        yield Seen(what, maker[1], share)


@info(
    "copy never updated",
    "Copy the weights every so many steps, if it is a target network; a frozen reference is as it should be.",
    "target.load_state_dict(model.state_dict())  # every so many steps",
)
def _copies(run: Run) -> Iterator[Seen]:
    for variable, where in run.parts.copies if run.calls.steps >= MANY else ():
        what = (
            f"'{variable}'{at_(where)} is a copy of the model, and after {run.calls.steps} steps it still has the "
            "weights with which training began"
        )
        yield Seen(what, where or run.setup.built)


@warning(
    "copy follows at once",
    "Exchange the factors: an average keeps 0.99 or more of what it has, and takes the rest from the model.",
    "average.mul_(decay).add_(weight, alpha=1 - decay)  # decay = 0.999; a target network: tau = 0.005",
    AT_ONCE,
)
@sampled(1)
def _follows(run: Run, data: MonitorData) -> Iterator[Seen]:
    for variable, distance, parameter, where in run.parts.follows if run.calls.steps >= MANY else ():
        at = data.parameters.index(parameter) if parameter in data.parameters else -1
        moved = data.update_norm[-4:, at] if at >= 0 else np.zeros(0)
        step = float(np.median(moved[np.isfinite(moved)])) if np.isfinite(moved).any() else 0.0
        if 0 < distance < AT_ONCE * step:
            what = (
                f"'{variable}', a copy that is moved{at_(where)}, is at the end {distance / step:.1%} of a step of the "
                "optimizer away from the model: it takes nearly all from the model each time, and keeps nothing"
            )
            yield Seen(what, where or run.setup.built, distance / step)
            return


def _output_rectifier(graph: Graph) -> tuple[str, str] | None:
    """Return name and line of the rectifier whose result a squared or absolute error compares."""
    for op in graph.ops:
        maker = graph.maker(op) if op.name in _SQUARES else None
        if maker is not None and maker.name in {"relu", "relu6"}:
            return maker.name, maker.where
    return None


@warning(
    "updates lost in rounding",
    "Keep the weights in float32, and compute in half precision by autocast.",
    "with torch.autocast('cuda', dtype=torch.bfloat16): loss = criterion(model(x), y)",
    LOST,
    "Micikevicius et al. (2018), Mixed precision training, section 3.1",
)
def _rounded(run: Run) -> Iterator[Seen]:
    lost = {name: share for name, share in run.rounded.items() if share > LOST}
    if 2 * len(lost) > len(run.rounded):
        where = source_lines.halving(run.parts.files) or run.setup.built
        share = sorted(lost.values())[len(lost) // 2]
        what = (
            f"a step leaves {share:.0%} of the numbers of {listed([*lost])} as they were, though they have a gradient: "
            f"the weights are kept in 16 bits{at_(where)}, and what is less than half the distance of two such numbers "
            "is lost"
        )
        yield Seen(what, where, share)


RULES = rules_of(globals())
