"""An MLP that continues names.

Three letters go in, scores for the next one come out: embedding, hidden layer, softmax. One training step of it.
"""

import glassgrad as gg
from glassgrad.nn import functional as F

names = ["emma", "olivia", "ava", "mia", "noah", "liam", "anna", "leo"]
letters = "." + "abcdefghijklmnopqrstuvwxyz"
contexts, targets = [], []
for name in names:
    window = [0, 0, 0]
    for letter in name + ".":
        contexts.append(window)
        targets.append(letters.index(letter))
        window = [*window[1:], targets[-1]]
contexts, targets = gg.tensor(contexts), gg.tensor(targets)

gg.manual_seed(0)
table = gg.randn(27, 4, requires_grad=True)
w1 = (gg.randn(12, 32) / 12**0.5).requires_grad_()
b1 = gg.zeros(32, requires_grad=True)
w2 = (gg.randn(32, 27) / 32**0.5).requires_grad_()
b2 = gg.zeros(27, requires_grad=True)

embedded = table[contexts].reshape(-1, 12)
hidden = (embedded @ w1 + b1).tanh()
logits = hidden @ w2 + b2
loss = F.cross_entropy(logits, targets)
loss.backward()
print(f"loss {loss.item():.3f}, and of a guess {gg.tensor(27.0).log().item():.3f}")
