"""Rules about the ops between the parameters and the loss: double activations, zeros, broadcasts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor.facts import CheckUp
from glassgrad.doctor.graphs.graph import CONSTANT, LEAF, Graph, Op
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.rule import GLOROT, Seen, error, rules_of, warning
from glassgrad.doctor.run import Run

FEW = 4
DEEP = 5
"""Number of consecutive sigmoids that is too deep: each has a slope of at most 1/4, and 4^-5 is below a thousandth."""

# The activations that a loss applies by itself, and the name of the loss without them.
_ENTROPY, _BINARY = "cross_entropy", "binary_cross_entropy_with_logits"

# Lower bounds of the results of ops, for their logarithms and roots.
_ANYTHING = named(
    "linear matmul conv1d conv2d conv3d tanh subtract negative layer_norm batch_norm embedding bilinear lstm gru "
    "rnn_tanh gelu silu elu selu leaky_relu sin cos"
)
_ZERO = frozenset({"relu", "abs", "square", "norm", "relu6", "threshold", "dropout"})
_TINY = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}
_SAME = frozenset({"sum", "mean", "amax", "amin", "max", "min", "sqrt"})  # not below their operands
_NORMS = frozenset({"batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm"})
_PAIRS = named(
    "subtract mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits"
)


# --- applied twice ---


@error(
    "softmax twice",
    "Return the logits: leave out the softmax at the end of the model.",
    "loss = F.cross_entropy(logits, targets)  # without softmax",
    source="Goodfellow, Bengio, Courville, Deep Learning (2016), section 6.2.2.3",
)
def _softmax_twice(found: CheckUp | Run) -> Iterator[Seen]:
    graph = found.graph
    if not graph.ops:
        if isinstance(found, CheckUp) and found.probabilities and found.loss_kind == "cross entropy":
            yield Seen("the output is a probability for each class already, and cross entropy takes the softmax again")
        return
    for op in graph.ops:
        maker = graph.maker(op) if op.name in {_ENTROPY, "log_softmax"} else None
        if maker is not None and maker.name == "softmax":
            yield Seen(
                f"the output is a probability for each class already ({maker}), and {op} takes the softmax of it again",
                maker.where or op.where,
            )


@error(
    "activation before its loss",
    "Return the logits: leave out the sigmoid, or use binary_cross_entropy.",
    "loss = F.binary_cross_entropy_with_logits(logits, targets)  # without sigmoid",
    source="Goodfellow, Bengio, Courville, Deep Learning (2016), section 6.2.2.2",
)
def _sigmoid_twice(found: CheckUp | Run) -> Iterator[Seen]:
    graph = found.graph
    for op in graph.ops:
        maker = graph.maker(op)
        if maker is None:
            continue
        if op.name == _BINARY and maker.name in {"sigmoid", "softmax"}:
            what = f"the output is a probability already ({maker}), and {op} takes the sigmoid of it again"
            yield Seen(what, maker.where or op.where)
        elif op.name == _ENTROPY and maker.name in {"sigmoid", "relu", "tanh"}:
            yield Seen(
                f"{maker} bounds the outputs before the softmax of cross entropy, which therefore cannot "
                "separate the classes with certainty",
                maker.where or op.where,
                severity="warning",
                advice="Give the output of the last linear layer to the loss.",
                remedy=f"loss = F.cross_entropy(logits, targets)  # without the {maker.name}",
            )


# --- what can reach 0 ---


def _lowest(graph: Graph, number: int) -> str:
    """Return the lower bound of an operand: "anything", "zero", "tiny" (never exactly 0) or "" if unknown."""
    for _ in range(6):
        op = graph.made_by(number)
        if op is None:
            return ""
        if op.name == "subtract" and op.parents[0] == CONSTANT and _lowest(graph, op.parents[1]) == "tiny":
            return "tiny"  # 1 - sigmoid(x)
        if op.name in _ANYTHING:
            return "anything"
        if op.name in _ZERO or (op.name == "multiply" and len(set(op.parents)) == 1):
            return "zero"
        if op.name in _TINY:
            return "tiny"
        if op.name not in _SAME:
            return ""
        number = op.parents[0] if op.parents else -1
    return ""


@warning(
    "logarithm of what can reach 0",
    "Take log_softmax of the outputs, use a loss that includes it, or keep the operand away from 0.",
    "loss = F.cross_entropy(output, targets)  # log_softmax inside",
    0.0,
)
def _log(found: CheckUp | Run) -> Iterator[Seen]:
    graph = found.graph
    for op in graph.ops:
        if op.name not in {"log", "log2", "log10"} or not op.parents:
            continue
        lowest, maker = _lowest(graph, op.parents[0]), graph.made_by(op.parents[0])
        by = f" (from {maker})" if maker is not None else ""
        if op.low < 0 or (op.low == 0 and lowest != "tiny"):
            result = "NaN" if op.low < 0 else "-inf"
            yield Seen(f"{op.name} of {op.low:.3g}{by} is {result}", op.where, op.low, severity="error")
        elif lowest == "anything":
            yield Seen(f"the operand of {op.name}{by} may become 0 or negative", op.where, op.low)
        elif lowest == "tiny" and maker is not None:
            stable = _TINY.get(maker.name, "logsigmoid(-x)")
            what = f"the operand of {op.name} comes from {maker.name}, which underflows to 0 for outputs far apart"
            bad = isinstance(found, Run) and len(found.losses) and not np.isfinite(found.losses[:, 1]).all()
            milder = "error" if bad else "info"
            yield Seen(what, op.where, op.low, severity=milder, remedy=f"{stable} instead of log({maker.name}(x))")
        elif lowest == "zero":
            yield Seen(f"the operand of {op.name}{by} may become 0", op.where, op.low, severity="info")


@warning(
    "root of 0",
    "Add a small number under the root; before a where(), mask the operand, not the result.",
    "torch.sqrt(x + 1e-12)",
    0.0,
)
def _root(found: CheckUp | Run) -> Iterator[Seen]:
    for op in found.graph.ops:
        if op.name not in {"sqrt", "rsqrt"} or math.isnan(op.low):
            continue
        if op.low < 0:
            yield Seen(f"{op.name} of a negative number is NaN", op.where, op.low, severity="error")
        elif op.low == 0:
            yield Seen(f"the operand of {op.name} is 0, where its slope is infinite", op.where, 0.0)


@error("power of 0", "Add a small number to the base.", "torch.pow(x + 1e-12, 0.5)", 0.0)
def _power(found: CheckUp | Run) -> Iterator[Seen]:
    for op in found.graph.ops:
        if op.name == "power" and op.low <= 0:
            what = "a power between 0 and 1 is taken of 0, where its slope is infinite"
            yield Seen(what if op.low == 0 else "a broken power is taken of a negative number: NaN", op.where, op.low)


@error("division by 0", "Keep the divisor away from 0.", "x / (y + 1e-12)", 0.0)
def _division(found: CheckUp | Run) -> Iterator[Seen]:
    for op in found.graph.ops:
        if op.name == "divide" and op.low == 0:
            yield Seen("the divisor is 0 in places: the result is infinite or NaN", op.where, 0.0)


# --- shapes ---


@error("broadcast in the loss", "Give predictions and targets one shape: squeeze the extra dimension of size 1.")
def _broadcast(found: CheckUp | Run) -> Iterator[Seen]:
    for op in found.graph.behind_parameters():
        if op.name not in _PAIRS | {"multiply"} or len(op.shapes) < 2:
            continue
        tracked = [at for at, parent in enumerate(op.parents[:2]) if parent >= 0]
        if len(tracked) != 1:
            continue
        mine, other = op.shapes[tracked[0]], op.shapes[1 - tracked[0]]
        crossed = mine is not None and _crossed(mine, other, op.shape)
        if op.name == "multiply" and (not crossed or mine is None or mine[0] < FEW or other is None):
            continue  # a table of weights is looked at below
        if crossed and mine is not None:
            theirs = other or ((mine[0],) if len(mine) == 2 else (mine[0], 1))
            kind = "weights" if op.name == "multiply" else "targets"
            each = "gets the weights of all" if op.name == "multiply" else "is compared with every target"
            shaped = _shaped(found.graph, op.parents[tracked[0]])
            made = f" ({shaped} makes {mine})" if shaped.where and shaped.where != op.where else ""
            yield Seen(
                f"{op.name} of predictions {mine} and {kind} {theirs} makes {mine[0]} x {mine[0]} numbers: each "
                f"prediction {each}{made}",
                op.where,
                float(mine[0]),
                remedy=f"{'prediction' if len(mine) == 2 else kind.rstrip('s')}.squeeze(1)  # both {(mine[0],)}",
            )
            if op.name == "multiply":
                return  # a clipped ratio comes second


def _shaped(graph: Graph, at: int) -> Op:
    """Return the op that gives the result of an op its shape, behind others that keep it."""
    op = graph.ops[at]
    while op.shape in op.shapes and (parent := op.parents[op.shapes.index(op.shape)]) >= 0:
        op = graph.ops[parent]
    return op


@error("broadcast in the loss", "Give predictions and weights one shape: squeeze the extra dimension of size 1.")
def _crossed_weights(found: CheckUp | Run) -> Iterator[Seen]:
    """Find a table of N x N weights, made of a column and a row, that multiplies one number of each example."""
    for op in found.graph.of_loss():
        weights = op.constant
        if op.name != "multiply" or weights is None or len(op.shape) != 2 or weights.shape != op.shape:
            continue
        rows = op.shape[0]
        mine = [shape for shape, parent in zip(op.shapes, op.parents, strict=False) if parent >= 0]
        if rows >= FEW and op.shape[1] == rows and mine and mine[0] in {(rows,), (rows, 1)}:
            what = (
                f"{op} multiplies {rows} numbers of the model with a table of {rows} x {rows} weights, as a "
                "column and a row make it: each example gets the weights of all"
            )
            yield Seen(what, op.where, float(rows), remedy="weights.squeeze(1)  # before it meets the row")


@error("broadcast in the loss", "Give both operands one shape: squeeze the extra dimension of size 1.")
def _crossed_model(found: CheckUp | Run) -> Iterator[Seen]:
    """Find a table of N x N numbers that the model makes of a column and a row, and that a loss compares with N."""
    graph = found.graph
    for op in graph.ops:
        if op.name not in _PAIRS or len(op.shapes) < 2:
            continue
        mine = [(parent, shape) for parent, shape in zip(op.parents, op.shapes, strict=False) if parent >= 0]
        other = [shape for parent, shape in zip(op.parents, op.shapes, strict=False) if parent < 0]
        rows = (mine[0][1] or (0,))[0] if len(mine) == 1 else 0
        if rows < FEW or mine[0][1] != (rows, rows) or other[:1] not in ([(rows,)], [(rows, 1)]):
            continue
        made = next((one for one in graph.ops[: mine[0][0] + 1] if _makes_table(one, rows)), None)
        if made is not None:
            shapes = " and ".join(str(shape) for shape in made.shapes[:2])
            what = (
                f"{made} of {shapes} makes a table of {rows} x {rows} numbers, and {op} compares it with "
                f"{rows} targets: each prediction is compared with every target"
            )
            yield Seen(what, made.where or op.where, float(rows), remedy=f"column.squeeze(1)  # both {(rows,)}")
            return


def _makes_table(op: Op, rows: int) -> bool:
    return op.shape == (rows, rows) and set(op.shapes[:2]) == {(rows,), (rows, 1)}


def _crossed(mine: tuple[int, ...], other: tuple[int, ...] | None, result: tuple[int, ...]) -> bool:
    """Tell whether a column was broadcast against a row of the same length."""
    if not mine or mine[0] < 2 or mine not in {(mine[0],), (mine[0], 1)}:
        return False
    rows = mine[0]
    if other is not None:
        return len(mine) + len(other) == 3 and other in {(rows,), (rows, 1)}
    return result == (rows, rows)


# --- depth ---


@warning(
    "sigmoids too deep",
    "Use ReLU or GELU instead of sigmoid, normalisation layers, or connections that skip layers.",
    "nn.ReLU()  # instead of nn.Sigmoid()",
    float(DEEP),
    GLOROT,
)
def _deep_sigmoids(found: CheckUp | Run) -> Iterator[Seen]:
    graph = found.graph
    if graph.loss < 0:
        return
    depth = {graph.loss: 0}
    place: dict[int, int] = {}
    deepest, first = 0, -1
    for at in range(graph.loss, -1, -1):
        if at not in depth:
            continue
        op = graph.ops[at]
        if LEAF in op.parents and depth[at] > deepest:
            deepest, first = depth[at], place.get(at, -1)
        below = depth[at] + (op.name == "sigmoid")
        if op.name in _NORMS:
            below = 0
        for parent in op.parents:
            if parent >= 0 and below < depth.get(parent, below + 1):
                depth[parent] = below
                place[parent] = at if op.name == "sigmoid" else place.get(at, -1)
    if deepest >= DEEP:
        where = graph.ops[first].where if first >= 0 else ""
        what = (
            f"{deepest} sigmoids lie between the first layer and the loss, and each passes at most a quarter of the "
            f"gradient: {0.25**deepest:.0e} of it is left"
        )
        yield Seen(what, where, float(deepest))


RULES = rules_of(globals())
"""The rules in order; they read `graph` of a check-up or a run."""
