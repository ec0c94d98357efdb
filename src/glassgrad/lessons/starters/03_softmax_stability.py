"""Softmax that survives large numbers.

Softmax, log-softmax and cross-entropy of rows of scores, so that nothing overflows, and their gradients.
"""

# All functions take scores of shape (n, c): one row per sample, one column per class. None of them may
# overflow, nor lose a probability that is small.

import numpy as np

# ## Softmax
#
# Return the probabilities of each row, of shape (n, c).


def softmax(x):
    return ...


# ## Log-softmax
#
# Return the logarithms of those probabilities, without computing the probabilities first.


def log_softmax(x):
    return ...


# ## The gradient of softmax
#
# `p` are the probabilities that softmax returned, `dp` the gradient of the loss for them. Return the gradient
# for the scores.


def softmax_backward(p, dp):
    return ...


# ## Cross-entropy
#
# `targets` are the numbers of the right classes, of shape (n,). Return the mean of minus the log-probability
# of the right class, and the gradient of that for the scores.


def cross_entropy(x, targets):
    return ...


def cross_entropy_backward(x, targets):
    return ...
