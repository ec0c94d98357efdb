"""Why deep nets did not train.

What sixteen layers do to a gradient, measured: sigmoid, ReLU, initial weights, batch norm, residuals.
"""

# For twenty years everybody knew that networks of more than a few layers do not learn. They had enough neurons and the
# right gradients, but the gradients did not arrive. This page takes a net of sixteen layers, measures how the numbers
# change on their way up and the gradient on its way down, and then makes the changes that solved the problem.

import numpy as np

import glassgrad as gg
from glassgrad import nn
from glassgrad.lessons import chart, figure

rng = np.random.default_rng(0)
points = rng.normal(size=(128, 16))
labels = (np.sin(2 * points[:, 0]) + points[:, 1] * points[:, 2] > 0).astype(np.int64)
X, LABELS = gg.tensor(points), gg.tensor(labels)
DEPTH, WIDTH = 16, 32


class Plain(nn.Module):
    """One layer and its activation."""

    def __init__(self, layer, activation):
        super().__init__()
        self.layer, self.activation = layer, activation()

    def forward(self, x):
        return self.activation(self.layer(x))


def deep(activation, spread, block=Plain):
    """Return a net of DEPTH blocks, whose weights have a standard deviation of spread / sqrt(inputs)."""
    gg.manual_seed(1)
    layers = [nn.Linear(16 if i == 0 else WIDTH, WIDTH) for i in range(DEPTH)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=spread / layer.in_features**0.5)
        nn.init.zeros_(layer.bias)
    blocks = [block(layer, activation) for layer in layers]
    return nn.Sequential(*blocks, nn.Linear(WIDTH, 2)).double()


# ## The measurement
#
# We make one pass up and one down. For each block we measure how much its output varies over the examples, and how
# large a gradient arrives at this output. The change from block to block matters. Sixteen blocks that each multiply by
# f multiply by f to the sixteenth power together: 0.5 leaves 0.00002, and 1.5 gives 650.


def measure(model):
    outputs, x = [], X
    for block in model:
        x = block(x)
        x.retain_grad()
        outputs.append(x)
    nn.functional.cross_entropy(x, LABELS).backward()
    up = [float(out.detach().numpy().std(axis=0).mean()) for out in outputs[:DEPTH]]
    down = [float((out.grad.numpy() ** 2).mean() ** 0.5) for out in outputs[:DEPTH]]
    return up, down


def per_block(sizes):
    """Return the mean factor from one block to the next, without the first two, which see the data."""
    return (sizes[-1] / sizes[2]) ** (1 / (len(sizes) - 3))


ups, downs = {}, {}


def look(name, model):
    ups[name], downs[name] = measure(model)
    print(f"{name:<16} times {per_block(ups[name]):.2f} on the way up, times {1 / per_block(downs[name]):.2f} down")
    return per_block(ups[name]), 1 / per_block(downs[name])


# ## Sigmoid
#
# The slope of a sigmoid is y (1 - y): a quarter in the middle, nearly 0 at both ends. Each block multiplies the
# gradient by that, and by its weights, which at spread 1 change nothing on average. So the factor is a quarter at best.
# On the way up, it shrinks the differences between examples to a quarter as well: after a few blocks all examples look
# the same.

up, down = look("sigmoid", deep(nn.Sigmoid, 1.0))
assert up < 0.3
assert down < 0.3
print(f"of the gradient at block 16, block 1 gets {downs['sigmoid'][0] / downs['sigmoid'][-1]:.0e}")

# ## ReLU
#
# The slope of a rectifier is 1 where it lets a value through, so nothing is lost there. But half of the units are shut.
# This removes half of the mean square, so each block multiplies the size by the root of a half, 0.7. That is better
# than a quarter, but sixteen blocks leave a three-hundredth, both up and down.

up, down = look("ReLU", deep(nn.ReLU, 1.0))
assert 0.6 < up < 0.8
assert 0.6 < down < 0.8

# ## How to draw weights
#
# A known factor can be undone: draw the weights √2 times as large, and each block multiplies by 1. This is He's
# initialisation (2015). For tanh, whose slope is 1 in the middle, a spread of 1 is right: this is Xavier's (2010).

up, down = look("ReLU, spread √2", deep(nn.ReLU, 2**0.5))
assert 0.85 < up < 1.15
assert 0.85 < down < 1.15

# Too much is no better than too little. At spread 2 every block multiplies by 1.4, and sixteen by a hundred and more.
# Such a net throws its weights away in the first step. Clipping (lesson 10) shortens the step and leaves the cause.

up, down = look("ReLU, spread 2", deep(nn.ReLU, 2.0))
assert up > 1.25
assert down > 1.25

# ## Batch norm
#
# A good start holds as long as the weights stay near it. Batch norm (lesson 4) does not predict the scale; it measures
# the scale at every step. Its output has the same spread, whatever spread the weights have. Backward, it divides the
# gradient by the same number as before, so a wrong scale has no effect on the next block.


class Normed(nn.Module):
    """The layer, batch norm, the activation."""

    def __init__(self, layer, activation):
        super().__init__()
        self.layer, self.norm, self.activation = layer, nn.BatchNorm1d(WIDTH), activation()

    def forward(self, x):
        return self.activation(self.norm(self.layer(x)))


for spread in (0.1, 10.0):
    up, down = look(f"normed, {spread:g}", deep(nn.ReLU, spread, Normed))
    assert 0.95 < up < 1.05
    assert 1.1 < down < 1.3

# It is not free. Each batch norm in front of a rectifier makes the gradient larger by about 1.2: twenty blocks still
# work with this, a hundred do not.
#
# ## Residuals
#
# The other solution is not to multiply. A block that computes `x + f(x)` has the slope 1 + f'(x): whatever f does, the
# gradient has a path on which it loses nothing. But the sum must not grow: with f at full size, every block would
# double the square. So f starts small, here at a third.


class Residual(nn.Module):
    """The layer and its activation, added to what came in."""

    def __init__(self, layer, activation):
        super().__init__()
        self.layer, self.activation = layer, activation()

    def forward(self, x):
        y = self.activation(self.layer(x))
        return x + y if x.shape == y.shape else y


up, down = look("residual", deep(nn.ReLU, 0.3, Residual))
assert 0.9 < up < 1.15
assert 0.9 < down < 1.15

drawn = ["sigmoid", "ReLU", "ReLU, spread √2", "ReLU, spread 2", "residual"]
numbered = {name: list(enumerate(downs[name], 1)) for name in drawn}
figure("13_gradients", chart(numbered, x="block", y="gradient at its output", log_y=True))

# On this axis, a constant factor from block to block is a straight line.
#
# ## Does it learn?
#
# Each net gets the same hundred steps of plain SGD. A coin reaches a loss of 0.69. The rate falls linearly to 0. At a
# constant rate, nets as deep as these keep jumping, and the last digit of a weight decides where the last jump ends:
# the comparison would be luck.


def train(model):
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    schedule = gg.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=100)
    for _ in range(100):
        loss = nn.functional.cross_entropy(model(X), LABELS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


reached = {
    "sigmoid": train(deep(nn.Sigmoid, 1.0)),
    "ReLU": train(deep(nn.ReLU, 1.0)),
    "ReLU, spread √2": train(deep(nn.ReLU, 2**0.5)),
    "normed, 0.1": train(deep(nn.ReLU, 0.1, Normed)),
    "residual": train(deep(nn.ReLU, 0.3, Residual)),
}
for name, loss in reached.items():
    print(f"{name:<16} loss {loss:.3f}")

# ## The check
#
# A net learns from a gradient that arrives, and only from that.

assert downs["sigmoid"][0] < 1e-7 * downs["sigmoid"][-1]
assert reached["sigmoid"] > 0.69
assert reached["ReLU"] > 0.69
assert reached["ReLU, spread √2"] < 0.55
assert reached["normed, 0.1"] < 0.25
assert reached["residual"] < 0.25
print("A factor of 1 in every layer: that was all.")
