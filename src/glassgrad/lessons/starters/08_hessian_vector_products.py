"""Curvature in a direction, without the matrix.

Hessian-vector products by nudging and exactly, the largest curvature, and the largest rate for gradient descent.
"""

# ## Two ways to a product
#
# `gradient` is a function: it takes a point, an array, and returns the gradient there. Return the Hessian at
# `w` times `v`, by nudging the point along `v` by `h` to both sides.

import numpy as np

import glassgrad as gg
from glassgrad.func import grad


def by_nudging(gradient, w, v, h):
    return ...


# Do the same without an error of nudging. `loss` is a function of one tensor that returns one number, and
# `grad(loss)` is the function that returns its gradient. Return the Hessian at `w` times `v`, as a tensor.


def exactly(loss, w, v):
    return ...


# ## The whole matrix
#
# `product(v)` returns H @ v for a Hessian of `n` rows. Return H, from `n` products.


def whole(product, n):
    return ...


# ## The largest curvature
#
# `product(v)` again. Begin with the direction `start`; multiply it by H again and again, `steps` times.
# Return the largest curvature, a number, which may be negative: with the length of the direction kept at 1,
# it is what H makes of the last direction, along that direction.


def largest_curvature(product, start, steps):
    return ...


# ## A speed limit
#
# Gradient descent with rate r multiplies the distance to the minimum by 1 - r c, along a direction of
# curvature c. Below which rate does it shrink?


def largest_rate(curvature):
    return ...
