"""A product and a sine.

The smallest example: two numbers, three ops, two gradients. Drag a number and watch the others.
"""

import glassgrad as gg

x = gg.tensor(2.0, requires_grad=True)
y = gg.tensor(-3.0, requires_grad=True)
loss = x * y + x.sin()
