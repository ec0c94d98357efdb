"""Fit a line.

Forty points, two parameters, and a hundred steps downhill. Drag the rate until the loss no longer falls.
"""

import glassgrad as gg
from glassgrad import optim

gg.manual_seed(0)
x = gg.linspace(-1.0, 1.0, 40)
y = 1.5 * x - 0.5 + 0.1 * gg.randn(40)

slope = gg.tensor(0.0, requires_grad=True)
offset = gg.tensor(0.0, requires_grad=True)
optimizer = optim.SGD([slope, offset], lr=0.2)
for step in range(100):
    optimizer.zero_grad()
    loss = ((slope * x + offset - y) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"slope {slope.item():.2f}, offset {offset.item():.2f}")
