"""Where paths meet, gradients add.

The variable a is used three times, so three terms arrive at its gradient. The graph shows each of them.
"""

import glassgrad as gg

a = gg.tensor(3.0, requires_grad=True)
square = a * a
both = square + a
loss = (both / 4.0).tanh()
