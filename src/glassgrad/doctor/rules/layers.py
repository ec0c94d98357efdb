"""Rules about consecutive linear ops, ops along the wrong axis, and backward passes written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.doctor.graphs.graph import CONSTANT, LEAF, VIEWS, Graph, Op, Shape
from glassgrad.doctor.quantities.activations import KINDS
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.rule import Seen, error, rules_of, warning
from glassgrad.doctor.run import Run

LINEAR = named("linear matmul conv1d conv2d conv3d")
BENDS = named(
    "leaky_relu prelu elu selu celu softplus clip maximum minimum where exp sin cos power square abs sqrt max_pool1d "
    "max_pool2d max_pool3d glu attention scaled_dot_product_attention lstm gru rnn rnn_tanh rnn_relu embedding amax "
    "layer_norm group_norm instance_norm rms_norm multi_head_attention_forward logsigmoid multiply divide einsum"
)
"""Ops that are not linear, in addition to `KINDS`."""
_JOINS = named("cat concat concatenate hstack")
_BETWEEN = named("add dropout multiply where avg_pool1d avg_pool2d avg_pool3d sum mean")


@error(
    "softmax over the batch",
    "Take the softmax over the classes, the last axis.",
    "softmax(output, dim=-1)",
)
def _softmax_over_batch(run: Run) -> Iterator[Seen]:
    for op in run.graph.ops:
        if not op.name.endswith("softmax") or op.axis != 0 or len(op.shape) != 2 or op.shape[1] < 2:
            continue
        if op.shape[0] != op.shape[1] and op.shape[0] in run.first_batches:
            what = (
                f"{op} normalises over the {op.shape[0]} examples of the batch instead of the "
                f"{op.shape[1]} classes: the prediction for one example depends on the others"
            )
            yield Seen(what, op.where, float(op.shape[0]))


@warning(
    "linear layers in a row",
    "Put an activation between them: without one they are a single linear layer.",
    "nn.ReLU()",
)
def _linear_in_a_row(run: Run) -> Iterator[Seen]:
    graph = run.graph
    behind = [op for op in graph.ops[: graph.last_parameter] if op.name != "embedding"]  # which only looks up inputs
    if any(_bends(graph, op) for op in behind):
        return
    layers = [at for at, op in enumerate(graph.ops) if op.name in LINEAR and LEAF in op.parents]
    wide = [at for at in layers if (before := _layer_before(graph, at)) is not None and not _narrow(graph, before, at)]
    if wide:
        what = (
            f"{len(layers)} linear layers ({graph.ops[wide[0]]}) follow each other without an activation: "
            "together they compute no more than one of them"
        )
        yield Seen(what, graph.ops[wide[0]].where, float(len(layers)))


def _bends(graph: Graph, op: Op) -> bool:
    """Tell whether an op is not linear; a product with known numbers, such as those of dropout, is."""
    if op.name in {"multiply", "divide"} and CONSTANT in op.parents[:2]:
        return op.name == "divide" and op.parents[0] == CONSTANT
    if op.name == "where":  # dropout here is a choice between 0 and what was scaled by a number
        made = [one for parent in op.parents if (one := graph.made_by(parent)) is not None]
        return len(made) != 1 or made[0].name != "multiply" or CONSTANT not in made[0].parents[:2]
    return op.name in BENDS or op.name in KINDS


def _layer_before(graph: Graph, number: int) -> int | None:
    """Return the linear layer whose result enters another, through sums with a bias and views."""
    for _ in range(4):
        tracked = [parent for parent in graph.ops[number].parents if graph.made_by(parent) is not None]
        if len(tracked) != 1:
            return None
        number = tracked[0]
        op = graph.ops[number]
        if op.name in LINEAR and LEAF in op.parents:
            return number
        if op.name not in VIEWS and op.name not in _BETWEEN:
            return None
    return None


def contrasts(graph: Graph) -> bool:
    """Tell whether class numbers are places among similarities, as in InfoNCE, where all of them may be 0.

    The similarities are products of two outputs, or the column of the right pair is joined to those of the others.

    Example:
        >>> contrasts(Graph())
        False
    """
    for op in graph.losses():
        number = op.parents[0] if op.parents else CONSTANT
        for _ in range(8):
            made = graph.made_by(number) if number >= 0 else None
            if made is None or made.name not in VIEWS | {"multiply", "divide", "log_softmax", "subtract", "add"}:
                break
            number = next((parent for parent in made.parents if parent >= 0), CONSTANT)
        if made is None:
            continue
        several = sum(parent >= 0 for parent in made.parents) > 1
        joined = made.name in _JOINS and made.entered is not None and made.entered[-1:] == (1,)
        if several and (joined or made.name in {"matmul", "einsum"}):
            return True
        if made.name == "sum" and _products(graph, made):
            return True
    return False


def of_batch(graph: Graph) -> int:
    """Return n if class numbers choose in a table of n x n scores, of each row of a batch with each; 0 otherwise."""
    for op in graph.losses():
        made = graph.made_by(op.parents[0]) if op.parents and op.parents[0] >= 0 else None
        while made is not None and made.name in {"multiply", "divide"}:
            made = graph.made_by(max(made.parents)) if max(made.parents) >= 0 else None
        rows = made.shape[0] if made is not None and made.name == "matmul" and len(made.shape) == 2 else 0
        sides = [shape for shape in made.shapes[:2] if shape] if made is not None else []
        if made is not None and rows > 2 and made.shape == (rows, rows) and (rows, rows) not in sides:
            return rows
    return 0


def _products(graph: Graph, total: Op) -> bool:
    """Tell whether a sum adds the products of two computed vectors, the one of a pair and those of its candidates."""
    made = graph.made_by(total.parents[0]) if total.parents and total.parents[0] >= 0 else None
    return made is not None and made.name == "multiply" and sum(parent >= 0 for parent in made.parents) > 1


def _narrow(graph: Graph, before: int, after: int) -> bool:
    """Tell whether the layer between is narrower than both ends, as in a factored matrix."""
    entering = graph.ops[before].shapes[0] or (0,) * len(graph.ops[before].shape)
    return _width(graph.ops[before]) < min(_width(graph.ops[before], entering), _width(graph.ops[after]))


def _width(op: Op, shape: Shape | None = None) -> int:
    """Return the number of units or channels of the result of a layer, or of what enters it."""
    shape = op.shape if shape is None else shape
    return shape[1 if op.name.startswith("conv") and len(shape) > 1 else -1] if shape else 0


@error(
    "backward does not fit its forward",
    "Derive the backward pass anew, and check it with gradcheck, also for large and negative operands.",
    "gradcheck(Function.apply, (x.double().requires_grad_(),))",
)
def _unfit(run: Run) -> Iterator[Seen]:
    """Compare the user's own functions with central differences of their forward pass."""
    for one in run.parts.unfit:
        place = "" if one.at is None else f" at {one.at:.4g}"
        what = (
            f"the backward pass of {one.name} at {one.where} gives (at {one.returned}) a derivative of {one.given:.4g} "
            f"for operand {one.operand}{place}; differences of the forward pass give {one.wanted:.4g}"
        )
        yield Seen(what, one.where, one.given, threshold=one.wanted)


RULES = rules_of(globals())
