"""Which generic tests cover a primitive: read off its entry, by the same conditions that the tests use.

tests/docs/test_op_table.py holds this against the tests themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glassgrad.ops.core import Elementwise, Fused, Primitive


class Check(NamedTuple):
    """One generic test: its sign in the table, what it shows, and where it is (file::function)."""

    sign: str
    shows: str
    test: str


CHECKS = (
    Check("D", "the gradient equals central differences in float64, over a sweep of step sizes",
          "tests/ops/test_primitives.py::test_reverse_agrees_with_central_differences"),
    Check("F", "forward mode agrees with reverse mode: &lt;g, J t&gt; = &lt;Jᵀ g, t&gt;",
          "tests/func/test_registry_transforms.py::test_forward_mode_agrees_with_reverse_mode"),
    Check("2", "second derivatives, reverse over reverse and forward over reverse, agree with differences of the first",
          "tests/func/test_registry_transforms.py::test_second_order_agrees_with_central_differences"),
    Check("V", "under vmap it gives what a loop over the examples gives",
          "tests/func/test_registry_transforms.py::test_vmap_agrees_with_a_loop"),
    Check("L", "memory layout does not matter (Fortran order, negative strides, read-only), float32 stays float32",
          "tests/ops/test_primitives.py::test_memory_layout_does_not_matter_and_inputs_are_left_alone"),
    Check("E", "values and gradients at 0, -0.0, huge, tiny, infinite and NaN arguments are PyTorch's",
          "tests/ops/test_edges_registry.py::test_edges"),
    Check("B", "size 1 broadcasts in every position, and gradients are summed back",
          "tests/ops/test_dtypes_registry.py::test_size_1_broadcasts_in_every_position"),
    Check("N", "values and dtypes are NumPy's for booleans, integers and all floats",
          "tests/ops/test_dtypes_registry.py::test_promotion_is_numpys"),
    Check("=", "the hand-derived fused gradient equals the one of its decomposition",
          "tests/ops/test_primitives.py::test_fused_agrees_with_its_decomposition"),
)  # fmt: skip  # a table


def signs(prim: Primitive) -> str:
    """Return the signs of the generic tests that run this primitive."""
    found = ""
    if prim.samples and prim.differentiable:
        found += "DF2"
    if prim.samples:
        found += "V"
    if prim.samples and prim.differentiable:
        found += "L"
    if isinstance(prim, Elementwise) and prim.differentiable:
        found += "E"
        if prim.arity > 1:
            found += "B"
    if isinstance(prim, Elementwise) and isinstance(getattr(np, str(prim.forward), None), np.ufunc):
        found += "N"
    if isinstance(prim, Fused) and prim.samples:
        found += "="
    return found


__all__ = ["CHECKS", "Check", "signs"]
