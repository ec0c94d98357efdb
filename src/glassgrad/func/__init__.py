"""Function transforms with torch.func's names; they nest in any order.

`grad`, `value_and_grad`, `vjp`, `jacrev` walk the tape backward, `jvp`, `linearize`, `jacfwd` walk it
forward, `hessian`, `hvp` and `gauss_newton_product` do both, `vmap` computes a whole batch at once.
"""

from __future__ import annotations

from glassgrad.func.forward import gauss_newton_product, hessian, hvp, jacfwd, jvp, linearize
from glassgrad.func.reverse import grad, grad_and_value, jacrev, value_and_grad, vjp
from glassgrad.func.tree import tree_map
from glassgrad.func.vmap import vmap

__all__ = [
    "gauss_newton_product", "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize",
    "tree_map", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
