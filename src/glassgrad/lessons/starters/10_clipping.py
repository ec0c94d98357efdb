"""Clip gradients, and refuse the ones that are none.

Clipping by norm and by value of a whole model's gradients, with the corner cases that a training meets.
"""

# `gradients` is a list of arrays of any shapes: one for each parameter of a model. Functions return new
# arrays, and leave the given ones as they are.

import numpy as np

# ## By norm
#
# If the gradient of the model, all arrays together, is longer than `limit`, scale it down to that length. A
# shorter one is not touched, and a gradient of zeros stays one.


def clip_by_norm(gradients, limit):
    return ...


# ## By value
#
# Cut every entry to the range from -limit to limit.


def clip_by_value(gradients, limit):
    return ...


# How far does clipping turn the gradient? Return the angle between two gradients (lists of arrays) in
# degrees.


def angle(first, second):
    return ...


# ## What clipping cannot mend
#
# Return whether a step may be made with these gradients: True if every entry of every array is a finite
# number.


def usable(gradients):
    return ...
