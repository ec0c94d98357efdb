"""Rules about losses that are ratios of overlaps, such as Dice and intersection over union."""

from __future__ import annotations

from collections.abc import Iterator

from glassgrad.doctor.graphs.graph import CONSTANT, LEAF, VIEWS, Graph, Op
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.layers import LINEAR
from glassgrad.doctor.rules.rule import Seen, error, rules_of
from glassgrad.doctor.run import Run

_SUMS = named("sum mean add multiply")


def _overlap(graph: Graph, number: int) -> Op | None:
    """Return the product of outputs and a target of zeros and ones whose sum a value is; None for other values."""
    for _ in range(10):
        op = graph.made_by(number)
        if op is None:
            return None
        target = op.constant
        if op.name == "add" and _raw(graph, op):
            return None
        if op.name == "multiply" and target is not None and target.shape == op.shape and len(op.shape) > 0:
            return op if target.whole and target.low >= 0 and target.high <= 1 else None
        tracked = op.tracked
        if op.name not in _SUMS or len(tracked) != 1:
            return None
        number = tracked[0]
    return None


def _ratios(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Yield each division of two tracked values, and the overlap above its line."""
    for op in graph.ops:
        if op.name == "divide" and len(op.parents) > 1 and min(op.parents[:2]) >= 0:
            product = _overlap(graph, op.parents[0])
            if product is not None:
                yield op, product


def _raw(graph: Graph, maker: Op) -> bool:
    """Tell whether an op is the last of a linear layer, or adds its bias."""
    if maker.name in LINEAR:
        return True
    inner = [graph.made_by(parent) for parent in maker.parents] if maker.name == "add" else []
    return any(one is not None and one.name in LINEAR and LEAF in one.parents for one in inner)


@error(
    "loss of raw outputs",
    "Apply a sigmoid, or a softmax over the classes, before the products and sums.",
    "probabilities = torch.sigmoid(logits)",
)
def _of_raw(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, product in _ratios(graph):
        made = [maker for parent in product.parents[:2] if (maker := graph.made_by(parent)) is not None]
        for maker in made:
            if _raw(graph, maker):
                enters = _entered(graph, product, maker)
                what = (
                    f"{product} multiplies raw outputs of {maker}{enters} with targets of 0 and 1, and "
                    f"{op} divides by their sum: they may be negative, and their sum may be 0"
                )
                yield Seen(what, product.where or op.where)
                return


def _entered(graph: Graph, product: Op, maker: Op) -> str:
    """Return in words the last line between two ops that reshapes what the first one makes; empty if none does."""
    number = next((one for one in product.parents[:2] if one >= 0 and graph.made_by(one) is maker), CONSTANT)
    while number >= 0 and graph.ops[number] is not maker:
        where = graph.ops[number].where
        if where and where not in {product.where, maker.where}:
            return f", taken as they are at {where},"
        number = next((one for one in graph.ops[number].parents if one >= 0), CONSTANT)
    return ""


@error("sign of the loss turned", "Subtract the overlap from 1.", "loss = 1 - dice")
def _agreement(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op, product in _ratios(graph):
        if _rises_with(graph, op):
            what = (
                f"{op} is the share in which outputs and targets agree ({product}), and the loss grows "
                "with it: training makes them agree less"
            )
            yield Seen(what, run.calls.line("loss") or op.where)
            return


def _rises_with(graph: Graph, wanted: Op) -> bool:
    """Tell whether the loss is a mean or a sum of an op, with nothing between that could turn its sign."""
    for op in graph.way(graph.loss):
        by_number = op.name in {"multiply", "divide"} and op.factor > 0
        if op is wanted or not (op.name in VIEWS | {"mean", "sum"} or by_number):
            return op is wanted
    return False


RULES = rules_of(globals())
