"""Why deep nets did not train.

Compute what a layer does to a gradient, draw weights so that it does nothing, and mend a net of sixteen layers.
"""

import numpy as np

# ## What a layer does
#
# The slope of a sigmoid is easiest to write with its *result* y, which lies between 0 and 1.


def slope_of_sigmoid(y):
    return ...


# In a net of `layers` layers the gradient has the size `last` at the last layer and `first` at the first one. By which
# factor does it change, on average, from one layer to the one below it?


def factor(first, last, layers):
    return ...


# ## How to draw weights
#
# Return the standard deviation that weights need so that a layer keeps the size of what passes through it, for the
# activation "tanh" (whose slope is about 1) and for "relu" (which shuts half of the units).


def spread(inputs, activation):
    return ...


# Draw the weights of a ReLU layer from a normal distribution, as an array with one row for each *output*. `rng` is a
# generator of NumPy.


def draw(rng, inputs, outputs):
    return ...


# ## Measuring instead
#
# Normalise x, of shape (examples, features), as batch norm does: every feature with mean 0 and variance 1 over the
# examples. Add 1e-5 to the variance.


def normalise(x):
    return ...


# ## A road of its own
#
# A block computes y = x + f(x). `dy` is the gradient of y, and `f_backward(g)` returns what f makes of a gradient g of
# its result. Return the gradient of x.


def residual_backward(dy, f_backward):
    return ...


# Sixteen such blocks with ReLU: `weights` is a list of square matrices, and a block adds the ReLU of x @ w to x.
# Return what comes out at the end. The judge draws small weights and checks that the net keeps the size.


def residual_net(x, weights):
    return ...
