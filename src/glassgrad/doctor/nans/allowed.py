"""The ops and modules that may make NaN or infinities on purpose."""

from __future__ import annotations

from collections.abc import Collection

from glassgrad import errors
from glassgrad.doctor.library import Module
from glassgrad.ops.core import REGISTRY


def checked(model: Module, allow: Collection[str] | str) -> frozenset[str]:
    """Return the names after checking that each one names an op or a module."""
    names = frozenset({allow} if isinstance(allow, str) else allow)
    modules = {name for name, _ in model.named_modules()} if hasattr(model, "named_modules") else set()
    for name in sorted(names):
        if name not in REGISTRY and name not in modules:
            raise errors.NAN_ALLOW(given=name, modules=", ".join(sorted(modules - {""})) or "none with a name")
    return names
