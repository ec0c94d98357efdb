"""XOR, which no line can separate.

A hidden layer of eight units learns it. The picture shows the boundary move.
"""

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

points = gg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
labels = gg.tensor([[0.0], [1.0], [1.0], [0.0]])

gg.manual_seed(2)
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = optim.Adam(model.parameters(), lr=0.05)
for step in range(150):
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(points), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
print((model(points) > 0).int().tolist())
