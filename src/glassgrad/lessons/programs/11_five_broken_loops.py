"""Five broken training loops to mend.

Loops that raise no error and end worse than they should; find the line.
"""

# None of these raises an error. Each trains, or seems to, and ends with a worse loss than it should. Read
# the broken one, make a guess, and then look at the mended one.

import warnings

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim

# glassgrad warns about one of them, at its line. The warning is off here, so that you can find the mistake yourself.
warnings.simplefilter("ignore", gg.errors.IdleStepWarning)

rng = np.random.default_rng(0)
inputs = rng.normal(size=(200, 2)).astype(np.float32)
labels = (inputs[:, 0] * inputs[:, 1] > 0).astype(np.int64)
numbers = (inputs[:, 0] * 2 - inputs[:, 1]).astype(np.float32)
X, LABELS, NUMBERS = gg.tensor(inputs), gg.tensor(labels), gg.tensor(numbers)


def classifier():
    gg.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))


results = {}

# ## 1. The loss goes down, then up, then anywhere


def loop_1(broken):
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        if not broken:
            optimizer.zero_grad()
        loss = ((model(X).squeeze(1) - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


# `backward` *adds* to `.grad`. Without `zero_grad` every step uses the sum of all gradients so far. This is a momentum
# of 1: it never forgets, so the loss swings.

results[1] = loop_1(True), loop_1(False)

# ## 2. It learns, but slowly, and never becomes sure


def loop_2(broken):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        scores = model(X)
        if broken:
            scores = scores.softmax(-1)
        loss = nn.functional.cross_entropy(scores, LABELS)
        loss.backward()
        optimizer.step()
    with gg.no_grad():
        return nn.functional.cross_entropy(model(X), LABELS).item()


# `cross_entropy` takes scores and applies log-softmax itself. Given probabilities, it takes their softmax
# again: numbers between 0 and 1 can differ by at most 1, so the most certain answer it can receive is e : 1.

results[2] = loop_2(True), loop_2(False)

# ## 3. The regression that finds the mean and nothing else


def loop_3(broken):
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        predicted = model(X)
        if not broken:
            predicted = predicted.squeeze(1)
        loss = ((predicted - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    with gg.no_grad():
        return ((model(X).squeeze(1) - NUMBERS) ** 2).mean().item()


# The model returns shape (200, 1), the targets have (200,). Their difference broadcasts to (200, 200):
# every prediction is compared with every target, and the best answer to all of them is their mean.

results[3] = loop_3(True), loop_3(False)

# ## 4. It trains on yesterday's gradient


def loop_4(broken):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for step in range(20):
        loss = nn.functional.cross_entropy(model(X), LABELS)
        if broken:
            optimizer.zero_grad()
            optimizer.step()
            loss.backward()
        else:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step == 0:
            first = loss.item()
    return first - loss.item()


# The three calls have an order: forget, compute, use. Here the optimizer steps right after forgetting, when there is
# nothing to use. The next round throws away the gradient that `backward` then computes. The model does not move at all.
# (The number is how much the loss fell in twenty steps: more is better.)

results[4] = loop_4(True), loop_4(False)

# ## 5. The weights that the optimizer does not know


def loop_5(broken):
    gg.manual_seed(1)
    weight = gg.zeros(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)
    if broken:
        weight = gg.tensor(weight.detach().numpy() + 0.5, requires_grad=True)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((X @ weight - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


# The program sets a starting value *after* it made the optimizer, by making a new tensor with the same name. The
# optimizer updates the old tensor, the loss uses the new one. Change the numbers inside the tensor instead, or make the
# optimizer last.

results[5] = loop_5(True), loop_5(False)

# ## The check

for number, (broken, mended) in results.items():
    print(f"loop {number}: broken {broken:7.4f}   mended {mended:7.4f}")
assert results[1][0] > 0.1
assert results[1][1] < 1e-4
assert results[2][0] > 1.3 * results[2][1]
assert results[3][0] > 1.0
assert results[3][1] < 1e-4
assert results[4][0] == 0.0
assert results[4][1] > 0.02
assert results[5][0] > 1.0
assert results[5][1] < 1e-4
print("Five loops, all mended.")
