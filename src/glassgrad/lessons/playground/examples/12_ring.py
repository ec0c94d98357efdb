"""A ring around a disc.

Two classes in the plane, and a network that bends its boundary around the inner one.
"""

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 120)
radius = np.where(np.arange(120) < 60, rng.uniform(0, 0.6, 120), rng.uniform(0.9, 1.3, 120))
inputs = gg.tensor(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32))
classes = gg.tensor((np.arange(120) >= 60).astype(np.int64))

gg.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = optim.Adam(model.parameters(), lr=0.03)
for step in range(120):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
right = (model(inputs).argmax(dim=1) == classes).float().mean()
print(f"loss {loss.item():.3f}, right {100 * right.item():.0f} %")
