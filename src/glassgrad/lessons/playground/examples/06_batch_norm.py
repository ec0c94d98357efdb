"""Batch normalisation, step by step.

Mean and variance depend on every row, so the gradient of a row has three parts. They sum to zero over the batch.
"""

import glassgrad as gg

gg.manual_seed(1)
x = gg.randn(8, 4, requires_grad=True)
gain = gg.tensor([1.0, 2.0, 0.5, 1.5], requires_grad=True)
bias = gg.zeros(4, requires_grad=True)

mean = x.mean(dim=0)
centred = x - mean
variance = (centred**2).mean(dim=0)
normed = centred / (variance + 1e-5).sqrt()
out = gain * normed + bias
loss = (out**3).mean()
