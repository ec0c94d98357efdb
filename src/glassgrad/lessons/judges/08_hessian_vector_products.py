"""Judge Hessian-vector products, the largest curvature and the largest rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.engine.tensors.creation import tensor
from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import close, judged

STEPS = Steps()
_H = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]])
_V = np.array([1.0, -2.0, 0.5])


@STEPS("by nudging", section="Three ways")
def _nudging(by_nudging: Answer) -> Verdict:
    def gradient(w: Any) -> Any:
        return _H @ w + w**3  # the Hessian is _H + 3 w**2 on the diagonal

    w, h = np.array([0.1, 0.2, -0.3]), 0.1
    up, down, here = gradient(w + h * _V), gradient(w - h * _V), gradient(w)
    return judged(
        by_nudging(gradient, w.copy(), _V.copy(), h),
        (up - down) / (2 * h),
        ((up - here) / h, "That nudges to one side only. Go as far to the other side, and the errors cancel."),
        ((up - down) / h, "From one side to the other it is two nudges."),
        ((up - down) / 2 * h, "Mind the brackets: a / 2 * h is (a / 2) * h."),
        (up - down, "That is how far the gradient turns. How far per unit of the way?"),
        ((gradient(w + h) - gradient(w - h)) / (2 * h), "The nudge goes along all axes; it has to go along v."),
        ((gradient(w + _V) - gradient(w - _V)) / (2 * h), "The nudge is as long as v; it has to be h times that."),
        (((up - down) / (2 * h)) @ _V, "That is one number more than asked for: v H v. Leave it a vector."),
        what="by_nudging(gradient, w, v, 0.1)",
    )


@STEPS("exactly", section="Three ways")
def _exactly(exactly: Answer) -> Verdict:
    def loss(w: Any) -> Any:
        return (w**4).sum() + (w[0] * w[1]) ** 2 + w[1].exp()

    w, v = np.array([0.5, -1.0, 2.0]), _V
    slope = 4 * w**3 + np.array([2 * w[0] * w[1] ** 2, 2 * w[1] * w[0] ** 2 + np.exp(w[1]), 0.0])
    matrix = np.diag(12 * w**2)
    matrix[:2, :2] += [[2 * w[1] ** 2, 4 * w[0] * w[1]], [4 * w[0] * w[1], 2 * w[0] ** 2 + np.exp(w[1])]]
    found, expected = exactly(loss, tensor(w), tensor(v)), matrix @ v
    if close(found, expected, 1e-5) and not close(found, expected, 1e-10):
        return "It is nearly right, as a nudge is. Take the gradient of something that has a gradient in it."
    return judged(
        found,
        expected,
        (slope, "That is the gradient. Which number has H v as its gradient?"),
        (slope @ v, "That number, the gradient along v, is half of the way: take its gradient."),
        (matrix.sum(0), "That is H times a vector of ones: the sum has to be weighted by v."),
        (expected @ v, "That is v H v. Leave it a vector."),
        (matrix.diagonal() * v, "That holds the diagonal of H only."),
        what="exactly(loss, w, v)",
        tolerance=1e-10,
    )


@STEPS("the whole matrix", section="Three ways")
def _whole(whole: Answer) -> Verdict:
    turned = _H + np.array(
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    )  # not symmetric: it distinguishes rows from columns
    return judged(
        whole(lambda v: turned @ v, 3),
        turned,
        (turned.sum(1), "One product with all ones adds the columns up. Take one direction at a time."),
        (turned.T, "Every product gave a column, and they are stacked as rows. (A Hessian would not show it.)"),
        what="whole(product, 3)",
    )


@STEPS("the largest curvature", section="The largest curvature")
def _largest(largest_curvature: Answer) -> Iterator[Verdict]:
    for matrix in (_H, -_H):
        values = np.linalg.eigvalsh(matrix)
        largest = values[np.argmax(np.abs(values))]
        start = np.array([1.0, 0.2, 0.1])
        found = largest_curvature(lambda v, matrix=matrix: matrix @ v, start.copy(), 200)
        if found is not None and np.ndim(found) == 0 and not abs(found) < 1e6:
            yield "The direction grows beyond all numbers: bring its length back to 1 after every product."
        yield judged(
            found,
            largest,
            (abs(largest), "A length has no sign. Curvature can be negative: how much of H d points along d?"),
            (largest**2, "That is squared: the product of H d with itself, and not with d."),
            (1.0, "That is the length of the direction. Return what H makes of it."),
            (float(start @ matrix @ start / (start @ start)), "That is still the curvature along the first direction."),
            what="largest_curvature(product, start, 200)",
            tolerance=1e-4,
        )


@STEPS("the largest rate", section="What it is good for")
def _rate(largest_rate: Answer) -> Verdict:
    return judged(
        largest_rate(4.0),
        0.5,
        (0.25, "At that rate one step arrives. How much farther may it go before the distance grows?"),
        (2.0, "The larger the curvature, the smaller the rate."),
        (4.0, "The larger the curvature, the smaller the rate."),
        (8.0, "The larger the curvature, the smaller the rate."),
        what="largest_rate(4.0)",
    )
