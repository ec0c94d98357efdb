"""The loops of a training step.

Write what the C program does, on flat lists: products by distances, one loop for three lines, and shared memory.
"""

# A matrix in C is a row of numbers. Element (i, j) of a matrix with `columns` columns stands at i * columns + j. Write
# the functions below as C would: with loops over flat lists, without NumPy.
#
# ## A product by distances
#
# A has m rows and k columns, B has k rows and n columns. Element (i, p) of A stands at a[i * a_row + p * a_column],
# element (p, j) of B at b[p * b_row + j * b_column]. Return A B, a flat list of m * n numbers, row after row.


def product(m, n, k, a, a_row, a_column, b, b_row, b_column):
    return ...


# ## Two gradients
#
# The forward pass was y = x @ w: x has `batch` rows and `inputs` columns, w has `inputs` rows and `outputs` columns.
# `dy` is the gradient of y. All are flat lists, row after row. Return the gradient of w, and that of x, by one call of
# `product`. Nothing is copied or turned round: the distances say how a list is read.


def weight_gradient(product, x, dy, batch, inputs, outputs):
    return ...


def input_gradient(product, dy, w, batch, inputs, outputs):
    return ...


# ## One loop
#
# The forward pass was hidden = tanh(before + bias), with `batch` rows of `width` numbers. `dhidden` is the gradient of
# hidden. Write the gradient of `before` over `dhidden`, and make the step of plain gradient descent, with this rate, on
# `bias`. Both lists are changed in place, and no element of `dhidden` is read twice.


def backward_tanh(dhidden, hidden, bias, rate, batch, width):
    return ...


# ## Memory
#
# `values` is a list of (size, first, last): a value of this size is written in turn `first` and read for the last time
# in turn `last`. Return a list with the place of each in one piece of memory. Values that are alive in the same turn
# must not overlap; in a turn that reads one value and writes another, both are alive. The piece should be short. It is
# short enough if you place the values from the largest to the smallest, each at the lowest place that is free.


def arena(values):
    return ...
