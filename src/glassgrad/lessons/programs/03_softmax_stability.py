"""Softmax, log-softmax, logsumexp, and why nobody computes them as they are defined.

Why exp overflows, how shifting helps, and why the gradient of the whole is simpler than that of its parts.
"""

# Softmax turns any numbers into probabilities: `exp(x[i]) / sum of exp(x[j])`. On paper that is the end of it. In
# floating point, `exp` is a dangerous function: it overflows beyond 88 in float32 and rounds to 0 below -104.

import numpy as np

from glassgrad import manual
from glassgrad.lessons import chart, figure
from glassgrad.verify import check_my_backward, compare


@np.errstate(over="ignore", invalid="ignore")  # this shows the overflow
def naive(x):
    e = np.exp(x)
    return e / e.sum()


print("small numbers:", naive(np.array([1.0, 2.0, 3.0], np.float32)))
print("large numbers:", naive(np.array([101.0, 102.0, 103.0], np.float32)))

# ## Only differences matter
#
# Adding the same c to every x multiplies numerator and denominator by exp(c), which cancels. So both answers should
# have been equal. We may choose c. Minus the largest x cannot overflow: the largest exponential is then exactly 1, the
# sum is at least 1, and terms that underflow are negligible.


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


print("shifted:      ", softmax(np.array([101.0, 102.0, 103.0], np.float32)))

# ## The logarithm of a probability
#
# A loss wants `log(softmax(x)[target])`. If the model is confidently wrong, that probability underflows to
# 0 and its logarithm is -inf, although the true value is harmless: about -200 below. The cure is to take
# the logarithm on paper, before any rounding:
#
#     log(exp(x[i]) / S) = x[i] - log(S),    S = sum of exp(x[j])
#
# `log(S)` is called logsumexp, and shifting works inside it: `log(S) = m + log(sum of exp(x[j] - m))`.


def logsumexp(x):
    m = x.max()
    return m + np.log(np.exp(x - m).sum())


x = np.array([200.0, 0.0, -1.0], np.float32)
with np.errstate(divide="ignore"):
    print("log of softmax:", np.log(softmax(x)))
print("log-softmax:   ", x - logsumexp(x))

# How early does the detour lose digits? Here is the error of both, against float64, as the gap between two
# logits grows.

gaps = np.linspace(1, 120, 60)
detour, direct = [], []
for gap in gaps:
    logits = np.array([gap, 0.0])
    true = -np.log1p(np.exp(-gap)) - gap  # log-softmax of the second entry, without cancellation
    single = logits.astype(np.float32)
    with np.errstate(divide="ignore"):
        logarithm = float(np.log(softmax(single))[1])
    detour.append((gap, max(abs(logarithm - true) / abs(true), 1e-9)))
    direct.append((gap, max(abs(float(single[1] - logsumexp(single)) - true) / abs(true), 1e-9)))
figure(
    "03_error", chart({"log(softmax(x))": detour, "x - logsumexp(x)": direct}, x="gap of logits", y="error", log_y=True)
)

# ## Their gradients
#
# Softmax first. Each output depends on every input, through the numerator (only its own) and through S (all of them).
# Working it out (the docstring of `manual.Softmax` does) gives a formula with one sum: each probability times the
# difference between its cotangent and the mean of all cotangents, weighted by the probabilities. Log-softmax is simpler
# still, and logsumexp is the simplest: its gradient *is* softmax. The moral: never differentiate the detour; the
# composite has a nicer gradient than its parts.


def forward(x, r):
    p = x.softmax(-1)
    lp = x.log_softmax(-1)
    lse = x.logsumexp(-1)
    loss = (p * r).sum() + (lp * r * r).sum() + lse.sum()
    return loss  # noqa: RET504 - the name is what is printed


rng = np.random.default_rng(0)
inputs = {"x": rng.normal(size=(3, 5)), "r": rng.normal(size=(3, 5))}
derivation = """
dp = r
dlp = r * r
dlse = np.ones_like(lse)
dx = p * (dp - (dp * p).sum(-1, keepdims=True))
dx += dlp - np.exp(lp) * dlp.sum(-1, keepdims=True)
dx += p * dlse[:, None]
"""
assert check_my_backward(derivation, forward, inputs)

# ## Together with the loss
#
# In cross-entropy, the cotangent of log-softmax is -1/n at the target and 0 elsewhere. Put this into the gradient of
# log-softmax. The result is short: the predicted probability, minus 1 at the target, over n. It has no logarithm, no
# division, and nothing that could overflow.

logits, target = rng.normal(size=(4, 3)) * 50, np.array([0, 2, 1, 1])
loss = manual.CrossEntropyLoss()
loss(logits, target)
by_hand = np.stack([softmax(row) for row in logits])
by_hand[np.arange(4), target] -= 1
by_hand /= 4

# ## The check

assert compare("dlogits", by_hand, loss.backward())
assert np.isfinite(loss.backward()).all()
assert detour[-1][1] == np.inf or detour[-1][1] > 1
assert direct[-1][1] < 1e-6
print("Stable, and right.")
