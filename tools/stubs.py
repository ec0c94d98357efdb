"""Write the stubs of the packages whose names live in families: `python tools/stubs.py`; `make format` runs it.

A type checker does not see what `glassgrad._families` finds as the program runs. Each stub says the same from the same
lists, and tests/repo/test_families.py holds every stub against what this script writes.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVED = ("nn", "nn.functional", "optim", "optim.lr_scheduler", "train")
HEAD = """\
# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
"""


def stub(name: str) -> str:
    """Return the stub of a module below `glassgrad`."""
    module = importlib.import_module(f"glassgrad.{name}")
    from glassgrad._families import FOUND

    families = FOUND[module.__name__]
    lines = [f"from {families.package} import {one} as {one}" for one in sorted(families.modules)]
    stars = {home: f"from {home} import *" for home, _ in families.listed()}
    single = [(home, f"from {home} import {one} as {one}") for one, home in (families.elsewhere or {}).items()]
    return HEAD + "\n".join([*lines, *(line for _, line in sorted([*stars.items(), *single]))]) + "\n"


def path_of(name: str) -> Path:
    """Return the file of a stub, beside what it speaks of."""
    base = ROOT / "src" / "glassgrad" / name.replace(".", "/")
    return base / "__init__.pyi" if base.is_dir() else base.with_suffix(".pyi")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    for served in SERVED:
        path_of(served).write_text(stub(served), encoding="utf-8")
