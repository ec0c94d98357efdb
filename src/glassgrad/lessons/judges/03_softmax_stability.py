"""Judge softmax, log-softmax and cross-entropy with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad import manual
from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import close, judged

STEPS = Steps()
_SMALL = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])
_LARGE = np.array([[1001.0, 1002.0, 1003.0], [-2000.0, -2001.0, -1999.5]])  # the same differences
_APART = np.array([[1000.0, 0.0, -1.0]])
_TARGETS = np.array([2, 0])


def _softmax_of(x: Any) -> Any:
    return manual.Softmax()(x)


def _logs(x: Any) -> Any:
    return manual.LogSoftmax()(x)


def _small_hint(found: object) -> Verdict:
    e, shifted = np.exp(_SMALL), np.exp(_SMALL - _SMALL.max(1, keepdims=True))
    rows, columns = (
        "That is divided by the sum of all rows. Each row is a distribution of its own.",
        "That sums over the samples: the columns add up to 1, and the rows have to.",
    )
    return judged(
        found,
        _softmax_of(_SMALL),
        (e / e.sum(), rows),
        (shifted / shifted.sum(), rows),
        (e / e.sum(0), columns),
        (shifted / shifted.sum(0), columns),
        (e, "exp makes them positive; each row still has to add up to 1."),
        what=f"softmax({_SMALL.tolist()})",
    )


@STEPS("softmax", section="Only differences matter")
def _softmax(softmax: Answer) -> Verdict:
    return _small_hint(softmax(_SMALL.copy()))


@STEPS("softmax of large numbers", section="Only differences matter", gaps=("softmax",))
def _large(softmax: Answer) -> Verdict:
    found = softmax(_LARGE.copy())
    if not np.all(np.isfinite(found)):
        return "exp overflows, or all of a row underflows. Which number may be subtracted from a row for free?"
    mixed = softmax(np.array([[0.0, 1.0], [900.0, 901.0]]))
    if not np.all(np.isfinite(mixed)):
        return (
            "One number for all rows is not enough: a row far below it underflows to 0 / 0. Shift each row by itself."
        )
    return _small_hint(found)


@STEPS("log-softmax", section="The logarithm of a probability")
def _log_softmax(log_softmax: Answer) -> Iterator[Verdict]:
    found = log_softmax(_SMALL.copy())
    yield judged(
        found,
        _logs(_SMALL),
        (_softmax_of(_SMALL), "Those are the probabilities; their logarithms are wanted."),
        (-_logs(_SMALL), "The sign: the logarithm of a probability is negative."),
        what=f"log_softmax({_SMALL.tolist()})",
    )
    if not np.isfinite(log_softmax(_LARGE.copy())).all():
        yield "It overflows for large scores: shift each row inside the logarithm too."
    if not np.isfinite(log_softmax(_APART.copy())).all():
        yield (
            "The probability underflows to 0, and its logarithm is -inf: take the logarithm on paper, before rounding."
        )
    yield judged(log_softmax(_APART.copy()), _logs(_APART), what=f"log_softmax({_APART.tolist()})")


@STEPS("the gradient of softmax", section="Their gradients")
def _backward(softmax_backward: Answer) -> Verdict:
    rng = np.random.default_rng(0)
    layer = manual.Softmax()
    p, dp = layer(rng.normal(size=(4, 3))), rng.normal(size=(4, 3))
    return judged(
        softmax_backward(p.copy(), dp.copy()),
        layer.backward(dp),
        (p * (1 - p) * dp, "That is how an output depends on its own score. It depends on all others too, by the sum."),
        (p * dp, "The outputs add up to 1, so they cannot all rise: a common part has to be subtracted."),
        (p * (dp - (dp * p).sum()), "The sum runs over all samples; each row is a distribution of its own."),
        (p * (dp - dp.sum(1, keepdims=True)), "Subtract a mean weighted by the probabilities, not a plain sum."),
        (p * (dp - dp.mean(1, keepdims=True)), "Subtract a mean weighted by the probabilities, not a plain mean."),
        (dp - (dp * p).sum(1, keepdims=True), "One factor p is missing: the exp in front."),
        what="softmax_backward(p, dp)",
    )


@STEPS("cross-entropy", section="Together with the loss")
def _cross_entropy(cross_entropy: Answer) -> Verdict:
    loss = manual.CrossEntropyLoss()
    expected = float(loss(_SMALL, _TARGETS))
    p = _softmax_of(_SMALL)[np.arange(2), _TARGETS]
    hint = judged(
        cross_entropy(_SMALL.copy(), _TARGETS.copy()),
        expected,
        (-expected, "The sign: the logarithm of a probability is negative, and a loss falls towards 0."),
        (2 * expected, "That is the sum; the mean over the samples is wanted."),
        (-_logs(_SMALL).mean(), "That takes all classes. Only the right one of each row counts."),
        (-np.log(p.mean()), "The mean is taken of the logarithms, not of the probabilities."),
        what="cross_entropy(x, targets)",
    )
    if hint is None and not close(cross_entropy(_APART.copy(), np.array([1])), 1000.0):
        return "For a confidently wrong row it is not right: use log_softmax, not the logarithm of softmax."
    return hint


@STEPS("the gradient of cross-entropy", section="Together with the loss")
def _cross_entropy_backward(cross_entropy_backward: Answer) -> Verdict:
    loss = manual.CrossEntropyLoss()
    loss(_SMALL, _TARGETS)
    expected, p, hits = loss.backward(), _softmax_of(_SMALL), np.eye(3)[_TARGETS]
    return judged(
        cross_entropy_backward(_SMALL.copy(), _TARGETS.copy()),
        expected,
        (2 * expected, "The loss is a mean: divide by the number of samples."),
        (-expected, "The sign: a probability that is too large has to fall, so its gradient is positive."),
        (p / 2, "Subtract the truth as well: 1 at the right class of each row."),
        ((p - 1) / 2, "1 is subtracted everywhere. The truth is 1 at the right class, and 0 elsewhere."),
        (hits * (p - 1) / 2, "The wrong classes have a gradient too: their probability."),
        (expected / 1.5, "It is divided by the number of classes; the mean is over the samples."),
        what="cross_entropy_backward(x, targets)",
    )
