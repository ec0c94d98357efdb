"""A tensor engine in 150 lines.

The scalar engine, for arrays: broadcasting, matrix products, the order of the walk, and adding in place.
"""

# The scalar engine of the first lesson keeps one object per number. A layer with a thousand weights would be
# thousands of objects, and Python would spend its time on them instead of on arithmetic. So the numbers are put into
# arrays: one object per *array*, one rule per *operation on arrays*. The idea stays the same. What changes fits in
# 150 lines, and this page is all of them: it is a program, and it trains a network at its end.

import itertools

import numpy as np

import glassgrad as gg

# Three things are new. Arrays of different shapes meet, so a gradient has to return to the shape of its own array. A
# slope is no longer a single number: a result of 100 entries made from 50 has 5000 slopes, too many to store. Adding
# gradients costs memory now, so it matters how they are added, and into whose array.
#
# ## Broadcasting, backwards
#
# NumPy stretches shapes: in `(4, 3) + (3,)` the row is added to each of the four rows. Going forward, one number was
# used four times; going backward, its gradient is the sum of four. Whatever was stretched is summed along the axes
# it was stretched along. These lines do it for every operation:


def shrink(g, shape):
    in_front = tuple(range(g.ndim - len(shape)))
    if in_front:
        g = g.sum(in_front)
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(stretched, keepdims=True) if stretched else g


assert shrink(np.ones((4, 3)), (3,)).tolist() == [4.0, 4.0, 4.0]
assert shrink(np.ones((4, 3)), (4, 1)).tolist() == [[3.0]] * 4

# ## A tensor
#
# A tensor has its numbers, its gradient, and the tensors that it was made from. Each of these comes with a *rule*: a
# function that takes the gradient of the result and returns the gradient of this argument. It multiplies by the 5000
# slopes without ever writing them down.
#
# `needs` is true for parameters and for everything made from them. Nobody needs the gradient of the data, so the engine
# keeps no rule for it and spends no time on it.


class Tensor:
    """An array, its gradient, and what it was made from."""

    ticks = itertools.count()

    def __init__(self, data, needs=False, made_from=()):
        self.data = np.asarray(data, dtype=np.float64)
        self.made_from = [(argument, rule) for argument, rule in made_from if argument.needs]
        self.needs = needs or bool(self.made_from)
        self.grad, self.owned = None, False
        self.tick = next(Tensor.ticks)


def tensor(x):
    return x if isinstance(x, Tensor) else Tensor(x)


# ## Adding in place, and whose array it is
#
# Most tensors are used once and get one gradient. They keep it without a copy. But then the array is only *borrowed*:
# in `z = x + y` the same array arrives at x and at y, and adding to it in place would change both. So a second gradient
# makes a new array, and only from the third on `+=` may work in place.


def receive(self, g):
    g = shrink(g, self.data.shape)
    if self.grad is None:
        self.grad, self.owned = g, False
    elif self.owned:
        self.grad += g
    else:
        self.grad, self.owned = self.grad + g, True


Tensor.receive = receive

# ## Going backwards
#
# A tensor may send its gradient on when the gradient is complete. Lesson 6 found the cheapest order: everything is
# younger than what it was made from, so go from the youngest to the oldest. Intermediate tensors drop their gradients
# as soon as they have sent them on, which keeps the memory of a backward pass small. Parameters keep theirs, in an
# array of their own, so that the next pass can add to it.


def backward(self):
    found, waiting = {self}, [self]
    while waiting:
        fresh = {argument for argument, _ in waiting.pop().made_from} - found
        found |= fresh
        waiting += fresh
    self.grad = np.ones_like(self.data)
    for t in sorted(found, key=lambda t: t.tick, reverse=True):
        for argument, rule in t.made_from:
            argument.receive(rule(t.grad))
        if t.made_from:
            t.grad = None
        elif not t.owned:
            t.grad, t.owned = np.array(t.grad), True


Tensor.backward = backward

# ## Operations, number by number
#
# Each is one line for the result and one rule for each argument. The rules know nothing about broadcasting, because
# `shrink` comes after them. Subtraction and division are made of the others and need no rules.


def add(a, b):
    a, b = tensor(a), tensor(b)
    return Tensor(a.data + b.data, made_from=[(a, lambda g: g), (b, lambda g: g)])


def multiply(a, b):
    a, b = tensor(a), tensor(b)
    return Tensor(a.data * b.data, made_from=[(a, lambda g: g * b.data), (b, lambda g: g * a.data)])


def power(a, k):
    return Tensor(a.data**k, made_from=[(a, lambda g: g * k * a.data ** (k - 1))])


def exp(a):
    y = np.exp(a.data)
    return Tensor(y, made_from=[(a, lambda g: g * y)])


def log(a):
    return Tensor(np.log(a.data), made_from=[(a, lambda g: g / a.data)])


def tanh(a):
    y = np.tanh(a.data)
    return Tensor(y, made_from=[(a, lambda g: g * (1 - y * y))])


def relu(a):
    return Tensor(np.maximum(a.data, 0), made_from=[(a, lambda g: g * (a.data > 0))])


Tensor.__add__ = Tensor.__radd__ = add
Tensor.__mul__ = Tensor.__rmul__ = multiply
Tensor.__pow__ = power
Tensor.__neg__ = lambda a: a * -1.0
Tensor.__sub__ = lambda a, b: a + -tensor(b)
Tensor.__rsub__ = lambda a, b: -a + b
Tensor.__truediv__ = lambda a, b: a * tensor(b) ** -1.0
Tensor.__rtruediv__ = lambda a, b: b * a**-1.0
Tensor.__array_ufunc__ = None  # so that array * tensor calls the Tensor's method instead of making an array of tensors
Tensor.exp, Tensor.log, Tensor.tanh, Tensor.relu = exp, log, tanh, relu

# ## The product of matrices
#
# What is the rule of `a @ b`? There is only one way in which the shapes fit. With a of shape (n, k) and b of (k, m) the
# gradient of the result is (n, m); to get (n, k) out of it, multiply by b transposed, from the right; to get (k, m), by
# a transposed, from the left. (Lesson 2 derives what the shapes only suggest.) Stacks of matrices come for free: the
# product broadcasts over the axes in front, and `shrink` undoes that.


def matmul(a, b):
    a, b = tensor(a), tensor(b)
    to_a, to_b = (lambda g: g @ np.swapaxes(b.data, -1, -2)), (lambda g: np.swapaxes(a.data, -1, -2) @ g)
    return Tensor(a.data @ b.data, made_from=[(a, to_a), (b, to_b)])


# ## Operations that move or gather numbers
#
# A sum sends its gradient to everything that it summed. The rule of `reshape` reshapes back. An index sends each
# gradient back to the entry that it picked; a row that was picked twice gets both, so the rule uses `np.add.at` instead
# of an assignment.


def total(a, axis=None, keepdims=False):
    def spread(g):
        lost = axis is not None and not keepdims
        return np.broadcast_to(np.expand_dims(g, axis) if lost else g, a.data.shape)

    return Tensor(a.data.sum(axis=axis, keepdims=keepdims), made_from=[(a, spread)])


def mean(a, axis=None, keepdims=False):
    result = a.sum(axis, keepdims)
    return result * (result.data.size / a.data.size)


def reshape(a, *shape):
    return Tensor(a.data.reshape(shape), made_from=[(a, lambda g: g.reshape(a.data.shape))])


def swapaxes(a, i, j):
    return Tensor(np.swapaxes(a.data, i, j), made_from=[(a, lambda g: np.swapaxes(g, i, j))])


def pick(a, index):
    def put_back(g):
        out = np.zeros_like(a.data)
        np.add.at(out, index, g)
        return out

    return Tensor(a.data[index], made_from=[(a, put_back)])


Tensor.__matmul__, Tensor.__getitem__ = matmul, pick
Tensor.sum, Tensor.mean, Tensor.reshape, Tensor.swapaxes = total, mean, reshape, swapaxes

# ## What is built of them
#
# Everything else is made of these, and needs no rule: a loss, a layer, a step. Log-softmax subtracts the largest score
# as a plain number: this does not change the result, so the gradient would be 0 anyway (lesson 5).


def cross_entropy(scores, labels):
    shifted = scores - scores.data.max(-1, keepdims=True)
    log_share = shifted - shifted.exp().sum(-1, keepdims=True).log()
    return -log_share[np.arange(len(labels)), labels].mean()


class Linear:
    """x @ weight + bias."""

    def __init__(self, inputs, outputs, rng):
        self.weight = Tensor(rng.normal(size=(inputs, outputs)) / np.sqrt(inputs), needs=True)
        self.bias = Tensor(np.zeros(outputs), needs=True)

    def __call__(self, x):
        return x @ self.weight + self.bias


def step(parameters, rate):
    for p in parameters:
        p.data -= rate * p.grad
        p.grad = None


# That was the engine. Here it learns which points lie in a disc.

rng = np.random.default_rng(0)
points = rng.uniform(-1, 1, size=(200, 2))
inside = (np.hypot(*points.T) < 0.7).astype(int)
first, last = Linear(2, 32, rng), Linear(32, 2, rng)
parameters = [first.weight, first.bias, last.weight, last.bias]
losses = []
for _ in range(300):
    loss = cross_entropy(last(first(Tensor(points) * 3.0).tanh()), inside)
    loss.backward()
    losses.append(loss.data)
    step(parameters, 0.5)
scores = last(first(Tensor(points) * 3.0).tanh()).data
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; right: {(scores.argmax(1) == inside).mean():.0%}")

# ## What happens without care
#
# Leave out the difference between borrowed and owned, and the engine still passes most tests. Here x gets a gradient
# that it shares with y, adds the next one to it in place, and changes y's gradient too.


def careless(self, g):
    if self.grad is None:
        self.grad = shrink(g, self.data.shape)
    else:
        self.grad += shrink(g, self.data.shape)


def gradients_with(method):
    Tensor.receive = method
    x, y = Tensor([1.0, 2.0], needs=True), Tensor([3.0, 4.0], needs=True)
    (x * 3.0 + (x + y) * 2.0).sum().backward()
    Tensor.receive = receive
    return x.grad.tolist(), y.grad.tolist()


print("with care:   ", *gradients_with(receive))
print("without care:", *gradients_with(careless))
assert gradients_with(receive) == ([5.0, 5.0], [2.0, 2.0])
assert gradients_with(careless)[1] != [2.0, 2.0]

# ## The check
#
# This engine and glassgrad's give the same gradients of the network, up to rounding. An expression that uses most of
# the rules is compared with nudges of each number.

theirs = [gg.tensor(p.data, requires_grad=True) for p in parameters]
w1, b1, w2, b2 = theirs
out = (gg.tensor(points) * 3.0 @ w1 + b1).tanh() @ w2 + b2
gg.nn.functional.cross_entropy(out, gg.tensor(inside)).backward()
cross_entropy(last(first(Tensor(points) * 3.0).tanh()), inside).backward()
for mine, other in zip(parameters, theirs, strict=True):
    assert np.allclose(mine.grad, other.grad.numpy(), rtol=1e-10, atol=1e-14)


def everything(a, b):
    stacked = (a.reshape(2, 1, 3, 2) @ b.swapaxes(0, 1)).relu() + a.mean()
    return ((stacked**2 + 1.0).log() / (b[[0, 0, 1]].exp().sum(1, keepdims=True) + 2.0).sum()).sum()


a, b = Tensor(rng.normal(size=(4, 3)), needs=True), Tensor(rng.normal(size=(3, 2)), needs=True)
everything(a, b).backward()
for t in (a, b):
    for at in np.ndindex(t.data.shape):
        kept, results = t.data[at], []
        for nudge in (1e-6, -1e-6):
            t.data[at] = kept + nudge
            results.append(float(everything(a, b).data))
        t.data[at] = kept
        assert abs((results[0] - results[1]) / 2e-6 - t.grad[at]) < 1e-6
assert losses[-1] < 0.2
print("The same gradients as the library, and as nudges.")
