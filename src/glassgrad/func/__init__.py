"""Function transforms with torch.func's names; they nest in any order.

`grad`, `value_and_grad`, `vjp`, `jacrev` walk the tape backward, `jvp`, `linearize`, `jacfwd` walk it
forward, `hessian`, `hvp` and `gauss_newton_product` do both, `vmap` computes a whole batch at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base import documents
from glassgrad.engine.tree import tree_map
from glassgrad.errors.missing import getter, lister
from glassgrad.func.custom import custom_jvp, custom_vjp, straight_through
from glassgrad.func.forward import gauss_newton_product, hessian, hvp, jacfwd, jvp, linearize
from glassgrad.func.functional import functional_call, stack_module_state
from glassgrad.func.implicit import custom_root
from glassgrad.func.reverse import grad, grad_and_value, jacrev, value_and_grad, vjp
from glassgrad.func.vmap import vmap

# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "functionalize": "not needed: transforms handle in-place writes.",
}

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = [
    "custom_jvp",
    "custom_root",
    "custom_vjp",
    "functional_call",
    "gauss_newton_product",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "straight_through",
    "tree_map",
    "value_and_grad",
    "vjp",
    "vmap",
]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
