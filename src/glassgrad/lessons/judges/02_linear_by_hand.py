"""Judge the backward pass of linear layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.lessons.derivations import add_derivation
from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import judged
from glassgrad.manual import Linear
from glassgrad.verify import edits

STEPS = Steps()
_INDICES = "Write y[n, o] = sum over i of x[n, i] w[i, o] + b[o]; where does an entry occur, and what is summed over?"
add_derivation(
    STEPS,
    "backward",
    ("y", "x", "w", "b"),
    section="With indices",
    hints={
        ("y", edits.SCALE): "The loss is a mean over all entries of y: each counts one part in y.size.",
        ("y", edits.EXTRA_SCALE): "The mean is taken over all entries of y, rows and columns.",
        ("y", edits.CONSTANT): "The slope of y * y is y + y.",
        ("x", edits.TRANSPOSE): _INDICES,
        ("w", edits.TRANSPOSE): _INDICES,
        ("b", edits.SUM): "NumPy broadcast b over the samples: its gradient is summed over them.",
        ("b", edits.WRONG_SUM): "b has one entry for each output; the sum runs over the samples.",
    },
)


@STEPS("the layer", section="As a layer")
def _layer(linear_backward: Answer) -> Iterator[Verdict]:
    rng = np.random.default_rng(1)
    layer = Linear(3, 2, rng=rng)
    x, dy = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    layer(x)
    dx, bias = layer.backward(dy), layer.bias
    assert bias is not None
    expected = dx, layer.weight.grad, bias.grad
    found = linear_backward(x.copy(), np.array(layer.weight.data), dy.copy())
    if not isinstance(found, tuple) or len(found) != 3:
        yield "linear_backward has to return three gradients: dx, dweight, dbias."
    for name, mine, true in zip(("dx", "dweight", "dbias"), found, expected, strict=True):
        yield judged(
            mine,
            true,
            (np.transpose(true), f"{name} is transposed: a gradient has the shape of its value."),
            (dy, f"{name} is dy itself: the bias was broadcast over the samples, so sum over them."),
            (np.mean(dy, axis=0), "The gradient of the bias is a sum over the samples, not a mean."),
            (
                true / len(x),
                f"{name} is divided by the number of samples. If the loss is a mean, dy already has that factor.",
            ),
            what=name,
        )


@STEPS("a layer used twice", section="With indices")
def _shared(shared_weight: Answer) -> Verdict:
    rng = np.random.default_rng(2)
    x1, x2, dy1, dy2 = (
        rng.normal(size=(4, 3)),
        rng.normal(size=(5, 3)),
        rng.normal(size=(4, 2)),
        rng.normal(size=(5, 2)),
    )
    first, second = x1.T @ dy1, x2.T @ dy2
    return judged(
        shared_weight(x1, dy1, x2, dy2),
        first + second,
        (first, "That is the share of the first use. The second one adds its own."),
        (second, "That is the share of the second use. The first one adds its own."),
        ((first + second) / 2, "Shares are added, not averaged."),
        ((first + second).T, "It is transposed: w has the shape (in, out) here."),
        what="shared_weight(x1, dy1, x2, dy2)",
    )
