"""Watch a gradient go.

Listen to a backward pass, stop a gradient, find the step that went wrong, clip in the right place, and make a step.
"""

import numpy as np

import glassgrad as gg
from glassgrad import nn

# ## Listening
#
# Run one backward pass of `nn.functional.mse_loss`, and return a list of pairs: the name of every part of `model` (an
# nn.Sequential, whose parts are named "0", "1", ...) and the norm of the gradient that arrives at its output, in the
# order in which they arrive. The hook is `module.register_full_backward_hook(f)`, with f(module, sent_on, arrived);
# both are tuples. Remove every hook before you return.


def listen(model, x, target):
    heard = []
    ...
    return heard


# ## Changing
#
# `t` is a tensor somewhere in a model. Halve the gradient that everything it was made from gets through it. Change
# nothing else: neither its value nor the gradients above it.


def halve(t): ...


# ## Finding
#
# `norms` are the norms of the gradient, step by step. Return the first step at which it is more than ten times as
# large as the median of all steps before it; None if there is no such step. Steps 0 to 4 are too early to tell.


def first_jump(norms):
    return ...


# ## Clipping
#
# `gradients` is a list of arrays, one for each parameter. If the norm of all of them together is larger than
# `limit`, return them scaled to that norm, else as they are. Do not change the arrays that you are given.


def clip(gradients, limit):
    return ...


# One training step of a model, with its gradients clipped to norm 1: `nn.utils.clip_grad_norm_` clips those of
# parameters. Return the loss as a number.


def train_step(model, optimizer, x, target):
    loss = nn.functional.mse_loss(model(x), target)
    ...
    return loss.item()


# ## From a gradient to a step
#
# `p` is the weights, `g` their gradient, `state` a dictionary that is empty before the first step; keep what you need
# in it. Return the new weights, as a new array.


def momentum(p, g, state, rate=0.1, beta=0.9):
    # v is the sum of the gradients so far, each weaker by beta with every step; begin with v = g
    return ...


def adam(p, g, state, rate=0.1, b1=0.9, b2=0.999, eps=1e-8):
    # m and s are running means of g and of g², both begin at 0 and are corrected for it
    return ...
