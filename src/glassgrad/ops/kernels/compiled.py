"""Register the compiler's modules for eager ops. Ops must not import the compiler: `native` loads these by name."""

from __future__ import annotations

from glassgrad.ops.kernels.native import MODULES


def register() -> None:
    """Register the modules; until then NumPy computes everything."""
    MODULES["kernels"] = "glassgrad.compile.eager_kernel"
    MODULES["jobs"] = "glassgrad.compile.native.products"
    MODULES["channels"] = "glassgrad.compile.native.channels"
