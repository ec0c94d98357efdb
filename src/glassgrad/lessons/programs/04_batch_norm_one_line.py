"""Batch norm in one line.

Four lines forward, ten back, and how they become one.
"""

# Batch norm subtracts the mean of each feature over the batch and divides by its standard deviation. The
# forward pass is four obvious lines. The backward pass is the first one that surprises people, because the
# mean and the variance are made from the very numbers that they are applied to: nudging one entry of `x`
# moves every entry of the result.

import inspect

import numpy as np

from glassgrad.verify import check_my_backward

rng = np.random.default_rng(0)
inputs = {
    "x": rng.normal(size=(8, 3)),
    "w": rng.normal(size=3) + 1,
    "b": rng.normal(size=3),
    "r": rng.normal(size=(8, 3)),
}


def batch_norm(x, w, b, r):
    n = x.shape[0]
    mean = x.sum(0) / n
    centred = x - mean
    var = (centred * centred).sum(0) / n
    s = (var + 1e-5) ** -0.5
    hat = centred * s
    y = w * hat + b
    loss = (y * r).sum()
    return loss  # noqa: RET504 - the name is what is printed


# (`r` is there to give every output a different cotangent; with a plain sum, most mistakes would go
# unnoticed.)
#
# ## Step by step
#
# Going backwards one line at a time needs nothing but the chain rule. Three places need care: `centred` is
# used twice, so its gradient is assigned once and added to once; `var` and `mean` were broadcast over the
# batch, so their gradients are sums over it; and `x` is used twice, directly and in the mean.

step_by_step = """
dy = r
db = dy.sum(0)
dw = (dy * hat).sum(0)
dhat = dy * w
ds = (dhat * centred).sum(0)
dcentred = dhat * s
dvar = ds * -0.5 * s**3
dcentred += dvar * 2 * centred / n
dmean = -dcentred.sum(0)
dx = dcentred + dmean / n
"""
assert check_my_backward(step_by_step, batch_norm, inputs)

# ## Towards one line
#
# Write D for dhat, h for hat, and mean(·) for the mean over the batch. Two facts do all the work: `centred
# = h / s`, and the entries of h add up to 0 over the batch (it is centred).
#
#     ds       = sum(D · centred)                = n mean(D h) / s
#     dvar     = -ds s³ / 2                      = -n s² mean(D h) / 2
#     dcentred = D s + 2 dvar centred / n        = s (D - h mean(D h))
#     dmean    = -sum(dcentred)                  = -s n mean(D)                 since sum(h) = 0
#     dx       = dcentred + dmean / n            = s (D - mean(D) - h mean(D h))
#
# Read the last line aloud: take the incoming gradient, remove its mean, and remove its part along h. Those
# are exactly the two directions in which batch norm cannot move: shifting x changes nothing, stretching x
# changes nothing, so no gradient may point there.

one_line = """
dy = r
db = dy.sum(0)
dw = (dy * hat).sum(0)
dx = w * s * (dy - dy.mean(0) - hat * (dy * hat).mean(0))
"""
assert check_my_backward(one_line, batch_norm, inputs)

# ## Where it goes wrong
#
# If the variance divides by n - 1 instead, one factor changes. Forgetting that is the most common slip:

unbiased = inspect.getsource(batch_norm).replace(".sum(0) / n\n    s =", ".sum(0) / (n - 1)\n    s =")
exec(unbiased.replace("def batch_norm", "def unbiased_batch_norm"))  # noqa: S102 - the function above, changed
report = check_my_backward(one_line, globals()["unbiased_batch_norm"], inputs)
assert report.diagnosis.kind == "n for n-1"

# ## The check
#
# Numbers confirm the claim about the two directions: the gradient has mean 0 over the batch and is orthogonal to h.

x = inputs["x"]
s = (x.var(0) + 1e-5) ** -0.5
hat = (x - x.mean(0)) * s
dy = inputs["r"]
dx = inputs["w"] * s * (dy - dy.mean(0) - hat * (dy * hat).mean(0))
assert np.allclose(dx.mean(0), 0)
assert np.allclose((dx * hat).sum(0), 0, atol=1e-4)  # up to the 1e-5 under the root
print("One line, and it knows what batch norm cannot do.")
