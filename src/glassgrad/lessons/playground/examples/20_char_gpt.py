"""A small GPT that reads letters.

Attention, an MLP, and layer norms: the model behind large language models, with one layer and a short text.
"""

import glassgrad as gg
from glassgrad import optim
from glassgrad.models import GPT
from glassgrad.nn import functional as F

text = "to be or not to be that is the question "
letters = sorted(set(text))
tokens = gg.tensor([letters.index(letter) for letter in text])
context = 8
inputs = gg.stack([tokens[at : at + context] for at in range(0, 24, 3)])
targets = gg.stack([tokens[at + 1 : at + context + 1] for at in range(0, 24, 3)])

gg.manual_seed(0)
model = GPT(tokens=len(letters), context=context, width=16, heads=2, layers=1)
optimizer = optim.Adam(model.parameters(), lr=0.01)
samples = []
for step in range(20):
    optimizer.zero_grad()
    logits = model(inputs)
    loss = F.cross_entropy(logits.reshape(-1, len(letters)), targets.reshape(-1))
    loss.backward()
    guess = "".join(letters[token] for token in logits[0].argmax(-1).tolist())
    samples = [f"after {text[:context]!r} it reads {guess!r}", *samples[:4]]
    optimizer.step()
print(f"loss {loss.item():.3f}")
