"""The 26 gradients of the names MLP.

Derive every gradient of a small language model, one line of the forward pass at a time, and then two in one go.
"""

# The model is the one of the lesson: three letters in, the next one out. Everything in it is NumPy-sized, so
# every gradient is a line or two.

import numpy as np

names = "anna ben clara david emma felix greta hannah ida jonas karla leo mira nils olga paul rosa sara".split()
letters = ".abcdefghijklmnopqrstuvwxyz"
windows = ["..." + name + "." for name in names]
pairs = [(window[i : i + 3], window[i + 3]) for window in windows for i in range(len(window) - 3)]

rng = np.random.default_rng(0)
pick = rng.permutation(len(pairs))[:12]
inputs = {
    "C": rng.normal(size=(27, 4)),
    "W1": rng.normal(size=(12, 10)) * 0.4,
    "b1": rng.normal(size=10) * 0.1,
    "gain": 1 + 0.1 * rng.normal(size=10),
    "shift": 0.1 * rng.normal(size=10),
    "W2": rng.normal(size=(10, 27)) * 0.3,
    "b2": rng.normal(size=27) * 0.1,
    "contexts": np.array([[letters.index(letter) for letter in pairs[i][0]] for i in pick]),
    "targets": np.array([letters.index(pairs[i][1]) for i in pick]),
}


def forward(C, W1, b1, gain, shift, W2, b2, contexts, targets):
    n = contexts.shape[0]
    emb = C[contexts]
    flat = emb.reshape(n, -1)
    pre = flat @ W1 + b1
    mean = pre.sum(0, keepdims=True) / n
    diff = pre - mean
    diff2 = diff**2
    var = diff2.sum(0, keepdims=True) / (n - 1)
    inv = (var + 1e-5) ** -0.5
    hat = diff * inv
    act = gain * hat + shift
    h = act.tanh()
    logits = h @ W2 + b2
    top = logits.amax(1, keepdims=True)
    shifted = logits - top
    counts = shifted.exp()
    total = counts.sum(1, keepdims=True)
    share = total**-1
    probs = counts * share
    logprobs = probs.log()
    loss = -logprobs[np.arange(n), targets].mean()
    return loss


# ## Backwards, line by line
#
# Write a line or more for each gradient. All variables of the forward pass are there by their names, as NumPy
# arrays, and so are the gradients that you have found already. A value that is used twice is assigned first
# (`=`) and added to later (`+=`).
#
# Each gradient is judged by itself, with the right ones of the others: you may begin anywhere, and a mistake
# in one does not spoil the next.


def backward():
    dlogprobs = ...
    dprobs = ...
    dshare = ...
    dtotal = ...
    dcounts = ...
    dshifted = ...
    dtop = ...
    dlogits = ...
    dh = ...
    dW2 = ...
    db2 = ...
    dact = ...
    dgain = ...
    dshift = ...
    dhat = ...
    dinv = ...
    dvar = ...
    ddiff2 = ...
    ddiff = ...
    dmean = ...
    dpre = ...
    dflat = ...
    dW1 = ...
    db1 = ...
    demb = ...
    dC = ...


# ## In one go
#
# The eight steps from `logits` to the loss are cross-entropy, the seven from `pre` to `act` are batch norm.
# Each has a gradient that fits on a line or two. `targets` are the numbers of the right letters.


def dlogits_at_once(probs, targets):
    return ...


def dpre_at_once(dact, gain, inv, hat):
    return ...
