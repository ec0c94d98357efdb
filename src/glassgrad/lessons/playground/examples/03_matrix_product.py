"""The gradient of a matrix product.

For y = x @ w the rule is dw = x.T @ dy and dx = dy @ w.T: look for both in the backward program.
"""

import glassgrad as gg

x = gg.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]], requires_grad=True)
w = gg.tensor([[0.2, -0.1], [0.4, 0.3], [-0.5, 0.1]], requires_grad=True)
y = x @ w
loss = (y * y).sum()
