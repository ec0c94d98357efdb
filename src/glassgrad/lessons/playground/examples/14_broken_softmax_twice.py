"""Broken: never quite sure.

It learns, but slowly, and the loss stays high although the answers are right.
"""

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

gg.manual_seed(1)
inputs = gg.randn(64, 2)
classes = (inputs[:, 0] + inputs[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softmax(dim=1))
optimizer = optim.SGD(model.parameters(), lr=0.5)
for step in range(60):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
