"""A tensor engine.

Turn a scalar engine into an engine for arrays: broadcasting, the rules of five operations, and the walk.
"""

# A tensor is the same as in the lesson: it has `data`, `grad`, and in `made_from` pairs of an argument and its *rule*,
# a function from the gradient of the result to that of the argument. The operations below compute their results; the
# rules are missing, and so is the code that uses them.

import itertools

import numpy as np


class Tensor:
    """An array, its gradient, and what it was made from."""

    ticks = itertools.count()

    def __init__(self, data, needs=True, made_from=()):
        self.data = np.asarray(data, dtype=np.float64)
        self.made_from = [(argument, rule) for argument, rule in made_from if argument.needs]
        self.needs = needs
        self.grad, self.owned = None, False
        self.tick = next(Tensor.ticks)  # the order in which tensors were made


# ## Broadcasting, backwards
#
# A gradient `g` has the shape of a result. `shape` is that of an argument, which NumPy stretched to it: it may have
# fewer axes, and axes of length 1 where g has more. Return the gradient of the argument, in its shape.


def shrink(g, shape):
    return ...


# ## Adding up
#
# `self` gets one more gradient, which has its shape already. Keep the first one without a copy: others may hold it too,
# so `self.owned` is False. Never change a gradient that others may hold. Add in place to one that `self` owns.


def receive(self, g): ...


# ## Rules
#
# Write one function for each argument; it takes g, which has the shape of the result. (Other code handles broadcasting:
# here a and b have shapes that fit.)


def divide(a, b):
    y = a.data / b.data

    def to_a(g):
        return ...

    def to_b(g):
        return ...

    return Tensor(y, made_from=[(a, to_a), (b, to_b)])


def sigmoid(a):
    y = 1 / (1 + np.exp(-a.data))

    def to_a(g):
        return ...

    return Tensor(y, made_from=[(a, to_a)])


def matmul(a, b):
    y = a.data @ b.data  # two axes, or stacks of matrices with more

    def to_a(g):
        return ...

    def to_b(g):
        return ...

    return Tensor(y, made_from=[(a, to_a), (b, to_b)])


def total(a, axis):
    y = a.data.sum(axis)  # `axis` is one axis, and it is gone in the result

    def to_a(g):
        return ...

    return Tensor(y, made_from=[(a, to_a)])


def pick(a, rows):
    y = a.data[rows]  # `rows` are whole numbers, and may hold the same one twice

    def to_a(g):
        return ...

    return Tensor(y, made_from=[(a, to_a)])


# ## The walk
#
# Give a gradient to every tensor that `root` was made from; that of `root` itself is ones. Use `receive(t, g)`, and go
# in an order in which every gradient is complete before it is sent on.


def backward(root):
    root.grad = np.ones_like(root.data)
    ...
