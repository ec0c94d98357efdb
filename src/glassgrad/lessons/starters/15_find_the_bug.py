"""Find the bug: twelve broken loops.

Mend twelve training loops, none of which raises an error. The doctor judges them.
"""

# These are the loops of the lesson. Mend each of them where it is broken, and leave the rest as it is: the data, the
# number of steps, and the `watch` block, through which the judge looks. A mended loop returns a loss of 0.3 to 0.8.

import warnings
from functools import partial

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

warnings.simplefilter("ignore")  # no hints from there

rng = np.random.default_rng(0)
points = rng.normal(size=(240, 8)).astype(np.float32)
labels = (points @ rng.normal(size=(8, 3))).argmax(1)
X, LABELS = gg.tensor(points), gg.tensor(labels)


def batches(steps=20, size=48):
    order = np.random.default_rng(2).permutation(len(points))
    for step in range(steps):
        rows = order[(np.arange(size) + step * size) % len(points)]
        yield X[rows], LABELS[rows]


def classifier():
    gg.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))


def ended(model):
    """Return the loss over all points; a coin with three sides has 1.10."""
    with gg.no_grad():
        return F.cross_entropy(model(X), LABELS).item()


watched = partial(gg.doctor.watch, report=False, preset="full", every=4)


# A healthy one, for comparison: this is what the twelve should come near to.


def healthy(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 1


def loop_1(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
    return ended(model)


# ## Loop 2


def loop_2(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    losses = []
    with watch(model, optimizer):
        for x, y in batches():
            losses.append(F.cross_entropy(model(x), y).item())
            optimizer.zero_grad()
            gg.tensor(losses[-1], requires_grad=True).backward()
            optimizer.step()
    return ended(model)


# ## Loop 3


def loop_3(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            truth = F.one_hot(y, 3).float()
            loss = F.binary_cross_entropy_with_logits(model(x).sigmoid(), truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 4


def loop_4(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            shares = model(x).relu()
            shares = shares / shares.sum(1, keepdim=True)
            loss = -shares[np.arange(len(y)), y].log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 5


def loop_5(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=10)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 6


def loop_6(watch=watched):
    model = classifier()
    nn.init.constant_(model[0].bias, -30.0)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 7


def loop_7(watch=watched):
    pixels = X * 40 + 128  # as a camera gives them
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for step in range(20):
            rows = slice(12 * step, 12 * step + 12)
            loss = F.cross_entropy(model(pixels[rows]), LABELS[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with gg.no_grad():
        return F.cross_entropy(model(pixels), LABELS).item()


# ## Loop 8


def loop_8(watch=watched):
    gg.manual_seed(1)
    layers = [nn.Linear(8, 32), nn.Sigmoid()]
    for _ in range(4):
        layers += [nn.Linear(32, 32), nn.Sigmoid()]
    model = nn.Sequential(*layers, nn.Linear(32, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 9


def loop_9(watch=watched):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    model.eval()
    start = ended(model)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return min(start, ended(model))


# ## Loop 10


def loop_10(watch=watched):
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            gg.manual_seed(1)
            self.first, self.last = nn.Linear(8, 32), nn.Linear(32, 3)
            self.kept = None

        def forward(self, x):
            self.kept = self.first(x).relu().detach()  # for the plots
            return self.last(self.kept)

    model = Features()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 11


def loop_11(watch=watched):
    gg.manual_seed(1)
    layers = [nn.Linear(8, 32), nn.Tanh(), *[nn.Linear(32, 32), nn.Tanh()] * 3, nn.Linear(32, 3)]
    model = nn.Sequential(*layers)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


# ## Loop 12


def loop_12(watch=watched):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            reached = ended(model)
    return reached
