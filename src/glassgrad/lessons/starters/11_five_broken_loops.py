"""Mend five training loops.

None of them raises an error, and none of them learns as it should. Change the line that is wrong.
"""

# Each loop returns what it has trained. Leave the rates and the numbers of steps as they are: they are enough once the
# fault is mended. `glassgrad exercise 11 --check` trains, measures, and says which loops are still wrong.

import warnings

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim

# glassgrad warns about one of them, at its line. The warning is off here, so that you can find the mistake yourself.
warnings.simplefilter("ignore", gg.errors.IdleStepWarning)

rng = np.random.default_rng(0)
points = rng.normal(size=(200, 2)).astype(np.float32)
X = gg.tensor(points)
LABELS = gg.tensor((points[:, 0] * points[:, 1] > 0).astype(np.int64))  # two classes, as in exclusive or
NUMBERS = gg.tensor((points[:, 0] * 2 - points[:, 1]).astype(np.float32))  # a plane


def classifier():
    gg.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))


# ## 1. The loss goes down, then up, then anywhere


def loop_1():
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        loss = ((model(X).squeeze(1) - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model


# ## 2. It learns, but slowly, and never becomes sure


def loop_2():
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        scores = model(X).softmax(-1)
        loss = nn.functional.cross_entropy(scores, LABELS)
        loss.backward()
        optimizer.step()
    return model


# ## 3. The regression that finds the mean and nothing else


def loop_3():
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((model(X) - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model


# ## 4. It does not learn at all


def loop_4():
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for _ in range(50):
        loss = nn.functional.cross_entropy(model(X), LABELS)
        optimizer.zero_grad()
        optimizer.step()
        loss.backward()
    return model


# ## 5. The weights that do not move


def loop_5():
    gg.manual_seed(1)
    weight = gg.zeros(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)
    weight = gg.tensor(weight.detach().numpy() + 0.5, requires_grad=True)  # begin at 0.5
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((X @ weight - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return weight
