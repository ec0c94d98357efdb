"""The C compiler of this machine."""

from __future__ import annotations

import os
import shutil


def compiler() -> str | None:
    """Return the C compiler of this machine: the one that CC names, or cc, gcc or clang; None without one."""
    named = os.environ.get("CC", "").split()
    return next((found for name in (*named[:1], "cc", "gcc", "clang") if (found := shutil.which(name))), None)
