"""Softmax and cross entropy.

Written out, the gradient of the scores has a simple form: the probabilities, less one at the right class.
"""

import glassgrad as gg

scores = gg.tensor([[2.0, 1.0, -1.0], [0.5, 0.5, 3.0]], requires_grad=True)
target = gg.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
largest = scores.max(dim=1, keepdim=True).values.detach()
powers = (scores - largest).exp()
probabilities = powers / powers.sum(dim=1, keepdim=True)
loss = -(target * probabilities.log()).sum(dim=1).mean()
