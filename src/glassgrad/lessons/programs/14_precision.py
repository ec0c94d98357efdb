"""Precision: which numbers a computer leaves out.

What float16 and bfloat16 leave out, how a scaled loss saves gradients, and why they are checked in float64.
"""

# Between two numbers there are always more, and a computer has room for few of them. This choice decides whether a
# gradient arrives exactly, approximately, or as 0. This page looks at three ways to spend 16 or 32 bits, loses a
# gradient in one of them, gets it back, and explains why gradients are checked in 64 bits.

import numpy as np

import glassgrad as gg
from glassgrad.lessons import chart, figure

# ## Two budgets
#
# A float is a sign, an exponent and some digits: ± 1.0110… · 2^e. Bits for the exponent buy *range*, how large and how
# small numbers may be; bits for the digits buy *precision*, how near the next number is. float16 has 5 and 10, float32
# has 8 and 23, and bfloat16 is float32 without its last 16 bits: 8 and 7, the whole range and few digits.
# NumPy has no bfloat16, but cutting is easy: take the 32 bits as an integer, round, and drop the lower half.


def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    half_and_tie = 0x7FFF + ((bits >> 16) & 1)  # rounds to the nearest, and a tie to the even one
    return ((bits + half_and_tie) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def float16(x):
    with np.errstate(over="ignore"):  # numbers that are too large become infinite, on purpose
        return np.asarray(x).astype(np.float16).astype(np.float32)


print(f"{'':>10} {'float32':>12} {'float16':>12} {'bfloat16':>12}")
for number in (1 / 3, 1.001, 2049.0, 70000.0, 1e-5, 1e-8):
    print(f"{number:>10.4g} {np.float32(number):>12.6g} {float16(number):>12.6g} {bfloat16(number):>12.6g}")
assert float16(1e-8) == 0
assert np.isinf(float16(70000.0))
assert bfloat16(1e-8) > 0
assert bfloat16(1.001) == 1.0

# Read the table by columns. float16 has three digits of a third, and loses both ends: 70000 is too large for it, and a
# hundred-millionth becomes 0. bfloat16 loses neither end, but rounds 1.001 to 1.
#
# ## Where gradients live
#
# Losses are around 1, weights around 0.1. Gradients are much smaller: each is divided by the size of the batch and
# multiplied by the slopes on the way. Here is a small classifier that has nearly learnt its examples. The output shows
# how its gradients spread over the powers of ten.

gg.manual_seed(0)
rng = np.random.default_rng(0)
points = rng.normal(size=(256, 8)).astype(np.float32)
labels = (points[:, 0] * points[:, 1] > 0).astype(np.int64)
model = gg.nn.Sequential(gg.nn.Linear(8, 64, bias=False), gg.nn.Tanh(), gg.nn.Linear(64, 2, bias=False))
optimizer = gg.optim.Adam(model.parameters(), lr=0.02)
for _ in range(150):
    loss = gg.nn.functional.cross_entropy(model(gg.tensor(points)), gg.tensor(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
first, last = model[0].weight.detach().numpy().T, model[2].weight.detach().numpy().T


hidden = np.tanh(points @ first)
shares = np.exp(hidden @ last)
shares /= shares.sum(1, keepdims=True)


def gradient(rounded, scale=1.0):
    """Return the gradients of the first weights and of the hidden layer; every intermediate result is rounded."""
    r = rounded
    dscores = r((shares - np.eye(2)[labels]) * (scale / len(labels)))
    dhidden = r(r(dscores @ last.T) * r(1 - hidden * hidden))
    return r(points.T @ dhidden) / scale, dhidden


exact, at_hidden = gradient(np.float64)
small = np.abs(at_hidden)
powers = ", ".join(f"{np.quantile(small, share):.0e}" for share in (0.1, 0.5, 0.9))
print(f"loss {loss.item():.4f}; gradients at the hidden layer: {powers} (a tenth, half, nine tenths are smaller)")
lost = (float16(at_hidden) == 0).mean()
print(f"in float16, {lost:.0%} of them are 0, and {(small < 2.0**-14).mean():.0%} have fewer digits than they should")
assert lost > 0.2

# Below 2^-14 float16 has no full set of digits left, and below 2^-25 it has none: the number is 0. That is called
# *underflow*. It is silent, and it comes late: when the loss was 0.7 all was well.
#
# ## Scaling the loss
#
# The backward pass only multiplies and adds, so twice the loss is twice every gradient. Multiply the loss by 2^15, go
# backward, and divide by 2^15 at the end: a power of two changes only the exponent, so it rounds nothing. The gradients
# travel through the range that float16 has, and become small after the journey.


def error(found):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact)) if np.isfinite(found).all() else np.inf


half, brain = {}, {}  # by the power of 2 of the scale
with np.errstate(all="ignore"):
    for k in range(-10, 31, 2):
        half[k], brain[k] = error(gradient(float16, 2.0**k)[0]), error(gradient(bfloat16, 2.0**k)[0])
print(f"in float16: error {half[0]:.2%}, {half[-6]:.0%} at 2^-6, {half[14]:.2%} at 2^14, {half[30]} at 2^30")
print(f"in bfloat16: error {brain[0]:.2%} at every scale")
lines = {"float16": list(half.items()), "bfloat16": list(brain.items())}
figure("14_scale", chart(lines, x="scale of the loss, as a power of 2", y="error of the gradient", log_y=True))
assert half[0] > 1.5 * half[14]
assert half[-6] > 0.1
assert np.isinf(half[30])
assert max(brain.values()) < 1.01 * min(brain.values())

# Larger nets are on the left side: a mean over 64 times as many predictions is a scale of 2^-6. On the right, the line
# ends at a cliff: too large a scale overflows, the gradient is infinite, the step is lost. So training searches for the
# scale as it goes: it doubles the scale from time to time, halves it after an overflow, and skips that step.
# `gg.amp.GradScaler` does this, and so does `TrainingConfig(dtype="float16", loss_scale=65536.0)`.
#
# bfloat16 has the range of float32. It needs no scale, so its line is flat; the line lies higher, because bfloat16 has
# only seven digits. The choice is this: float16 is exact where it works, bfloat16 works everywhere.
#
# ## Small steps on large numbers
#
# A step can vanish although neither number is small. Take a weight of 1 and a step of 0.0002: the next float16 below 1
# is 0.9995, so the step is rounded away, and so is every other step like it.

weight16, weight32 = np.float16(1), np.float32(1)
for _ in range(1000):
    weight16 = np.float16(weight16 - np.float16(0.0002))
    weight32 = np.float32(weight32 - np.float16(0.0002))
print(f"after 1000 steps of 0.0002: {weight16:.4f} in float16, {weight32:.4f} in float32")
assert weight16 == 1
assert abs(weight32 - 0.8) < 1e-3

# The remedy is to keep the weights in float32 and to round a copy of them for the passes (Micikevicius et al. 2018).
# Sums have the same trouble: 2048 + 1 is 2048 in float16, so sums and means are computed in 32 bits even if their terms
# have 16.
#
# ## Why gradients are checked in float64
#
# `gradcheck` nudges a number and looks at the change. It has two errors. A large nudge h measures the curve instead of
# the slope: an error of about h². A small nudge subtracts two results that are nearly the same; the difference is
# mostly rounding, and it is divided by h: an error of about ε / h, with ε the distance from 1 to the next float. The
# best nudge balances the two, near the third root of ε, and the best error is its square.


def slope_error(x, h, kind):
    x, h = kind(x), kind(h)
    nudged = (np.exp(np.sin(x + h)) - np.exp(np.sin(x - h))) / ((x + h) - (x - h) or np.inf)
    true = np.cos(float(x)) * np.exp(np.sin(float(x)))
    return abs(float(nudged) - true) / abs(true)


curves = {}
for kind in (np.float32, np.float64):
    places = np.linspace(0.1, 1.2, 20)
    curves[kind.__name__] = [
        (h, float(np.mean([slope_error(x, h, kind) for x in places]))) for h in 10.0 ** np.arange(-11, 0, 0.5)
    ]
for name, points_of in curves.items():
    h, least = min(points_of, key=lambda point: point[1])
    print(f"{name}: the best nudge is {h:.0e}, its error {least:.0e}")
figure("14_nudges", chart(curves, x="nudge", y="error of the slope", log_x=True, log_y=True))

# At its best, a check in float32 sees five digits, and only for a function of one number. A sum of many terms loses
# most of them, so a right gradient looks wrong. In float64 there are ten, and every mistake is far above the noise.
#
# ## The check

least = {name: min(e for _, e in points_of) for name, points_of in curves.items()}
assert 1e-6 < least["float32"] < 1e-3
assert least["float64"] < 1e-9
assert gg.verify.gradcheck(lambda x: x.sin().exp(), np.linspace(0.1, 1.2, 20)).kind == "right"
numbers = np.float32([1 / 3, -2.7, 6e4, 1e-30])
assert (np.abs(bfloat16(numbers) - numbers) <= np.abs(numbers) * 2.0**-8).all()
assert np.array_equal(bfloat16(bfloat16(numbers)), bfloat16(numbers))
print("16 bits for the journey, 32 for the weights, 64 for the truth.")
