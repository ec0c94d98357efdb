"""Broken: nothing moves.

Backward pass and step are both there, and the loss is the same in every step.
"""

import glassgrad as gg
from glassgrad import nn, optim

gg.manual_seed(1)
inputs = gg.randn(64, 2)
targets = 2.0 * inputs[:, :1] - inputs[:, 1:]
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = ((model(inputs) - targets) ** 2).mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
print(f"loss {loss.item():.3f}")
