"""Forward and reverse mode, with matrices and with pairs of numbers.

Multiply a chain of Jacobians from either end, build a Jacobian from sweeps, and write forward mode in ten lines.
"""

# ## A chain of matrices
#
# A function is a chain of steps, and `matrices` are their Jacobians, the first step first. So the Jacobian of
# the whole is `matrices[-1] @ ... @ matrices[1] @ matrices[0]`. Never multiply two matrices: a vector goes
# through the chain.
#
# `push(matrices, v)` returns the Jacobian times `v`: how fast the results move when the inputs move as `v`
# says. `pull(matrices, u)` returns `u` times the Jacobian: how much each input counts when the results count
# as `u` says.

import numpy as np


def push(matrices, v):
    return ...


def pull(matrices, u):
    return ...


# ## The whole Jacobian
#
# `forward_sweep(v)` returns J @ v for a function of `n` inputs, `reverse_sweep(u)` returns u @ J for one of
# `m` results. Return the whole Jacobian, of shape (m, n), with the one and with the other.


def jacobian_by_columns(forward_sweep, n):
    return ...


def jacobian_by_rows(reverse_sweep, m):
    return ...


# Which one takes fewer sweeps? Return "forward" or "reverse", and the number of sweeps, as a tuple.


def cheaper(n, m):
    return ...


# ## Pairs of numbers
#
# Forward mode in a class: a number, and how fast it moves. Fill in what a product and a sine do to the speed.


class Dual:
    def __init__(self, value, speed=0.0):
        self.value = value
        self.speed = speed

    def __add__(self, other):
        return Dual(self.value + other.value, self.speed + other.speed)

    def __mul__(self, other):
        return Dual(self.value * other.value, ...)

    def sin(self):
        return Dual(np.sin(self.value), ...)
