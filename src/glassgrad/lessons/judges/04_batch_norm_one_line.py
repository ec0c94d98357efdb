"""Judge the backward pass of layer norm."""

from __future__ import annotations

from typing import Any

from glassgrad.lessons.derivations import add_derivation
from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.lessons.hints import judged
from glassgrad.verify import edits
from glassgrad.verify.truth import find_truth

STEPS = Steps()
_ROWS = "was one number for each row, and was broadcast along it: sum along the row, and keep the shape."
_COLUMNS = "is one number for each column and is used by every row: sum over the rows."
add_derivation(
    STEPS,
    "backward",
    ("y", "b", "w", "hat", "s", "var", "centred", "mean", "x"),
    section="Step by step",
    hints={
        ("b", edits.SUM): f"b {_COLUMNS}",
        ("b", edits.WRONG_SUM): f"b {_COLUMNS}",
        ("w", edits.SUM): f"w {_COLUMNS}",
        ("w", edits.WRONG_SUM): f"w {_COLUMNS}",
        ("w", edits.VARIABLE): "In w * hat a nudge of w is magnified by hat.",
        ("w", edits.FACTOR): "In w * hat a nudge of w is magnified by hat.",
        ("s", edits.SUM): f"s {_ROWS}",
        ("s", edits.WRONG_SUM): f"s {_ROWS}",
        ("var", edits.CONSTANT): "Differentiate v**-0.5: the exponent comes down as a factor, and then falls by one.",
        ("centred", edits.ACCUMULATION): "centred is used twice, in the variance and in hat. Both send a gradient.",
        ("centred", edits.SCALE): "The variance divides by n.",
        ("mean", edits.SIGN): "centred = x - mean: there is a minus in front of the mean.",
        ("mean", edits.SUM): f"mean {_ROWS}",
        ("mean", edits.WRONG_SUM): f"mean {_ROWS}",
        ("x", edits.ACCUMULATION): "x is used twice, in centred and in the mean. Both send a gradient.",
        ("x", edits.TRANSPOSE): "The mean divides by n, the number of columns; len(x) counts the rows.",
        ("x", edits.SCALE): "The mean divides by n.",
    },
)


@STEPS("dx in one line", section="Towards one line")
def _at_once(dx_at_once: Answer, given: Names) -> Verdict:
    truth = find_truth(given["forward"], given["inputs"])
    w, s, hat, dy = (truth.values[name] for name in ("w", "s", "hat", "r"))
    d = dy * w

    def mean(array: Any, axis: int = 1) -> Any:
        return array.mean(axis, keepdims=True)

    return judged(
        dx_at_once(dy.copy(), w.copy(), s.copy(), hat.copy()),
        truth.gradients["x"][0].total,
        (s * (d - mean(d, 0) - hat * mean(d * hat, 0)), "Those are means over the batch. Here each row has its own."),
        (w * s * (dy - mean(dy) - hat * mean(dy * hat)), "w differs along a row, so it goes inside the means."),
        (s * d, "Mean and variance were made from the same numbers: two terms are missing."),
        (s * (d - mean(d)), "That is the share of the mean. The variance has one too: what points along hat."),
        (s * (d - hat * mean(d * hat)), "That is the share of the variance. The mean has one too."),
        (d - mean(d) - hat * mean(d * hat), "hat = centred * s: where is s?"),
        (s * (dy - mean(dy) - hat * mean(dy * hat)), "y = w * hat + b: where is w?"),
        what="dx_at_once(dy, w, s, hat)",
    )
