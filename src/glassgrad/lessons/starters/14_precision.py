"""Precision.

Round to bfloat16, save small gradients from float16, keep the weights, and nudge with the right nudge.
"""

import numpy as np

# ## bfloat16
#
# A float32 has 32 bits; a bfloat16 is the upper 16 of them. Round each number of x to the *nearest* bfloat16, and a
# number in the middle of two to the one whose last bit is 0. Return float32. (`x.view(np.uint32)` are the bits.)


def bfloat16(x):
    x = np.asarray(x, np.float32)
    return ...


# ## Scaling the loss
#
# These gradients, in float64, would be those of the loss as it is. The loss is multiplied by `scale`, and the backward
# pass is in float16. Which share of them, between 0 and 1, arrives as 0?


def lost(gradients, scale):
    return ...


# Return the largest power of two by which the loss may be multiplied so that no gradient becomes infinite. The largest
# float16 is 65504.


def largest_scale(gradients):
    return ...


# ## A step
#
# `weights` are in float32, `gradients` in float16, and those of the loss times `scale`. Return the new weights after a
# step of plain SGD, in float32. If a gradient is not finite, return the weights as they are: that step is left out.


def step(weights, gradients, scale, rate):
    return ...


# While training goes on the scale is searched for. `finite` says whether the gradients of this step were; `good` is
# the number of steps since the scale was last changed, this one included, all of them finite. When something has
# overflowed, halve the scale; after 1000 good steps, double it.


def next_scale(scale, finite, good):
    return ...


# ## The nudge
#
# The slope of f at x, by nudging x to both sides. f computes in float64. Choose a nudge that makes the error small:
# the judge asks for nine digits.


def slope(f, x):
    return ...
