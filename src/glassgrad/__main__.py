"""`python -m glassgrad` is the command `glassgrad`."""

from __future__ import annotations

from glassgrad.cli import main

main()
