"""Broken: the loss swings.

The loss falls, rises, and falls again. Something is missing in the loop; the doctor names it.
"""

import glassgrad as gg
from glassgrad import nn, optim

gg.manual_seed(1)
inputs = gg.randn(64, 2)
targets = 2.0 * inputs[:, :1] - inputs[:, 1:]
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    loss = ((model(inputs) - targets) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
