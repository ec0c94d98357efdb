"""The names MLP backward in 26 steps, and then in fewer.

Derive every gradient of a small language model, check it, and simplify until the model trains.
"""

# A small language model: three letters in, the next letter out. An embedding, a linear layer, batch norm, tanh, a
# linear layer, cross-entropy. Each step is one line, and there are 26 gradients to find. Doing all of them once is
# worth a week of reading.

import numpy as np

from glassgrad.lessons import figure
from glassgrad.lessons.pictures import pull_and_push
from glassgrad.verify import check_my_backward

# ## The model, one step per line

names = "anna ben clara david emma felix greta hannah ida jonas karla leo mira nils olga paul rosa sara tom ute".split()  # noqa: SIM905 - shorter to read
letters = ".abcdefghijklmnopqrstuvwxyz"
contexts, targets = [], []
for name in names:
    padded = "..." + name + "."
    for i in range(len(padded) - 3):
        contexts.append([letters.index(c) for c in padded[i : i + 3]])
        targets.append(letters.index(padded[i + 3]))

rng = np.random.default_rng(0)
pick = rng.permutation(len(targets))[:16]
inputs = {
    "C": rng.normal(size=(27, 4)),
    "W1": rng.normal(size=(12, 10)) * 0.4,
    "b1": rng.normal(size=10) * 0.1,
    "gain": 1 + 0.1 * rng.normal(size=10),
    "shift": 0.1 * rng.normal(size=10),
    "W2": rng.normal(size=(10, 27)) * 0.3,
    "b2": rng.normal(size=27) * 0.1,
    "contexts": np.array(contexts)[pick],
    "targets": np.array(targets)[pick],
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
    return loss  # noqa: RET504 - the name is what is printed


# ## Backwards
#
# The loss reads one entry per row of `logprobs`, with weight -1/n. From there on, four rules are enough:
#
# * elementwise: multiply by the local slope;
# * broadcast forward means sum backward (`share`, `total`, `top`, `mean`, `var`, the biases), and a sum
#   forward means broadcast backward;
# * used twice means assigned once and added to once (`counts`, `logits`, `diff`, `pre`);
# * a matrix product becomes two, with the other factor transposed.
#
# `top` is curious: it was subtracted only for stability, so its gradient should be 0, and it is. An
# embedding row collects the gradients of every place that looked it up, which is why the last line is an
# `add.at`.

all_of_them = """
dlogprobs = np.zeros_like(logprobs)
dlogprobs[np.arange(n), targets] = -1.0 / n
dprobs = dlogprobs / probs
dshare = (dprobs * counts).sum(1, keepdims=True)
dtotal = -dshare * share**2
dcounts = dprobs * share
dcounts += dtotal
dshifted = dcounts * counts
dtop = -dshifted.sum(1, keepdims=True)
dlogits = dshifted.copy()
dlogits += (logits == top) * dtop
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
db2 = dlogits.sum(0)
dact = dh * (1.0 - h**2)
dgain = (dact * hat).sum(0)
dshift = dact.sum(0)
dhat = dact * gain
dinv = (dhat * diff).sum(0, keepdims=True)
dvar = dinv * -0.5 * inv**3
ddiff2 = np.ones_like(diff2) * dvar / (n - 1)
ddiff = dhat * inv
ddiff += ddiff2 * 2 * diff
dmean = -ddiff.sum(0, keepdims=True)
dpre = ddiff.copy()
dpre += dmean / n
dflat = dpre @ W1.T
dW1 = flat.T @ dpre
db1 = dpre.sum(0)
demb = dflat.reshape(emb.shape)
dC = np.zeros_like(C)
np.add.at(dC, contexts, demb)
"""
report = check_my_backward(all_of_them, forward, inputs)
assert report
assert len({line.comparison.name for line in report.lines}) == 26

# ## The first simplification
#
# From `logits` to the loss there are eight steps. Put together they are cross-entropy, and its gradient is
# the predicted probability minus the truth: `(probs - onehot) / n`. Eleven lines become two.
#
# ## The second simplification
#
# From `pre` to `act` there are seven steps, and together they are batch norm. The lesson on batch norm
# finds one line for it; with the variance over n - 1 it has the factor n / (n - 1) once.

simplified = """
dlogits = probs.copy()
dlogits[np.arange(n), targets] -= 1
dlogits /= n
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
db2 = dlogits.sum(0)
dact = dh * (1.0 - h**2)
dgain = (dact * hat).sum(0)
dshift = dact.sum(0)
dpre = gain * inv * (dact - dact.mean(0) - hat * (dact * hat).sum(0) / (n - 1))
dW1 = flat.T @ dpre
db1 = dpre.sum(0)
dC = np.zeros_like(C)
np.add.at(dC, contexts, (dpre @ W1.T).reshape(emb.shape))
"""

# Three lines make `dlogits` here; the checker compares it after the last one.

assert check_my_backward(simplified, forward, inputs)

# ## The check: train with it
#
# The simplified backward pass is a training step. As plain NumPy on all names, it must bring the loss down.


def numpy_forward(p, rows):
    n = len(rows)
    flat = p["C"][rows].reshape(n, -1)
    pre = flat @ p["W1"] + p["b1"]
    diff = pre - pre.mean(0, keepdims=True)
    inv = ((diff**2).sum(0, keepdims=True) / (n - 1) + 1e-5) ** -0.5
    hat = diff * inv
    h = np.tanh(p["gain"] * hat + p["shift"])
    logits = h @ p["W2"] + p["b2"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    return {"flat": flat, "inv": inv, "hat": hat, "h": h, "probs": e / e.sum(1, keepdims=True)}


parameters = {name: inputs[name].copy() for name in ("C", "W1", "b1", "gain", "shift", "W2", "b2")}
rows, labels = np.array(contexts), np.array(targets)
losses = []
for _ in range(300):
    f = numpy_forward(parameters, rows)
    losses.append(-np.log(f["probs"][np.arange(len(labels)), labels]).mean())
    names_here = {**parameters, **f, "n": len(labels), "targets": labels, "contexts": rows, "np": np}
    names_here["emb"] = parameters["C"][rows]
    exec(simplified, names_here)  # noqa: S102 - the derivation above is the training step
    for name, value in parameters.items():
        value -= 0.5 * names_here[f"d{name}"]
print(f"loss before {losses[0]:.3f}, after {losses[-1]:.3f}; a uniform guess has {np.log(27):.3f}")
assert losses[-1] < 1.0

# `dlogits` is a picture worth keeping in mind. In each row, the step pulls the score of the right letter up by 1 minus
# its probability, and pushes each other score down by its own probability. A row adds up to 0. The pictures show the
# letters of two names before and after the training. Where the model knows the next letter, it pulls no more. Where
# several letters could follow, as at the beginning of a name, it pulls as hard as before.

shown = ["".join(letters[c] for c in context) for context in contexts[:8]]
for when, weights in (("before", inputs), ("after", parameters)):
    pull = numpy_forward(weights, rows)["probs"][:8] - np.eye(27)[labels[:8]]
    figure(f"05_pull_{when}", pull_and_push(pull, shown, letters, labels[:8]))
    assert np.allclose(pull.sum(1), 0)
print(f"a right letter is pulled up by {-pull.min(1).mean():.2f} on average now, instead of {1 - 1 / 27:.2f}.")
