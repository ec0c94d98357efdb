"""Broken: the loss grows.

Every line is in its place, and each step makes it worse. Drag a number.
"""

import glassgrad as gg
from glassgrad import nn, optim

gg.manual_seed(1)
inputs = 3.0 * gg.randn(64, 2)
targets = 2.0 * inputs[:, :1] - inputs[:, 1:]
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.2)
for step in range(40):
    optimizer.zero_grad()
    loss = ((model(inputs) - targets) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3g}")
