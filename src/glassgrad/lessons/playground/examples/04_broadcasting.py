"""A bias that is used in every row.

Broadcasting uses a number many times, so the backward pass sums the gradients of all its uses.
"""

import glassgrad as gg

rows = gg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-1.0, 0.0, 1.0], [2.0, 2.0, 2.0]])
bias = gg.tensor([0.5, -1.0, 0.25], requires_grad=True)
scale = gg.tensor(0.1, requires_grad=True)
shifted = scale * rows + bias
loss = (shifted**2).mean()
