"""Attention of three words.

Each word asks all words, and takes a mean of their values. The weights of a row sum to one.
"""

import glassgrad as gg

gg.manual_seed(3)
words = gg.randn(3, 4)
ask = gg.randn(4, 4, requires_grad=True)
answer = gg.randn(4, 4, requires_grad=True)
value = gg.randn(4, 4, requires_grad=True)

queries, keys, values = words @ ask, words @ answer, words @ value
weights = (queries @ keys.T / 2.0).softmax(dim=1)
mixed = weights @ values
loss = (mixed**2).mean()
