"""Why reverse mode.

One sweep per output or one per input: what a gradient costs either way.
"""

# The chain rule multiplies slopes along paths. It does not say from which end to multiply. Forward mode begins at the
# inputs: it carries along, with every number, how fast this number moves when *one* input moves. Reverse mode begins at
# the output: it carries back, for every number, how fast the *output* moves when this number moves.

import numpy as np

import glassgrad as gg
from glassgrad.explanation import explain
from glassgrad.func import jvp, vjp
from glassgrad.lessons import chart, figure

# ## One function, both ways
#
# On a small expression, both tables of `explain` have the same result in their last rows. The last line
# counts the products.


def f(x, y):
    return 3 * x**2 + x * y + 5 * y**2


print(explain(f, 2.0, 3.0))

# ## As matrices
#
# A function from n numbers to m has a Jacobian of m rows and n columns. If it is a chain of steps, the Jacobian is a
# product of their Jacobians, `J = J3 @ J2 @ J1`. You may bracket a matrix product as you like, but the costs differ:
#
# * forward mode starts with a vector on the right, `J3 @ (J2 @ (J1 @ v))`: one *column* of J per sweep, n
#   sweeps for all;
# * reverse mode starts with one on the left, `((u @ J3) @ J2) @ J1`: one *row* per sweep, m sweeps for all.
#
# A loss is one number: m = 1. One reverse sweep gives the gradient for every parameter, a million of them
# if need be.

rng = np.random.default_rng(0)
matrices = [rng.normal(size=(20, 20)) / 4 for _ in range(3)]


def chain(x):
    for matrix in matrices:
        x = (gg.tensor(matrix) @ x).tanh()
    return x


point = gg.tensor(rng.normal(size=20))
columns = np.stack([jvp(chain, (point,), (gg.tensor(np.eye(20)[i]),))[1].numpy() for i in range(20)], axis=1)
_, pull = vjp(chain, point)
rows = np.stack([pull(gg.tensor(np.eye(20)[i]))[0].numpy() for i in range(20)])
print("Jacobian by columns and by rows, largest difference:", f"{np.abs(columns - rows).max():.1e}")
assert np.allclose(columns, rows)

# ## The price of a gradient
#
# Here is a small network's loss with more and more weights: how many multiplications does its gradient take
# in each mode?


def loss(w, x, target):
    hidden = (x @ w).tanh()
    return ((hidden.sum(1) - target) ** 2).sum()


forward, reverse, value = [], [], []
for width in (1, 2, 4, 8, 16, 32):
    inputs = rng.normal(size=(10, 8)), rng.normal(size=10)
    record = explain(
        lambda w, inputs=inputs: loss(w, *(gg.tensor(part) for part in inputs)), rng.normal(size=(8, width))
    ).record
    weights = 8 * width
    forward.append((weights, record.forward_products))
    reverse.append((weights, record.reverse_products))
    print(
        f"{weights:4} weights: reverse {record.reverse_products:>7,} products, forward {record.forward_products:>10,}"
    )
figure(
    "07_cost",
    chart({"forward mode": forward, "reverse mode": reverse}, x="weights", y="products", log_x=True, log_y=True),
)

# Reverse mode costs about as much as the function itself (at most a few times as much, whatever the
# function: the "cheap gradient principle", Baur and Strassen 1983). Forward mode costs that once per
# weight.
#
# ## What it costs instead
#
# Reverse mode costs memory. A reverse sweep needs the numbers of the forward pass in the opposite order, so it keeps
# all of them; forward mode forgets as it goes. Lesson 9 is about this cost. Forward mode wins if there are few inputs
# and many outputs: the speed of a whole trajectory as one parameter changes is a single forward sweep. Here 199 numbers
# are made from one:


def few_in(t):
    return gg.stack([(t * k).sin() for k in range(1, 200)])


_, speed = jvp(few_in, (gg.tensor(np.array(0.3)),), (gg.tensor(np.array(1.0)),))
expected = np.array([k * np.cos(0.3 * k) for k in range(1, 200)])

# ## The check

assert np.allclose(speed.numpy(), expected)
assert forward[-1][1] > 100 * reverse[-1][1]
assert reverse[-1][1] < 40 * reverse[0][1]  # grows with the weights, 32-fold here, not with their square
assert forward[-1][1] > 500 * forward[0][1]
print("One sweep backwards buys what costs one sweep per weight forwards.")
