"""A linear layer by hand.

The three lines behind y = x @ w + b: which matrix is transposed, and where a sum is missing.
"""

# Almost every number in a neural network goes through `y = x @ w + b`. Its gradient is three lines, and people get them
# wrong in two places: which matrix is transposed, and where a sum is missing. Writing the indices down once settles
# both.

import numpy as np

from glassgrad import manual
from glassgrad.lessons import figure
from glassgrad.lessons.pictures import linear_gradient
from glassgrad.verify import check_my_backward, compare, gradcheck

rng = np.random.default_rng(0)
x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)

# ## With indices
#
# Four samples of three features become four samples of two outputs:
#
#     y[n, o] = sum over i of x[n, i] w[i, o]  +  b[o]
#
# We are given `dy`, the slope of the loss for every entry of `y`. To find the slope for one entry of
# `w`, say `w[i, o]`, ask where it occurs: in `y[n, o]` for *every* sample n, each time multiplied by `x[n,
# i]`. Each occurrence is a path, and slopes add over paths:
#
#     dw[i, o] = sum over n of x[n, i] dy[n, o]
#
# A sum over n with n first in both factors: that is `x.T @ dy`. In the same way `x[n, i]` occurs in `y[n,
# o]` for every output o, multiplied by `w[i, o]`; the sum over o is `dy @ w.T`. And `b[o]` occurs in `y[n,
# o]` for every n, multiplied by 1. NumPy broadcast it over the samples, so its slope is *summed* over them.
#
# Here is the same with small whole numbers, cell by cell. The framed entry of `dw` combines a row of `x.T` with a
# column of `dy`: for each sample, the value of this input times the gradient of that output.

small_x = np.array([[1, 2, 0], [-1, 3, 1], [2, 0, 1], [0, 1, -2]])
small_w = np.array([[1, -1], [0, 2], [3, 1]])
small_dy = np.array([[1, 0], [2, -1], [0, 3], [-1, 1]])
figure("02_cells", linear_gradient(small_x, small_w, small_dy, entry=(1, 0)))
assert (small_x.T @ small_dy)[1, 0] == sum(small_x[n, 1] * small_dy[n, 0] for n in range(4)) == 7


def forward(x, w, b):
    y = x @ w + b
    loss = (y * y).sum()
    return loss  # noqa: RET504 - named, so that it can be asked about


right = """
dy = 2 * y
dx = dy @ w.T
dw = x.T @ dy
db = dy.sum(axis=0)
"""
inputs = {"x": x, "w": w, "b": b}
assert check_my_backward(right, forward, inputs)

# ## The two mistakes
#
# Leaving out the sum gives `db` the shape of `y`. It would even train for a while, because NumPy broadcasts
# in `b - 0.1 * db` as well. The checker says which line and why.

report = check_my_backward(right.replace("dy.sum(axis=0)", "dy"), forward, inputs)
assert report.wrong_source == "db = dy"

# The transposes can hardly go wrong if the shapes differ: of all products of `x` (4, 3) and `dy` (4,
# 2) only `x.T @ dy` has the shape of `w`. The trap is a square layer, where the wrong one fits too:

square = {"x": rng.normal(size=(3, 3)), "w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
report = check_my_backward(right.replace("x.T @ dy", "dy.T @ x"), forward, square)
assert report.diagnosis.kind == "a transpose"

# ## As a layer
#
# `manual.Linear` is these lines in a class; it stores its weight the other way round, `(out, in)`, as
# PyTorch does. Its gradients are compared with differences of its own outputs, entry by entry:

layer = manual.Linear(3, 2, rng=rng)
print(gradcheck(layer, x))

# ## The check
#
# The formulas above give the same, with the weight transposed:

dy = rng.normal(size=(4, 2))
layer(x)
dx = layer.backward(dy)
weight = layer.weight.data.T
assert compare("dx", dy @ weight.T, dx)
assert compare("dw", x.T @ dy, layer.weight.grad.T)
assert compare("db", dy.sum(axis=0), layer.bias.grad)
print("Three lines, and all three are right.")
