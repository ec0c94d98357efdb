"""Layer norm, line by line and in one.

The lesson normalises over the batch; here every row is normalised by itself, so all sums run along the other axis.
"""

# Layer norm subtracts from each row its mean, and divides it by its standard deviation. Scale and shift, `w`
# and `b`, have one entry for each column, as in batch norm. (`r` is there to give every output another
# gradient.)

import numpy as np

rng = np.random.default_rng(0)
inputs = {
    "x": rng.normal(size=(6, 4)),
    "w": rng.normal(size=4) + 1,
    "b": rng.normal(size=4),
    "r": rng.normal(size=(6, 4)),
}


def forward(x, w, b, r):
    n = x.shape[1]
    mean = x.sum(1, keepdims=True) / n
    centred = x - mean
    var = (centred * centred).sum(1, keepdims=True) / n
    s = (var + 1e-5) ** -0.5
    hat = centred * s
    y = w * hat + b
    loss = (y * r).sum()
    return loss


# ## Line by line
#
# A line or more for each gradient. Each is judged by itself, with the right ones of the others.


def backward():
    dy = ...
    db = ...
    dw = ...
    dhat = ...
    ds = ...
    dvar = ...
    dcentred = ...
    dmean = ...
    dx = ...


# ## In one line
#
# The same from `dy` to `dx` at once.


def dx_at_once(dy, w, s, hat):
    return ...
