"""The chain rule, by nudging, by hand, and by a machine.

Find slopes by trying, then by multiplying along paths and adding over them, and then let a program do it.
"""

# ## Nudging
#
# `f` is a function of one number. Nudge `x` to both sides by `nudge`, see how far `f` moves, and return the
# slope: how far it moves per unit of `x`. (Two sides, because the error of one cancels that of the other.)


def slope_by_nudging(f, x, nudge):
    return ...


# ## By hand
#
# One weight, one bias, one example, and a loss with two parts: the squared error, and a small penalty for a large
# weight. So `w` is used twice, and a nudge of it travels along two paths.

inputs = {"x": 1.5, "w": -2.0, "b": 0.5, "target": 1.0}


def forward(x, w, b, target):
    scaled = x * w
    prediction = scaled + b
    miss = prediction - target
    penalty = 0.5 * w * w
    loss = miss * miss + penalty
    return loss


# Write a line or more for each slope of the loss. The numbers of the forward pass are there by their names,
# and so are the slopes that you have found already. What is used twice is assigned first (`=`) and added to
# later (`+=`).


def backward():
    dmiss = ...
    dprediction = ...
    dscaled = ...
    dx = ...
    dw = ...
    db = ...


# ## A machine for it
#
# A book lists the numbers in the order in which they were made: the name of each, the numbers it was made from, and the
# slope for each of these. `a` occurs twice in `c = a * a`, once per factor. The last entry is the loss.

book = [
    ("a", []),  # a = 2
    ("b", [("a", 3.0)]),  # b = a * 3
    ("c", [("a", 2.0), ("a", 2.0)]),  # c = a * a
    ("d", [("b", 4.0), ("c", 6.0)]),  # d = b * c
]

# Return a dictionary: for each name, the slope of the loss. The slope of the loss for itself is 1.


def slopes_of(book):
    return ...
