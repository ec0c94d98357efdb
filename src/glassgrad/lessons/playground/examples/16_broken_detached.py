"""Broken: half of it learns.

The loss falls a little and stays. The first layer never changes; the graph shows where its gradient ends.
"""

import glassgrad as gg
from glassgrad import nn, optim

gg.manual_seed(1)
inputs = gg.randn(64, 2)
targets = inputs[:, :1] * inputs[:, 1:]
first, second = nn.Linear(2, 16), nn.Linear(16, 1)
optimizer = optim.Adam([*first.parameters(), *second.parameters()], lr=0.02)
for step in range(60):
    optimizer.zero_grad()
    hidden = first(inputs).tanh().detach()
    loss = ((second(hidden) - targets) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
