"""Rules about axes and sequences: scrambling reshapes, wrong axes of softmax, padding, leaks, states carried over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from operator import mul

from glassgrad.doctor import source_lines
from glassgrad.doctor.graphs.graph import Graph, Op, Shape
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules.rule import Seen, at_, error, listed, rules_of, warning
from glassgrad.doctor.run import Run

_RESHAPES = named("reshape view unflatten")
_SHIFTS = named("pad cat concatenate stack")
_SAME = named("dropout contiguous clone astype to float type")
_SELECTS = named("getitem select pick index_select slice")
_ATTENDS = named("softmax attention scaled_dot_product_attention")
_MIXES = named("softmax lstm gru rnn rnn_tanh rnn_relu attention scaled_dot_product_attention")


def scrambles(before: Shape, after: Shape) -> bool:
    """Tell whether a reshape mixes axes: it neither splits axes nor joins neighbours.

    Example:
        >>> scrambles((32, 10, 4, 16), (32, 4, 10, 16)), scrambles((32, 10, 64), (32, 10, 4, 16))
        (True, False)
        >>> scrambles((32, 8, 64), (32 * 4, 8, 16))  # heads behind the batch, without a transpose
        True
        >>> scrambles((32, 8, 64), (32, 4, 128)), scrambles((32, 8, 64), (32 * 4, 2, 64))  # rows in pairs, in parts
        (False, False)
    """
    one, other = ([size for size in shape if size != 1] for shape in (before, after))
    if one == other or 0 in one:
        return False
    if sorted(one) == sorted(other):
        return True
    first = other[0]
    if first in one[1:] and first != one[0] and one.count(first) == other.count(first) == 1:
        return True  # a later axis, such as the batch behind directions, has become the first
    cuts, new = list(accumulate(one, mul)), list(accumulate(other, mul))
    ends = sorted({*cuts, *new})
    return any(large % small for small, large in pairwise(ends)) or _joins_parts([1, *cuts], [1, *new])


def _joins_parts(before: list[int], after: list[int]) -> bool:
    """Tell whether a new axis consists of a part of one old axis and a part of the next one."""
    joints = [(first, end, last) for first, end, last in zip(before, before[1:], before[2:], strict=False)]
    return any(first < low < end < high < last for low, high in pairwise(after) for first, end, last in joints)


@error(
    "axes mixed by a reshape",
    "Exchange axes with transpose or permute; reshape and view keep the numbers in their order and cut them anew.",
    "x.transpose(1, 2)  # in place of view or reshape",
)
def _mixed(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op in graph.ops:
        before = op.entered
        if op.name not in _RESHAPES or before is None or len(before) < 2 or not scrambles(before, op.shape):
            continue
        maker = graph.maker(op)
        if maker is not None and maker.name in _SHIFTS:
            continue  # a shift by padding and cutting anew, as for relative positions
        what = (
            f"{op} cuts {list(before)} into {list(op.shape)}, which takes numbers of several places together: "
            "it does not exchange axes"
        )
        yield Seen(what, op.where)
        return


@error(
    "axes mixed by a reshape",
    "Exchange axes with transpose or permute; reshape and view keep the numbers in their order and cut them anew.",
    "x = x.permute(0, 2, 1)  # in place of view or reshape",
)
def _recut(run: Run) -> Iterator[Seen]:
    before, after = run.parts.recut or ((), ())
    if len(before) > 1 and scrambles(before, after):
        where = run.calls.line("forward")
        what = (
            f"the inputs {list(before)} of the model{at_(where)} enter its first layer as {list(after)}, cut anew in "
            "their old order: it takes numbers of several places together and does not exchange axes"
        )
        yield Seen(what, where)


@error(
    "softmax along the wrong axis",
    "Take the softmax along the axis that is summed over.",
    "weights = torch.softmax(scores, dim=-1)",
)
def _wrong_axis(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op in graph.ops:
        for weights, summed in _summed(graph, op):
            if weights.axis is None or summed == weights.axis or weights.shape[weights.axis] == 1:
                continue
            what = (
                f"{weights} makes weights that add up to 1 along axis {weights.axis} of "
                f"{list(weights.shape)}, and {op} sums along axis {summed}"
            )
            yield Seen(what, weights.where or op.where, float(weights.axis))
            return


@error(
    "softmax along the wrong axis",
    "Take the softmax of a map of classes along its channels, axis 1.",
    "F.log_softmax(scores, dim=1)",
)
def _of_maps(run: Run) -> Iterator[Seen]:
    graph = run.graph
    for op in graph.ops:
        if not op.name.endswith("softmax") or op.axis is None or op.axis < 2 or len(op.shape) < 3 or not op.parents:
            continue
        maker = graph.made_by(op.parents[0])
        if maker is not None and maker.name == "add":
            made = [graph.made_by(parent) for parent in maker.parents]
            maker = next((one for one in made if one is not None and one.name.startswith("conv")), None)
        if maker is not None and maker.name.startswith("conv") and maker.shape == op.shape and op.shape[1] > 1:
            what = (
                f"{op} goes along axis {op.axis} of the map {list(op.shape)} that a convolution made, whose "
                "classes are its channels, axis 1"
            )
            yield Seen(what, op.where, float(op.axis))
            return


def _summed(graph: Graph, op: Op) -> Iterator[tuple[Op, int]]:
    """Yield the softmax whose results are weights of a sum, and the axis of the sum."""
    if op.name == "matmul":
        for place, parent in enumerate(op.parents[:2]):
            weights = _direct(graph, parent)
            if weights is not None and len(weights.shape) > 1:
                yield weights, len(weights.shape) - 1 - place
    elif op.name == "sum" and op.axis is not None and op.parents:
        product = graph.ops[op.parents[0]] if op.parents[0] >= 0 else None
        if product is not None and product.name == "multiply" and len(product.parents) > 1:
            for parent in product.parents[:2]:
                weights = _direct(graph, parent)
                other = [one for one in product.parents[:2] if one != parent]
                logarithm = other and other[0] >= 0 and "log" in graph.ops[other[0]].name
                if weights is not None and len(weights.shape) == len(product.shape) and other and not logarithm:
                    yield weights, op.axis


def _direct(graph: Graph, number: int) -> Op | None:
    while number >= 0 and graph.ops[number].name in _SAME and graph.ops[number].parents:
        number = graph.ops[number].parents[0]
    return graph.ops[number] if number >= 0 and graph.ops[number].name == "softmax" else None


@error(
    "mask inverted",
    "Turn the mask: in masked_fill and key_padding_mask True leaves a place out, in a product 1 keeps it.",
    "scores.masked_fill(tokens == filler, float('-inf'))  # leaves the filler out",
)
def _inverted(run: Run) -> Iterator[Seen]:
    found = run.parts.padding
    if found is not None and found.inverted and not _read_behind(run)[0]:
        where = source_lines.masking(run.parts.files) or run.calls.line("forward")
        what = (
            f"the sequences that enter '{found.name}' end in the filler {found.filler}, and the loss depends on it far "
            f"more than on the words before it: the mask{at_(where)} leaves out what it should keep"
        )
        yield Seen(what, where)


def _read_behind(run: Run) -> tuple[str, str]:
    """Return the lines that take the last state of a recurrent layer and that call it; empty where the script masks."""
    recurrent = named("lstm gru rnn rnn_tanh rnn_relu")
    ops = run.graph.ops
    if source_lines.masking(run.parts.files) or any(op.name in _ATTENDS for op in ops):
        return "", ""
    layers = [at for at, op in enumerate(ops) if op.name in recurrent]
    taken = [op.where for op in ops if op.name in _SELECTS and set(op.parents) & set(layers) and op.where]
    called = [ops[at].where for at in layers if ops[at].where]
    return (taken or called or [""])[-1], (called or [""])[-1]


@error(
    "padding contributes",
    "Take the state at the end of each sequence, or pack the sequences.",
    "states[torch.arange(len(lengths)), lengths - 1]  # or pack_padded_sequence before the layer",
)
def _behind(run: Run) -> Iterator[Seen]:
    found = run.parts.padding
    where, called = _read_behind(run) if found is not None and found.inverted else ("", "")
    if found is not None and where:
        apart = f", which the layer called at {called} has read too" if called not in {"", where} else ""
        what = (
            f"the sequences that enter '{found.name}' end in the filler {found.filler}, and the loss depends on it far "
            f"more than on the words before it: the state that is taken at {where} is the one behind the padding{apart}"
        )
        yield Seen(what, where)


@warning(
    "padding contributes",
    "Mask the padding: in attention, in means and sums over positions, and in the loss.",
    "scores.masked_fill(padding, float('-inf')); F.cross_entropy(..., ignore_index=0)",
)
def _padding(run: Run) -> Iterator[Seen]:
    found = run.parts.padding
    if found is None or found.inverted:
        return
    if found.by_index and not (any(op.name in _MIXES for op in run.graph.ops)):
        return  # the embedding of the filler is 0
    if found.counted and source_lines.ignoring(run.parts.files):
        return
    if found.counted:
        where = run.calls.line("loss")
        what = (
            f"the sequences end in the filler {found.filler}, and the loss{at_(where)} counts it among its targets: "
            "what is learnt is to fill"
        )
        yield Seen(what, where, remedy=f"F.cross_entropy(..., ignore_index={found.filler})")
        return
    where = run.calls.line("forward")
    what = (
        f"the sequences that enter '{found.name}' end in the filler {found.filler}, and the loss depends on it: the "
        f"call of the model{at_(where)} masks no padding"
    )
    away = _reduced(run.graph)
    if away is not None:
        what += f"; {away} takes all positions"
        where = away.where or where
    mixes = {op.name for op in run.graph.ops if op.name in _MIXES}
    alone = found.by_index and mixes and not mixes & _ATTENDS
    yield Seen(what, where, severity="info" if alone else "")  # a recurrent layer learns to pass the filler by


@error(
    "targets seen by the model",
    "Give the attention a causal mask, so that a position sees those before it only.",
    "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
)
def _seen(run: Run) -> Iterator[Seen]:
    line = run.parts.leaks
    if line is not None:
        where = run.calls.line("forward")
        what = (
            f"the targets are the next tokens of the inputs, and the outputs of the model{at_(where)} at the first "
            "positions change with the tokens at the last: it sees what it is to predict"
        )
        what += f"; that begins at {line}" if line else ""
        attends = _attending(run.graph)
        what += f"; {attends} makes the weights of the positions" if attends is not None else ""
        yield Seen(what, (attends.where if attends is not None else "") or line or where)


def _reduced(graph: Graph) -> Op | None:
    """Return the first op that makes one vector of all positions of a sequence."""
    for op in graph.ops:
        before = op.entered
        reduces = op.name in {"mean", "sum", "amax", "max"} and op.where and before is not None and len(before) == 3
        if reduces and before is not None and op.shape == (before[0], before[2]):
            return op
    return None


def _attending(graph: Graph) -> Op | None:
    """Return the first op that weights positions by each other."""
    for op in graph.ops:
        square = len(op.shape) > 2 and op.shape[-1] == op.shape[-2]
        if op.where and (op.name in _ATTENDS - {"softmax"} or (op.name == "softmax" and square)):
            return op
    return None


@warning(
    "state carried over",
    "Begin each batch of unrelated sequences with a state of zeros.",
    "outputs, state = self.rnn(x)  # without the state of the last batch",
)
def _carried(run: Run) -> Iterator[Seen]:
    counts = [labels.count for _, labels in run.labels] or [
        len(y) for _, y in run.pairs if y.ndim == 1 or len(y[0]) == 1
    ]
    if not run.parts.carried or not counts or counts[0] not in run.first_batches:
        return
    if any(x.shape[1] == 1 for x, _ in run.examples):
        return  # a text of one column, whose first axis is the time
    where = _recurrent(run.graph) or run.calls.line("forward")
    names = listed([f"'{name}'" for name in run.parts.carried])
    what = (
        f"{names}{at_(where)} begins with the state that the batch before left, and each sequence has a target of its "
        "own: the state is that of other sequences"
    )
    yield Seen(what, where)


def _recurrent(graph: Graph) -> str:
    found = (op.where for op in graph.ops if op.name in _MIXES and op.name != "softmax")
    return next((where for where in found if where), "")


RULES = rules_of(globals())
