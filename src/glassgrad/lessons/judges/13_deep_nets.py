"""Judge slopes, factors, drawn weights and residual blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()
Array = np.ndarray


@STEPS("slope of a sigmoid", section="Sigmoid")
def _slope(slope_of_sigmoid: Answer) -> Verdict:
    y = np.array([0.1, 0.5, 0.8])
    again = 1 / (1 + np.exp(-y))
    return judged(
        slope_of_sigmoid(y.copy()),
        y * (1 - y),
        (1 - y * y, "That is the slope of tanh."),
        (again * (1 - again), "y is already the result; do not take its sigmoid again."),
        (y * (1 + y), "The slope is small at both ends, and yours grows with y. Look at one of the signs."),
        (1 - y, "One factor is missing: at y near 0 the slope is 0 as well."),
        what="the slope at y = 0.1, 0.5, 0.8",
    )


@STEPS("factor", section="The measurement")
def _factor(factor: Answer) -> Verdict:
    first, last, layers = 1e-6, 4.0, 11
    right = (first / last) ** (1 / 10)
    return judged(
        factor(first, last, layers),
        right,
        (1 / right, "That is the way up. The gradient goes from the last layer to the first."),
        ((first / last) ** (1 / 11), "Between 11 layers there are 10 steps."),
        ((first - last) / 10, "Layers multiply, so look at the quotient of the two, not at their difference."),
        ((first / last) / 10, "Ten factors multiply to the quotient: take its tenth root, not a tenth of it."),
        (first / last, "That is the factor of all steps together."),
        what="factor(1e-6, 4.0, 11)",
    )


@STEPS("spread", section="How to draw weights")
def _spread(spread: Answer) -> Iterator[Verdict]:
    for activation, gain in (("tanh", 1.0), ("relu", 2.0)):
        yield judged(
            spread(200, activation),
            (gain / 200) ** 0.5,
            (gain / 200, "That is the variance. The standard deviation is its root."),
            ((2 / gain / 200) ** 0.5, "The other activation needs that one: which of the two shuts half of the units?"),
            (gain / 200**0.5, "The 2 is a factor of the mean square, so it belongs under the root as well."),
            (200**-0.5 / gain, "Where half of the units are shut the weights have to be larger, not smaller."),
            ((gain * 200) ** 0.5, "More inputs make a larger sum, so the weights have to be smaller."),
            what=f'spread(200, "{activation}")',
        )


@STEPS("draw", section="How to draw weights")
def _draw(draw: Answer) -> Verdict:
    inputs, outputs = 400, 100
    weights = np.asarray(draw(np.random.default_rng(0), inputs, outputs))
    if weights.shape != (outputs, inputs):
        return f"The weights have shape {weights.shape}; one row for each output is {(outputs, inputs)}."
    if abs(float(weights.mean())) > 0.01:
        return f"The mean of the weights is {weights.mean():.2g}; it should be 0."
    right, found = (2 / inputs) ** 0.5, float(weights.std())
    for wrong, hint in (
        ((2 / outputs) ** 0.5, "The spread is made of the number of outputs. A unit adds up its inputs."),
        (2 / inputs, "The generator takes the standard deviation; that is the variance."),
        ((1 / inputs) ** 0.5, "That is the spread for tanh. ReLU shuts half of the units."),
        (
            right / 3**0.5,
            "Numbers evenly spread between -s and s have a standard deviation of s / √3. Draw from a normal one.",
        ),
        (1.0, "That is a normal distribution of spread 1: multiply by the spread that you want."),
    ):
        if abs(found / wrong - 1) < 0.02:
            return hint
    return None if abs(found / right - 1) < 0.02 else f"Their standard deviation is {found:.3g}, expected {right:.3g}."


@STEPS("normalise", section="Batch norm")
def _normalise(normalise: Answer) -> Verdict:
    x = np.random.default_rng(1).normal(size=(6, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, -1.0]
    mean, var = x.mean(0), x.var(0)
    return judged(
        normalise(x.copy()),
        (x - mean) / np.sqrt(var + 1e-5),
        (
            (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
            "That is over the features of each example: layer norm. Batch norm goes over the examples.",
        ),
        ((x - x.mean()) / np.sqrt(x.var() + 1e-5), "There is one mean for all features. Each feature has its own."),
        ((x - mean) / (var + 1e-5), "It is divided by the variance. The standard deviation is its root."),
        (x / np.sqrt(var + 1e-5), "The mean is still in it."),
        ((x - mean) / np.sqrt(x.var(0, ddof=1) + 1e-5), "The variance divides by n - 1; batch norm divides by n here."),
        ((x - mean) / (np.sqrt(var) + 1e-5), "1e-5 belongs to the variance, under the root."),
        ((x - mean) / np.sqrt(var), "1e-5 is missing: a feature that is the same for all examples would divide by 0."),
        what="normalise(x)",
        tolerance=1e-9,
    )


@STEPS("residual, backward", section="Residuals")
def _residual(residual_backward: Answer) -> Verdict:
    dy, slope = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.0, -0.25])
    return judged(
        residual_backward(dy.copy(), lambda g: slope * g),
        dy + slope * dy,
        (slope * dy, "x is used twice: in f, and alone. The second path is missing, and it is the one that matters."),
        (dy, "That is the path past f. The one through f adds to it."),
        (dy * slope * dy, "Over two paths slopes add."),
        (dy * (dy + slope * dy), "f_backward has multiplied by the gradient already."),
        (dy - slope * dy, "It is x + f(x): nothing is subtracted."),
        what="the gradient of x",
    )


@STEPS("residual net", section="Residuals")
def _net(residual_net: Answer) -> Verdict:
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(5, 8)), [0.3 * rng.normal(size=(8, 8)) / 8**0.5 for _ in range(16)]
    kept = [w.copy() for w in weights]
    variants = [x.copy() for _ in range(5)]
    for w in weights:
        variants = [
            variants[0] + np.maximum(variants[0] @ w, 0),
            np.maximum(variants[1] @ w, 0),
            np.maximum(variants[2] + variants[2] @ w, 0),
            x + np.maximum(variants[3] @ w, 0),
            variants[4] + variants[4] @ w,
        ]
    given = x.copy()
    found = residual_net(given, weights)
    if not np.array_equal(given, x) or any(not np.array_equal(a, b) for a, b in zip(weights, kept, strict=True)):
        return "The input was changed: x += ... works in place, on the array of the caller. Write x = x + ..."
    return judged(
        found,
        variants[0],
        (variants[1], "That is the plain net, which loses everything on the way. Each block adds its ReLU to x."),
        (variants[2], "The ReLU is around the sum, so it shuts the path as well. Put it around x @ w only."),
        (variants[3], "Each block adds to the first x. It should add to what the block before it gave."),
        (variants[4], "The ReLU is missing."),
        what="residual_net(x, weights)",
    )
