"""The compiler's modules for eager ops. Ops lie below the compiler, so that `native` loads these by name."""

from __future__ import annotations

from glassgrad.ops.kernels.native import MODULES


def register() -> None:
    """Enter the modules; until then NumPy computes everything."""
    MODULES["kernels"] = "glassgrad.compile.eager_kernel"
    MODULES["jobs"] = "glassgrad.compile.native.products"
    MODULES["channels"] = "glassgrad.compile.native.channels"
