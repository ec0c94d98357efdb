"""Judge rounding, loss scaling, steps and nudges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()
Array = np.ndarray


def _upper_half(bits: Array) -> Array:
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


@STEPS("bfloat16", section="Two budgets")
def _bfloat16(bfloat16: Answer) -> Verdict:
    x = np.array([1 / 3, -2.7, 1.01, 6e4, 1e-30, 1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32)  # the last two are ties
    bits = x.view(np.uint32)
    expected = _upper_half(bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    found = bfloat16(x.copy())
    if getattr(found, "dtype", None) != np.float32:
        return f"The result has dtype {getattr(found, 'dtype', type(found).__name__)}, expected float32."
    return judged(
        found,
        expected,
        (
            _upper_half(bits),
            "Cut off like this, every number is rounded towards 0. Add half of the last place that stays first.",
        ),
        (
            _upper_half(bits + np.uint32(0x8000)),
            "Only the numbers in the middle are wrong: a tie goes to the one whose last bit is 0, and yours goes up.",
        ),
        (
            _upper_half(bits + np.uint32(0x7FFF)),
            "Only the numbers in the middle are wrong: a tie goes to the one whose last bit is 0, and yours goes down.",
        ),
        (x.astype(np.float16).astype(np.float32), "That is float16, another way to spend 16 bits."),
        (bits & np.uint32(0xFFFF0000), "Those are the bits as a whole number. View them as float32 again."),
        what="bfloat16(x)",
        tolerance=0.0,
    )


@STEPS("lost", section="Where gradients live")
def _lost(lost: Answer) -> Iterator[Verdict]:
    g = np.array([1e-9, -3e-8, 1e-8, 2e-7, -5e-6, 1e-3, 4.0, 0.1])
    for scale in (1.0, 16.0):
        scaled = g * scale
        right = float((scaled.astype(np.float16) == 0).mean())
        yield judged(
            lost(g.copy(), scale),
            right,
            (right * len(g), "That is how many. Which share of all of them?"),
            (
                float((g.astype(np.float16) * np.float16(scale) == 0).mean()),
                "They were rounded before they were scaled. The scale comes first: it is in the loss already.",
            ),
            (float((g.astype(np.float16) == 0).mean()), "The scale makes no difference in yours."),
            (
                float((np.abs(scaled) < 2.0**-14).mean()),
                "Those have lost digits. Count the ones that became 0.",
            ),
            (1 - right, "That is the share of those that arrive."),
            (0.0, "Nothing is lost in yours: were they rounded to float16?"),
            what=f"lost(gradients, {scale:g})",
        )


@STEPS("largest scale", section="Scaling the loss")
def _largest(largest_scale: Answer) -> Verdict:
    g = np.array([1e-7, 3e-3, -0.7, 0.2])
    right = 2.0**16
    return judged(
        largest_scale(g.copy()),
        right,
        (2.0**17, "At that scale -0.7 becomes infinite. Round the power down, not up."),
        (65504 / 0.7, "That is the limit, but it is not a power of two: dividing by it would round every gradient."),
        (2.0**18, "-0.7 becomes infinite at that scale. It is the size that counts, not the sign."),
        (16, "That is the exponent. Return 2 to this power."),
        (2.0**39, "That scale suits the smallest gradient. The largest one decides."),
        (65504.0, "That is the largest float16. How far may the largest of the gradients be multiplied?"),
        what="largest_scale of 1e-7, 0.003, -0.7, 0.2",
    )


@STEPS("step", section="Small steps on large numbers")
def _step(step: Answer) -> Iterator[Verdict]:
    scale, rate = 2.0**14, 0.01
    weights = np.array([1.0, -2.0, 0.5], np.float32)
    small = np.array([3e-8, 1e-3, -2e-2])
    gradients = (small * scale).astype(np.float16)
    right = weights - np.float32(rate) * (gradients.astype(np.float32) / np.float32(scale))
    kept = weights.copy()
    found = step(weights, gradients.copy(), scale, rate)
    if getattr(found, "dtype", None) != np.float32:
        yield f"The new weights have dtype {getattr(found, 'dtype', type(found).__name__)}, and not float32."
    yield judged(
        found,
        right,
        (
            kept - rate * gradients.astype(np.float32),
            "The gradients are those of the loss times the scale: divide by it.",
        ),
        (kept - rate * gradients.astype(np.float32) * scale, "That multiplies by the scale once more. Divide by it."),
        (kept + (kept - right), "It goes up the slope."),
        (
            (kept.astype(np.float16) - np.float16(rate) * (gradients / np.float16(scale))).astype(np.float32),
            "The weights were rounded to float16 for the step. Compute it in float32.",
        ),
        (kept, "The weights have not changed."),
        what="the array of new weights",
        tolerance=1e-9,
    )
    tiny = np.array([0.5, 0.5, 0.5], np.float16)
    found = step(np.zeros(3, np.float32), tiny.copy(), 2.0**30, 1.0)
    if not np.asarray(found).any():
        yield "Divided by the scale in float16, small gradients underflow after all. First float32, then divide."
    for bad in (np.inf, np.nan):
        found = np.asarray(step(kept.copy(), np.array([bad, 1.0, 1.0], np.float16), scale, rate))
        if not np.array_equal(found, kept):
            yield (
                f"A gradient was {bad}, and weights changed. Leave the whole step out: return the weights as they are."
            )


@STEPS("next scale", section="Scaling the loss")
def _next(next_scale: Answer) -> Iterator[Verdict]:
    cases = (
        (1024.0, False, 0, 512.0, "after an overflow"),
        (1024.0, True, 5, 1024.0, "after 5 good steps"),
        (1024.0, True, 999, 1024.0, "after 999 good steps"),
        (1024.0, True, 1000, 2048.0, "after 1000 good steps"),
        (1024.0, False, 1000, 512.0, "after an overflow"),
    )
    for scale, finite, good, expected, when in cases:
        found = next_scale(scale, finite, good)
        yield judged(
            found,
            expected,
            (
                scale * 2 if not finite else -1.0,
                "When something has overflowed, the scale is too large: make it smaller.",
            ),
            (
                scale * 2 if finite and good < 1000 else -1.0,
                "It is doubled too early. It has to be good for a while first.",
            ),
            (scale if not finite else -1.0, "When something has overflowed, the next step would overflow as well."),
            (scale if finite and good >= 1000 else -1.0, "It never grows. After 1000 good steps in a row, try more."),
            (scale / 2 if finite else -1.0, "Nothing has overflowed, and it became smaller."),
            what=f"the next scale {when}",
        )


@STEPS("slope", section="Why gradients are checked in float64")
def _slope(slope: Answer) -> Verdict:
    nudges: list[float] = []

    def f(x: float) -> float:
        nudges.append(float(x))
        return float(np.exp(np.sin(x)))

    x = 0.7
    true = float(np.cos(x) * np.exp(np.sin(x)))
    found = slope(f, x)
    if found is ... or found is None:
        return judged(found, true, what="slope(f, 0.7)")
    h = max((abs(at - x) for at in nudges), default=0.0)
    if h == 0.0:
        return "f was never called beside x. Nudge x, and look at the change."
    error = abs(float(found) - true) / abs(true)
    if error < 1e-9:
        return None
    centre = (f(x + h) - f(x - h)) / (2 * h)
    if abs(float(found) - centre) < 1e-3 * abs(true) and not 1e-7 < h < 1e-4:
        return f"The nudge is {h:.0e}. A large one sees the curve of f, a small one rounding: take one in between."
    return judged(
        found,
        true,
        (2 * centre, "The two places are 2 h apart: divide by 2 h."),
        ((f(x + h) - f(x)) / h, "Nudge to both sides: the error of one side is h, that of both h²."),
        (-centre, "The sign: the value at x + h comes first."),
        (f(x + h) - f(x - h), "That is the change. Divide by the way."),
        what="slope(f, 0.7)",
        tolerance=1e-9,
    )
