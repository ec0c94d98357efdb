"""One gradient for each example.

vmap maps a function over a batch, even one that takes gradients: each example gets its own.
"""

import glassgrad as gg
from glassgrad.func import grad, vmap

examples = gg.tensor([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.0]])
targets = gg.tensor([1.0, 0.0, -1.0])
w = gg.tensor([0.3, -0.2], requires_grad=True)


def miss(weights, example, target):
    return ((weights * example).sum() - target) ** 2


each = vmap(grad(miss), in_dims=(None, 0, 0))(w.detach(), examples, targets)
print(each.tolist())
loss = sum(miss(w, example, target) for example, target in zip(examples, targets, strict=True))
