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
# `gradients`, in float64, are those of the unscaled loss. The loss is multiplied by `scale`, and the backward pass is
# in float16. Which share of them, between 0 and 1, arrives as 0?


def lost(gradients, scale):
    return ...


# Return the largest power of two by which the loss may be multiplied so that no gradient becomes infinite. The largest
# float16 is 65504.


def largest_scale(gradients):
    return ...


# ## A step
#
# `weights` are in float32. `gradients` are in float16, and belong to the loss times `scale`. Return the new weights
# after a step of plain SGD, in float32. If a gradient is not finite, skip the step: return the weights as they are.


def step(weights, gradients, scale, rate):
    return ...


# Training searches for the scale as it goes. `finite` is True if the gradients of this step are finite. `good` is the
# number of finite steps since the scale last changed, including this one. Halve the scale after an overflow; double it
# after 1000 good steps.


def next_scale(scale, finite, good):
    return ...


# ## The nudge
#
# Return the slope of f at x, by nudging x to both sides. f computes in float64. Choose a nudge that makes the error
# small: the judge wants nine digits.


def slope(f, x):
    return ...
