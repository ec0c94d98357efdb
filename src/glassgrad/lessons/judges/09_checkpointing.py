"""Judge checkpointing by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.engine.tensors.creation import tensor
from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import close, judged
from glassgrad.verify.compare import as_array

STEPS = Steps()


def _chain(sizes: tuple[int, ...]) -> tuple[Any, list[list[Any]]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 3)), [[rng.normal(size=(3, 3)) for _ in range(size)] for size in sizes]


def _true(x: Any, segments: list[list[Any]]) -> tuple[list[Any], Any, list[Any], Any]:
    """Return the input of every segment, the result, the gradient of every weight, and that of the result."""
    weights = [[tensor(w, requires_grad=True) for w in part] for part in segments]
    h, inputs = tensor(x), []
    for part in weights:
        inputs.append(h.detach().numpy())
        for w in part:
            h = (h @ w).tanh()
    (h * h).sum().backward()
    result = h.detach().numpy()
    return inputs, result, [as_array(w.grad) for part in weights for w in part], 2 * result


@STEPS("forward", section="Weighing")
def _forward(forward: Answer) -> Iterator[Verdict]:
    x, segments = _chain((2, 1, 3))
    inputs, result, _, _ = _true(x, segments)
    found = forward(x.copy(), segments)
    if not isinstance(found, tuple) or len(found) != 2:
        yield "forward has to return two things: the result, and the list of what is kept."
    y, kept = found
    yield judged(y, result, (inputs[-1], "That is the input of the last segment."), what="the result")
    if len(kept) > len(segments):
        yield f"{len(kept)} arrays are kept for {len(segments)} segments: the input of each, and nothing else."
    if len(kept) < len(segments):
        yield f"{len(kept)} arrays are kept for {len(segments)} segments: each needs its input, the first one too."
    if all(close(mine, true) for mine, true in zip(kept, [*inputs[1:], result], strict=True)):
        yield "Those are the results of the segments. Computing one again needs its input."
    for number, (mine, true) in enumerate(zip(kept, inputs, strict=True)):
        yield judged(mine, true, what=f"kept[{number}]")


def _gradients(x: Any, segments: list[list[Any]], backward: Answer) -> tuple[Any, list[Any]]:
    inputs, _, expected, dy = _true(x, segments)
    return backward(dy, [one.copy() for one in inputs], segments), expected


@STEPS("backward", section="Weighing")
def _backward(backward: Answer) -> Verdict:
    for sizes in ((1, 1), (3,), (2, 1, 3)):
        x, segments = _chain(sizes)
        found, expected = _gradients(x, segments, backward)
        if not isinstance(found, list) or len(found) != len(expected):
            return f"backward has to return a list of {len(expected)} gradients, one for each layer."
        pairs = list(zip(found, expected, strict=True))
        if all(close(mine, true) for mine, true in pairs):
            continue
        if all(close(mine, true) for mine, true in zip(found, expected[::-1], strict=True)):
            return "The gradients are right but in reverse: return them in the order of the layers."
        if close(found[-1], expected[-1]) or close(found[0], expected[-1]):
            where = "from one layer to the one before it" if sizes == (3,) else "from one segment to the one before it"
            if sizes != (2, 1, 3):
                return f"The last layer is right, those before it are not: what goes {where}?"
            return (
                "Chains of one segment and segments of one layer are right. With several of both, is the order right?"
            )
        return (
            "Not even the last layer is right. Its input is the result of the layer before it in its segment, "
            "computed again from what was kept."
        )
    return None


@STEPS("no layer more than once", section="The bill", gaps=("backward",))
def _once(backward: Answer, layer: Any) -> Verdict:
    x, segments = _chain((4, 4))
    layer.calls = 0
    _gradients(x, segments, backward)
    if layer.calls == 0:
        return "backward never calls `layer`: compute again what was not kept."
    if layer.calls > 8:
        return (
            f"{layer.calls} calls of `layer` for 8 layers. Compute a segment once, note what each of its layers "
            "gave, and then go backwards."
        )
    return None


@STEPS("the bill", section="The bill")
def _bill(bill: Answer) -> Verdict:
    return judged(
        bill(36, 4),
        13,
        (36, "That is what is there without segments."),
        (9, "That is one segment. The inputs of all segments are kept as well."),
        (4, "Those are the inputs. The layers of one segment are there as well."),
        (40, "Only the segment that is being worked on is there, not all of them."),
        (144, "The inputs are added to one segment, not multiplied with anything."),
        what="bill(36, 4)",
    )


@STEPS("the best number of segments", section="The bill")
def _best(best_segments: Answer) -> Iterator[Verdict]:
    for n, right in ((36, 6), (100, 10), (2500, 50)):
        yield judged(
            best_segments(n),
            right,
            (n, "Then every layer is kept: nothing is saved."),
            (1, "Then one segment holds all layers: nothing is saved."),
            (n // 2, "k + n/k is far from its smallest there. What does it cost to double k, and what does it save?"),
            (2 * right, "That is the bill, not the number of segments."),
            what=f"best_segments({n})",
        )
