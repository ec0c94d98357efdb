"""A linear layer, backwards.

The gradient of x @ w + b, of the layer that stores its weight transposed, and of a layer that is used twice.
"""

# ## Line by line
#
# The matrices are square, so a product with the wrong one transposed fits as well. Think of the
# indices, not of the shapes. The loss is a mean.

import numpy as np

rng = np.random.default_rng(0)
inputs = {"x": rng.normal(size=(3, 3)), "w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}


def forward(x, w, b):
    y = x @ w + b
    loss = (y * y).mean()
    return loss


# Write a line or more for each gradient; the variables of the forward pass and the gradients found so far are
# there by their names, as NumPy arrays.


def backward():
    dy = ...
    dx = ...
    dw = ...
    db = ...


# ## As a layer
#
# `Linear` stores its weight as (out, in), and computes `y = x @ weight.T + bias`. Given the gradient of `y`,
# return those of `x`, `weight` and `bias`, each in the shape of its value.


def linear_backward(x, weight, dy):
    dx = ...
    dweight = ...
    dbias = ...
    return dx, dweight, dbias


# ## Used twice
#
# The same weight `w` is used for two inputs: `y1 = x1 @ w` and `y2 = x2 @ w`. Return the gradient of `w`.


def shared_weight(x1, dy1, x2, dy2):
    return ...
