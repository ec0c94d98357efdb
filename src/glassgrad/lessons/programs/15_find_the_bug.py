"""Find the bug: twelve broken loops.

Read, guess, and then ask the doctor: none of the twelve raises an error.
"""

# Each of these twelve loops runs to its end, and none does what it should. Lesson 11 explained each of five such loops
# at once. Here you find out for yourself: read a loop, look at the number below it, and decide what is wrong before you
# go on. The doctor watches all of them; its findings are at the end.
#
# (`glassgrad exercise 15` gives you the same loops to mend, and judges each.)

import warnings
from functools import partial

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

warnings.simplefilter("ignore")  # a warning would name the bug of some loops

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
SEEN = {}


def tell(number, loop):
    def watch(*parts):
        SEEN[number] = watched(*parts)
        return SEEN[number]

    print(f"loop {number}: the loss ends at {loop(watch):.3g}")


# Here is a healthy one for comparison: the twelve should come near to its loss.


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


tell(0, healthy)

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


tell(1, loop_1)

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


tell(2, loop_2)

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


tell(3, loop_3)

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


tell(4, loop_4)

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


tell(5, loop_5)

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


tell(6, loop_6)

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


tell(7, loop_7)

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


tell(8, loop_8)

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


tell(9, loop_9)

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


tell(10, loop_10)

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


tell(11, loop_11)

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


tell(12, loop_12)

# ## The answers
#
# Have you written yours down? The doctor names each fault and its remedy.


def answer(number):
    for finding in {finding.rule: finding for finding in SEEN[number].findings if finding.severity != "info"}.values():
        print(f"{finding.rule}: {finding.advice}")


# ## Answer 1
#
# All three calls are there, but in the wrong order: the loop computes the gradients and throws them away before the
# step can use them. No weight has moved, and the loss ends where it began: 1.14.

answer(1)

# ## Answer 2
#
# `.item()` takes the number out of the graph, and a tensor made of this number has no history. `requires_grad=True`
# does not mend that; it only silences the error. Put the number into the list, and call `backward` on the loss.

answer(2)

# ## Answer 3
#
# The name says it: `with_logits` takes scores and applies the sigmoid itself. Here it gets numbers between 0 and 1,
# whose sigmoid lies between 0.5 and 0.73: the model can never say no, and hardly yes.

answer(3)

# ## Answer 4
#
# ReLU makes exact zeros. If all three scores are 0, the share is 0 / 0; if only the right one is 0, the loss takes log
# 0. One such example is enough: afterwards every weight is nan. `log_softmax` of the scores has no zeros.

answer(4)

# ## Answer 5
#
# The gradients are right, but each step goes far past the valley to a higher place on the other side, where the
# gradients are larger still. The rate times the curvature says how far past; it should stay below 2 (lesson 8).

answer(5)

# ## Answer 6
#
# With a bias of -30 no unit is ever above 0. Its output is 0 and so is its slope, and the gradient that would lift it
# is multiplied by that slope. Only the last bias still learns, and it learns how frequent the classes are.

answer(6)

# ## Answer 7
#
# The first layer multiplies by its inputs on the way up, and by the same inputs on the way down: a hundred times too
# large, twice. All inputs are positive, so its gradients also have one sign for each example and unit. Subtract the
# mean and divide by the spread, both of the training set.

answer(7)

# ## Answer 8
#
# Five sigmoids leave the first layer less than a thousandth of the gradient (lesson 13). What is left learns
# nothing but the frequency of the classes: 1.10.

answer(8)

# ## Answer 9
#
# The program called `eval()` to measure, and never called `train()` afterwards. Batch norm then uses the statistics it
# began with, mean 0 and spread 1, and never updates them. This net learns all the same, so the bug is hard to see; a
# deep net may not learn.

answer(9)

# ## Answer 10
#
# The copy for the plots is cut out of the graph, and the last layer gets this copy. So the first layer keeps its
# initial weights, and the net learns from 32 random features. Keep the cut copy, and pass the original on.

answer(10)

# ## Answer 11
#
# `[layer, activation] * 3` is a list with the same layer in it three times. It has a third of the weights, and each
# pass goes through them three times. A loop, or a comprehension, makes a new one each time.

answer(11)

# ## Answer 12
#
# The loop measures the net while dropout still removes half of its units. So the net looks worse than it is, and each
# measurement differs. With batch norm, the net would even learn from the examples that it is measured on. Call `eval()`
# before measuring, and `train()` after it.

answer(12)

# ## The check
#
# The doctor finds all twelve, and nothing in the healthy one.

found = {number: {finding.rule for finding in seen.findings} for number, seen in SEEN.items()}
planted = {
    1: "no gradients in a step",
    2: "loss detached",
    3: "activation before its loss",
    4: "logarithm of what can reach 0",
    5: "rate unfit for the weights",
    6: "dead units",
    7: "inputs unnormalised",
    8: "sigmoids too deep",
    9: "evaluation mode in training",
    10: "no gradient",
    11: "layers shared",
    12: "training mode in evaluation",
}
assert not [finding for finding in SEEN[0].findings if finding.severity != "info"]
for number, rule in planted.items():
    assert rule in found[number], f"loop {number}: {found[number]}"
print("Twelve loops, twelve bugs, none of which raised an error.")
